"""Sets of nft whose elements go after some time: which packets they hold, and may hold."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

import pytest

from analyzer.model.addresses import VERSIONS
from analyzer.model.intervals import everything
from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.region import Region
from analyzer.parsers import nft_text
from analyzer.semantics.conditions import from_source
from analyzer.semantics.nft.fading import MOST_FADING, changes, lasting
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.situation import Situation
from tests.support.odds import bounds

HELD, NOT, OPEN = Bounds(ALWAYS, ALWAYS), Bounds(NEVER, NEVER), Bounds(NEVER, ALWAYS)
GOING: Final = "10.0.0.1 timeout 1h expires 59m"
STAYING: Final = "10.0.0.2"
TIMEOUT: Final = "flags timeout"
RULE: Final = "ip saddr @s drop"
ADDS: Final = "tcp dport 22 add @s { ip saddr }"


def text(head: str, elements: str, *rules: str) -> str:
    lines = "".join(f"\t\t{rule}\n" for rule in rules)
    base = "type filter hook forward priority filter; policy accept;"
    held = f"\tset s {{\n\t\ttype ipv4_addr\n\t\t{head}\n\t\telements = {{ {elements} }}\n\t}}\n"
    return f"table ip t {{\n{held}\tchain c {{\n\t\t{base}\n{lines}\t}}\n}}\n"


def dropped(of: str, packet: Packet) -> Bounds:
    table = nft_text.parse(of, "dump").tables["ip", "t"]
    tree = NftTraversal(table, "ip", Situation()).tree("c", packet)
    return bounds(tree, lambda leaf: isinstance(leaf.outcome, Drop))


@pytest.mark.parametrize(
    ("head", "elements", "rules", "of"),
    [
        (TIMEOUT, f"{GOING}, {STAYING}", (RULE,), (OPEN, HELD, NOT)),
        (TIMEOUT, f"{STAYING}", (RULE,), (NOT, HELD, NOT)),
        ("timeout 1d", f"{STAYING}", (RULE,), (NOT, OPEN, NOT)),
        ("timeout 1d", f"{STAYING} timeout 0s", (RULE,), (NOT, HELD, NOT)),
        ("flags dynamic,timeout", f"{GOING}, {STAYING}", (RULE,), (OPEN, OPEN, OPEN)),
        # Sets that rules fill are dynamic.
        (TIMEOUT, f"{GOING}, {STAYING}", (ADDS, RULE), (OPEN, OPEN, OPEN)),
        (TIMEOUT, f"{GOING}", ("ip saddr != @s drop",), (OPEN, HELD, HELD)),
    ],
)
def test_an_element_may_have_gone_and_another_address_is_not_held(
    head: str, elements: str, rules: tuple[str, ...], of: tuple[Bounds, ...]
) -> None:
    for address, wanted in zip(("10.0.0.1", "10.0.0.2", "10.0.0.3"), of, strict=True):
        one = Packet(protocol="tcp", destination_port=80, source=ip_address(address))
        assert dropped(text(head, elements, *rules), one) == wanted


def test_sources_of_which_an_element_may_have_gone_are_told_from_others() -> None:
    version = VERSIONS["ip"]
    every = Region(version, (everything(version),))
    packet = Packet(protocol="tcp", destination_port=80, sources=every)
    given = text(TIMEOUT, f"{GOING}, {STAYING}", RULE)
    table = nft_text.parse(given, "dump").tables["ip", "t"]
    tree = NftTraversal(table, "ip", Situation()).tree("c", packet)
    for address, wanted in (("10.0.0.1", OPEN), ("10.0.0.2", HELD), ("192.0.2.9", NOT)):
        of_it = from_source(tree, ip_address(address), None)
        assert bounds(of_it, lambda leaf: isinstance(leaf.outcome, Drop)) == wanted


def test_which_elements_stay() -> None:
    table = nft_text.parse(text(TIMEOUT, f"{GOING}, {STAYING}"), "dump").tables["ip", "t"]
    held = table.sets["s"]
    assert changes(held)
    assert [str(each.key) for each in lasting(held)] == ["10.0.0.2"]


@pytest.mark.parametrize(("first", "wanted"), [("10.9.0.0", NOT), ("10.0.0.0", OPEN)])
def test_a_set_of_too_many_networks_does_not_tell_sources_apart(first: str, wanted: Bounds) -> None:
    addresses = (f"10.0.{at // 100}.{at % 100 * 2} expires 5m" for at in range(MOST_FADING + 1))
    low = int(ip_address(first))
    some = Region(VERSIONS["ip"], ((low, low + 0xFFFF),))
    packet = Packet(protocol="tcp", destination_port=80, sources=some)
    assert dropped(text(TIMEOUT, ", ".join(addresses), RULE), packet) == wanted
