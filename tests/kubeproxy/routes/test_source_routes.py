"""Sources whose flows are marked on their way are answered as if each were walked for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Final

import pytest

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.routes import source_routes
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Source, View
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers.formats import read_ruleset
from tests.support.nft.listing import block, endpoints_of, hook, listing
from tests.support.shapes import endpoint, kube_sep, service

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
        for route in service.routes
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
                if alone.share(share.endpoint, share.endpoint.address)[0] != share:
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
