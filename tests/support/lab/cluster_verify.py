"""``lab verify`` of generated clusters, as every version of kube-proxy writes their rules.

    python -m tests.support.lab.cluster_verify [--seconds 60] [--seed N] [--keep FOLDER]

Each cluster has up to five Services of all kinds, and is of IPv4 or IPv6, in iptables or nftables
mode. What is printed and kept: see `verified`. Exit status 1: a dump disagrees.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings

from analyzer.kubeproxy.generate import RulesLayout
from tests.support.clusters import GeneratedCluster, clusters
from tests.support.lab.kernel_clusters import with_chains_of_the_kubelet
from tests.support.lab.verified import Verified, options

#: Layouts of which kube-proxy has an nftables mode.
_WITH_NFT: Final = frozenset({RulesLayout.V1_30, RulesLayout.V1_36})
#: There are many routes, and whatever is wrong with one is most often wrong with all its flows.
_RESOLUTION: Final = ("--resolution", "20%")


def put(cluster: GeneratedCluster, verified: Verified, *, nft: bool) -> None:
    """Measure what is predicted of one cluster's rules."""
    text = cluster.nft if nft else with_chains_of_the_kubelet(cluster.dump)
    case = f"{'nftables' if nft else 'iptables'} {cluster.layout.value} IPv{cluster.family}"
    verified.put(text, cluster.items, cluster.node, case, _RESOLUTION)


def _try(layout: RulesLayout, number: int, use: Callable[[GeneratedCluster], None]) -> None:
    @seed(number)
    @settings(
        max_examples=2,  # the first is the smallest
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(clusters(layout))
    def each(cluster: GeneratedCluster) -> None:
        use(cluster)

    each()


def main() -> int:
    asked = options(__doc__)
    verified, until = Verified(asked.keep, asked.seed), time.monotonic() + asked.seconds
    random = Random(asked.seed)
    while time.monotonic() < until and verified.counts["dumps"] < asked.dumps:
        layout = random.choice(list(RulesLayout))
        nft = layout in _WITH_NFT and random.random() < 0.5
        _try(layout, random.getrandbits(32), partial(put, verified=verified, nft=nft))
    return verified.finish()


if __name__ == "__main__":
    sys.exit(main())
