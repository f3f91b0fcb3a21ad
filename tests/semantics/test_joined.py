"""A walk that keeps marks by source finds of each source what a walk from it alone finds."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given

from analyzer.model.addresses import Address
from analyzer.model.intervals import holds
from analyzer.model.iptables.targets import Dnat
from analyzer.model.packet import Mark, MarksDiffer, Packet
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.conditions import questions
from analyzer.semantics.effort import MOST_JOINED, MOST_MARKS
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.joined import only_sent_on
from analyzer.semantics.parts import at
from analyzer.semantics.shares import shares
from analyzer.semantics.shares import shares_by_source as by_parts
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import BySource, Leaf, Tree, every_leaf, every_node
from tests.support.effort import examples
from tests.support.strategies import by_source

HOOK = "PREROUTING"
CAME = Packet(protocol="tcp", destination=by_source.FIRST, destination_port=80, out_interface="")
LAST = "-A B -j DNAT --to-destination 10.0.0.9:80"


def hooks_of(text: str) -> Hooks:
    situation = Situation(local_addresses=frozenset({by_source.OWN}))
    return Hooks([read_ruleset(text.encode(), "dump")], "ip", situation)


def nat(*rows: str) -> str:
    chains = [f":{HOOK} ACCEPT [0:0]", *(f":{chain} - [0:0]" for chain in "AB")]
    return "\n".join(["*nat", *chains, *rows, "COMMIT", ""])


def joined(hooks: Hooks, packet: Packet = CAME) -> Tree:
    came = replace(packet, sources=by_source.everywhere())
    return hooks.to_nat(HOOK, came, joins_marks=True)


def of(packet: Packet, address: Address) -> Packet:
    """Return a packet as it is if it comes from an address, without its source."""
    bare = replace(packet, source=None, sources=None, marks=None)
    if packet.marks is None:
        return bare
    (mark,) = [mark for where, mark in packet.marks.parts if holds(where, int(address))]
    return replace(bare, mark=mark)


@examples(100, 4_000)
@given(by_source.iptables(hook=HOOK))
def test_each_source_has_the_ends_and_marks_of_its_own_walk(text: str) -> None:
    hooks = hooks_of(text)
    try:
        tree = joined(hooks)
    except MarksDiffer:
        return  # it is walked again, and split
    for address in by_source.ADDRESSES:

        def end(leaf: Leaf, address: Address = address) -> tuple[object, Packet]:
            return type(leaf.outcome), of(leaf.packet, address)

        alone = shares(hooks.to_nat(HOOK, replace(CAME, source=address)), end)
        (found,) = at(by_parts(tree, end), address)
        assert {k: b for k, b in found.items() if b.upper} == {
            k: b for k, b in alone.items() if b.upper
        }
        assert found.unresolved == alone.unresolved


@examples(60, 2_000)
@given(by_source.iptables(hook=HOOK))
def test_no_match_on_sources_is_lost(text: str) -> None:
    hooks = hooks_of(text)
    try:
        found = questions(joined(hooks)) | hooks.joined_on
    except MarksDiffer:
        return
    split = hooks.to_nat(HOOK, replace(CAME, sources=by_source.everywhere()))
    assert found >= questions(split)
    assert not hooks.joined_on  # the packet was split instead


def test_chains_of_endpoints_do_not_split_the_tree() -> None:
    rows = [
        f"-A {HOOK} ! -s 10.0.0.4/30 -j A",
        "-A A -j MARK --set-xmark 0x4000/0x4000",
        f"-A {HOOK} -j B",
        "-A B -s 10.0.0.4 -j A",
        LAST,
    ]
    hooks = hooks_of(nat(*rows))
    tree = joined(hooks)
    assert isinstance(tree, Leaf)
    marks = {a: of(tree.packet, a).mark for a in by_source.ADDRESSES}
    unmarked = [IPv4Address(f"10.0.0.{n}") for n in (5, 6, 7)]
    assert [a for a, mark in marks.items() if mark == Mark()] == unmarked
    assert {m for a, m in marks.items() if a not in unmarked} == {Mark(0x4000)}
    assert len(hooks.joined_on) == 2
    assert only_sent_on(tree) is tree


@pytest.mark.parametrize(
    "row",
    [
        f"-A {HOOK} -m mark --mark 0x1/0x1 -j B",
        f"-A {HOOK} -j CONNMARK --save-mark",
        f"-A {HOOK} -j SET --map-set some src --map-mark",
        f"-A {HOOK} -m statistic --mode random --probability 0.5 -j MARK --set-xmark 0x2/0x2",
        f"-A {HOOK} -m made-up -j MARK --set-xmark 0x2/0x2",
    ],
)
def test_what_needs_the_mark_of_a_packet_has_to_split_it(row: str) -> None:
    marked = f"-A {HOOK} -s 10.0.0.4/30 -j MARK --set-xmark 0x1/0x1"
    with pytest.raises(MarksDiffer):
        joined(hooks_of(nat(marked, row, LAST)))
    joined(hooks_of(nat(row, marked, LAST)))  # until then it has one mark


@pytest.mark.parametrize(
    "row",
    [
        "-s 10.0.0.4/30 -j RETURN",
        "-s 10.0.0.4/30 -j B",
        "-s 10.0.0.4/30 -m statistic --mode random --probability 0.5 -j A",
        "-s 10.0.0.4/30 -m addrtype --src-type LOCAL -j A",
    ],
)
def test_rules_that_do_more_than_mark_some_split_it(row: str) -> None:
    rows = [f"-A {HOOK} {row}", "-A A -j MARK --set-xmark 0x1/0x1", LAST]
    hooks = hooks_of(nat(*rows))
    tree = joined(hooks)
    assert any(isinstance(node, BySource) for node in every_node(tree))
    assert not hooks.joined_on


def test_chains_that_flows_leave_marked_or_not_split_the_packet() -> None:
    numbers = range(2 * MOST_JOINED)
    text = nat(LAST).replace(":A", "".join(f":S{n} - [0:0]\n" for n in numbers) + ":A")
    rows = [f"-A {HOOK} -m statistic --mode random --probability 0.5 -j S{n}" for n in numbers]
    rows += [f"-A S{n} -s 10.0.0.{n % 8}/32 -j MARK --set-xmark {1 << n:#x}/0" for n in numbers]
    with pytest.raises(MarksDiffer):
        joined(hooks_of(text.replace("COMMIT", "\n".join([*rows, "COMMIT"]))))


def test_so_many_parts_are_not_kept_that_each_rule_takes_longer() -> None:
    rows = [
        f"-A {HOOK} -s 10.1.{n}.0/25 -j MARK --set-xmark 0x1/0x1" for n in range(2 * MOST_MARKS)
    ]
    hooks = hooks_of(nat(*rows))
    whole = replace(CAME, sources=type(by_source.everywhere())(4, ((0, 2**32 - 1),)))
    with pytest.raises(MarksDiffer):
        hooks.to_nat(HOOK, whole, joins_marks=True)


# --- what the tree of a joined walk is good for ---


def test_flows_to_no_endpoint_need_the_rules_that_marked_them() -> None:
    marked = f"-A {HOOK} -s 10.0.0.4/30 -j MARK --set-xmark 0x1/0x1"
    assert only_sent_on(joined(hooks_of(nat(marked)))) is None
    # Where none has, the leaves are those of a packet without marks by source.
    sent = f"-A {HOOK} -p udp -j DNAT --to-destination 10.0.0.9:80"
    hooks = hooks_of(nat(sent, marked.replace("-j", "-p udp -j", 1)))
    for protocol in ("tcp", "udp"):
        found = only_sent_on(joined(hooks, replace(CAME, protocol=protocol)))
        assert found is not None
        for leaf in every_leaf(found):
            assert isinstance(leaf.outcome, Dnat) is (leaf.packet.marks is not None)
