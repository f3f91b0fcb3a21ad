"""What failures cost on captured clusters is what `loss` finds, node by node."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analyzer.errors import UsageError
from analyzer.failure.loss import LossState, ServiceLoss, losses
from analyzer.failure.models import Dead, dead
from analyzer.failure.smallest import rows_that_count
from analyzer.failure.whatif import Failure, FailureKind, WhatIf, WhatIfOptions, what_if
from analyzer.kubeproxy.view import ServicePort, View
from analyzer.model.cluster import Cluster, Node, Placement
from analyzer.model.value import replace
from tests.support.captures import FIXTURES, Capture, captures_in
from tests.support.incidences import NODES, Placed, placed

CAPTURES = [
    *captures_in(FIXTURES, "two-node*"),
    *captures_in(FIXTURES, "seed-dns*"),
    *captures_in(FIXTURES, "features*"),
]


#: Zones, of which every node is in one.
HALVES = dict(zip(NODES, "aabbb", strict=True))


def states(found: Sequence[ServiceLoss], state: LossState) -> list[ServicePort]:
    return [each.service for each in found if each.state is state]


def check(failure: Failure, answer: WhatIf, truth: Sequence[ServiceLoss]) -> None:
    """Hold what a failure costs against what `loss` finds."""
    worst = max((each.worst.upper.as_fraction() for each in truth), default=0)
    assert (failure.worst.upper.as_fraction() if failure.worst else 0) == worst
    gone = [answer.services[each] for each in failure.cost.silenced]
    assert gone == states(truth, LossState.SILENCED)
    assert failure.cost.degraded == len(states(truth, LossState.DEGRADED))
    if failure.cost.row is not None and failure.worst is not None:
        of = truth[failure.cost.row.service]
        assert of.worst == failure.worst
        assert failure.cost.row.route in [each.route for each in of.routes]


def in_zones(cluster: Cluster) -> Cluster:
    """Return a cluster whose nodes are each in a zone of its own, but for the last."""
    names = sorted(cluster.node_names)
    zones = {name: f"zone-{name}" for name in names[:-1]}
    return replace(
        cluster,
        nodes={name: Node(name=name, zone=zones.get(name)) for name in names},
        placements={
            address: Placement(place.node, zones.get(place.node or ""))
            for address, place in cluster.placements.items()
        },
    )


@pytest.mark.parametrize("zoned", [False, True])
@pytest.mark.parametrize("capture", CAPTURES, ids=str)
def test_each_failure_costs_what_loss_finds(capture: Capture, zoned: bool) -> None:
    view, cluster = capture.view(), capture.cluster
    if zoned:
        cluster = in_zones(cluster)
    answer = what_if(view.services, cluster, WhatIfOptions(node=capture.node, depth=3, top=1_000))
    assert {each.names[0] for each in answer.of_nodes} == cluster.node_names
    assert {each.names[0] for each in answer.of_zones} == cluster.zones
    for failure in answer.failures():
        died = died_of(failure, view, cluster)
        check(failure, answer, losses(view.services, died))
        assert failure.takes_own is died.takes(capture.node, cluster)


def died_of(failure: Failure, view: View, cluster: Cluster) -> Dead:
    """Return what `loss` takes to be dead in a failure."""
    if failure.kind is FailureKind.ZONE:
        return dead(view, cluster, zones=failure.names)
    return dead(view, cluster, nodes=failure.names)


def test_each_failure_costs_what_loss_finds_on_all_captures(captures: Path) -> None:
    judged = 0
    for capture in captures_in(captures, "[!bs]*", "seed-dns*"):
        view, cluster = capture.view(), capture.cluster
        if not view.services:  # of IPv6
            continue
        answer = what_if(view.services, cluster, WhatIfOptions(node=capture.node, top=5))
        for failure in answer.failures():
            died = died_of(failure, view, cluster)
            check(failure, answer, losses(view.services, died))
            judged += 1
    assert judged > 100


@given(placed(), st.integers(1, 5))
def test_sets_are_the_worst_of_all_sets(given_: Placed, top: int) -> None:
    assume(any(given_.nodes.of_group))  # else it is refused
    answer = what_if(given_.services, given_.cluster, WhatIfOptions(depth=4, top=top))
    for sets in answer.sets:
        every = [
            max((e.worst.upper.as_fraction() for e in given_.losses(each)), default=0)
            for each in itertools.combinations(NODES, sets.size)
        ]
        found = [each.worst.upper.as_fraction() if each.worst else 0 for each in sets.worst]
        assert found == sorted(every, reverse=True)[:top]
        assert (sets.number, sets.is_complete) == (len(every), True)


@given(placed(known=True))
def test_zones_are_survived_by_the_routes_that_count_for_nodes(given_: Placed) -> None:
    cluster = Cluster(
        {name: Node(name=name, zone=HALVES[name]) for name in NODES},
        {e.address: Placement(n, None) for e, n in given_.node_of.items()},
    )
    zoned = replace(
        cluster,
        placements={
            address: Placement(place.node, cluster.nodes[place.node or ""].zone)
            for address, place in cluster.placements.items()
        },
    )
    answer = what_if(given_.services, zoned, WhatIfOptions(node="n0", depth=1))
    for at in range(len(given_.services)):
        nodes, zones = answer.survival(at), answer.survival_of_zones(at)
        if nodes is None or zones is None:
            assert nodes is zones is None
            continue
        rows = answer.nodes.services[at]
        counted = [rows[place] for place in rows_that_count(rows, answer.own)]
        in_zones = [{HALVES[NODES[group]] for group in row.lower} for row in counted]
        assert zones.survives == min(map(len, in_zones)) - 1 <= nodes.survives
        assert (answer.survives(at), nodes.at_most) == (nodes.survives, nodes.survives)


def of(nodes: Sequence[str], *, control_plane: Sequence[str] = ()) -> Cluster:
    return Cluster(
        {name: Node(name=name, is_control_plane=name in control_plane) for name in nodes},
        {ip_address(f"10.0.0.{at}"): Placement(name, None) for at, name in enumerate(nodes)},
    )


VIEW: View = Capture(
    FIXTURES / "1.36.2-iptables-legacy/two-node@worker1/iptables-legacy-save.txt"
).view()


def test_the_control_plane_is_what_has_its_role_or_is_named() -> None:
    cluster = of(["a", "b", "c"], control_plane=["b", "c"])
    answer = what_if((), cluster, WhatIfOptions())
    assert answer.control_plane is not None
    assert answer.control_plane.names == ("b", "c")
    answer = what_if((), cluster, WhatIfOptions(control_plane=("c", "a")))
    assert answer.control_plane is not None
    assert answer.control_plane.names == ("a", "c")
    assert what_if((), of(["a"]), WhatIfOptions()).control_plane is None


@pytest.mark.parametrize(
    ("cluster", "asked", "message"),
    [
        (
            Cluster(),
            WhatIfOptions(),
            "it is not known which endpoints are on which node; pass --objects",
        ),
        (
            of(["a"]),
            WhatIfOptions(),
            "it is not known on which node any endpoint of these ServicePorts is",
        ),
        (
            of(["a"]),
            WhatIfOptions(control_plane=("x",)),
            "--control-plane x: no such node is known",
        ),
        (of(["a"]), WhatIfOptions(kinds={FailureKind.ZONE}), "--only zone: no zone is known"),
        (of(["a"]), WhatIfOptions(kinds={FailureKind.CONTROL_PLANE}), "no node has its role label"),
        (
            of(["a"]),
            WhatIfOptions(kinds={FailureKind.NODE, FailureKind.ZONE}),
            "--only zone: no zone is known",
        ),
        (
            of(["a", "b"]),
            WhatIfOptions(kinds={FailureKind.SET}, depth=1),
            "there is no set of two nodes",
        ),
        (
            of(["a"]),
            WhatIfOptions(kinds={FailureKind.SET, FailureKind.NODE}),
            "there is no set of two nodes",
        ),
    ],
)
def test_what_nobody_knows_of_is_refused(
    cluster: Cluster, asked: WhatIfOptions, message: str
) -> None:
    services = VIEW.services if asked == WhatIfOptions() else ()
    with pytest.raises(UsageError, match=message):
        what_if(services, cluster, asked)


def test_only_what_is_asked_for_is_judged() -> None:
    cluster = of(["a", "b"], control_plane=["a"])
    answer = what_if((), cluster, WhatIfOptions(kinds={FailureKind.SET}))
    assert [each.kind for each in answer.failures()] == [FailureKind.SET]
    answer = what_if((), cluster, WhatIfOptions(depth=1))
    assert [each.kind for each in answer.failures()] == [
        FailureKind.CONTROL_PLANE,
        FailureKind.NODE,
        FailureKind.NODE,
    ]


def test_an_interrupt_keeps_what_is_known() -> None:
    told = []

    def interrupt(done: int, total: int | None) -> None:
        told.append((done, total))
        if len(told) == 8:
            raise KeyboardInterrupt

    cluster = of(["a", "b", "c", "d"])
    answer = what_if((), cluster, WhatIfOptions(depth=4), interrupt)
    assert answer.is_interrupted
    assert [sets.size for sets in answer.sets] == [2]
    assert len(answer.of_nodes) == 4
    assert not what_if((), cluster, WhatIfOptions(depth=4)).is_interrupted


@given(placed())
def test_endpoints_without_a_node_are_named(given_: Placed) -> None:
    assume(any(given_.nodes.of_group))  # else it is refused
    answer = what_if(given_.services, given_.cluster, WhatIfOptions())
    printed = {
        str(share.endpoint)
        for service in given_.services
        for route in service.routes
        if route.source.value != "hairpin" and route.frontend not in service.unfilled
        for share in route.shares
        if given_.node_of[share.endpoint] is None
    }
    assert {*answer.unplaced} == printed
