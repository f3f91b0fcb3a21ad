"""Answers about whole clusters, for tests of reports."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

from analyzer.cluster.course import Length, Lost, Stood, Stretch
from analyzer.cluster.drift import Drifted
from analyzer.cluster.drift_kinds import DriftFinding, DriftKind
from analyzer.cluster.from_dumps import FromDumps
from analyzer.cluster.store import DONE, FAILED, NodeRow
from analyzer.model.probability import NEVER, Bounds, Dyadic
from analyzer.reports.cluster_build_answer import BuildAnswer
from analyzer.reports.cluster_drift_answer import DriftAnswer
from analyzer.reports.cluster_timeline_answer import (
    ChangedService,
    Look,
    LostAt,
    NodeCourse,
    TimelineOfDumpsAnswer,
    Wrong,
)

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
    stale = DriftFinding(
        drift=DriftKind.STALE_ENDPOINT,
        node="worker1",
        service=name,
        protocol="tcp",
        what="10.0.0.9:80",
    )
    mark = DriftFinding(drift=DriftKind.OTHER_MARK, node="worker2", what="0x8000, not 0x4000")
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


def course_answer(text: str) -> TimelineOfDumpsAnswer:
    """Return two nodes over time, one dump cut off; a ServicePort is called as in a dump."""
    name = text[text.find("ns/a") :][:20].partition("\n")[0] or "ns/a"
    times = [Fraction(1_704_067_200 + 60 * at) for at in range(4)]
    looks = tuple(
        Look(at=at, clock=clock, source=f"/d/worker1-{number}.txt", why=why)
        for number, (at, clock, why) in enumerate(
            zip(times, ("name", "bundle", "dump", "file"), ("", "", "cut off", ""), strict=True)
        )
    )
    half = Bounds(NEVER, Dyadic.of(1, 1))
    span = Length(Fraction(10, 3), Fraction(60))
    return TimelineOfDumpsAnswer(
        nodes=(
            NodeCourse(node="worker1", looks=looks),
            NodeCourse(node="worker2", looks=looks[:2]),
        ),
        objects=(Look(at=times[0], clock="objects", source="objects.json"),),
        changes=(
            ChangedService(
                node="worker1",
                after=times[0],
                before=times[1],
                service=name,
                protocol="tcp",
                version=4,
                whole="",
                gone=("10.0.0.1:80",),
                added=("10.0.0.2:80",),
                moved=2,
                frontends_gone=("10.96.0.1:80",),
                frontends_added=("10.96.0.2:80",),
                other=("masquerade",),
                is_certain=False,
                stood=Stood(lower=Fraction(60), upper=None),
            ),
            ChangedService(
                node="worker2",
                after=times[0],
                before=times[1],
                service=name,
                protocol="tcp",
                version=4,
                whole="gone",
                gone=(),
                added=(),
                moved=0,
                frontends_gone=(),
                frontends_added=(),
                other=(),
                is_certain=True,
                stood=Stood(lower=Fraction(60), upper=Fraction(120)),
            ),
        ),
        wrong=(
            Wrong(
                node="worker1",
                service=name,
                protocol="tcp",
                version=4,
                drift=DriftKind.STALE_ENDPOINT,
                what="10.0.0.9:80",
                lasted=span,
            ),
        ),
        why_not_compared="",
        lost=(
            LostAt(
                node="worker1",
                service=name,
                protocol="tcp",
                family="ip",
                lost=Lost(
                    stretches=(Stretch(start=times[0], end=times[1], loss=half),),
                    total=span,
                    lossy=span,
                    most=half,
                ),
                absent=span,
            ),
        ),
        dead=("node worker2",),
        not_judged={"worker1": ("ns/b",)},
        assumed=("the objects were the same all the time",),
        diagnostics=build_answer(text).diagnostics,
    )
