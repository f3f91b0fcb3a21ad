"""Answers about whole clusters, for tests of reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from analyzer.cluster.drift import Drifted
from analyzer.cluster.drift_kinds import Drift, Finding
from analyzer.cluster.from_dumps import FromDumps
from analyzer.cluster.store import DONE, FAILED, NodeRow
from analyzer.reports.cluster_build_answer import BuildAnswer
from analyzer.reports.cluster_drift_answer import DriftAnswer

#: A cluster of which not all is known.
READ: Final = FromDumps(
    folder="cluster",
    nodes=("worker1", "worker2"),
    failed=(("worker3", "no dump of rules"),),
    unseen=(("worker4", "no kube-proxy rules found"),),
    without=("worker5",),
)


def build_answer(text: str) -> BuildAnswer:
    """Return what a build has read: of one node it is called what stands in a dump."""
    name = text[text.find("ns/a") :][:20].partition("\n")[0] or "worker1"
    nodes = (
        NodeRow(
            node=name,
            source="/d/worker1.txt",
            state=DONE,
            files=("/d/worker1.txt",),
            taken="2024-01-01T00:00:00+00:00",
            mode="iptables",
            rules=1_234,
        ),
        NodeRow(node="worker2", source="/d/worker2.txt", state=DONE, mode="none", unseen="none"),
        NodeRow(node="worker3", source="/d/worker3.txt", state=FAILED, reason="cut off"),
    )
    tables = ("endpoints", "distributions", "routes", "service_ports", "blocks", "maps")
    return BuildAnswer(
        folder="cluster",
        nodes=nodes,
        read=2,
        contents=dict.fromkeys(tables, 7),
        bytes=12_345,
        every=True,
    )


def drift_answer(text: str) -> DriftAnswer:
    """Return differences of two nodes, in a ServicePort that is called what stands in a dump."""
    name = text[text.find("ns/a") :][:20].partition("\n")[0] or "ns/a"
    stale = Finding(
        drift=Drift.STALE_ENDPOINT, node="worker1", service=name, protocol="tcp", what="10.0.0.9:80"
    )
    mark = Finding(drift=Drift.OTHER_MARK, node="worker2", what="0x8000, not 0x4000")
    nodes = (
        NodeRow(
            node="worker1",
            source="/d/worker1.txt",
            state=DONE,
            taken="2024-01-01T00:00:00+00:00",
            synced=1_704_060_000.0,
        ),
        NodeRow(node="worker2", source="/d/worker2.txt", state=DONE),
        NodeRow(node="worker3", source="/d/worker3.txt", state=FAILED, reason="cut off"),
    )
    return DriftAnswer(
        folder="cluster",
        drifted=Drifted(
            findings=(stale, mark),
            nodes=("worker1", "worker2"),
            compared=12,
            not_judged=("ns/b",),
            by_objects=True,
        ),
        rows=nodes,
        objects_taken=datetime(2024, 1, 1, tzinfo=UTC),
        assumed=("kube-proxy 1.36",),
        diagnostics=build_answer(text).diagnostics,
    )
