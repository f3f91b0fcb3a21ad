"""Rules of generated clusters, restored by the real iptables and saved again: the same rows?

A program: it leaves the host's network. Prints what it found as JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.names import MARK_DROP
from netns_lab.command import run
from netns_lab.namespace import Namespace, leave_host
from tests.support.clusters import GeneratedCluster, clusters

_MARK_DROP = f":{MARK_DROP} -"
_COUNTERS = ("ct_state_invalid_dropped_pkts", "localhost_nps_accepted_pkts")


def tables(text: str) -> dict[str, list[str]]:
    """Return the rows of each table, chains without the counters of their policies."""
    found: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in text.splitlines():
        if line.startswith("*"):
            rows = found.setdefault(line, [])
        elif not line.startswith("#"):
            rows.append(re.sub(r" \[\d+:\d+\]$", "", line))
    return found


def with_chains_of_the_kubelet(dump: str) -> str:
    """Return a dump with the chain that kube-proxy expects and, in old versions, does not write."""
    if f" -j {MARK_DROP}" not in dump or f"\n:{MARK_DROP} " in dump:
        return dump
    return dump.replace("*nat\n", f"*nat\n{_MARK_DROP} [0:0]\n")


class Trial:
    """Clusters on one backend, and where what was saved is not what was restored."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._namespace = Namespace(backend)
        for name in _COUNTERS:
            run(self._namespace, ["nfacct", "add", name])
        self.restored: Counter[str] = Counter()
        self.faults: list[str] = []

    def put(self, cluster: GeneratedCluster) -> None:
        """Restore all tables of a cluster's dump, and hold what is saved against them."""
        binary = f"{'iptables' if cluster.family == 4 else 'ip6tables'}-{self._backend}"
        run(self._namespace, [f"{binary}-restore"], with_chains_of_the_kubelet(cluster.dump))
        saved = tables(run(self._namespace, [f"{binary}-save"]).stdout)
        for table, wanted in tables(cluster.dump).items():
            found = [row for row in saved.get(table, []) if row in wanted or row != _MARK_DROP]
            if found != wanted:
                odd = [row for row in (*found, *wanted) if (row in found) != (row in wanted)]
                self.faults.append(f"{binary} {table}: {odd[:2] or 'another order'}")
        self.restored[f"{binary} {cluster.layout.value}"] += 1


def main(words: Sequence[str] | None = None) -> int:
    """Offer both backends clusters of each layout and family; 1: rows came back changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=15, help="of each layout and family")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(words)
    leave_host()
    found = {}
    for backend in ("legacy", "nft"):
        trial = Trial(backend)
        for layout in RulesLayout:
            for family in (4, 6):
                _try(trial, clusters(layout, families=st.just(family)), options)
        found[backend] = {"restored": trial.restored, "faults": trial.faults}
    json.dump(found, sys.stdout)
    return int(any(trial["faults"] for trial in found.values()))


def _try(
    trial: Trial, made: st.SearchStrategy[GeneratedCluster], options: argparse.Namespace
) -> None:
    @seed(options.seed)
    @settings(
        max_examples=options.examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(made)
    def each(cluster: GeneratedCluster) -> None:
        trial.put(cluster)

    each()


if __name__ == "__main__":
    sys.exit(main())
