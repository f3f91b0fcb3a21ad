"""What becomes of dead endpoints, by who stands behind them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.model.workloads import ManagedPod, ServiceFacts, Workloads
from analyzer.outage.causes import Cause, Reconciler, Replacement, by_cause, dead_nodes
from analyzer.outage.clocks import ANY_TIME, NEVER, TimeBounds
from tests.support.outages import (
    MANAGED,
    PLAIN,
    address,
    cluster,
    died,
    outage,
    seconds,
    view,
    workloads,
)

SAID = {"node-monitor-grace-period": seconds(40), "start-up": seconds(10)}
#: When rules no longer lead to a node that is found dead by itself.
LEAVES = TimeBounds(Fraction("28.6"), Fraction(56))


def fate(behind: Workloads | None = None, **asked: Any) -> Replacement:
    """Return what becomes of the endpoint on n1, of two."""
    found = outage(2, (1,), behind, **{"said": SAID, **asked})
    (only,) = found.causes.fates(view(2).services[0], found.died.endpoints).values()
    return only


def behind(pod: ManagedPod, **more: Any) -> Workloads:
    return workloads(2, {1: pod}, **more)


def of_service(**facts: Any) -> Workloads:
    return workloads(2, service=replace(MANAGED, **facts))


def test_pods_of_a_replica_set_leave_and_others_come() -> None:
    found = fate()
    assert found.cause is Cause.REPLACED
    assert found.removed == LEAVES
    # Unknown, a look later tainted, after up to two tokens; 300 s; then a pod, and its rules.
    latest = 53 + Fraction("6.1") + 20 + 300 + 1 + 1 + 10 + 3
    assert found.replaced == TimeBounds(Fraction("28.6") + 300 + 10, latest)


@pytest.mark.parametrize(
    ("pod", "cause", "replaced"),
    [
        (replace(PLAIN, owner="DaemonSet"), Cause.DAEMON_SET, NEVER),
        (replace(PLAIN, owner="Node"), Cause.STATIC, NEVER),
        (replace(PLAIN, owner=None), Cause.BARE, NEVER),
        (replace(PLAIN, owner="StatefulSet"), Cause.STATEFUL_SET, NEVER),
        (replace(PLAIN, is_bound=Ternary.TRUE), Cause.BOUND, NEVER),
        (replace(PLAIN, owner="StatefulSet", is_bound=Ternary.TRUE), Cause.BOUND, NEVER),
        (replace(PLAIN, tolerates=None), Cause.REPLACED, NEVER),
    ],
)
def test_who_is_not_moved(pod: ManagedPod, cause: Cause, replaced: TimeBounds) -> None:
    found = fate(behind(pod))
    assert (found.cause, found.replaced) == (cause, replaced)
    assert found.removed == LEAVES


@pytest.mark.parametrize(
    "pod",
    [
        replace(PLAIN, is_bound=Ternary.UNKNOWN),
        replace(PLAIN, owner="Job"),
        replace(PLAIN, owner="CloneSet"),
    ],
)
def test_who_may_be_moved_or_not(pod: ManagedPod) -> None:
    found = fate(behind(pod)).replaced
    assert found.earliest is not None
    assert found.latest is None


def test_a_pod_that_tolerates_nothing_is_evicted_at_once() -> None:
    found = fate(behind(replace(PLAIN, tolerates=0))).replaced
    assert found.latest is not None
    assert found.latest < 120


def test_the_option_is_about_pods_that_do_not_say_it_themselves() -> None:
    said = {**SAID, "toleration": seconds(30)}
    short = fate(said=said).replaced.latest
    own = fate(behind(replace(PLAIN, tolerates=200)), said=said).replaced.latest
    assert short is not None
    assert own is not None
    assert own - short == 170


def test_a_cloud_may_delete_the_node_and_its_pods() -> None:
    found = fate(behind(replace(PLAIN, owner="StatefulSet"), may_be_deleted=True)).replaced
    assert found.latest is None
    assert found.earliest is not None
    assert found.earliest < 60


def test_pods_that_no_object_lists_are_replaced_or_not() -> None:
    found = fate(Workloads(services={"ns/a": MANAGED}, nodes=workloads(2).nodes))
    assert (found.cause, found.replaced.latest) == (Cause.UNLISTED, None)
    assert found.removed == LEAVES


def test_without_objects_nobody_knows_who_manages_an_endpoint() -> None:
    found = fate(Workloads())
    assert found == Replacement(cause=Cause.UNKNOWN, removed=ANY_TIME, replaced=ANY_TIME)


@pytest.mark.parametrize(
    "facts",
    [{"has_selector": False}, {"by_hand": frozenset([address(1)])}],
)
def test_what_a_person_manages_stays(facts: dict[str, Any]) -> None:
    found = fate(of_service(**facts))
    assert found == Replacement(cause=Cause.BY_HAND, removed=NEVER, replaced=NEVER)


def test_what_another_controller_manages_is_not_known() -> None:
    assert fate(of_service(by_others=frozenset([address(1)]))).cause is Cause.OTHERS
    assert fate(of_service(by_others=frozenset([address(2)]))).cause is Cause.REPLACED


def test_addresses_that_are_published_unready_outlive_their_node() -> None:
    found = fate(of_service(publishes_not_ready=True))
    assert (found.cause, found.removed) == (Cause.UNREADY, NEVER)
    facts = ServiceFacts(has_selector=True, publishes_not_ready=True)
    in_cloud = fate(workloads(2, service=facts, may_be_deleted=True)).removed
    assert (in_cloud.earliest is None, in_cloud.latest) == (False, None)


def test_with_no_node_left_nothing_comes() -> None:
    only_these = Workloads(
        pods=workloads(2).pods,
        services=workloads(2).services,
        nodes={"n1": workloads(2).nodes["n1"]},
    )
    assert fate(only_these).replaced == NEVER


@pytest.mark.parametrize("heals", [None, False])
def test_frozen_nothing_happens_until_the_api_is_back(heals: bool | None) -> None:
    frozen: dict[str, Any] = {"heals": False} if heals is False else {"topology": None}
    found = fate(**frozen)
    assert found.removed.latest is None
    assert (found.removed.earliest is None) is (heals is False)
    back = fate(heals=False, api_back=Fraction(600))
    assert back.removed.earliest == 600
    assert back.removed.latest is not None
    assert back.removed.latest < 720
    assert back.replaced.latest is None  # the scheduler is back, and nobody knows when it works


def test_a_dead_proxy_leaves_the_rules_as_they_are() -> None:
    found = fate(proxy_dead=True)
    assert (found.removed, found.replaced) == (NEVER, NEVER)


def test_what_dies_with_the_api_may_come_back_with_it() -> None:
    other = [each for each in view(2).endpoints if each.address == address(2)]
    found = outage(2, (), heals=False, with_api=frozenset(other), api_back=Fraction(60))
    assert found.died.endpoints == frozenset(other)
    (only,) = found.causes.fates(view(2).services[0], other).values()
    assert (only.cause, only.returns) == (Cause.WITH_API, TimeBounds(Fraction(60), None))


API = "default/kubernetes:https"


def of_api(**asked: Any) -> Replacement:
    found = outage(2, (1,), **asked)
    service = view(2, API).services[0]
    (only,) = found.causes.fates(service, [service.endpoints[0]]).values()
    return only


def test_api_servers_have_a_clock_of_their_own() -> None:
    found = of_api()
    assert (found.cause, found.replaced) == (Cause.API, NEVER)
    assert (found.removed.earliest, found.removed.latest) == (Fraction(4), Fraction(31))
    assert of_api(reconciler=Reconciler.MASTER_COUNT).removed == NEVER


def test_api_servers_that_are_back_are_endpoints_again() -> None:
    assert of_api(heals=False).returns == NEVER
    back = of_api(heals=False, api_back=Fraction(600))
    assert back.removed == NEVER
    assert back.returns == TimeBounds(Fraction(600), Fraction(631))


def test_an_endpoint_that_dies_on_a_living_node_is_not_known() -> None:
    end = view(2).services[0].endpoints[0]
    found = outage(2, (), alone=[end])
    (only,) = found.causes.fates(view(2).services[0], [end]).values()
    assert only == Replacement(cause=Cause.ALONE, removed=ANY_TIME, replaced=ANY_TIME)
    frozen = outage(2, (), alone=[end], heals=False)
    (only,) = frozen.causes.fates(view(2).services[0], [end]).values()
    assert (only.removed, only.replaced) == (NEVER, NEVER)


def test_endpoints_of_one_fate_stand_together() -> None:
    one, two, three = view(3).services[0].endpoints
    same = Replacement(cause=Cause.STATIC, removed=seconds(1), replaced=NEVER)
    other = replace(same, removed=seconds(2))
    found = list(by_cause({one: other, two: same, three: replace(same)}))
    assert [(each.removed, list(ends)) for each, ends in found] == [
        (seconds(1), [two, three]),
        (seconds(2), [one]),
    ]


def test_dead_nodes_are_those_of_dead_zones_too() -> None:
    zoned = replace(
        cluster(2),
        nodes={name: replace(node, zone="z") for name, node in cluster(2).nodes.items()},
    )
    assert dead_nodes(died(2, (1,)), cluster(2)) == {"n1"}
    assert dead_nodes(replace(died(2, ()), zones=("z",)), zoned) == {"n1", "n2", "m"}
