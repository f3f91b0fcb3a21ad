"""Chains of nft to which a map sends flows by their device, and flows of which it is not known."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.matched.devices import asked_devices, dispatched
from analyzer.model.devices import Side
from analyzer.model.iptables.targets import Accept, Drop
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.parsers import nft_text
from analyzer.semantics.assumed import DEFAULTS, Assumed
from analyzer.semantics.devices import NodeDevices
from analyzer.semantics.nft.said import AlikeChains
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import FellThrough, Tree
from tests.support.odds import bounds

DEVICES: Final = ("cali1a", "cali1b", "cali2", "cali3")
EVENTS: Final[tuple[type, ...]] = (Accept, Drop, FellThrough)
ROWS: Final = (
    "counter packets 7 bytes 420 meta mark set meta mark | 0x00000001",
    "meta mark set meta mark & 0xfffffffe",
    "meta mark & 0x00000001 == 0x00000001 return",
    "meta mark & 0x00000001 == 0x00000000 drop",
    'tcp dport 80 counter packets 0 bytes 0 return comment "of one pod"',
    "tcp dport 81 drop",
    "accept",
    "drop",
    'iifname "cali2" drop',
)
POD: Final = Packet(protocol="tcp", destination_port=80, comes_from=Side.POD)


def ruleset(chains: dict[str, list[str]], elements: str, maps: str = "") -> NftRuleset:
    held = (
        f"\tmap pods {{\n\t\ttype ifname : verdict\n{maps}\t\telements = {{ {elements} }}\n\t}}\n"
    )
    body = "".join(
        f"\tchain {name} {{\n{''.join(f'{chr(9)}{chr(9)}{row}{chr(10)}' for row in rows)}\t}}\n"
        for name, rows in chains.items()
    )
    base = "type filter hook forward priority filter; policy accept;"
    body = body.replace("\tchain forward {\n", f"\tchain forward {{\n\t\t{base}\n")
    return nft_text.parse(f"table ip t {{\n{held}{body}}}\n", "dump")


def walked(rules: NftRuleset, packet: Packet) -> Tree:
    every = [rules]
    devices = NodeDevices(
        lambda: asked_devices(every), dispatched=lambda leaving: dispatched(every, leaving=leaving)
    )
    situation = Situation(assumed=Assumed(DEFAULTS), devices=devices)
    return NftTraversal(rules.tables["ip", "t"], "ip", situation).tree("forward", packet)


def told(tree: Tree) -> dict[type, Bounds]:
    return {e: bounds(tree, lambda leaf, e=e: isinstance(leaf.outcome, e)) for e in EVENTS}  # type: ignore[misc]  # of mypy


def sent(names: list[str]) -> str:
    return ", ".join(f'"{name}" : goto of-{name}' for name in names)


@given(
    st.lists(st.sampled_from(DEVICES), min_size=1, unique=True),
    st.lists(st.lists(st.sampled_from(ROWS), max_size=4), min_size=1, max_size=3),
    st.data(),
)
def test_all_that_it_may_be_together_say_what_is_told_of_one_that_is_not_known(
    names: list[str], kinds: list[list[str]], data: st.DataObject
) -> None:
    chains = {
        "forward": ['iifname "cali*" counter packets 0 bytes 0 jump dispatch', "meta mark 1 drop"],
        "dispatch": ["iifname vmap @pods counter packets 0 bytes 0", "drop"],
        **{f"of-{name}": data.draw(st.sampled_from(kinds)) for name in names},
    }
    rules = ruleset(chains, sent(names))
    assert dispatched([rules], leaving=False) == {"cali+": frozenset(names)}
    every = [
        told(walked(rules, Packet(protocol="tcp", destination_port=80, in_interface=name)))
        for name in names
    ]
    assert all(each[event].is_exact for each in every for event in EVENTS)
    wanted = {
        event: (min(e[event].lower for e in every), max(e[event].upper for e in every))
        for event in EVENTS
    }
    for event, found in told(walked(rules, POD)).items():
        asks_again = any("iifname" in row for rows in kinds for row in rows)
        if asks_again:
            assert found.lower <= wanted[event][0] <= wanted[event][1] <= found.upper
        else:
            assert (found.lower, found.upper) == wanted[event]


@pytest.mark.parametrize(
    ("rows", "elements", "maps", "names"),
    [
        (["iifname vmap @pods", "drop"], '"a" : goto x, "b" : goto x', "", {"a", "b"}),
        (['iifname "c" goto x', "iifname vmap @pods", "reject"], '"a" : goto x', "", {"a", "c"}),
        (['iifname vmap { "c" : goto x }', "drop"], '"a" : goto x', "", {"c"}),
        (["iifname vmap @pods", "drop"], '"a" : jump x', "", set()),  # they come back
        (["iifname vmap @pods", "drop"], '"a*" : goto x', "\t\tflags interval\n", set()),
        (["iifname vmap @pods", "drop"], '"a" : goto x', "\t\tflags dynamic\n", set()),
        (["oifname vmap @pods", "drop"], '"a" : goto x', "", set()),
        (["iifname vmap @pods", "accept"], '"a" : goto x', "", set()),
        (["iifname vmap @pods"], '"a" : goto x', "", set()),  # others come through
        (["tcp dport 80 iifname vmap @pods", "drop"], '"a" : goto x', "", set()),
        (["iifname vmap @pods", "tcp dport 80 drop"], '"a" : goto x', "", set()),
    ],
)
def test_which_chains_send_on_by_device_and_drop_all_others(
    rows: list[str], elements: str, maps: str, names: set[str]
) -> None:
    rules = ruleset({"forward": ["jump d"], "d": rows, "x": []}, elements, maps)
    assert dispatched([rules], leaving=False) == ({"+": names} if names else {})


@pytest.mark.parametrize(
    ("entry", "come"),
    [
        ("goto d", {"+"}),
        ('iifname "cali1*" jump d', {"cali1+"}),
        ('iifname "cali1" counter packets 1 bytes 2 jump d', {"cali1"}),
        ('oifname "cali*" jump d', set()),
        ('iifname != "eth0" jump d', set()),
        ("udp dport 53 jump d", set()),
    ],
)
def test_whose_packets_all_come_to_a_chain_that_sends_on_by_device(
    entry: str, come: set[str]
) -> None:
    chains = {"forward": [entry], "d": ["iifname vmap @pods", "drop"], "x": []}
    rules = ruleset(chains, '"cali1" : goto x')
    assert dispatched([rules], leaving=False) == {each: {"cali1"} for each in come}


def test_a_pod_may_be_behind_a_device_that_the_map_does_not_have() -> None:
    chains = {"forward": ["iifname vmap @pods", "accept"], "x": ["drop"]}
    found = told(walked(ruleset(chains, '"cali1" : goto x'), POD))
    assert found[Accept] == found[Drop] == Bounds(NEVER, ALWAYS)


def test_chains_that_say_the_same_but_for_counters_and_comments_are_one() -> None:
    chains = {
        "a": ["counter packets 1 bytes 60 accept", 'tcp dport 80 drop comment "of a"'],
        "b": ["counter packets 2 bytes 90 accept", 'tcp dport 80 drop comment "of b"'],
        "c": ["counter packets 2 bytes 90 accept", "tcp dport 81 drop"],
        "d": ['counter name "accept" drop'],
        "e": ["counter packets 0 bytes 0 drop"],
    }
    said = AlikeChains(ruleset(chains, '"x" : goto a').tables["ip", "t"])
    assert [said.like(each) for each in (*chains, "none")] == ["a", "a", "c", "d", "e", "none"]
