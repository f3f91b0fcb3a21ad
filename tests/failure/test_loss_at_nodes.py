"""The worst of several nodes: no node has a loss beyond it, and where it is so is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.loss import HARM, LossState, ServiceLoss
from analyzer.failure.loss_at_nodes import together, worst_of
from analyzer.failure.route_loss import RouteLoss
from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, ServicePort, Source
from analyzer.model.addresses import address_from_text
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace

FRONTEND = Frontend(FrontendKind.CLUSTER_IP, address_from_text("10.96.0.1"), 80)
ANY = Bounds(NEVER, ALWAYS)


def service_loss(name: str, state: LossState, *lost: Bounds) -> ServiceLoss:
    """Return what is lost on routes of a ServicePort."""
    route = Route(FRONTEND, Source.POD, (), NEVER)
    routes = tuple(
        RouteLoss(route=route, loss=each, nowhere=ANY, survives=ANY, on_dead=each) for each in lost
    )
    service = ServicePort(
        name=service_name(name),
        protocol="tcp",
        frontends=(FRONTEND,),
        routes=tuple(each.route for each in routes),
    )
    return ServiceLoss(service=service, cluster=None, routes=routes, dead=(), state=state)


def share(quarters: int) -> Dyadic:
    return Dyadic.of(quarters, 2)


SHARES = st.lists(st.integers(0, 4), min_size=2, max_size=2).map(
    lambda ends: Bounds(share(min(ends)), share(max(ends)))
)
LOSSES = st.builds(
    lambda state, lost: service_loss("ns/a", state, *lost),
    st.sampled_from(LossState),
    st.lists(SHARES, max_size=3),
)


@given(st.dictionaries(st.sampled_from("abcd"), LOSSES, min_size=1))
def test_no_node_loses_beyond_the_worst(losses: dict[str, ServiceLoss]) -> None:
    (worst,) = worst_of({node: [each] for node, each in losses.items()})
    assert worst.loss.worst.upper == max(each.worst.upper for each in losses.values())
    assert worst.loss.worst.lower == max(each.worst.lower for each in losses.values())
    assert HARM[worst.loss.state] == min(HARM[each.state] for each in losses.values())
    assert worst.nodes
    assert not worst.missing
    for node in worst.nodes:
        ends = losses[node].worst
        assert worst.loss.worst.lower == ends.lower or worst.loss.worst.upper == ends.upper


def test_where_it_is_worst_and_where_nobody_knows_is_told() -> None:
    half, quarter = (Bounds(share(2), share(2)), Bounds(share(1), share(1)))
    (worst,) = worst_of(
        {
            "a": [service_loss("ns/a", LossState.DEGRADED, half)],
            "b": [service_loss("ns/a", LossState.DEGRADED, quarter)],
            "c": [service_loss("ns/a", LossState.DEGRADED, quarter, half)],
            "d": [],
        }
    )
    assert (worst.nodes, worst.missing) == (("a", "c"), ("d",))


def test_a_node_where_it_may_be_worse_is_not_forgotten() -> None:
    certain = service_loss("ns/a", LossState.DEGRADED, Bounds(share(2), share(2)))
    perhaps = service_loss("ns/a", LossState.UNKNOWN, ANY)
    (worst,) = worst_of({"a": [certain], "b": [perhaps]})
    assert worst.loss.worst == Bounds(share(2), ALWAYS)
    assert worst.loss.state is LossState.DEGRADED
    assert worst.nodes == ("a", "b")


def test_one_without_an_ip_version_is_that_of_the_same_name() -> None:
    with_one = service_loss("ns/a", LossState.UNTOUCHED)
    bare = ServicePort(name=service_name("ns/a"), protocol="tcp", frontends=(), routes=())
    without = ServiceLoss(
        service=bare, cluster=None, routes=(), dead=(), state=LossState.NO_ENDPOINTS
    )
    (worst,) = worst_of({"a": [with_one], "b": [without]})
    assert not worst.missing
    assert worst.loss is without


def test_one_of_several_nodes_has_the_routes_of_all_and_alike_ones_once() -> None:
    def at_node(unresolved: Dyadic) -> ServiceLoss:
        loss = service_loss("ns/a", LossState.UNTOUCHED)
        route = Route(FRONTEND, Source.POD, (), unresolved)
        return replace(loss, service=replace(loss.service, routes=(route,)))

    losses = {"a": at_node(NEVER), "b": at_node(NEVER), "c": at_node(ALWAYS)}
    assert [each.unresolved for each in together(losses).routes] == [NEVER, ALWAYS]
