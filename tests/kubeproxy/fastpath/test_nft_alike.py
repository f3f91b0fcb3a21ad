"""Frontends of nft that are alike have the answer of one of them, and others have their own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from ipaddress import IPv4Address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import View, each_network
from analyzer.model.cluster import Cluster
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers.formats import read_ruleset
from tests.support.clusters import GeneratedCluster, clusters, one_service
from tests.support.effort import examples
from tests.support.nft.listing import SERVICES, block, endpoints_of, hook, listing

#: What the copy of a Service has instead of its own.
_CHANGES = (
    (r'"10\.96\.', '"10.97.'),
    (r'"10\.244\.(\d+)\.', lambda found: f'"10.244.{int(found[1]) + 64}.'),
    (r'"198\.51\.100\.', '"198.51.101.'),
    (r'"198\.18\.0\.', '"198.18.1.'),
    (r'("nodePort": )3(\d{4})', r"\g<1>4\2"),
)
SERVICE = "kubernetes.io/service-name"


def doubled(cluster: GeneratedCluster) -> str:
    """Return the ruleset of a cluster in which each Service has a copy, at other addresses."""
    items = list(cluster.items)
    for item in cluster.items:
        if item["kind"] in {"Service", "EndpointSlice"}:
            text = json.dumps(item)
            for pattern, new in _CHANGES:
                text = re.sub(pattern, new, text)
            copy = json.loads(text)
            copy["metadata"]["name"] += "-copy"
            labels = copy["metadata"].get("labels", {})
            if SERVICE in labels:
                labels[SERVICE] += "-copy"
            items.append(copy)
    return GeneratedCluster(items, cluster.flags, cluster.layout, cluster.family, cluster.node).nft


def view(text: str, own: Sequence[IPv4Address] = (), *, plainly: bool) -> View:
    ruleset = read_ruleset(text.encode(), "dump")
    assert isinstance(ruleset, NftRuleset)
    return NftRecogniser(ruleset, Cluster(), node_addresses=tuple(own), plainly=plainly).view()


def told(found: View) -> object:
    return [
        (
            s.name,
            s.protocol,
            s.affinity,
            sorted(map(str, s.frontends)),
            sorted(
                (*map(str, (r.frontend, r.source, r.network, tuple(r.shares), r.unresolved)),)
                for r in each_network(s.routes)
            ),
        )
        for s in found.services
    ]


def check(text: str, own: Sequence[IPv4Address] = ()) -> None:
    assert told(view(text, own, plainly=True)) == told(view(text, own, plainly=False))


@st.composite
def strangers(draw: st.DrawFn, text: str) -> tuple[str, str]:
    """Draw a chain of the ruleset, and a rule for it that may tell Services apart."""
    found = sorted(set(re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text)))
    address = draw(st.sampled_from(found))
    length = draw(st.sampled_from((8, 12, 16, 21, 24, 32)))
    network = ip_network(f"{address}/{length}", strict=False)
    port = draw(st.sampled_from(sorted(set(re.findall(r"tcp \. (\d+) ", text)) | {"8080"})))
    asked = draw(
        st.sampled_from(
            (
                f"ip daddr {network}",
                f"ip daddr {address}",
                f"ip daddr != {network}",
                f"ip saddr {network}",
                f"ip saddr {address}",
                f"ip daddr {{ {address}, 192.0.2.1 }}",
                f"ip daddr {address}-{IPv4Address(address) + 2000}",
                f"tcp dport {port}",
                f"tcp dport {port}-{min(int(port) + 900, 65535)}",
                f"tcp dport {{ {port}, 9 }}",
                f"tcp dport != {port}",
                "meta mark & 0x4000 == 0x4000",
                'xt match "set"',
                "fib daddr type local",
            )
        )
    )
    chains = re.findall(r"chain (\S+) \{", text)
    chain = draw(st.sampled_from(chains))
    target = draw(st.sampled_from(chains))
    endpoint = draw(st.sampled_from(re.findall(r"to (\S+:\d+)", text) or ["10.9.9.9:9"]))
    action = draw(
        st.sampled_from(
            (
                "accept",
                "drop",
                "return",
                f"jump {target}",
                f"goto {target}",
                f"meta l4proto tcp dnat to {endpoint}",
                "meta mark set meta mark | 0x4000",
                "masquerade",
                "reject",
            )
        )
    )
    return chain, f"{asked} {action}"


#: What a set or map is asked by: its type, the expression, and of which kind its values are.
_KEYS = {
    "ipv4_addr": (("ip daddr", "ip saddr"), ("host",)),
    "mark": (("meta mark",), ("mark",)),
    "inet_service": (("tcp dport", "tcp sport", "th dport"), ("port",)),
    "ipv4_addr . inet_proto . inet_service": (
        (
            "ip daddr . meta l4proto . th dport",
            "ip saddr . meta l4proto . th dport",
            "ip daddr . meta l4proto . th sport",
        ),
        ("host", "tcp", "port"),
    ),
    "ipv4_addr . ipv4_addr . inet_proto . inet_service": (
        ("ip saddr . ip daddr . meta l4proto . th dport",),
        ("host", "same", "tcp", "port"),
    ),
}


@st.composite
def askers(draw: st.DrawFn, text: str, name: str) -> tuple[str, str, str]:
    """Draw a set or verdict map of hosts, networks, ports or marks, and a rule that asks it.

    Returns:
        the chain of the ruleset for the rule, the rule, and what is to stand in the table.
    """
    hosts = sorted(set(re.findall(r"\b10\.\d+\.\d+\.\d+\b", text)))
    ports = sorted(set(re.findall(r"(?:tcp \. |:)(\d+)\b", text)) | {"80", "8080", "40000"})
    kind = draw(st.sampled_from(sorted(_KEYS)))
    expressions, parts = _KEYS[kind]
    interval = draw(st.booleans()) and "host" in parts
    network = st.tuples(st.sampled_from(hosts), st.sampled_from((16, 24, 28))).map(
        lambda of: str(ip_network("/".join(map(str, of)), strict=False))
    )
    host = st.one_of(st.sampled_from(hosts), network) if interval else st.sampled_from(hosts)
    values = {
        "host": host,
        "port": st.sampled_from(ports),
        "mark": st.sampled_from(("0x00000000", "0x00004000", "0x00000001")),
        "tcp": st.just("tcp"),
    }
    keys: dict[str, None] = {}
    taken: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        drawn: list[str] = []
        for part in parts:
            drawn.append(drawn[-1] if part == "same" else draw(values[part]))
        # An interval set refuses what overlaps.
        if interval and any(ip_network(drawn[0]).overlaps(ip_network(old)) for old in taken):
            continue
        taken += drawn[:1] if interval else []
        keys[" . ".join(drawn)] = None
    asked = draw(st.sampled_from(expressions))
    flags = "flags interval; " if interval else ""
    chain = draw(st.sampled_from(re.findall(r"chain (\S+) \{", text)))
    if draw(st.booleans()):
        action = draw(st.sampled_from(("accept", "drop", "masquerade", "meta mark set 0x4000")))
        held = f"set {name} {{ type {kind}; {flags}elements = {{ {', '.join(keys)} }} }}"
        return chain, f"{asked} @{name} {action}", held
    elements = ", ".join(f"{key} : jump {name}-behind" for key in keys)
    held = f"map {name} {{ type {kind} : verdict; {flags}elements = {{ {elements} }} }}"
    action = draw(st.sampled_from(("accept", "drop", "masquerade", "meta mark set 0x4000")))
    asks = draw(st.sampled_from(("", "ip daddr ", "ip saddr ")))
    behind = f"{asks}{draw(st.sampled_from(hosts)) if asks else ''} {action}"
    return chain, f"{asked} vmap @{name}", f"{held}\n{block(f'{name}-behind', behind)}"


@st.composite
def edited(draw: st.DrawFn, text: str) -> str:
    """Draw a ruleset with up to two rules of somebody else, of which some ask a set or map."""
    for number in range(draw(st.integers(0, 2))):
        if draw(st.booleans()):
            chain, rule = draw(strangers(text))
        else:
            chain, rule, held = draw(askers(text, f"some-{number}"))
            table, rest = text.split(" {\n", 1)
            text = f"{table} {{\n{held}\n{rest}"
        head, rest = text.split(f"chain {chain} {{\n", 1)
        kind, _, body = rest.partition("\n") if "hook" in rest.split("\n", 1)[0] else ("", "", rest)
        kind += "\n" if kind else ""
        text = f"{head}chain {chain} {{\n{kind}\t\t{rule}\n{body}"
    return text


LAYOUTS = st.sampled_from([layout for layout in RulesLayout if layout.name in {"V1_30", "V1_36"}])
GENERATED = LAYOUTS.flatmap(lambda layout: clusters(layout, families=st.just(4))).map(doubled)
TEXTS = st.one_of(GENERATED, st.just(listing())).flatmap(edited)


@examples(15, 1_500)
@given(TEXTS, st.sampled_from((None, "192.168.0.1", "192.168.0.2")))
@example(listing(f"ip daddr {SERVICES[0]} tcp dport 80 jump KUBE-SVC-1"), None)
@example(listing("ip daddr 10.244.0.0/24 accept", own="ip saddr 10.9.9.9 accept"), None)
def test_what_is_alike_is_answered_as_if_it_was_walked(text: str, own: str | None) -> None:
    check(text, [] if own is None else [IPv4Address(own)])


TEXT = doubled(one_service(RulesLayout.V1_36, endpoints=6))
PAIRS = [
    {"10.96.0.1:80", "10.97.0.1:80"},
    {"198.18.0.1:80", "198.18.1.1:80"},
    {"198.51.100.1:80", "198.51.101.1:80"},
    {"*:30000", "*:40000"},
]


def test_copies_of_a_service_are_not_walked(carried: list[str]) -> None:
    found = view(TEXT, plainly=True)
    assert len(found.services) == 2
    assert all(pair & set(carried) for pair in PAIRS)
    assert told(found) == told(view(TEXT, plainly=False))


@pytest.mark.parametrize("port", [80, 30000])
def test_nor_are_those_that_a_rule_takes_to_one_pod(carried: list[str], port: int) -> None:
    """As hostPorts of CNI's portmap do: its rule is a row of each frontend with the port."""
    rule = f"tcp dport {port} dnat to 10.9.9.9:9"
    text = TEXT + f"table ip cni {{\n{block('p', hook('nat', 'prerouting', -110), rule)}\n}}\n"
    found = view(text, plainly=True)
    assert told(found) == told(view(text, plainly=False))
    routes = [route for service in found.services for route in service.routes]
    taken = [r for r in routes if any(str(e.endpoint) == "10.9.9.9:9" for e in r.shares)]
    assert {route.frontend.port for route in taken} == {port}
    assert all(pair & set(carried) for pair in PAIRS[:3])


def test_of_iptables_nft_the_second_of_two_is_not_walked(carried: list[str]) -> None:
    view(listing(), plainly=True)
    assert carried == [f"{SERVICES[1]}:80"]


@pytest.mark.parametrize(
    "rule",
    [
        "ip daddr 10.96.0.20 accept",
        "ip daddr 10.96.0.0/28 accept",
        "ip daddr 10.96.0.16-10.96.0.31 accept",
        "ip daddr { 10.96.0.20, 10.96.0.21 } accept",
        "ip daddr != 10.96.0.20 meta mark set 0x1",
    ],
)
def test_a_rule_that_tells_them_apart_has_each_of_them_walked(
    carried: list[str], rule: str
) -> None:
    text = listing(first=[rule])
    found = view(text, plainly=True)
    assert carried == []
    assert told(found) == told(view(text, plainly=False))


@pytest.mark.parametrize(
    "text",
    [
        # An endpoint of the second that others ask about.
        listing(first=["ip saddr 10.244.1.7 accept"]),
        listing(chains=block("late", hook("nat", "postrouting", 90), "ip daddr 10.244.1.8 accept")),
        # One that is drawn otherwise.
        listing().replace("1073741824 jump KUBE-SEP-1-0", "1073741825 jump KUBE-SEP-1-0"),
        # Another port.
        listing().replace("dnat to 10.244.1.9:8080", "dnat to 10.244.1.9:8081"),
        # A set that holds one of them.
        listing(
            first=["ip daddr @some accept"],
            chains="set some { type ipv4_addr; elements = { 10.96.0.20 } }",
        ),
        listing(
            first=["ip daddr @some accept"],
            chains="set some { type ipv4_addr; flags interval; elements = { 10.96.0.16/28 } }",
        ),
    ],
)
def test_what_differs_is_walked(text: str, carried: list[str]) -> None:
    found = view(text, plainly=True)
    assert carried == []
    assert told(found) == told(view(text, plainly=False))


def late(rule: str, *held: str) -> str:
    """Return a chain behind kube-proxy's that asks, and the sets, maps and chains it asks."""
    return "\n".join([*held, block("late", hook("nat", "postrouting", 90), rule)])


OF_BOTH = [endpoints_of(0)[0], endpoints_of(1)[0]]
HAIRPINS = ", ".join(
    f"{address} . {address} . tcp . {port}"
    for address, port in zip(OF_BOTH, (8080, 7777), strict=True)
)
OWN_MARKS, SENDS = "counter jump KUBE-MARK-MASQ", "meta l4proto tcp counter dnat"
PAIRS_OF = "type ipv4_addr . ipv4_addr . inet_proto . inet_service;"
DROPPED = block("FOO", f"ip daddr {SERVICES[1]} drop")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            listing(
                chains=late(
                    "ip saddr . ip daddr . meta l4proto . th dport @hp masquerade",
                    f"set hp {{ {PAIRS_OF} elements = {{ {HAIRPINS} }} }}",
                )
            ).replace(f"{OWN_MARKS}\n{SENDS}", f"counter\n{SENDS}"),
            id="an-element-with-the-port-of-no-endpoint",
        ),
        pytest.param(
            listing(
                chains=late(
                    "ip daddr . meta l4proto . th dport @nets masquerade",
                    "set nets { type ipv4_addr . inet_proto . inet_service; flags interval; "
                    "elements = { 10.244.0.0/24 . tcp . 8080 } }",
                )
            ),
            id="a-network-of-endpoints-by-port",
        ),
        pytest.param(
            listing(
                first=["meta mark vmap @who"],
                chains="map who { type mark : verdict; elements = { 0x00000000 : jump FOO } }\n"
                + DROPPED,
            ),
            id="a-chain-that-a-mark-leads-to",
        ),
        pytest.param(
            listing(
                first=["ip daddr vmap @who"],
                chains="map who { type ipv4_addr : verdict; flags interval; "
                "elements = { 10.96.0.0/16 : jump FOO } }\n" + DROPPED,
            ),
            id="a-chain-that-a-network-leads-to",
        ),
        pytest.param(
            listing(
                chains=late(
                    "ip daddr vmap @who",
                    "map who { type ipv4_addr : verdict; "
                    f"elements = {{ {OF_BOTH[0]} : jump FOO, {OF_BOTH[1]} : jump FOO }} }}",
                    block("FOO", f"ip daddr {OF_BOTH[1]} masquerade"),
                )
            ),
            id="a-chain-that-endpoints-lead-to",
        ),
        *(
            pytest.param(
                listing(
                    first=[f"{asked} vmap @who"],
                    chains=f"map who {{ type {kind} : verdict; "
                    f"elements = {{ {value} : jump FOO }} }}\n" + DROPPED,
                ),
                id=f"a-map-asked-by-{asked.replace(' ', '-')}",
            )
            for asked, kind, value in (
                ("ip saddr", "ipv4_addr", "10.9.9.9"),
                ("tcp sport", "inet_service", "40000"),
                ("meta skuid", "uid", "1000"),
            )
        ),
        pytest.param(
            listing(
                *(
                    f"meta mark set 0x1 meta l4proto tcp ip daddr {address} tcp dport 80 jump FOO"
                    for address in SERVICES
                ),
                chains=late("meta mark 0x2 masquerade", block("FOO", "meta mark set 0x2")),
            ),
            id="a-rule-that-acts-before-it-compares",
        ),
    ],
)
def test_what_tells_them_apart_from_afar_has_its_own_answer(text: str) -> None:
    check(text)
