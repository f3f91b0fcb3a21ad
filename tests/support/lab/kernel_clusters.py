"""Rules of generated clusters, restored by the real iptables and saved again: the same rows?

A program: it leaves the host's network. Prints what it found as JSON.
"""

from __future__ import annotations

import json
import re
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import Layout
from netns_lab.command import run
from netns_lab.namespace import Namespace, leave_host
from tests.support.clusters import GeneratedCluster, clusters

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
        run(self._namespace, [f"{binary}-restore"], cluster.dump)
        saved = tables(run(self._namespace, [f"{binary}-save"]).stdout)
        for table, wanted in tables(cluster.dump).items():
            found = saved.get(table, [])
            if found != wanted:
                odd = [row for row in (*found, *wanted) if (row in found) != (row in wanted)]
                self.faults.append(f"{binary} {table}: {odd[:2] or 'another order'}")
        self.restored[f"{binary} {cluster.layout.value}"] += 1


def main(examples: int) -> None:
    """Offer both backends `examples` clusters of any layout and family each."""
    leave_host()
    found = {}
    for backend in ("legacy", "nft"):
        trial = Trial(backend)
        _try(trial, examples)
        found[backend] = {"restored": trial.restored, "faults": trial.faults}
    print(json.dumps(found))  # noqa: T201  # for the test that runs this


def _try(trial: Trial, examples: int) -> None:
    @seed(7)
    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(Layout).flatmap(clusters))
    def each(cluster: GeneratedCluster) -> None:
        trial.put(cluster)

    each()
