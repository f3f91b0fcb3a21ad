"""What is left of a control plane, against every set of nodes that may be dead."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.outage.control_plane import (
    ApiState,
    ControlPlaneState,
    ControlPlaneTopology,
    Etcd,
    LoadBalancer,
    control_plane_after,
    quorum,
    survives,
)

NODES = ("m1", "m2", "m3", "m4", "m5", "w1")
some = st.lists(st.sampled_from(NODES), min_size=1, max_size=5, unique=True).map(tuple)


@st.composite
def topologies(draw: st.DrawFn) -> ControlPlaneTopology:
    balancer = draw(st.sampled_from(LoadBalancer))
    etcd = draw(st.sampled_from(Etcd))
    return ControlPlaneTopology(
        api=draw(some),
        etcd=etcd,
        members=() if etcd is Etcd.EXTERNAL else draw(some),
        controllers=draw(some),
        schedulers=draw(some),
        load_balancer=balancer,
        balancers=draw(some) if balancer is LoadBalancer.NODES else (),
    )


dead_nodes = st.sets(st.sampled_from(NODES))


def stacked(*names: str, balancer: LoadBalancer = LoadBalancer.CLIENT_SIDE) -> ControlPlaneTopology:
    return ControlPlaneTopology(
        api=names,
        etcd=Etcd.NODES,
        members=names,
        controllers=names,
        schedulers=names,
        load_balancer=balancer,
    )


def subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from itertools.combinations(names, size)


@pytest.mark.parametrize("members", range(1, 10))
def test_a_quorum_is_what_no_two_halves_can_both_have(members: int) -> None:
    """By enumeration: as few members as leave none of the others enough to decide otherwise."""
    names = tuple(str(each) for each in range(members))
    enough = [
        len(alive)
        for alive in subsets(names)
        if all(set(alive) & set(other) for other in subsets(names) if len(other) >= len(alive))
    ]
    assert quorum(members) == min(enough)


@pytest.mark.parametrize(("members", "may_fail"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (7, 3)])
def test_etcd_survives_the_loss_of_less_than_half(members: int, may_fail: int) -> None:
    names = tuple(f"m{each}" for each in range(members))
    assert survives(stacked(*names)) == may_fail
    for dead in subsets(names):
        wanted = Ternary.of(len(dead) <= may_fail)
        assert control_plane_after(stacked(*names), dead).has_quorum is wanted


@given(topologies())
def test_what_is_survived_is_what_every_set_of_so_many_nodes_leaves(
    topology: ControlPlaneTopology,
) -> None:
    for dead in subsets(topology.nodes):
        if len(dead) <= survives(topology):
            assert control_plane_after(topology, dead).heals is Ternary.TRUE
    if topology.load_balancer is not LoadBalancer.UNKNOWN:
        broken = survives(topology) + 1
        assert broken > len(topology.nodes) or any(
            control_plane_after(topology, dead).heals is not Ternary.TRUE
            for dead in itertools.combinations(topology.nodes, broken)
        )


@given(topologies(), dead_nodes, dead_nodes)
def test_more_dead_nodes_never_bring_anything_back(
    topology: ControlPlaneTopology, dead: set[str], more: set[str]
) -> None:
    before, after = control_plane_after(topology, dead), control_plane_after(topology, dead | more)
    for one, other in zip(truths(after), truths(before), strict=True):
        assert one.value <= other.value
    assert after.api <= before.api


def truths(found: ControlPlaneState) -> tuple[Ternary, ...]:
    return found.has_quorum, found.is_reachable, found.writes, found.heals, found.replaces


@given(topologies(), dead_nodes)
def test_what_is_not_known_holds_both_ways(topology: ControlPlaneTopology, dead: set[str]) -> None:
    """A place of etcd, or a load balancer, that nobody named turns no answer around."""
    found = control_plane_after(topology, dead)
    ways = [topology]
    if topology.etcd is Etcd.UNKNOWN:
        ways = [replace(topology, etcd=each) for each in (Etcd.NODES, Etcd.EXTERNAL)]
    if topology.load_balancer is LoadBalancer.UNKNOWN:
        ways = [
            replace(each, load_balancer=kind, balancers=on)
            for each in ways
            for kind, on in (
                (LoadBalancer.CLIENT_SIDE, ()),
                *((LoadBalancer.NODES, (name,)) for name in topology.nodes),
            )
        ]
    for known in ways:
        for one, other in zip(truths(control_plane_after(known, dead)), truths(found), strict=True):
            assert other is Ternary.UNKNOWN or one is other


@given(topologies())
def test_with_nothing_dead_it_is_up(topology: ControlPlaneTopology) -> None:
    found = control_plane_after(topology, ())
    assert (found.state, found.heals, found.reasons) == (ApiState.UP, Ternary.TRUE, ())
    assert not found.may_elect


@given(topologies(), dead_nodes)
def test_what_is_not_up_says_why(topology: ControlPlaneTopology, dead: set[str]) -> None:
    found = control_plane_after(topology, dead)
    assert bool(found.reasons) is (found.replaces is not Ternary.TRUE)


def test_without_quorum_nothing_is_written_and_reads_may_go_on() -> None:
    found = control_plane_after(stacked("m1", "m2", "m3"), ("m1", "m2"))
    assert (found.state, found.heals) == (ApiState.READ_ONLY, Ternary.FALSE)
    assert found.reasons == (
        "etcd has 1 of 3 members and needs 2: nothing is written, and only reads from a cache "
        "still work",
    )


def test_the_load_balancer_may_be_the_single_point() -> None:
    topology = replace(stacked("m1", "m2", "m3", balancer=LoadBalancer.NODES), balancers=("w1",))
    assert survives(topology) == 0
    assert control_plane_after(topology, ("w1",)).state is ApiState.DOWN
    assert control_plane_after(topology, ("m1",)).state is ApiState.UP


def test_a_load_balancer_that_nobody_names_is_no_all_clear() -> None:
    topology = stacked("m1", "m2", "m3", balancer=LoadBalancer.UNKNOWN)
    assert control_plane_after(topology, ("m1",)).state is ApiState.UNKNOWN
    assert control_plane_after(topology, ("w1",)).state is ApiState.UP
    assert control_plane_after(topology, ("m1", "m2", "m3")).state is ApiState.DOWN
    assert control_plane_after(topology, ("m1", "m2")).state is ApiState.READ_ONLY


def test_another_controller_manager_may_have_to_be_elected() -> None:
    topology = stacked("m1", "m2", "m3")
    assert control_plane_after(topology, ("m1",)).may_elect
    assert not control_plane_after(topology, ("w1",)).may_elect
    lone = replace(topology, controllers=("m1",))
    assert control_plane_after(lone, ("m1",)).heals is Ternary.FALSE
    assert not control_plane_after(lone, ("m1",)).may_elect


def test_without_a_scheduler_endpoints_leave_and_no_pod_comes() -> None:
    found = control_plane_after(replace(stacked("m1", "m2", "m3"), schedulers=("m1",)), ("m1",))
    assert (found.heals, found.replaces) == (Ternary.TRUE, Ternary.FALSE)
