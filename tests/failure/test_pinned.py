"""Flows that stay: at the dead, at what is no endpoint any more, at others' addresses."""

from __future__ import annotations

from analyzer.failure.pinned import Why, left_open, pinned
from analyzer.failure.tracked import FlowServices
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.probability import ALWAYS
from analyzer.model.value import replace
from tests.support.dumps import at, many_endpoints, view_of
from tests.support.flows import entry

VIEW = view_of(many_endpoints(3))
(SERVICE,) = VIEW.services
ONE, TWO, THREE = SERVICE.endpoints
GONE = Endpoint(ONE.address + 99, 80)


def test_each_group_says_why_how_many_for_how_long_and_what_frees_it() -> None:
    flows = [entry(n, end, replied=False) for n, end in enumerate([ONE, ONE, TWO, THREE, GONE])]
    flows[1] = replace(flows[1], seconds=300, replied=True)
    owned = [*FlowServices(VIEW.services, ()).owned(flows)]
    found = pinned(owned, {ONE}, {TWO: "other/pod"})
    assert [(e.endpoint, e.why, e.flows, e.unanswered, e.seconds, e.owner) for e in found] == [
        (ONE, Why.DEAD, 2, 1, 300, None),
        *sorted(
            [(TWO, Why.FOREIGN, 1, 1, 119, "other/pod"), (GONE, Why.STALE, 1, 1, 119, None)],
            key=lambda row: str(row[0]),
        ),
    ]
    assert found[0].command == (
        "conntrack -D -p tcp --orig-dst 10.96.0.1 --orig-port-dst 80 "
        f"--reply-src {ONE.address} --reply-port-src {ONE.port}"
    )


def test_without_all_endpoints_none_is_stale() -> None:
    (first, *others) = SERVICE.routes
    cut = replace(SERVICE, routes=(replace(first, unresolved=ALWAYS), *others))
    for service in (cut, replace(SERVICE, unfilled=SERVICE.frontends)):
        flows = [entry(n, end, replied=False) for n, end in enumerate([ONE, GONE])]
        owned = [*FlowServices([service], ()).owned(flows)]
        assert [(e.endpoint, e.why) for e in pinned(owned, {ONE}, {})] == [(ONE, Why.DEAD)]
        assert [each.endpoint for each in left_open(owned, {ONE})] == [GONE]
        assert left_open(owned, {ONE, GONE}) == ()


def test_what_dnat_left_alone_or_sent_for_no_service_is_not_asked_about() -> None:
    plain = replace(entry(1, ONE, replied=False), reply_source_port=80)
    plain = replace(plain, reply_source=plain.destination)
    other = entry(2, ONE, replied=False, vip="10.96.0.250")
    assert [*FlowServices(VIEW.services, ()).owned([plain, other])] == []


def test_a_node_port_is_one_only_at_the_nodes_own_addresses() -> None:
    frontend = replace(SERVICE.frontends[0], address=None, port=30_080)
    service = replace(SERVICE, frontends=(frontend,))
    flow = entry(1, ONE, replied=False, vip="192.168.0.9", port=30_080)
    own = at("192.168.0.9").address
    assert len([*FlowServices([service], [own]).owned([flow])]) == 1
    assert len([*FlowServices([service], []).owned([flow])]) == 1
    assert [*FlowServices([service], [own + 1]).owned([flow])] == []
