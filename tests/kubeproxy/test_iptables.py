from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import FrontendState, Route, ServicePort, Share, Source, View
from analyzer.model.cluster import Cluster
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.parsers.iptables_save import parse
from tests.support.captures import FIXTURES
from tests.support.dumps import (
    FILTER,
    at,
    chance,
    cluster_ip,
    dump,
    endpoint,
    only_service,
    two_endpoints,
    view_of,
)
from tests.support.reading import read_ruleset

HALF = Dyadic.of(1, 1)


def cluster_route(text: str) -> Route:
    route = only_service(text).cluster_route
    assert route is not None
    return route


def state(service: ServicePort) -> FrontendState:
    (frontend,) = service.frontends
    return service.state(frontend)


def bounds(route: Route) -> dict[str, tuple[float, float]]:
    return {
        str(s.endpoint.address): (float(s.share.lower), float(s.share.upper)) for s in route.shares
    }


def test_a_match_that_nobody_reads_leaves_bounds() -> None:
    text = dump(
        cluster_ip(),
        chance("0.50000000000", "KUBE-SEP-1", match="-m nonesuch --of src"),
        "-A KUBE-SVC-A -j KUBE-SEP-2",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
        endpoint("KUBE-SEP-2", "10.0.0.2:80"),
    )
    assert bounds(cluster_route(text)) == {"10.0.0.1": (0, 0.5), "10.0.0.2": (0.5, 1)}
    assert state(only_service(text)) is FrontendState.UNKNOWN


def test_an_endpoint_chain_that_the_dump_lacks_may_lead_anywhere() -> None:
    _, *rules = reversed(two_endpoints())
    text = dump(*reversed(rules), missing=["KUBE-SEP-2"]) + FILTER
    route = cluster_route(text)
    assert bounds(route) == {"10.0.0.1": (0.5, 1)}
    assert route.unresolved == HALF
    assert state(only_service(text)) is FrontendState.UNKNOWN
    (diagnostic,) = view_of(text).diagnostics
    assert diagnostic.code == "missing-chain"
    assert diagnostic.partial


def test_a_service_chain_that_the_dump_lacks_leaves_everything_open() -> None:
    route = cluster_route(dump(cluster_ip(), missing=["KUBE-SVC-A"]))
    assert (route.shares, route.unresolved) == ((), ALWAYS)


def test_a_service_chain_that_is_not_filled_yet_is_not_without_endpoints() -> None:
    # kube-proxy writes no chain for a Service without endpoints: this dump met it at work.
    assert state(only_service(dump(cluster_ip()))) is FrontendState.UNKNOWN


@pytest.mark.parametrize(
    ("target", "refusal"),
    [("REJECT --reject-with icmp-port-unreachable", "reject"), ("DROP", "drop")],
)
def test_a_service_without_endpoints_tells_how_it_refuses(target: str, refusal: str) -> None:
    text = dump() + "\n".join(
        [
            "*filter",
            ":KUBE-SERVICES - [0:0]",
            "-A KUBE-SERVICES -d 10.96.0.9/32 -p udp -m comment "
            f'--comment "ns/empty:dns has no endpoints" -m udp --dport 53 -j {target}',
            "COMMIT",
            "",
        ]
    )
    service = only_service(text)
    assert (service.name.text, service.protocol) == ("ns/empty:dns", "udp")
    assert state(service) is FrontendState.NO_ENDPOINTS
    assert [refusal for _, refusal in service.refusals] == [refusal]


def test_a_range_of_destinations_names_no_endpoint() -> None:
    text = dump(*two_endpoints(second="10.0.0.5-10.0.0.9:80"))
    route = cluster_route(text)
    assert bounds(route) == {"10.0.0.1": (0.5, 0.5)}
    assert route.unresolved == HALF
    assert not route.is_exact


def test_session_affinity_is_found_behind_another_chain() -> None:
    service = only_service(
        dump(
            cluster_ip(chain="KUBE-EXT-A"),
            "-A KUBE-EXT-A -j KUBE-SVC-A",
            "-A KUBE-SVC-A -m recent --rcheck --seconds 10800 --reap --name KUBE-SEP-1 "
            "--mask 255.255.255.255 --rsource -j KUBE-SEP-1",
            "-A KUBE-SVC-A -j KUBE-SEP-1",
            "-A KUBE-SEP-1 -p tcp -m recent --set --name KUBE-SEP-1 --mask 255.255.255.255 "
            "--rsource -m tcp -j DNAT --to-destination 10.0.0.1:80",
        )
    )
    assert service.affinity == 10_800
    assert service.endpoints == (at("10.0.0.1"),)


def test_chains_that_lead_back_to_each_other_are_unknown() -> None:
    route = cluster_route(
        dump(cluster_ip(), "-A KUBE-SVC-A -j KUBE-EXT-A", "-A KUBE-EXT-A -j KUBE-SVC-A")
    )
    assert route.unresolved == ALWAYS


@pytest.mark.parametrize(
    ("rules", "mode"),
    [
        (
            '-A KUBE-PORTALS-CONTAINER -d 10.0.0.1/32 -p tcp -m comment --comment "ns/a:" '
            "-m tcp --dport 80 -j REDIRECT --to-ports 41001",
            ProxyMode.USERSPACE,
        ),
        (
            "-A KUBE-SERVICES -m set --match-set KUBE-LOAD-BALANCER dst,dst -j KUBE-LOAD-BALANCER",
            ProxyMode.IPVS,
        ),
    ],
)
def test_another_mode_is_recognised_and_gives_no_numbers(rules: str, mode: ProxyMode) -> None:
    view = view_of(dump(rules))
    assert (view.mode, view.services) == (mode, ())
    assert f"{mode.value}-mode" in {each.code for each in view.diagnostics if each.partial}


@pytest.mark.parametrize("table", ["nat", "filter"])
def test_a_dump_without_kube_proxy_says_so(table: str) -> None:
    view = view_of(f"*{table}\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n")
    assert (view.mode, view.services) == (ProxyMode.NONE, ())
    (diagnostic,) = view.diagnostics
    assert diagnostic.code == "no-kube-proxy-chains"
    assert diagnostic.partial


# --- masquerade --------------------------------------------------------------


def masquerades(*postrouting: str) -> set[bool | None]:
    """Return what the routes from outside say, at a node whose address is known."""
    text = dump(
        cluster_ip(),
        "-A KUBE-SVC-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
        *(f"-A POSTROUTING {rule}" for rule in postrouting),
        masquerades=False,
    )
    own = (at("192.168.0.10").address,)
    (service,) = Recogniser(parse(text, "f"), Cluster(), node_addresses=own).view().services
    return {s.masquerade for s in shares_from(service, Source.EXTERNAL)}


def shares_from(service: ServicePort, source: Source) -> list[Share]:
    return [s for r in service.routes if r.source is source for s in r.shares]


def test_without_a_rule_nothing_is_masqueraded() -> None:
    assert masquerades() == {False}


def test_a_rule_for_everything_masquerades() -> None:
    assert masquerades("-j MASQUERADE") == {True}


def test_an_address_of_the_node_may_be_written_out() -> None:
    assert masquerades("-j SNAT --to-source 192.168.0.10") == {True}


def test_by_which_device_a_flow_leaves_is_not_known() -> None:
    assert masquerades("-o eth0 -j MASQUERADE") == {None}


def test_a_match_that_nobody_reads_leaves_the_masquerade_open() -> None:
    assert masquerades("-m nonesuch --of src -j MASQUERADE") == {None}


def test_a_flow_that_ends_at_the_node_never_meets_postrouting() -> None:
    text = dump(
        cluster_ip(),
        "-A KUBE-SVC-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "192.168.0.10:6443"),
        "-A POSTROUTING -j MASQUERADE",
    )
    own = (at("192.168.0.10").address,)
    (service,) = Recogniser(parse(text, "f"), Cluster(), node_addresses=own).view().services
    assert {s.masquerade for s in shares_from(service, Source.EXTERNAL)} == {False}


# --- frontends ---------------------------------------------------------------


def test_a_node_port_answers_at_any_address_and_not_to_other_ports() -> None:
    service = only_service(
        dump(
            "-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS",
            '-A KUBE-NODEPORTS -p tcp -m comment --comment "ns/a:http" -m tcp --dport 30080 '
            "-j KUBE-SVC-A",
            "-A KUBE-SVC-A -j KUBE-SEP-1",
            endpoint("KUBE-SEP-1", "10.0.0.1:80"),
        )
    )
    (frontend,) = service.frontends
    assert (service.name.text, str(frontend)) == ("ns/a:http", "*:30080")
    assert {s.share for r in service.routes for s in r.shares} == {Bounds(ALWAYS, ALWAYS)}


#: As kube-proxy writes it with --nodeport-addresses.
ONE_ADDRESS = dump(
    "-A KUBE-SERVICES -d 192.168.0.10/32 -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS",
    '-A KUBE-NODEPORTS -p tcp -m comment --comment "ns/a:http" -m tcp --dport 30080 -j KUBE-SVC-A',
    "-A KUBE-SVC-A -j KUBE-SEP-1",
    endpoint("KUBE-SEP-1", "10.0.0.1:80"),
)


def test_a_node_port_may_answer_at_one_address_of_the_node() -> None:
    own = (at("192.168.0.10").address,)
    view = Recogniser(parse(ONE_ADDRESS, "f"), Cluster(), node_addresses=own).view()
    (service,) = view.services
    assert state(service) is FrontendState.ENDPOINTS


def test_a_node_port_at_one_address_of_an_unknown_node_is_not_without_endpoints() -> None:
    assert state(only_service(ONE_ADDRESS)) is not FrontendState.NO_ENDPOINTS


def test_a_chain_that_no_hook_reaches_counts_for_nothing() -> None:
    route = cluster_route(
        dump(
            cluster_ip(),
            "-A KUBE-SVC-A -j KUBE-SEP-1",
            endpoint("KUBE-SEP-1", "10.0.0.1:80"),
            endpoint("KUBE-SEP-2", "10.0.0.2:80"),
        )
    )
    assert bounds(route) == {"10.0.0.1": (1, 1)}


def test_a_flow_that_an_earlier_rule_sends_elsewhere_meets_no_service() -> None:
    accept = "-A KUBE-SERVICES -d 10.96.0.1/32 -j ACCEPT"
    route = cluster_route(dump(accept, *two_endpoints()))
    assert (route.shares, route.unresolved) == ((), NEVER)


def captured(change: Callable[[str], str]) -> View:
    path = FIXTURES / "1.36.2-iptables-legacy/seed-dns@worker1/iptables-legacy-save.txt"
    ruleset = read_ruleset(change(path.read_text()).encode(), "dump")
    return Recogniser(ruleset, Cluster()).view()


def test_a_port_that_an_older_iptables_left_out_is_noticed() -> None:
    found = captured(lambda text: re.sub(r" --dport \d+", "", text))
    assert [(d.code, d.line) for d in found.diagnostics] == [("lost-port", 79)]
    # What each rule was written for is still drawn as it says; who is masqueraded is not told.
    told = {s.name.text: [str(f) for f in s.frontends] for s in found.services}
    assert told["kube-system/kube-dns:dns-tcp"] == told["kube-system/kube-dns:metrics"]
    assert told["kube-system/kube-dns:dns-tcp"] == ["10.2.3.4:?"]
    shares = [s for service in found.services for r in service.routes for s in r.shares]
    assert {(s.share, s.masquerade) for s in shares} == {(Bounds(*[Dyadic.of(1, 1)] * 2), None)}


@pytest.mark.parametrize(
    "printed", ["[unsupported revision]", "--to-destination  --random --to-destination"]
)
def test_a_target_that_an_older_iptables_could_not_read_is_noticed(printed: str) -> None:
    found = captured(lambda text: text.replace("--to-destination 10.1.0.1:53", printed))
    assert [(d.code, d.line) for d in found.diagnostics] == [("older-iptables", 70)]
    (dns,) = [s for s in found.services if s.name.text == "kube-system/kube-dns:dns"]
    assert dns.state(dns.frontends[0]) is FrontendState.UNKNOWN


def raw(rule: str) -> str:
    return f"*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{rule}\nCOMMIT\n"


def test_a_flow_that_conntrack_does_not_see_is_sent_to_no_endpoint() -> None:
    rule = "-A PREROUTING -d 10.2.3.4/32 -p udp -m udp --dport 53 -j NOTRACK"
    found = captured(lambda text: raw(rule) + text)
    by_name = {s.name.port: s for s in found.services}
    shares = {(port, r.source): len(r.shares) for port, s in by_name.items() for r in s.routes}
    assert shares["dns", Source.POD] == shares["dns", Source.EXTERNAL] == 0
    assert shares["dns", Source.NODE] == shares["metrics", Source.POD] == 2


def test_a_flow_that_conntrack_may_not_see_gives_bounds() -> None:
    rule = "-A PREROUTING -d 10.2.3.4/32 -m u32 --u32 0=0 -j CT --notrack"
    (dns, *_) = captured(lambda text: raw(rule) + text).services
    assert dns.cluster_route is not None
    assert {s.share for s in dns.cluster_route.shares} == {Bounds(NEVER, Dyadic.of(1, 1))}


@pytest.mark.parametrize(
    "match", ["-d 10.2.3.0/24", "! -d 10.2.3.4/32", "-m set --match-set X dst", "-d 10.2.34/32"]
)
def test_a_rule_for_more_than_one_address_is_left_out_and_said(match: str) -> None:
    row = "-A KUBE-SERVICES -d 10.2.3.4/32 -p udp"
    other = row.replace("-d 10.2.3.4/32", match)
    found = captured(lambda text: text.replace(row, other))
    assert [s.name.port for s in found.services] == ["dns-tcp", "metrics"]
    assert ("odd-frontend", 80) in {(d.code, d.line) for d in found.diagnostics}


def test_an_endpoint_chain_without_a_rule_is_said() -> None:
    found = captured(lambda text: re.sub(r"-A KUBE-SEP-P7IB7VX4ME5MGWV4 .*\n", "", text))
    assert [d.code for d in found.diagnostics] == ["lost-rows"]
