"""Sources whose flows are marked on their way are answered as if each were walked for itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.routes import source_routes
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Source, View, each_network
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.endings import EndKind
from analyzer.model.ipsets import Ipset
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.parsers.ipset_save import parse_ipsets
from tests.support.effort import examples
from tests.support.nft.listing import block, endpoints_of, hook, listing
from tests.support.shapes import CLUSTER_IP, endpoint, kube_sep, service

#: What may send flows out of a chain, and into which chain.
MINE: Final = "-A MINE -p tcp -m tcp -j DNAT --to-destination 10.9.9.9:80\n"


def sep(*rows: str, last: str = "") -> Callable[[int], Sequence[str]]:
    """Return the rows of each endpoint's chain, with others behind that which marks."""

    def own(number: int) -> list[str]:
        marks, sends = kube_sep(number)
        return [marks, *rows, *([last] if last else []), sends]

    return own


def with_chain(text: str) -> str:
    head, behind = text.split("COMMIT")
    return (
        head.replace(":KUBE-SERVICES", ":MINE - [0:0]\n:KUBE-SERVICES") + MINE + "COMMIT" + behind
    )


def same_address(number: int) -> list[str]:
    """Give all endpoints one address, and ports of their own."""
    return [
        f"-s {endpoint(0)}/32 -j KUBE-MARK-MASQ",
        "-m set --match-set x src -j RETURN",
        f"-p tcp -m tcp -j DNAT --to-destination {endpoint(0)}:{8080 + number}",
    ]


def other_protocol(number: int) -> list[str]:
    return [row.replace("tcp", "udp") if number % 2 else row for row in kube_sep(number)]


def other_port(number: int) -> list[str]:
    return [row.replace("-m tcp", f"-m tcp --dport {80 + number % 2}") for row in kube_sep(number)]


MARKED: Final = "-A KUBE-SVC-1 -m mark --mark 0x4000/0x4000 -j RETURN"
UNREAD: Final = 'xt match "x" return'
IPTABLES: Final = {
    "return": service(4, own=sep("-m set --match-set x src -j RETURN")),
    "return in front": service(
        4, own=lambda at: ["-m set --match-set x src -j RETURN", *kube_sep(at)]
    ),
    "goto": with_chain(service(4, own=sep("-m set --match-set x src -g MINE"))),
    "jump": with_chain(service(4, own=sep("-m set --match-set x src -j MINE"))),
    "sent on by an unread match": service(
        4, own=lambda at: [kube_sep(at)[0], kube_sep(at)[1].replace("-m tcp", "-m tcp -m wild")]
    ),
    "one address, marked once": service(4, own=lambda at: same_address(at)[1 if at else 0 :]),
    "another port": service(4, own=other_port),
    "met again by an unread match": service(
        4, own=sep("-m set --match-set x src -j RETURN")
    ).replace("COMMIT", "-A KUBE-SVC-1 -m wild -j KUBE-SEP-0\nCOMMIT"),
    "another protocol": service(4, own=other_protocol),
    "marked by an unread match": service(
        4,
        own=lambda at: [
            kube_sep(at)[0].replace("-j", "-m wild -j"),
            "-m set --match-set x src -j RETURN",
            kube_sep(at)[1],
        ],
    ),
    "one address": service(4, own=same_address),
    "a chain that asks for more": service(
        4, own=sep("-s 192.0.2.0/24 -j RETURN", "-m set --match-set x src -j RETURN")
    ),
    "rules that go by the mark": service(4, own=sep("-m set --match-set x src -j RETURN")).replace(
        "-A KUBE-SVC-1 ", f"{MARKED}\n-A KUBE-SVC-1 ", 1
    ),
    "a mark chain that clears what others mark": service(
        4,
        before=["-A PREROUTING -j MARK --set-xmark 0x10/0x10"],
        own=sep("-m set --match-set x src -j RETURN"),
    )
    .replace("--set-xmark 0x4000/0x4000", "--set-xmark 0x4000/0xffff")
    .replace("! --mark 0x4000/0x4000", "! --mark 0x10/0x10"),
    "a mark chain that ends flows": service(
        4, own=sep("-m set --match-set x src -j RETURN")
    ).replace("-A KUBE-MARK", "-A KUBE-MARK-MASQ -i eth0 -j ACCEPT\n-A KUBE-MARK", 1),
    "a mark chain that nobody can read": service(
        4, own=sep("-m set --match-set x src -j RETURN")
    ).replace("-j MARK --set-xmark 0x4000/0x4000", "-j WILD"),
}
PLACE: Final = "ip daddr 10.96.0.10 tcp dport 80"
NFT: Final = {
    "return": listing(own=UNREAD),
    "goto": listing(own='xt match "x" goto MINE', chains=block("MINE", "dnat to 10.9.9.9:80")),
    "met twice": listing(f"{PLACE} jump KUBE-SVC-0", own=UNREAD),
    "met twice, who knows when": listing(first=["jump KUBE-SVC-0"], own=UNREAD),
    "met again, who knows when": listing(
        last=["jump MINE"],
        chains=block("MINE", "jump KUBE-SEP-0-0"),
        own=UNREAD,
    ).replace("ip saddr 10.244.0.7 ", 'xt match "x" '),
    "met twice, all of it": listing(first=["jump KUBE-SERVICES"], own=UNREAD),
    "met twice, by two base chains": listing(
        chains=block("late", hook("nat", "prerouting", -90), "jump KUBE-SERVICES"), own=UNREAD
    ),
    "met by another rule": listing(
        last=["ip daddr 10.96.0.10 jump KUBE-SVC-0", "ip daddr 10.96.0.11 jump KUBE-SVC-0"],
        own=UNREAD,
    ),
    "one address": listing(own=UNREAD)
    .replace("10.244.0.9:8080", "10.244.0.7:8081")
    .replace("10.244.0.9", "10.244.0.7"),
    "one address, marked once": listing(own=UNREAD)
    .replace("10.244.0.9:8080", "10.244.0.7:8081")
    .replace("ip saddr 10.244.0.9 counter jump", "meta mark 0x1 counter jump"),
    "met from another chain": listing(
        f"{PLACE} jump MINE", chains=block("MINE", "jump KUBE-SEP-0-1"), own=UNREAD
    ),
    "the mark itself": listing(own=UNREAD).replace(
        "counter jump KUBE-MARK-MASQ", "meta mark set meta mark | 0x4000"
    ),
    "another protocol": listing().replace(
        "meta l4proto tcp counter dnat to 10.244.0.7", "meta l4proto udp counter dnat to 10.244.0.7"
    ),
    "all but one": listing(own=UNREAD).replace("ip saddr 10.244.0.7", "ip saddr != 10.244.0.7"),
    "rules that go by the mark": listing(own=UNREAD).replace(
        "jump KUBE-SEP-0-1", "meta mark & 0x4000 == 0 jump KUBE-SEP-0-1"
    ),
    "a mark that nobody can read": listing(own=UNREAD).replace(
        "meta mark set meta mark | 0x4000", 'xt target "MARK"'
    ),
    "a mark that ends flows": listing(own=UNREAD).replace(
        "meta mark set meta mark | 0x4000", "meta mark set meta mark | 0x4000\naccept"
    ),
    "a target that nobody can read": listing().replace(
        "dnat to 10.244.0.7:8080", 'xt target "DNAT"'
    ),
    "no target that anybody can read": listing().replace("dnat to 10.244.", 'xt target "DNAT"\n#'),
}
SHAPES: Final = {f"iptables: {name}": text for name, text in IPTABLES.items()} | {
    f"nft: {name}": text for name, text in NFT.items()
}
PODS_NETWORK: Final = IPv4Network("10.244.0.0/16")
OWN: Final = IPv4Address("192.168.0.1")
PODS: Final = (IPv4Address("10.244.0.77"), IPv4Address("10.244.3.3"))
CLIENTS: Final = (IPv4Address("203.0.113.9"), IPv4Address("192.0.2.9"))


def view(text: str) -> View:
    ruleset = read_ruleset(text.encode(), "dump")
    if isinstance(ruleset, Ruleset):
        return Recogniser(ruleset, Cluster(), node_addresses=(OWN,)).view()
    return NftRecogniser(ruleset, Cluster(), node_addresses=(OWN,)).view()


def walks_of(text: str) -> FlowWalks:
    """Return walks from one address at a time."""
    ruleset = read_ruleset(text.encode(), "dump")
    return FlowWalks([ruleset], "ip", (OWN,), {})


def route_for(service: ServicePort, frontend: Frontend, source: Source, address: Address) -> Route:
    """Return the route of an address: that of the smallest network that holds it."""
    routes = [
        route
        for route in each_network(service.routes)
        if (route.frontend, route.source) == (frontend, source)
        and (route.network is None or address in route.network)
    ]
    return max(routes, key=lambda r: -1 if r.network is None else r.network.prefixlen)


def told(route: Route, besides: Address | None) -> object:
    """Return what is told of a route, but of the masquerade of flows that come back."""
    return route.unresolved, {
        s.endpoint: (s.share, None if s.endpoint.address == besides else (s.masquerade, s.lost))
        for s in route.shares
    }


def differences(text: str) -> list[str]:
    """Return what is not told of an address as a walk from it alone tells it."""
    walks, found = walks_of(text), []
    for each in view(text).services:
        for frontend in each.frontends:
            ends = [e.address for e in each.endpoints if e.address in PODS_NETWORK]
            for source, address in [
                *((Source.POD, pod) for pod in (*ends, *PODS)),
                *((Source.EXTERNAL, client) for client in CLIENTS),
                (Source.NODE, OWN),
            ]:
                mine = route_for(each, frontend, source, address)
                alone = walks.explored(frontend, each.protocol, source, address)
                wanted = alone.route(frontend, source, address)
                if told(mine, address) != told(wanted, address):
                    found.append(f"{source.value} {address} to {frontend}")
            back = next(r for r in each.routes if r.source is Source.HAIRPIN)
            for share in back.shares:
                alone = walks.explored(
                    frontend, each.protocol, Source.HAIRPIN, share.endpoint.address
                )
                itself, _ = alone.share(share.endpoint, share.endpoint.address)
                shares = () if itself is None else (itself,)
                if [*walks.hairpins.of(replace(back, shares=shares)).shares] != [share]:
                    found.append(f"{share.endpoint} to itself, by {frontend}")
    return found


@pytest.mark.alike
@pytest.mark.parametrize("name", SHAPES)
def test_each_source_is_told_as_if_it_were_walked_alone(name: str) -> None:
    assert not differences(SHAPES[name])


@pytest.mark.parametrize("name", SHAPES)
def test_of_too_many_marked_sources_what_is_told_holds_for_all(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = view(SHAPES[name])
    monkeypatch.setattr(source_routes, "_MOST_TOLD", 0)
    folded = view(SHAPES[name])
    for one, other in zip(folded.services, usual.services, strict=True):
        for route in one.routes:
            if route.source is Source.HAIRPIN:
                continue
            for like in other.routes:
                way = like.frontend, like.source, like.network
                if way != (route.frontend, route.source, route.network):
                    continue
                for share, known in zip(route.shares, like.shares, strict=True):
                    assert share.share == known.share
                    assert share.masquerade in {None, known.masquerade}


def test_of_too_many_marked_sources_it_is_said_that_something_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = NFT["return"]
    assert "bounded-work" not in {each.code for each in view(text).diagnostics}
    monkeypatch.setattr(source_routes, "_MOST_TOLD", 0)
    assert "bounded-work" in {each.code for each in view(text).diagnostics}


@pytest.mark.parametrize("text", [IPTABLES["return"], NFT["return"]])
def test_an_endpoint_may_come_to_another_with_its_mark(text: str) -> None:
    (found, *_) = view(text).services
    first = endpoint(0) if text == IPTABLES["return"] else endpoints_of(0)[0]
    routes = {str(route.network): route for route in found.routes if route.network is not None}
    masks = {str(s.endpoint.address): s.masquerade for s in routes[f"{first}/32"].shares}
    assert masks.pop(first) is True
    assert set(masks.values()) == {None}
    (usual,) = (r for r in found.routes if r.source.value == "pod" and r.network is None)
    assert {share.masquerade for share in usual.shares} == {False}


def test_flows_that_may_leave_before_they_are_marked_part_no_sources() -> None:
    (found,) = view(IPTABLES["return in front"]).services
    assert {route.network for route in found.routes} == {None}


#: Networks that rules may match on together: of pods, of an endpoint alone, of clients, of all.
SOME: Final = tuple(
    map(
        IPv4Network,
        (
            *("10.244.0.0/24", "10.244.0.1/32", "10.244.3.0/24", "10.244.3.3/32", "10.0.0.0/8"),
            *("192.0.2.0/24", "192.0.2.9/32", "192.0.2.0/30", "203.0.113.0/24"),
            *("203.0.113.9/32", "203.0.112.0/23", "192.0.0.0/2"),
        ),
    )
)
#: In which chains blocklists are, and what is done with who is in one.
PLACES: Final = ("raw PREROUTING", "filter INPUT", "filter FORWARD", "filter OUTPUT")
VERDICTS: Final = ("DROP", "ACCEPT", "RETURN")


@st.composite
def blocklists(draw: st.DrawFn) -> tuple[str, Mapping[str, Ipset], bool]:
    """Draw a dump with rows that match on sets of sources, as ipsets or network by network."""
    sets = draw(st.lists(st.sets(st.sampled_from(SOME), min_size=1), min_size=1, max_size=3))
    as_rows = draw(st.booleans())
    rows: dict[str, list[str]] = {}
    for at, networks in enumerate(sets):
        for place in draw(st.sets(st.sampled_from(PLACES), min_size=1)):
            table, chain = place.split()
            verdict = draw(st.sampled_from(VERDICTS))
            rows.setdefault(table, []).extend(
                f"-A {chain} -s {each} -j {verdict}"
                if as_rows
                else f"-A {chain} -m set --match-set set{at} src -j {verdict}"
                for each in (sorted(networks) if as_rows else [None])
            )
    chains = {"raw": ("PREROUTING", "OUTPUT"), "filter": ("INPUT", "FORWARD", "OUTPUT")}
    text = service(draw(st.integers(1, 3)))
    for table, of in rows.items():
        policies = "\n".join(f":{chain} ACCEPT [0:0]" for chain in chains[table])
        text += f"*{table}\n{policies}\n" + "\n".join(of) + "\nCOMMIT\n"
    listed = [f"create set{at} hash:net family inet" for at in range(len(sets))]
    listed += [f"add set{at} {each}" for at, held in enumerate(sets) for each in held]
    return text, parse_ipsets(("\n".join(listed) + "\n").encode(), "sets"), draw(st.booleans())


@examples(30, 2_000)
@given(blocklists(), st.lists(st.integers(0, 2**32 - 1), max_size=4))
def test_who_is_in_a_blocklist_is_told_as_if_he_were_walked_alone(
    given_: tuple[str, Mapping[str, Ipset], bool], numbers: list[int]
) -> None:
    text, ipsets, plainly = given_
    ruleset = read_ruleset(text.encode(), "dump")
    assert isinstance(ruleset, Ruleset)
    ruleset = replace(ruleset, ipsets=ipsets)
    found = Recogniser(ruleset, Cluster(), node_addresses=(OWN,), plainly=plainly).view()
    walks = FlowWalks([ruleset], "ip", (OWN,), {})
    (told_of,) = found.services
    (frontend,) = told_of.frontends
    edges = [IPv4Address(int(n[at]) + by) for n in SOME for at, by in ((0, 0), (-1, 0), (0, -1))]
    for address in dict.fromkeys((*map(IPv4Address, numbers), *CLIENTS, *PODS, *edges)):
        if address == OWN or address.is_loopback or str(address) == CLUSTER_IP:
            continue
        source = Source.POD if address in PODS_NETWORK else Source.EXTERNAL
        mine = route_for(told_of, frontend, source, address)
        wanted = walks.explored(frontend, told_of.protocol, source, address)
        alone = wanted.route(frontend, source, address)
        assert told(mine, address) == told(alone, address), f"{source.value} {address}"
        assert [(e.kind, b) for e, b in mine.astray] == [(e.kind, b) for e, b in alone.astray]


@pytest.mark.parametrize("plainly", [True, False])
def test_a_blocklist_of_a_thousand_networks_is_one_route(plainly: bool) -> None:
    networks = [IPv4Network((0x0B000000 + 512 * at, 24)) for at in range(1_000)]
    row = "-A FORWARD -m set --match-set blocked src -j DROP"
    text = f"{service(3)}*filter\n:FORWARD ACCEPT [0:0]\n{row}\nCOMMIT\n"
    listed = ["create blocked hash:net family inet", *(f"add blocked {each}" for each in networks)]
    ruleset = read_ruleset(text.encode(), "dump")
    assert isinstance(ruleset, Ruleset)
    ruleset = replace(ruleset, ipsets=parse_ipsets(("\n".join(listed) + "\n").encode(), "sets"))
    found = Recogniser(ruleset, Cluster(), node_addresses=(OWN,), plainly=plainly).view()
    routes = [each for each in found.services[0].routes if each.source is Source.EXTERNAL]
    rest, blocked = routes
    assert rest.network is None
    assert not any(rest.losses())
    assert blocked.networks == tuple(networks)
    assert all(lost[0][0].kind is EndKind.DROPPED for lost in blocked.losses())
    assert len(found.services[0].routes) <= 2 * len(Source)
