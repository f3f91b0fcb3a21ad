"""Load generated rulesets of nftables mode into a namespace: nft lists them as they were made.

Run as a program, which leaves the host's network namespace for good before it does anything else.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings

from analyzer.kubeproxy.generate import RulesLayout
from netns_lab.command import run
from netns_lab.namespace import Namespace, leave_host
from tests.support.clusters import GeneratedCluster, clusters

#: nft prints less of such a rule than it takes.
_MAPPED: Final = re.compile(r"dnat (ip6?) to numgen")
#: A set that several networks were joined into; given as it is printed it is listed without braces.
_JOINED: Final = re.compile(r"saddr != \{ (\S+) \}")


def rulesets(layout: RulesLayout, options: argparse.Namespace) -> list[str]:
    made: list[str] = []

    @seed(options.seed)
    @settings(
        max_examples=options.examples,
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


def main(words: Sequence[str] | None = None) -> int:
    """Load rulesets of each layout and list them; 1: something is listed differently."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=30, help="of each layout")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    leave_host()
    listed, differing = 0, []
    with Namespace("nft") as namespace:
        for layout in (RulesLayout.V1_30, RulesLayout.V1_36):
            for text in rulesets(layout, options):
                taken = _MAPPED.sub(r"dnat \1 addr . port to numgen", text)
                taken = _JOINED.sub(r"saddr != { \1, \1 }", taken)
                run(namespace, ["nft", "-f", "-"], f"flush ruleset\n{taken}")
                found = run(namespace, ["nft", "list", "ruleset"]).stdout
                listed += 1
                if found != text:
                    differing.append((text, found))
    json.dump({"listed": listed, "differing": differing[:1]}, sys.stdout)
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
