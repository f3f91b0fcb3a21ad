"""What one traversal tells of all endpoints is what walks of each flow find."""

from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.fastpath.nft_same import SameForAll
from analyzer.kubeproxy.generate import nft_text, services
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.routes.after_dnat import AfterDnat
from analyzer.kubeproxy.rows.plain_shares import PlainRoutes
from analyzer.kubeproxy.view import Source, View
from analyzer.model.cluster import Cluster
from tests.support.effort import examples
from tests.support.parsed_objects import parse_objects
from tests.support.reading import nft_ruleset

#: 8 Services of three endpoints at three nodes, of which the first is the dump's.
TEXT: Final = nft_text(list(services(8, endpoints=(3,), nodes=3)))
#: An endpoint of this node, one of another, an address of the node that is one too, and a client.
HERE, THERE, OWN, CLIENT = "10.0.0.2", "10.0.1.2", "10.0.2.2", "192.0.2.7"
MATCHES: Final = (
    ("", f"ip daddr {HERE} ", f"ip daddr {THERE} ", f"ip daddr {OWN} ", "ip daddr 10.0.1.0/24 "),
    (
        "",
        f"ip saddr {HERE} ",
        f"ip saddr != {THERE} ",
        f"ip saddr {CLIENT} ",
        "ip saddr 10.0.0.0/9 ",
        'iifname "eth0" ',
    ),
    ("", "tcp dport 8080 ", "th dport 9090 ", "meta l4proto udp ", 'oifname "eth0" '),
    ("", "meta mark & 0x4000 == 0x4000 ", "ct status dnat ", "ip saddr . ip daddr @pairs "),
)
ENDS: Final = ("accept", "drop", "reject", "meta mark set 0x4000", "meta mark set 0x0")
BEHIND: Final = ("accept", "masquerade", "snat to 192.0.2.9", "meta mark set 0x4000")


def table(forwarded: Sequence[str], behind: Sequence[str]) -> str:
    """Return a table of others, as nft lists it."""
    chains = (
        ("forward", "type filter hook forward priority 0", forwarded),
        ("input", "type filter hook input priority 0", forwarded),
        ("late", "type filter hook postrouting priority -101", forwarded),
        ("post", "type nat hook postrouting priority 90", behind),
    )
    listed = [
        f"\tchain {name} {{\n\t\t{head}; policy accept;\n"
        + "".join(f"\t\t{rule}\n" for rule in rules)
        + "\t}\n"
        for name, head, rules in chains
    ]
    pairs = (
        "\tset pairs {\n\t\ttype ipv4_addr . ipv4_addr\n"
        f"\t\telements = {{ {HERE} . {HERE}, {CLIENT} . {THERE} }}\n\t}}\n\n"
    )
    return f"table ip x {{\n{pairs}{chr(10).join(listed)}}}\n"


def view(text: str, own: Sequence[str], *, plainly: bool) -> View:
    addresses = tuple(map(IPv4Address, own))
    return NftRecogniser(
        nft_ruleset(text), Cluster(), node_addresses=addresses, plainly=plainly
    ).view()


def rules(ends: Sequence[str]) -> st.SearchStrategy[list[str]]:
    parts = map(st.sampled_from, (*MATCHES, ends))
    return st.lists(st.tuples(*parts).map("".join), max_size=2)


def check(text: str, own: Sequence[str]) -> int:
    """Hold what is read off rows against walks; return how many Services are plain."""
    quick, slow = (view(text, own, plainly=plainly) for plainly in (True, False))
    plain = 0
    for mine, theirs in zip(quick.services, slow.services, strict=True):
        plain += isinstance(mine.routes, PlainRoutes)
        for route, other in zip(mine.routes, theirs.routes, strict=True):
            assert route == other, (mine.name, route.source)
            assert tuple(route.shares) == tuple(other.shares)
            assert list(route.masquerades()) == [share.masquerade for share in other.shares]
    return plain


@examples(6, 400)
@given(rules(ENDS), rules(BEHIND), st.sampled_from([(), ("192.168.0.1",), ("192.168.0.1", OWN)]))
@example(["ip saddr . ip daddr @pairs drop"], [], ("192.168.0.1",))
@example([f"ip saddr != {THERE} drop"], [], ("192.168.0.1",))
@example([f"ip daddr {THERE} meta mark set 0x4000"], [], ("192.168.0.1", OWN))
@example([], ["th dport 9090 masquerade"], ())
@example([f"ip daddr {HERE} drop"], [], ("192.168.0.1", OWN))
@example([], ["ip saddr 10.0.0.0/9 masquerade"], ("192.168.0.1", OWN))
def test_every_endpoint_has_what_walks_find(
    forwarded: list[str], behind: list[str], own: tuple[str, ...]
) -> None:
    # Endpoints of a Service with several ports, as names of ports give them.
    text = TEXT.replace("10.0.1.2 . 8080", "10.0.1.2 . 9090")
    check(text + table(forwarded, behind), own)


@pytest.mark.parametrize("own", [(), ("192.168.0.1",)])
def test_no_endpoint_is_evaluated_by_itself(
    monkeypatch: pytest.MonkeyPatch, own: tuple[str, ...]
) -> None:
    services_of = view(TEXT + table([], []), own, plainly=True).services

    def to(*given: object) -> object:
        raise AssertionError(f"flows to an endpoint were evaluated by themselves: {given}")

    monkeypatch.setattr(AfterDnat, "to", to)
    for service in services_of:
        assert isinstance(service.routes, PlainRoutes)
        for route in service.routes:
            assert len(route.masquerades()) == 3


def test_what_is_told_of_some_services_is_asked_again_for_more() -> None:
    (family, _) = NftRecogniser(nft_ruleset(TEXT), Cluster())._families  # noqa: SLF001  # in turn
    one_by_one = [(each, tuple(each.routes)) for each in family.services()]
    every = view(TEXT, (), plainly=True).services
    assert [routes for _, routes in one_by_one] == [tuple(each.routes) for each in every]


def test_where_endpoints_differ_nothing_is_told_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    asked = SameForAll.to

    def to(*given: object) -> object:
        told.append(asked(*given))  # type: ignore[arg-type]  # whatever it is given
        return told[-1]

    monkeypatch.setattr(SameForAll, "to", to)
    text = TEXT + table([f"ip daddr {THERE} drop"], [])
    assert check(text, ("192.168.0.1",))
    assert None in told


def test_hairpin_flows_that_come_by_another_device_have_marks_of_their_own() -> None:
    marks = """\
table ip marks {
	chain c {
		type filter hook prerouting priority -300; policy accept;
		iifname "eth0" meta mark set meta mark | 0x4000
	}
}
"""
    objects = {"kind": "Node", "metadata": {"name": "a"}, "spec": {"podCIDRs": ["10.0.0.0/24"]}}
    other = {"kind": "Node", "metadata": {"name": "b"}, "spec": {"podCIDRs": ["10.0.1.0/24"]}}
    known = parse_objects([("o", json.dumps({"items": [objects, other]}).encode())])
    told = []
    for plainly in (True, False):
        view = NftRecogniser(nft_ruleset(TEXT + marks), known, node="a", plainly=plainly).view()
        told.append(
            {
                str(share.endpoint.address): share.masquerade
                for service in view.services
                for route in service.routes_from(Source.HAIRPIN)
                for share in route.shares
            }
        )
    assert told[0] == told[1]
    assert (told[0][HERE], told[0][THERE]) == (True, None)
