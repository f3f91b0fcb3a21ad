"""Load generated rulesets of nftables mode into a namespace: nft lists them as they were made.

Run as a program, which leaves the host's network namespace for good before it does anything else.
"""

from __future__ import annotations

import json
import re
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings

from analyzer.kubeproxy.generate import Layout
from netns_lab.command import run
from netns_lab.namespace import Namespace, leave_host
from tests.support.clusters import GeneratedCluster, clusters

#: nft prints less of such a rule than it takes.
_MAPPED: Final = re.compile(r"dnat (ip6?) to numgen")


def rulesets(layout: Layout, wanted: int) -> list[str]:
    made: list[str] = []

    @seed(1)
    @settings(
        max_examples=wanted,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(clusters(layout))
    def draw(cluster: GeneratedCluster) -> None:
        made.append(cluster.nft)

    draw()
    return made


def main(wanted: int) -> None:
    leave_host()
    listed, differing = 0, []
    with Namespace("nft") as namespace:
        for layout in (Layout.V1_30, Layout.V1_36):
            for text in rulesets(layout, wanted):
                taken = _MAPPED.sub(r"dnat \1 addr . port to numgen", text)
                run(namespace, ["nft", "-f", "-"], f"flush ruleset\n{taken}")
                found = run(namespace, ["nft", "list", "ruleset"]).stdout
                listed += 1
                if found != text:
                    differing.append((text, found))
    print(json.dumps({"listed": listed, "differing": differing[:1]}))  # noqa: T201  # its answer
