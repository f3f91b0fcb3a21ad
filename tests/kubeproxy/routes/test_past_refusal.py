"""Flows to frontends without endpoints where other programs' rules come before kube-proxy's."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import ServicePort, Source
from analyzer.model.cluster import Cluster, Node
from analyzer.model.endings import PASSES, EndKind
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers.formats import read_ruleset
from analyzer.reports.phrases import state_of_frontend
from tests.support.foreign.naive import Asked, kinds, truth
from tests.support.nft.listing import block

NODE = ip_address("172.16.0.1")
TO = ip_address("10.96.0.1")
CLIENTS = {
    Source.POD: ("10.244.0.9", "cni0"),
    Source.EXTERNAL: ("203.0.113.1", "eth0"),
    Source.NODE: ("172.16.0.1", ""),
}
REFUSES = (
    '-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "a/b has no endpoints" '
    "-m tcp --dport 80 -j {}"
)
#: What the naive node says of a packet that no rule ends.
GOES = {"sent": PASSES, "here": PASSES}
CONDITIONS = (
    "",
    "-d 10.96.0.0/12 ",
    "-s 10.244.0.0/16 ",
    "! -s 10.244.0.0/16 ",
    "-p tcp -m tcp --dport 80 ",
    "-p udp ",
    "-m conntrack --ctstate NEW ",
    "-m conntrack --ctstate RELATED,ESTABLISHED ",
)
TARGETS = ("ACCEPT", "DROP", "REJECT", "RETURN", "MINE")
rows = st.lists(
    st.tuples(
        st.sampled_from(("FORWARD", "OUTPUT", "INPUT")),
        st.sampled_from(CONDITIONS),
        st.sampled_from(TARGETS),
    ).map(lambda of: f"-A {of[0]} {of[1]}-j {of[2]}"),
    min_size=1,
    max_size=3,
)
mine = st.tuples(st.sampled_from(CONDITIONS), st.sampled_from(TARGETS[:-1])).map(
    lambda of: f"-A MINE {of[0]}-j {of[1]}"
)


def dump(*first: str, how: str = "REJECT --reject-with icmp-port-unreachable") -> str:
    """Return a dump of one Service without endpoints, with rows before kube-proxy's."""
    before = "".join(f"{row}\n" for row in first)
    jumps = "".join(f"-A {hook} -j KUBE-SERVICES\n" for hook in ("INPUT", "FORWARD", "OUTPUT"))
    return (
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
        f":KUBE-SERVICES - [0:0]\n:MINE - [0:0]\n{before}{jumps}{REFUSES.format(how)}\nCOMMIT\n"
        "*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
        ":KUBE-MARK-MASQ - [0:0]\n:KUBE-SERVICES - [0:0]\n"
        "-A PREROUTING -j KUBE-SERVICES\n-A OUTPUT -j KUBE-SERVICES\n"
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\nCOMMIT\n"
    )


NFT_CONDITIONS = (
    "",
    "ip daddr 10.96.0.0/12 ",
    "ip saddr 10.244.0.0/16 ",
    "ip saddr != 10.244.0.0/16 ",
    "tcp dport 80 ",
    "meta l4proto udp ",
    "ct state new ",
    "ct state established,related ",
    "fib daddr type local ",
)
nft_chains = st.lists(
    st.tuples(
        st.sampled_from(("prerouting", "forward", "output", "input")),
        st.sampled_from((-10, 0, 10)),
        st.sampled_from(("accept", "drop")),
        st.lists(
            st.tuples(
                st.sampled_from(NFT_CONDITIONS),
                st.sampled_from(("accept", "drop", "reject", "return")),
            ).map("".join),
            max_size=3,
        ),
    ),
    min_size=1,
    max_size=3,
)
NftChain = tuple[str, int, str, list[str]]


def nft_dump(*chains: NftChain, how: str = "goto reject-chain", is_later: bool = True) -> str:
    """Return a ruleset of one Service without endpoints, and a table of others' base chains."""
    hooks = "".join(
        block(f"filter-{hook}", f"type filter hook {hook} priority filter;", "ct state new jump e")
        for hook in ("input", "forward", "output")
    )
    key, to = "ip daddr . meta l4proto . th dport", '10.96.0.1 . tcp . 80 comment "a/b" : '
    kube_proxy = (
        "table ip kube-proxy {\nmap no-endpoint-services {\n"
        f"type ipv4_addr . inet_proto . inet_service : verdict\nelements = {{ {to}{how} }}\n}}\n"
        "set cluster-ips {\ntype ipv4_addr\nelements = { 10.96.0.1 }\n}\n"
        + block("e", f"{key} vmap @no-endpoint-services")
        + block("reject-chain", "reject")
        + hooks
        + "}\n"
    )
    others = "".join(
        block(f"c{at}", f"type filter hook {hook} priority {priority}; policy {policy};", *rules)
        for at, (hook, priority, policy, rules) in enumerate(chains)
    )
    table = f"table inet mine {{\n{others}}}\n"
    return kube_proxy + table if is_later else table + kube_proxy


#: Rules of others that translate flows, and where they stand.
translating = st.tuples(
    st.sampled_from(("prerouting", "output")),
    st.sampled_from((-110, -90)),
    st.tuples(st.sampled_from(NFT_CONDITIONS), st.just("tcp dport 80 dnat to 10.244.0.5:8080")),
)


def translates(hook: str, priority: int, rule: tuple[str, str]) -> str:
    head = f"type nat hook {hook} priority {priority}; policy accept;"
    return f"table ip theirs {{\n{block('c', head, ''.join(rule))}\n}}\n"


def service(text: str) -> ServicePort:
    here = Node(name="here", pod_networks=(ip_network("10.244.0.0/16"),))
    cluster = Cluster(nodes={"here": here})
    ruleset = read_ruleset(text.encode(), "dump")
    found: NftRecogniser | Recogniser
    if isinstance(ruleset, NftRuleset):
        found = NftRecogniser(ruleset, cluster, node="here", node_addresses=(NODE,))
    else:
        found = Recogniser(ruleset, cluster, node="here", node_addresses=(NODE,))
    (only,) = found.view().services
    return only


def naive(text: str, source: Source) -> str:
    """Return what becomes of a flow, by the naive node: reject, drop, pass, or an endpoint."""
    client, device = CLIENTS[source]
    asked = Asked(
        source=ip_address(client),
        destination=TO,
        port=80,
        protocol="tcp",
        device=device,
        made_here=source is Source.NODE,
    )
    rulesets = [read_ruleset(text.encode(), "dump")]
    (sent,) = truth(rulesets, (NODE,), asked)
    if sent is not None:
        return f"{sent.address}:{sent.port}"
    (kind,) = kinds(rulesets, (NODE,), asked)
    return GOES.get(kind, kind)


def check(text: str, refusal: str) -> None:
    found = service(text)
    assert dict(found.refusals) == {found.frontends[0]: refusal}
    ends = {source: naive(text, source) for source in CLIENTS}
    told = {
        route.source: [*(end.how for end, _ in route.astray), *route.columns()[0]]
        for route in found.routes
        if route.source in CLIENTS
    }
    assert told == ({} if set(ends.values()) == {refusal} else {s: [e] for s, e in ends.items()})
    assert all(end.kind is EndKind.REFUSED for route in found.routes for end, _ in route.astray)


@given(st.lists(mine, max_size=2), rows, st.sampled_from(("REJECT", "DROP")))
def test_flows_end_as_on_a_naive_node(others: list[str], first: list[str], how: str) -> None:
    check(dump(*others, *first, how=how), how.lower())


@given(nft_chains, st.sampled_from(("goto reject-chain", "drop")), st.booleans())
def test_in_nftables_mode_flows_end_as_on_a_naive_node(
    chains: list[NftChain], how: str, is_later: bool
) -> None:
    check(nft_dump(*chains, how=how, is_later=is_later), "drop" if how == "drop" else "reject")


@given(st.lists(nft_chains.map(lambda of: of[0]), max_size=2), translating)
def test_what_others_translate_is_not_refused(
    chains: list[NftChain], rule: tuple[str, int, tuple[str, str]]
) -> None:
    check(nft_dump(*chains) + translates(*rule), "reject")


def test_rules_beside_what_iptables_mode_left_are_evaluated_too() -> None:
    head = "type filter hook forward priority -10; policy accept;"
    left = f"table ip filter {{\n{block('KUBE-SERVICES')}\n{block('FORWARD', head, 'drop')}\n}}\n"
    check(nft_dump() + left, "reject")
    assert service(nft_dump() + left).routes


def test_nor_is_it_in_iptables_mode() -> None:
    rule = "-A PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.244.0.5:8080"
    text = dump().replace("-A PREROUTING -j", f"{rule}\n-A PREROUTING -j")
    check(text, "reject")
    found = service(text)
    (frontend,) = found.frontends
    words = state_of_frontend(found, frontend, found.state(frontend))
    assert "".join(getattr(each, "text", str(each)) for each in words) == " else reject"


@pytest.mark.parametrize(
    ("first", "says"),
    [
        ((), " no endpoints: reject"),
        (("-A FORWARD -s 10.244.0.0/16 -j ACCEPT",), " no endpoints: reject some"),
        (("-A FORWARD -j ACCEPT", "-A OUTPUT -j ACCEPT"), " no endpoints"),
        (("-A FORWARD -j DROP", "-A OUTPUT -j DROP"), " no endpoints: drop"),
        (("-A FORWARD -m u32 --u32 0x0=0x0 -j ACCEPT",), " no endpoints: reject some"),
    ],
)
def test_a_frontend_is_said_to_refuse_what_it_refuses(first: tuple[str, ...], says: str) -> None:
    found = service(dump(*first))
    (frontend,) = found.frontends
    words = state_of_frontend(found, frontend, found.state(frontend))
    assert "".join(getattr(each, "text", str(each)) for each in words) == says


def test_a_node_port_without_endpoints_is_at_the_addresses_that_rules_list() -> None:
    """Also where no other NodePort has endpoints, and the node's addresses are not known."""
    text = nft_dump(("forward", 0, "accept", ["ip daddr 192.0.2.1 drop"])).replace(
        "set cluster-ips",
        "map no-endpoint-nodeports {\ntype inet_proto . inet_service : verdict\n"
        'elements = { tcp . 30080 comment "a/b" : goto reject-chain }\n}\n'
        "set nodeport-ips {\ntype ipv4_addr\nelements = { 172.16.0.1 }\n}\nset cluster-ips",
    )
    asked = "ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports"
    text = text.replace("chain e {", f"chain e {{\n{asked}")
    ruleset = read_ruleset(text.encode(), "dump")
    assert isinstance(ruleset, NftRuleset)
    (only,) = NftRecogniser(ruleset, Cluster()).view().services
    assert {str(frontend): how for frontend, how in only.refusals} == {
        "*:30080": "reject",
        "10.96.0.1:80": "reject",
    }
    assert not only.routes
