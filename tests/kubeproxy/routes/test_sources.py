"""Sources that rules tell apart: each set of them has an address that stands for it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.routes.sources import told_apart
from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, ServicePort, Source
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster, Node, Placement
from analyzer.parsers.iptables_save import parse
from tests.support.dumps import dump, endpoint, two_endpoints, view_of

USUAL = ip_address("203.0.113.1")
#: Networks that hold each other often.
NETWORKS = st.builds(
    lambda bits, length: ip_network((bits << 24, length), strict=False),
    st.integers(0, 7),
    st.integers(5, 8),
) | st.builds(
    lambda bits, length: ip_network((0xCB007100 | bits, length), strict=False),
    st.integers(0, 255),
    st.integers(22, 32),
)


def innermost(address: IPv4Address, networks: list[IPv4Network]) -> IPv4Network | None:
    return max((n for n in networks if address in n), key=lambda n: n.prefixlen, default=None)


@given(st.lists(NETWORKS, max_size=6), st.lists(st.integers(0, 2**32 - 1), max_size=20))
def test_each_set_of_sources_has_an_address_in_it(
    networks: list[IPv4Network], numbers: list[int]
) -> None:
    found = told_apart(networks, [USUAL], lambda _: True)
    by_network = dict(found)
    assert len(by_network) == len(found)
    for network, address in found:
        assert innermost(IPv4Address(int(address)), networks) == network
    # No set is forgotten: whoever else is asked for has one that stands for him.
    for number in [*numbers, int(USUAL)]:
        assert innermost(IPv4Address(number), networks) in by_network


@given(
    st.lists(NETWORKS, max_size=4),
    st.lists(NETWORKS, min_size=1, max_size=3),
    st.lists(st.integers(0, 2**32 - 1), max_size=20),
)
@example([ip_network("128.0.0.0/1")], [ip_network("127.0.0.0/8")], [0x0A000001])
def test_nobody_stands_for_sources_who_is_none(
    networks: list[IPv4Network], excluded: list[IPv4Network], numbers: list[int]
) -> None:
    def is_one(address: Address) -> bool:
        return not any(address in each for each in excluded)

    found = dict(told_apart(networks, [USUAL], is_one, excluded))
    assert all(map(is_one, found.values()))
    # Whoever is one has somebody who stands for him, wherever those are that are none.
    ends = [n[at] for n in (*networks, *excluded) for at in (0, -1)]
    beside = [int(each) + step for each in ends for step in (-1, 0, 1)]
    for number in (*numbers, *beside):
        if 0 <= number < 2**32 and is_one(IPv4Address(number)):
            assert innermost(IPv4Address(number), networks) in found


def test_clients_beside_half_of_all_addresses_have_a_route() -> None:
    """Nobody with a usual address is left, and loopback is next to what rules drop."""
    text = dump(*two_endpoints()) + (
        "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 128.0.0.0/1 -j DROP\nCOMMIT\n"
    )
    (service,) = view_of(text).services
    external = {r.network: r for r in service.routes if r.source is Source.EXTERNAL}
    assert external.keys() == {None, ip_network("128.0.0.0/1")}
    assert all(not share.lost for share in external[None].shares)


BALANCER = (
    '-A KUBE-SERVICES -d 192.0.2.80/32 -p tcp -m comment --comment "ns/a:http loadbalancer IP" '
    "-m tcp --dport 80 -j KUBE-FW-A"
)


def balancer(*ranges: str, pods: str = "10.0.0.0/8") -> ServicePort:
    text = dump(
        BALANCER,
        *(f"-A KUBE-FW-A -s {each} -j KUBE-EXT-A" for each in ranges),
        "-A KUBE-EXT-A -j KUBE-SVC-A",
        f"-A KUBE-SVC-A ! -s {pods} -d 10.96.0.1/32 -j KUBE-MARK-MASQ",
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
        "-A KUBE-SVC-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
    )
    (service,) = view_of(text).services
    return service


def let_in(service: ServicePort) -> dict[tuple[str, str | None], bool]:
    return {
        (r.source.value, None if r.network is None else str(r.network)): bool(len(r.shares))
        for r in service.routes
        if r.source is not Source.HAIRPIN
    }


def test_only_those_in_the_ranges_are_let_in() -> None:
    assert let_in(balancer("198.51.100.0/24", "198.18.0.0/15", pods="10.0.0.0/8")) == {
        ("pod", None): False,
        ("pod-elsewhere", None): True,  # perhaps: where they are is not known
        ("node", None): True,  # perhaps: its address is not known
        ("external", None): False,
        ("external", "198.51.100.0/24"): True,
        ("external", "198.18.0.0/15"): True,
    }


def test_a_range_that_holds_all_pods_lets_them_in() -> None:
    found = let_in(balancer("10.0.0.0/7"))
    assert found["pod", None]
    assert found["external", "10.0.0.0/7"]
    assert not found["external", None]


def test_a_range_of_some_pods_parts_them() -> None:
    found = let_in(balancer("10.128.0.0/9"))
    assert found["pod", "10.128.0.0/9"]
    assert not found["pod", None]
    # Nobody outside has an address of the pods'.
    assert ("external", "10.128.0.0/9") not in found


def test_a_range_of_everybody_parts_nobody() -> None:
    found = let_in(balancer("0.0.0.0/0"))
    assert ("external", "0.0.0.0/0") not in found
    assert all(allowed for (source, _), allowed in found.items() if source != "node")


def test_nobody_outside_has_a_loopback_address() -> None:
    found = let_in(balancer("127.0.0.0/8", "198.51.100.0/24"))
    assert ("external", "127.0.0.0/8") not in found
    assert found["external", "198.51.100.0/24"]


def test_the_address_of_an_unknown_node_may_be_in_a_range() -> None:
    service = balancer("198.51.100.0/24")
    (node,) = [r for r in service.routes if r.source is Source.NODE]
    assert not node.is_exact


def test_a_hairpin_is_a_share_of_each_endpoints_own_flows() -> None:
    text = dump(
        "-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "
        '"ns/a:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-A',
        "-A KUBE-SVC-A ! -s 10.0.0.0/8 -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ",
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
        "-A KUBE-SVC-A -m statistic --mode random --probability 0.25000000000 -j KUBE-SEP-1",
        "-A KUBE-SVC-A -j KUBE-SEP-2",
        "-A KUBE-SEP-1 -s 10.0.0.1/32 -j KUBE-MARK-MASQ",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
        endpoint("KUBE-SEP-2", "10.0.0.2:80"),
        "-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE",
    )
    (service,) = view_of(text).services
    (hairpin,) = [r for r in service.routes if r.source is Source.HAIRPIN]
    told = {str(s.endpoint): (float(s.share.lower), s.masquerade) for s in hairpin.shares}
    # The second has lost its mark: the answer would come back without the Service's address.
    assert told == {"10.0.0.1:80": (0.25, True), "10.0.0.2:80": (0.75, False)}


def test_routes_of_one_kind_of_source_are_found_by_their_network() -> None:
    frontend = Frontend(FrontendKind.LOAD_BALANCER_IP, ip_address("192.0.2.80"), 80)
    routes = [r for r in balancer("198.51.100.0/24").routes if r.source is Source.EXTERNAL]
    assert [(r.frontend, r.network) for r in routes] == [
        (frontend, None),
        (frontend, ip_network("198.51.100.0/24")),
    ]
    assert all(isinstance(r, Route) for r in routes)


# --- rules of others, and nodes ------------------------------------------------


def cluster(**networks: str) -> Cluster:
    return Cluster({n: Node(name=n, pod_networks=(ip_network(c),)) for n, c in networks.items()})


def before(rule: str, *, raw: bool = False) -> dict[tuple[str, str | None], bool]:
    """Return who is let in to a ClusterIP behind somebody's rule."""
    text = dump(
        *two_endpoints(),
        "-A KUBE-SVC-A ! -s 10.0.0.0/8 -d 10.96.0.1/32 -j KUBE-MARK-MASQ",
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
    )
    if raw:
        text = f"*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{rule}\nCOMMIT\n{text}"
    else:
        jump = "-A PREROUTING -j KUBE-SERVICES"
        assert jump in text
        text = text.replace(jump, f"{rule}\n{jump}")
    nodes = cluster(a="10.0.0.0/16", b="10.1.0.0/16")
    (service,) = Recogniser(parse(text, "f"), nodes, node="a").view().services
    return let_in(service)


def test_a_rule_of_somebody_elses_parts_pods() -> None:
    found = before("-A PREROUTING -s 10.0.128.0/17 -d 10.96.0.1/32 -j ACCEPT")
    assert not found["pod", "10.0.128.0/17"]
    assert found["pod", None]
    assert found["pod-elsewhere", None]
    assert found["external", None]


def test_a_rule_that_somebody_put_into_kube_services_parts_pods_too() -> None:
    text = dump("-A KUBE-SERVICES -s 10.0.128.0/17 -j RETURN", *two_endpoints())
    nodes = cluster(a="10.0.0.0/16", b="10.1.0.0/16")
    (service,) = Recogniser(parse(text, "f"), nodes, node="a").view().services
    found = let_in(service)
    assert not found["pod", "10.0.128.0/17"]
    assert found["pod", None]


def test_a_range_of_addresses_parts_clients() -> None:
    found = before("-A PREROUTING -m iprange --src-range 198.51.100.4-198.51.100.7 -j ACCEPT")
    assert not found["external", "198.51.100.4/30"]
    assert found["external", None]


def test_pods_that_conntrack_does_not_see_have_no_service() -> None:
    found = before("-A PREROUTING -s 10.1.128.0/17 -j NOTRACK", raw=True)
    assert not found["pod-elsewhere", "10.1.128.0/17"]
    assert found["pod-elsewhere", None]


def test_an_endpoint_that_somebody_keeps_out_has_no_hairpin() -> None:
    rule = "-A PREROUTING -s 10.0.0.1/32 -d 10.96.0.1/32 -j ACCEPT"
    text = dump(*two_endpoints()).replace("-A PREROUTING", f"{rule}\n-A PREROUTING", 1)
    (service,) = view_of(text).services
    (hairpin,) = [r for r in service.routes if r.source is Source.HAIRPIN]
    assert [str(s.endpoint) for s in hairpin.shares] == ["10.0.0.2:80"]


def test_other_nodes_are_clients_of_a_range_that_holds_nobody_else() -> None:
    text = dump(
        BALANCER,
        "-A KUBE-FW-A -s 192.168.0.12/31 -j KUBE-SVC-A",
        "-A KUBE-SVC-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
    )
    known = {
        name: Node(name=name, addresses=(ip_address(f"192.168.0.{last}"),))
        for name, last in (("a", 11), ("b", 12), ("c", 13))
    }
    placed = {a: Placement(n.name, None) for n in known.values() for a in n.addresses}
    recogniser = Recogniser(parse(text, "f"), Cluster(known, placed), node="a")
    (service,) = recogniser.view().services
    found = let_in(service)
    assert found["external", "192.168.0.12/31"]
    assert not found["external", None]


def test_a_node_whose_addresses_are_told_apart_has_bounds() -> None:
    text = dump(
        BALANCER,
        "-A KUBE-FW-A -s 192.168.0.0/24 -j KUBE-SVC-A",
        "-A KUBE-SVC-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
    )
    for own, exact in ((("192.168.0.10",), True), (("172.16.0.1", "192.168.0.10"), False)):
        addresses = tuple(map(ip_address, own))
        recogniser = Recogniser(parse(text, "f"), Cluster(), node_addresses=addresses)
        (service,) = recogniser.view().services
        (route,) = [r for r in service.routes if r.source is Source.NODE]
        assert route.is_exact is exact


def test_the_mark_of_a_chain_that_is_not_shown_is_that_of_postrouting() -> None:
    text = dump(
        "-A KUBE-SVC-A ! -s 10.0.0.0/8 -d 10.96.0.1/32 -j KUBE-MARK-MASQ",
        *two_endpoints(),
        "-A KUBE-POSTROUTING -m mark ! --mark 0x8000/0x8000 -j RETURN",
        "-A KUBE-POSTROUTING -j MASQUERADE",
        "-A POSTROUTING -j KUBE-POSTROUTING",
        missing=["KUBE-MARK-MASQ"],
    )
    own = (ip_address("192.168.0.10"),)
    view = Recogniser(parse(text, "f"), Cluster(), node_addresses=own).view()
    (service,) = view.services
    told = {
        r.source: {s.masquerade for s in r.shares}
        for r in service.routes
        if r.source in {Source.POD, Source.EXTERNAL}
    }
    assert told == {Source.POD: {False}, Source.EXTERNAL: {True}}
    assert "no-mark-chain" in {d.code for d in view.diagnostics}


@pytest.mark.parametrize(
    ("odd", "masqueraded"),
    [
        # Whatever it decides, who is sent on has been marked.
        ("-A KUBE-SEP-2 -m u32 --u32 0=0 -j RETURN", True),
        # It undoes the mark of who comes by once.
        ("-A KUBE-SEP-2 -j MARK --set-xmark 0x4000/0x0", True),
        ("-A KUBE-SEP-2 -m u32 --u32 0=0 -j MARK --set-xmark 0x4000/0x0", None),
    ],
)
def test_a_hairpin_through_an_odd_chain_is_walked_by_itself(
    odd: str, masqueraded: bool | None
) -> None:
    text = dump(
        *two_endpoints(),
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
        "-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE",
    )
    sent = endpoint("KUBE-SEP-2", "10.0.0.2:80")
    mark = "-A KUBE-SEP-2 -s 10.0.0.2/32 -j KUBE-MARK-MASQ"
    rows = [odd, mark] if "RETURN" in odd else [mark, odd, odd]
    if masqueraded is None:
        rows = [mark, odd]
    text = text.replace(sent, "\n".join([*rows, sent]))
    (service,) = view_of(text).services
    (hairpin,) = [r for r in service.routes if r.source is Source.HAIRPIN]
    told = {str(s.endpoint): s.masquerade for s in hairpin.shares}
    assert told["10.0.0.2:80"] is masqueraded
