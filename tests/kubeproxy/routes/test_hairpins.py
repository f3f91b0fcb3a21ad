"""Flows that return to their endpoint with its own address as the source count as lost."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.routes.hairpins import Hairpins, listed
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import Route, Source, View
from analyzer.model.cluster import Cluster
from analyzer.model.devices import Side
from analyzer.model.endings import Ending, Endings, EndKind, total
from analyzer.model.packet import Packet
from analyzer.model.probability import NEVER, Bounds, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.parsers.formats import read_ruleset
from analyzer.parsers.iptables_save import parse
from analyzer.semantics.onward import OWN_SOURCE
from tests.support.captures import FIXTURES, ROOT
from tests.support.parsed_objects import parse_objects
from tests.support.reading import recogniser

OWN: Final = ip_address("192.168.0.11")
HERE: Final = ip_address("10.244.1.9")
ELSEWHERE: Final = ip_address("10.244.0.7")
NOBODYS: Final = ip_address("10.99.0.1")
SIDES: Final = {HERE: Side.POD, ELSEWHERE: Side.ELSEWHERE}
DROPPED: Final = Ending(kind=EndKind.DROPPED, rule="-A FORWARD -j DROP", chain="FORWARD")
EIGHTHS: Final = 3


def exactly(eighths: int) -> Bounds:
    share = Dyadic.of(eighths, EIGHTHS)
    return Bounds(share, share)


HAIRPINS: Final = Hairpins(frozenset({OWN}), SIDES.get)
BY_SET: Final = Hairpins(frozenset({OWN}), lambda _: None, lambda: {HERE})


@pytest.mark.parametrize(
    ("address", "told", "told_by_set"),
    [
        (OWN, Ternary.FALSE, Ternary.FALSE),
        (HERE, Ternary.TRUE, Ternary.TRUE),
        (ELSEWHERE, Ternary.FALSE, Ternary.FALSE),
        (NOBODYS, Ternary.UNKNOWN, Ternary.FALSE),
    ],
)
def test_only_pods_of_the_node_are_here(
    address: object, told: Ternary, told_by_set: Ternary
) -> None:
    assert HAIRPINS.is_pod_here(address) is told  # type: ignore[arg-type]  # an address
    assert BY_SET.is_pod_here(address) is told_by_set  # type: ignore[arg-type]  # an address


@given(
    st.sampled_from([OWN, HERE, ELSEWHERE, NOBODYS]),
    st.sampled_from([True, False, None]),
    st.integers(0, 8),
)
def test_what_no_rule_loses_is_lost_if_it_keeps_its_source(
    address: object, masquerade: bool | None, eighths: int
) -> None:
    lost: Endings = ((DROPPED, exactly(eighths)),) if eighths else ()
    found = dict(HAIRPINS.lost(address, masquerade, lost))  # type: ignore[arg-type]  # an address
    own = found.pop(OWN_SOURCE, Bounds(NEVER, NEVER))
    assert tuple(found.items()) == lost
    rest = exactly(8 - eighths)
    if masquerade is True or address in (OWN, ELSEWHERE):
        assert own == Bounds(NEVER, NEVER)
    elif address == HERE and masquerade is False:
        assert own == rest
    else:
        assert own == Bounds(NEVER, rest.upper)


BASE: Final = (ROOT / "fixtures/noise/base.txt").read_text()
OBJECTS: Final = ROOT / "fixtures/noise/objects.json"
JUMP: Final = '-A POSTROUTING -m comment --comment "kubernetes postrouting rules"'
CLEARS: Final = BASE.replace(
    ":KUBE-PROXY-CANARY - [0:0]\nCOMMIT",
    ":KUBE-PROXY-CANARY - [0:0]\n-A POSTROUTING -j MARK --set-xmark 0x0/0xffffffff\nCOMMIT",
    1,
)
SPARES: Final = BASE.replace(JUMP, f"-A POSTROUTING -s 10.244.0.0/16 -j RETURN\n{JUMP}")
SPARES_ONE: Final = BASE.replace(JUMP, f"-A POSTROUTING -s 10.244.1.4/32 -j RETURN\n{JUMP}")
UNKNOWN: Final = BASE.replace(JUMP, f"-A POSTROUTING -m made-up -j RETURN\n{JUMP}")


def view(text: str, *, plainly: bool, known: bool = True) -> View:
    ruleset = parse(text, "dump")
    if not known:
        return Recogniser(ruleset, Cluster(), plainly=plainly).view()
    cluster = parse_objects([(OBJECTS.name, OBJECTS.read_bytes())])
    return Recogniser(
        ruleset, cluster, node="worker1", node_addresses=(OWN,), plainly=plainly
    ).view()


def lost_by(found: View) -> dict[str, Bounds]:
    """Return what is lost of the flows of each endpoint to itself, by ServicePort and address."""
    routes: list[tuple[str, Route]] = [
        (service.name.text, route)
        for service in found.services
        for route in service.routes_from(Source.HAIRPIN)
    ]
    return {
        f"{name} {share.endpoint.address}": total(share.lost)
        for name, route in routes
        for share in route.shares
        if share.lost
    }


def half(name: str, *addresses: str) -> dict[str, Bounds]:
    return {f"{name} {address}": exactly(8) for address in addresses}


#: What is lost of the flows of pods of the node to themselves: each is one of two endpoints.
ALL_LOST: Final = {
    **half("default/app", "10.244.1.9"),
    **half("kube-system/kube-dns:dns", "10.244.1.4"),
    **half("kube-system/kube-dns:dns-tcp", "10.244.1.4"),
    **half("kube-system/kube-dns:metrics", "10.244.1.4"),
}


@pytest.mark.parametrize("plainly", [True, False])
@pytest.mark.parametrize(
    ("text", "lost"),
    [
        (BASE, {}),
        (CLEARS, ALL_LOST),
        (SPARES, ALL_LOST),
        (SPARES_ONE, {k: v for k, v in ALL_LOST.items() if k.endswith("10.244.1.4")}),
        (UNKNOWN, dict.fromkeys(ALL_LOST, Bounds(NEVER, exactly(8).upper))),
    ],
)
def test_a_pod_gets_no_answer_from_itself_where_rules_keep_its_source(
    text: str, lost: dict[str, Bounds], *, plainly: bool
) -> None:
    found = view(text, plainly=plainly)
    assert lost_by(found) == lost
    for service in found.services:  # without a look at each of its routes
        assert getattr(service.routes, "is_quiet", False) <= (not lost)


@pytest.mark.parametrize("plainly", [True, False])
def test_of_endpoints_that_may_be_anywhere_bounds_are_told(*, plainly: bool) -> None:
    assert lost_by(view(BASE, plainly=plainly, known=False)) == {}
    found = lost_by(view(SPARES, plainly=plainly, known=False))
    assert {*ALL_LOST} < {*found}
    assert {*found.values()} == {Bounds(NEVER, exactly(8).upper)}


def test_a_walk_of_one_flow_says_the_same() -> None:
    for text, kind in ((BASE, "endpoint"), (CLEARS, "unanswered"), (SPARES, "unanswered")):
        packet = Packet(
            protocol="tcp",
            source=HERE,
            destination=ip_address("10.96.18.52"),
            destination_port=80,
            comes_from=Side.POD,
        )
        question = Question(packet=packet, addresses=(OWN,), follows_answers=True)
        found = trace([parse(text, "dump")], question, "ip")
        kinds = {end.fate.address: end.fate.kind for end in found.ends}
        assert kinds == {HERE: kind, ELSEWHERE: "endpoint"}


PAIRED: Final = """table ip kube-proxy {{
set hairpin-connections {{
type ipv4_addr . ipv4_addr . inet_proto . inet_service
{elements}
}}
}}
"""


def test_nftables_mode_lists_the_endpoints_of_its_node() -> None:
    one = "elements = { 10.244.1.9 . 10.244.1.9 . tcp . 8080 }"
    for elements, found in ((one, frozenset({HERE})), ("", frozenset())):
        ruleset = read_ruleset(PAIRED.format(elements=elements).encode(), "dump")
        assert listed([ruleset], "ip") == found
        assert listed([ruleset], "ip6") is None
    assert listed([parse(BASE, "dump")], "ip") is None


CAPTURE: Final = FIXTURES / "1.36.2-nftables/two-node@worker1/nft-list-ruleset.txt"
MASQUERADES: Final = re.compile(r"^.*@hairpin-connections masquerade.*$", re.MULTILINE)


@pytest.mark.parametrize("plainly", [True, False])
def test_nftables_mode_masquerades_those_of_its_node_alone(*, plainly: bool) -> None:
    """kube-proxy 1.36 leaves the others alone, and they count as not lost."""
    told = CAPTURE.read_text()
    for text, lost in ((told, set()), (MASQUERADES.sub("", told), {"10.244.1.4", "10.244.1.9"})):
        found = recogniser(read_ruleset(text.encode(), "dump"), plainly=plainly).view()
        assert {key.rpartition(" ")[2] for key in lost_by(found)} == lost
