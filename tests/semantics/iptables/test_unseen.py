"""What a chain did to a packet it does to another that it cannot tell from it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from analyzer.model.iptables.rules import Table
from analyzer.model.packet import MarksDiffer, Packet
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.effort import Effort
from analyzer.semantics.grow import Grown
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.iptables.unseen import Unseen, come_like
from analyzer.semantics.joined import are_all_sent_on
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Leaf, Tree, Unresolved
from tests.support.effort import examples
from tests.support.strategies import by_source

HOOKS = ("PREROUTING", "OUTPUT")
SITUATION = Situation(local_addresses=frozenset({by_source.OWN}))
CAME = Packet(
    protocol="tcp",
    destination=by_source.FIRST,
    destination_port=80,
    out_interface="",
    from_node=False,
    bridge_port=False,
    sources=by_source.everywhere(),
)
MADE = replace(CAME, in_interface="", out_interface="eth0", from_node=True, bridge_port=None)
ROWS = (
    "-A A -s 10.0.0.4/30 -j C",
    "-A A -m statistic --mode random --probability 0.5 -j B",
    "-A A -p tcp -j DNAT --to-destination 10.0.0.9:80",
    "-A B -s 10.0.0.1/32 -j C",
    "-A B -p tcp -j DNAT --to-destination 10.0.0.1:80",
    "-A C -j MARK --set-xmark 0x4000/0x4000",
)


def text_of(rows: Sequence[str], *hooks: str) -> str:
    names = [
        *(f":{hook} ACCEPT [0:0]" for hook in HOOKS),
        *(f":{chain} - [0:0]" for chain in "ABC"),
    ]
    return "\n".join(["*nat", *names, *(f"-A {hook} -j A" for hook in hooks), *rows, "COMMIT", ""])


def table_of(rows: Sequence[str]) -> Table:
    ruleset = read_ruleset(text_of(rows).encode(), "dump")
    table: Table = ruleset.tables["nat"]  # type: ignore[index,assignment]  # it is of iptables
    return table


def hooks_of(text: str) -> Hooks:
    return Hooks([read_ruleset(text.encode(), "dump")], "ip", SITUATION)


def walked(hooks: Hooks, hook: str, packet: Packet) -> tuple[Tree, object] | None:
    try:
        tree = hooks.to_nat(hook, packet, joins_marks=True)
    except MarksDiffer:
        return None
    return tree, hooks.joined_on


@examples(100, 4_000)
@given(by_source.iptables(hook="PREROUTING"))
def test_one_packet_after_another_finds_what_it_finds_alone(text: str) -> None:
    text = text.replace(":PREROUTING", ":OUTPUT ACCEPT [0:0]\n:PREROUTING", 1)
    text = text.replace("COMMIT", "-A OUTPUT -j A\nCOMMIT")
    ways = [("PREROUTING", CAME), ("OUTPUT", MADE), ("OUTPUT", replace(MADE, mark=CAME.mark))]
    hooks = hooks_of(text)
    for hook, packet in ways:
        assert walked(hooks, hook, packet) == walked(hooks_of(text), hook, packet)


@examples(100, 4_000)
@given(by_source.iptables(hook="PREROUTING"))
def test_what_is_lent_differs_in_how_the_packet_came_alone(text: str) -> None:
    text = text.replace(":PREROUTING", ":OUTPUT ACCEPT [0:0]\n:PREROUTING", 1)
    text = text.replace("COMMIT", "-A OUTPUT -j A\nCOMMIT")
    hooks = hooks_of(text)
    try:
        came = hooks.to_nat("PREROUTING", CAME, joins_marks=True, lends=True)
        assert not hooks.has_lent
        made = hooks.to_nat("OUTPUT", MADE, joins_marks=True, lends=True)
        alone = hooks_of(text).to_nat("OUTPUT", MADE, joins_marks=True)
    except MarksDiffer:
        return
    if not hooks.has_lent:
        assert made == alone
    elif are_all_sent_on(made):
        assert with_ends_of(made) == with_ends_of(alone)
    assert came == hooks_of(text).to_nat("PREROUTING", CAME, joins_marks=True)


def test_a_packet_that_leaves_a_chain_goes_on_as_it_came() -> None:
    asks = "-m addrtype --src-type LOCAL -j DNAT --to-destination 10.0.0.1:80"
    rows = [f"-A {hook} {rest}" for hook in HOOKS for rest in ("-j C", asks, "-j B")]
    text = text_of((*rows, *ROWS[3:]))
    hooks = hooks_of(text)
    for hook, packet in (("PREROUTING", CAME), ("OUTPUT", MADE)):
        tree = hooks.to_nat(hook, packet, joins_marks=True, lends=True)
        assert tree == hooks_of(text).to_nat(hook, packet, joins_marks=True)
    assert not hooks.has_lent


def with_ends_of(tree: Tree) -> Tree:
    """Return a tree whose packets came like `MADE`."""

    def come(leaf: Leaf) -> Leaf:
        if isinstance(leaf.outcome, Unresolved):
            return leaf
        return replace(leaf, packet=come_like(leaf.packet, MADE), rules=())

    return Grown(come).of(tree)


def test_a_chain_is_evaluated_once_for_all_that_it_cannot_tell_apart() -> None:
    hooks = hooks_of(text_of(ROWS, *HOOKS))
    counted: list[Packet] = []
    unseen = Unseen(table_of(ROWS), Effort())

    def walk(_: str, packet: Packet) -> Tree:
        counted.append(packet)
        return hooks.to_nat("PREROUTING", packet)

    assert unseen.is_apart("A")
    came, made = (unseen.result("A", packet, walk) for packet in (CAME, MADE))
    assert counted == [CAME]
    assert came != made
    assert unseen.result("A", replace(MADE, protocol="udp"), walk) != made
    assert len(counted) == 2


@pytest.mark.parametrize(
    "row",
    [
        "-A B -i eth0 -j C",
        "-A B ! -o eth0 -j C",
        "-A C -m addrtype --src-type LOCAL -j RETURN",
        "-A B -m physdev --physdev-is-bridged -j C",
        "-A B -m made-up -j C",
        "-A B -j MASQUERADE",
        "-A C -j made-up",
        "-A C -j A",
    ],
)
def test_chains_that_match_on_how_a_packet_came_are_not_kept(row: str) -> None:
    unseen = Unseen(table_of((row, *ROWS)), Effort())
    assert not unseen.is_apart("A")
    assert Unseen(table_of(ROWS), Effort()).is_apart("A")


def test_a_chain_that_dispatches_is_not_looked_through() -> None:
    rows = [f"-A A -d 10.0.1.{n}/32 -p tcp -m tcp --dport 80 -j B" for n in range(9)]
    unseen = Unseen(table_of((*rows, *ROWS[3:])), Effort())
    assert not unseen.is_apart("A")
    assert unseen.is_apart("B")
