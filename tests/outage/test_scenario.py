"""Which outage is played: by what was said, else by who is dead."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from analyzer.errors import UsageError
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.model.workloads import Workloads
from analyzer.outage.clocks import AT_ONCE, NEVER, TimeBounds
from analyzer.outage.control_plane import LoadBalancer
from analyzer.outage.scenario import OutageOptions, scenario
from tests.support.outages import APART, cluster, died, outage, seconds, view

API = "default/kubernetes:https"


def on_nodes(*names: str) -> Any:
    return replace(
        APART,
        api=names,
        members=names,
        controllers=names,
        schedulers=names,
        load_balancer=LoadBalancer.CLIENT_SIDE,
    )


@pytest.mark.parametrize(
    ("nodes", "heals"),
    [((1,), Ternary.TRUE), ((1, 2), Ternary.FALSE), ((4,), Ternary.TRUE)],
)
def test_who_is_dead_decides_whether_it_heals(nodes: tuple[int, ...], heals: Ternary) -> None:
    found = outage(4, nodes, topology=on_nodes("n1", "n2", "n3"))
    assert found.outage.heals is heals
    assert bool(found.why) is (heals is not Ternary.TRUE)
    assert found.outage.may_elect is (1 in nodes)


def test_without_an_api_one_reason_will_do() -> None:
    found = outage(3, (1, 2, 3), topology=on_nodes("n1", "n2", "n3"))
    assert found.why == ("all 3 API servers are gone",)


def test_what_is_said_goes_before() -> None:
    assert outage(2, (1,), topology=on_nodes("n1"), heals=True).outage.heals is Ternary.TRUE
    found = outage(2, (1,), heals=False)
    assert (found.outage.writes, found.why) == (Ternary.FALSE, ("--frozen says so",))


def test_without_a_control_plane_the_api_servers_tell_or_nobody() -> None:
    def of(nodes: tuple[int, ...]) -> Ternary:
        services = view(2, API).services
        given = OutageOptions(said={}), died(2, nodes, API), services, cluster(2), None, Workloads()
        return scenario(*given).outage.heals

    assert of((1, 2)) is Ternary.FALSE
    assert of((1,)) is Ternary.UNKNOWN
    assert outage(2, (1,), topology=None).why[0].startswith("it is not known whether")


def test_an_api_servers_process_alone_counts_as_one() -> None:
    """Its node lives, and so do etcd and the controllers on it."""
    services = view(2, API).services
    end = services[0].endpoints[0]
    dead = replace(died(2, (), API), endpoints=frozenset([end]))
    lone, two = (
        scenario(OutageOptions(said={}), dead, services, cluster(2), on_nodes(*names), Workloads())
        for names in (("n1",), ("n1", "n2"))
    )
    assert lone.outage.heals is Ternary.FALSE
    assert two.outage.heals is Ternary.TRUE
    assert two.plane is not None
    assert (two.plane.api, two.plane.members) == ((1, 2), (2, 2))
    assert not two.outage.may_elect


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ({"api_back": Fraction(60)}, "--api-back-after"),
        ({"reboots_after": Fraction(60)}, "--reboots-after"),
        ({"with_api": frozenset(view(2).endpoints)}, "--dies-with-api"),
    ],
)
def test_what_needs_an_api_that_is_gone(asked: dict[str, Any], option: str) -> None:
    with pytest.raises(UsageError, match=f"^{option}: the API stays up in this outage"):
        outage(2, (1,), **asked)
    outage(2, (1,), heals=False, **asked)


def test_what_may_die_with_an_api_that_may_be_gone_is_uncertain() -> None:
    ends = frozenset(view(2).endpoints)
    found = outage(2, (1,), topology=None, with_api=ends)
    assert found.died.endpoints | found.died.uncertain == ends
    assert len(found.died.endpoints) == 1


def test_events_come_in_the_order_in_which_they_may_begin() -> None:
    events = outage(4, (1,), topology=on_nodes("n1", "n2", "n3")).events
    assert [each.what for each in events] == [
        "what is marked dead is dead",
        "another controller manager is elected, if necessary",
        "living nodes too may count as not ready, for a while",
        "pods of dead nodes are marked not ready",
        "their endpoints leave this node's rules",
        "they are evicted, and replaced where they can be",
    ]
    assert events[0].when == AT_ONCE
    frozen = outage(2, (1,), heals=False).events
    assert {each.when for each in frozen[1:]} == {NEVER}
    back = outage(2, (1,), heals=False, api_back=Fraction(60), reboots_after=Fraction(9)).events
    assert [each.what for each in back[1:3]] == [
        "the dump's node restarts, without rules",
        "the control plane is back",
    ]
    assert back[3].what == "living nodes too may count as not ready, for a while"


@pytest.mark.parametrize(
    ("topology", "said", "windows"),
    [
        (on_nodes("n1", "n2", "n3"), {}, [(Fraction("28.6"), Fraction(105))]),
        (on_nodes("n1", "n2", "n3"), {"dead-connection": seconds(0)}, []),
        (on_nodes("n1", "n2", "n3"), {"node-monitor-grace-period": seconds(60)}, []),
        (on_nodes("n2", "n3", "n4"), {}, []),
        (APART, {}, []),
    ],
)
def test_a_dead_node_of_the_control_plane_may_silence_living_ones(
    topology: Any, said: Any, windows: list[tuple[Fraction, Fraction]]
) -> None:
    found = outage(4, (1,), topology=topology, said=said)
    assert [(each.earliest, each.latest) for each in found.unsettled] == windows
    assert found.outage.is_stuck is (topology.api[0] == "n1")


def test_when_the_api_is_back_living_nodes_have_been_silent_too() -> None:
    found = outage(2, (1,), heals=False, api_back=Fraction(600))
    assert found.unsettled == (TimeBounds(Fraction(600), Fraction(660)),)
    assert outage(2, (1,), heals=False).unsettled == ()


def test_what_the_control_plane_rests_on_is_passed_on() -> None:
    topology = replace(APART, assumed=("something",))
    assert outage(2, (1,), topology=topology).assumed == ("something",)
