"""How flows end that nat sends to no endpoint."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address

import pytest

from analyzer.failure.models import Dead
from analyzer.failure.route_loss import counted, route_loss
from analyzer.kubeproxy.generate import (
    FLAGS,
    ProxyConfig,
    RulesLayout,
    ServicePortSpec,
    mixed,
    node_name,
    proxy_config,
    render_nft,
    render_rules,
    service_ports,
)
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import FrontendKind, FrontendState, Route, Source, View
from analyzer.model.cluster import Cluster
from analyzer.model.endings import PASSES, Ending, EndKind
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.parsers.iptables_save import parse
from analyzer.parsers.nft_text import parse as parse_nft
from tests.support.captures import FIXTURES
from tests.support.dumps import chance, cluster_ip, dump, endpoint
from tests.support.reading import recogniser

NODE = ip_address("172.16.0.1")
ONE = (cluster_ip(), "-A KUBE-SVC-A -j KUBE-SEP-1", endpoint("KUBE-SEP-1", "10.0.0.1:80"))
MISSING = (cluster_ip(), chance("0.25000000000", "KUBE-SEP-1"), ONE[-1])


def view(text: str) -> View:
    return Recogniser(parse(text, "dump"), Cluster(), node_addresses=(NODE,)).view()


def from_pod(found: View) -> Route:
    (service,) = found.services
    return next(route for route in service.routes if route.source is Source.POD)


def ends(route: Route) -> list[tuple[EndKind, float, float]]:
    return [(end.kind, float(b.lower), float(b.upper)) for end, b in route.astray]


def raw(*rows: str) -> str:
    body = "".join(f"{row}\n" for row in rows)
    return f"*raw\n:PREROUTING ACCEPT [0:0]\n{body}COMMIT\n"


def test_what_no_draw_takes_is_left_over() -> None:
    route = from_pod(view(dump(*MISSING)))
    assert ends(route) == [(EndKind.LEFT_OVER, 0.75, 0.75)]


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("-A PREROUTING -d 10.96.0.1/32 -j DROP", EndKind.DROPPED),
        ("-A PREROUTING -d 10.96.0.1/32 -j NOTRACK", EndKind.NOT_TRANSLATED),
        ("-A PREROUTING -d 10.96.0.1/32 -j CT --notrack", EndKind.NOT_TRANSLATED),
    ],
)
def test_what_a_rule_before_nat_does_is_told_with_the_rule(row: str, kind: EndKind) -> None:
    text = dump(*ONE) + raw(row)
    found = view(text)
    route = from_pod(found)
    assert ends(route) == [(kind, 1, 1)]
    ((ending, _),) = route.astray
    assert (ending.rule, ending.chain, ending.table) == (row, "PREROUTING", "raw")
    assert ending.place is not None
    assert text.splitlines()[ending.place.line - 1] == row
    (service,) = found.services
    assert service.state(service.frontends[0]) is FrontendState.ENDPOINTS  # from the node


def test_what_others_accept_in_nat_before_kube_proxy_is_unchanged() -> None:
    text = dump(*ONE).replace(
        "-A PREROUTING -j", "-A PREROUTING -d 10.96.0.0/16 -j ACCEPT\n-A PREROUTING -j", 1
    )
    route = from_pod(view(text))
    assert ends(route) == [(EndKind.UNCHANGED, 1, 1)]
    assert [ending.rule for ending, _ in route.astray] == [
        "-A PREROUTING -d 10.96.0.0/16 -j ACCEPT"
    ]


def test_what_kube_proxy_leaves_alone_is_no_loss_but_on_the_way_to_a_cluster_ip() -> None:
    """Up to 1.20 only flows from outside the node are sent on from an external IP."""
    local = "-m addrtype ! --src-type LOCAL -m physdev ! --physdev-is-in"
    for says, lost in (("external IP", ()), ("cluster IP", (EndKind.UNCHANGED,))):
        row = cluster_ip().replace("cluster IP", says).replace(" -m tcp", f" {local} -m tcp")
        (service,) = view(dump(row, *ONE[1:])).services
        route = next(each for each in service.routes if each.source is Source.NODE)
        assert ends(route) == [(EndKind.UNCHANGED, 1, 1)]
        assert tuple(ending.kind for ending, _ in counted(route)) == lost
    others = dump(cluster_ip().replace("cluster IP", "external IP"), *ONE[1:]).replace(
        "-A OUTPUT -j", "-A OUTPUT -d 10.96.0.1/32 -j ACCEPT\n-A OUTPUT -j", 1
    )
    (service,) = view(others).services
    route = next(each for each in service.routes if each.source is Source.NODE)
    ((ending, share),) = counted(route)
    assert (ending.kind, float(share.lower), float(share.upper)) == (EndKind.UNCHANGED, 0, 1)


def test_what_kube_proxy_marks_to_be_dropped_is_refused_with_and_without_filter() -> None:
    rows = (cluster_ip(), chance("0.50000000000", "KUBE-SEP-1"), "-A KUBE-SVC-A -j KUBE-MARK-DROP")
    marks = "-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000"
    alone = dump(*rows, marks, ONE[-1])
    drops = (
        "*filter\n:FORWARD ACCEPT [0:0]\n:KUBE-FIREWALL - [0:0]\n-A FORWARD -j KUBE-FIREWALL\n"
        "-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP\nCOMMIT\n"
    )
    # The kubelet's rule stands in INPUT and OUTPUT alone: who is forwarded passes as he came.
    elsewhere = drops.replace("FORWARD", "INPUT")
    for text, how in ((alone, PASSES), (alone + drops, "drop"), (alone + elsewhere, PASSES)):
        route = from_pod(view(text))
        assert ends(route) == [(EndKind.REFUSED, 0.5, 0.5)]
        assert [ending.how for ending, _ in route.astray] == [how]
    others = drops.replace("KUBE-FIREWALL", "MINE")
    assert ends(from_pod(view(alone + others))) == [(EndKind.DROPPED, 0.5, 0.5)]


def test_what_filter_drops_of_flows_that_nat_left_is_told() -> None:
    drops = "*filter\n:FORWARD DROP [0:0]\nCOMMIT\n"
    ((ending, share),) = from_pod(view(dump(*MISSING) + drops)).astray
    assert (ending.kind, ending.how, float(share.lower)) == (
        EndKind.DROPPED,
        "policy DROP of FORWARD",
        0.75,
    )


def test_sources_that_end_otherwise_are_each_told() -> None:
    drops = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 203.0.113.0/24 -j DROP\nCOMMIT\n"
    text = dump(*MISSING) + drops
    (service,) = view(text).services
    found = {
        str(route.network): ends(route)
        for route in service.routes
        if route.source is Source.EXTERNAL
    }
    if "203.0.113.0/24" in found:
        assert found["203.0.113.0/24"] == [(EndKind.DROPPED, 0.75, 0.75)]
        assert found["None"] == [(EndKind.LEFT_OVER, 0.75, 0.75)]
    else:  # one route for all of them: bounds
        assert set(found["None"]) == {(EndKind.DROPPED, 0, 0.75), (EndKind.LEFT_OVER, 0, 0.75)}


def test_of_nft_too() -> None:
    text = """table ip kube-proxy {
    map service-ips {
        type ipv4_addr . inet_proto . inet_service : verdict
        elements = { 10.96.0.1 . tcp . 80 : goto service-AAAAAAAA-ns/a/tcp/http }
    }
    chain nat-prerouting {
        type nat hook prerouting priority dstnat; policy accept;
        ip daddr . meta l4proto . th dport vmap @service-ips
    }
    chain service-AAAAAAAA-ns/a/tcp/http {
        numgen random mod 2 vmap { 0 : goto endpoint-B-ns/a/tcp/http__10.0.0.1/80 }
    }
    chain endpoint-B-ns/a/tcp/http__10.0.0.1/80 {
        meta l4proto tcp dnat to 10.0.0.1:80
    }
}
"""
    others = """table inet others {
    chain early {
        type filter hook prerouting priority raw; policy accept;
        ip saddr 10.7.7.7 notrack
    }
}
"""
    alone, beside = (
        recogniser(parse_nft(each, "dump"), node_addresses=(NODE,)).view()
        for each in (text, text + others)
    )
    assert ends(from_pod(alone)) == [(EndKind.LEFT_OVER, 0.5, 0.5)]
    # Any address may be that of a pod.
    assert set(ends(from_pod(beside))) == {
        (EndKind.NOT_TRANSLATED, 0, 1),
        (EndKind.LEFT_OVER, 0, 0.5),
    }


BALANCER = (
    '-A KUBE-SERVICES -d 203.0.113.50/32 -p tcp -m comment --comment "ns/a:http loadbalancer IP" '
    "-m tcp --dport 80 -j KUBE-FW-A"
)
ADMITS = "-A KUBE-FW-A -s 198.51.100.0/24 -j KUBE-SVC-A"
#: How kube-proxy stops who is not admitted: up to 1.25, and since.
FIREWALLS = {
    "1.20": (
        (
            "-A KUBE-FW-A -j KUBE-MARK-DROP",
            "-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000",
        ),
        "KUBE-FIREWALL",
        "-m mark --mark 0x8000/0x8000",
    ),
    "1.36": ((), "KUBE-PROXY-FIREWALL", "-d 203.0.113.50/32 -p tcp -m tcp --dport 80"),
}


@pytest.mark.parametrize("version", FIREWALLS)
def test_what_no_draw_takes_of_those_admitted_is_not_taken_for_refused(version: str) -> None:
    rows, chain, match = FIREWALLS[version]
    drops = (
        f"*filter\n:FORWARD ACCEPT [0:0]\n:{chain} - [0:0]\n-A FORWARD -j {chain}\n"
        f"-A {chain} {match} -j DROP\nCOMMIT\n"
    )
    (service,) = view(dump(*MISSING, BALANCER, ADMITS, *rows) + drops).services
    found = {
        str(route.network): counted(route)
        for route in service.routes
        if route.source is Source.EXTERNAL and route.frontend.kind is FrontendKind.LOAD_BALANCER_IP
    }
    assert found["None"] == ()  # not admitted
    ((ending, share),) = found["198.51.100.0/24"]
    assert (ending.kind, float(share.lower), float(share.upper)) == (EndKind.LEFT_OVER, 0.75, 0.75)


def test_what_no_draw_of_nft_takes_is_lost_where_kube_proxy_rejects_it_behind() -> None:
    dump_of = FIXTURES / "1.36.2-nftables/two-node@worker1/nft-list-ruleset.txt"
    text = dump_of.read_text()
    drawn = re.search(r"numgen random mod 2 map \{ 0 : [^,]+, (1 : 10\.244\.1\.9 [^,]+) \}", text)
    assert drawn is not None
    assert "cluster-ips-check" in text
    cut = text.replace(f", {drawn[1]}", "", 1)
    found = recogniser(parse_nft(cut, "dump"), node_addresses=(NODE,)).view()
    lost = {
        ending.kind: (float(share.lower), float(share.upper))
        for service in found.services
        for route in service.routes
        if route.source is Source.POD
        for ending, share in counted(route)
    }
    assert lost == {EndKind.LEFT_OVER: (0.5, 0.5)}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("layout", "render"),
    [
        (RulesLayout.V1_20, render_rules),
        (RulesLayout.V1_30, render_rules),
        (RulesLayout.V1_36, render_rules),
        (RulesLayout.V1_30, render_nft),
        (RulesLayout.V1_36, render_nft),
    ],
)
def test_services_of_all_kinds_lose_nothing(
    layout: RulesLayout, render: Callable[[list[ServicePortSpec], ProxyConfig], str]
) -> None:
    items = mixed(60, 6)
    config = proxy_config(items, FLAGS, node=node_name(1), layout=layout)
    text = render(list(service_ports(items, layout)), config)
    found = recogniser(read_ruleset(text.encode(), "dump"), node_addresses=(NODE,)).view()
    assert len(found.services) >= 60
    lost = [
        (str(route.frontend), route.source, counted(route))
        for service in found.services
        for route in service.routes
        if counted(route) or route.losses()
    ]
    assert lost == []


UNTRACKED = (
    "*raw",
    ":PREROUTING ACCEPT [0:0]",
    "-A PREROUTING -s 203.0.113.0/24 -j DROP",
    "-A PREROUTING -p tcp -m tcp --dport 80 -j CT --notrack",
    "COMMIT",
    "*filter",
    ":FORWARD ACCEPT [0:0]",
    "-A FORWARD -s 198.51.100.0/24 -j REJECT --reject-with icmp-port-unreachable",
    "COMMIT",
    "",
)
UNTRACKED_NFT = """
table ip raw {
	chain pre {
		type filter hook prerouting priority raw; policy accept;
		ip saddr 203.0.113.0/24 drop
		tcp dport 80 notrack
	}
	chain forward {
		type filter hook forward priority 10; policy accept;
		ip saddr 198.51.100.0/24 reject
	}
}
"""


@pytest.mark.parametrize("nft", [False, True])
def test_sources_that_go_astray_in_different_ways_are_routes_of_their_own(*, nft: bool) -> None:
    path = FIXTURES / "1.36.2-nftables/two-node@worker1/nft-list-ruleset.txt"
    text = path.read_text() + UNTRACKED_NFT if nft else dump(*ONE) + "\n".join(UNTRACKED)
    ruleset = parse_nft(text, "dump") if nft else parse(text, "dump")
    found = recogniser(ruleset, Cluster(), node_addresses=(NODE,)).view()
    service = next(s for s in found.services if s.frontends[0].port == 80)
    told = {
        str(route.network): [ending.kind for ending, _ in route.astray]
        for route in service.routes
        if route.source is Source.EXTERNAL and not route.shares
    }
    assert told == {
        "None": [EndKind.NOT_TRANSLATED],
        "203.0.113.0/24": [EndKind.DROPPED],
        "198.51.100.0/24": [EndKind.REJECTED],
    }


def test_of_two_rules_that_may_drop_a_flow_one_certainly_does() -> None:
    raw = ("-m u32 --u32 0x0=0x1 -j DROP", "-p tcp -j DROP", "-m u32 --u32 0x0=0x2 -j DROP")
    rows = "".join(f"-A PREROUTING {each}\n" for each in raw)
    text = f"{dump(*ONE)}\n*raw\n:PREROUTING ACCEPT [0:0]\n{rows}COMMIT\n"
    route = from_pod(view(text))
    assert [(float(b.lower), float(b.upper)) for _, b in counted(route)] == [(0, 1), (0, 1)]
    loss = route_loss(route, Dead(endpoints=frozenset()))
    assert (float(loss.loss.lower), float(loss.loss.upper)) == (1, 1)
    assert float(loss.survives.upper) == 0


@pytest.mark.parametrize("kind", [EndKind.UNKNOWN, EndKind.NOT_TRANSLATED, EndKind.REFUSED])
def test_what_may_end_otherwise_is_not_lost_for_certain(kind: EndKind) -> None:
    any_ = Bounds(NEVER, ALWAYS)
    dropped, other = Ending(kind=EndKind.DROPPED), Ending(kind=kind)
    whole = replace(from_pod(view(dump(*ONE))), shares=(), unresolved=NEVER)
    for astray in (((other, any_),), ((dropped, any_), (other, any_))):
        loss = route_loss(replace(whole, astray=astray), Dead(endpoints=frozenset())).loss
        assert loss.lower == NEVER
    half = Bounds(Dyadic(1, 1), Dyadic(1, 1))
    both = replace(whole, astray=((dropped, any_), (other, half)))
    least = route_loss(both, Dead(endpoints=frozenset())).loss.lower
    assert least == Dyadic(1, 1)
