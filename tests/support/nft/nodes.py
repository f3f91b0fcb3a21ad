"""Nodes with several tables: of nft of all families, and of iptables beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_network
from typing import Final, TypeAlias

from hypothesis import strategies as st

from analyzer.model.iptables.rules import Ruleset
from analyzer.model.iptables.targets import Drop, Reject
from analyzer.model.nft.ruleset import NftRuleset, Table
from analyzer.model.routing import KernelRoute, Routes
from analyzer.model.value import replace
from analyzer.parsers.nft.rendering import render
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.tree import Delivered, Leaf, PolicyDrop, Tree
from tests.support.naive.draws import Script, distribution
from tests.support.naive.nft import Flow
from tests.support.naive.node import Fate, Node, Registration, registrations
from tests.support.nft.asked import agree, asked, forgetting
from tests.support.strategies.iptables_tables import WAYS, whole_rulesets
from tests.support.strategies.nft_tables import flows, tables
from tests.support.strategies.nft_walkable import Kinds

_PLAIN: Final = Kinds(all=False)
DEVICE: Final = "eth2"
ROUTES: Final = Routes(
    (KernelRoute(ip_network("0.0.0.0/0"), DEVICE), KernelRoute(ip_network("::/0"), DEVICE))
)
_FILTERS: Final = {
    "PREROUTING": (-300, -150, -100, -50),
    "INPUT": (-300, -150, 0, 100),
    "FORWARD": (-300, -150, 0),
    "OUTPUT": (-300, -150, -100, 0),
    "POSTROUTING": (-300, -150, 0, 100),
}
_NATS: Final = {
    "PREROUTING": (-100, -110, 0),
    "OUTPUT": (-100, -110, 0),
    "INPUT": (100, 90),
    "POSTROUTING": (100, 90, 0),
}
#: A hook, the type of a chain and its priority.
Base: TypeAlias = tuple[str, str, int]
_BASES: Final[list[Base]] = [
    *[(hook, "filter", at) for hook, held in _FILTERS.items() for at in held],
    *[(hook, "nat", at) for hook, held in _NATS.items() for at in held for _ in range(2)],
]


@dataclass(repr=False)  # hypothesis would print the values' own
class Question:
    """Rulesets, the packet, and in which order all chains were registered.

    `turns` says whose turn it is to register its next chain: which row of `registrations`.
    """

    nft: NftRuleset
    iptables: Ruleset | None
    flow: Flow
    made_here: bool
    turns: tuple[int, ...]

    def __repr__(self) -> str:
        """As text, since the values' own would be much longer."""
        tables = {} if self.iptables is None else self.iptables.tables
        rules = [
            f"{rule.raw}: {rule.matches} {rule.target}"
            for table in tables.values()
            for chain in table.chains.values()
            for rule in chain.rules
        ]
        return "\n".join([render(self.nft), *rules, str(self.flow)])

    @property
    def _rows(self) -> list[list[Registration]]:
        return rows_of(self.nft, self.iptables)

    @property
    def rulesets(self) -> list[Ruleset | NftRuleset]:
        return [self.nft] if self.iptables is None else [self.iptables, self.nft]

    def tree(self, forgotten: Collection[str] = ()) -> Tree:
        """The tree of the whole way, where some of what `asked` says is not known."""
        packet, situation = forgetting(*asked(self.flow), forgotten)
        situation = replace(situation, state="NEW", has_entry=True, flow=packet)
        return Hooks(self.rulesets, self.flow.family, situation, ROUTES).way(packet)

    def naive(self) -> dict[Fate, Fraction]:
        order = in_turns(self._rows, self.turns)

        def start(script: Script) -> Fate:
            node = Node(deepcopy(self.flow), script, DEVICE)
            for register in order:
                register(node)
            return node.fate(made_here=self.made_here)

        return distribution(start)


@st.composite
def questions(
    draw: st.DrawFn,
    kinds: Kinds = _PLAIN,
    bases: Sequence[Base] = _BASES,
    *,
    with_iptables: bool = False,
) -> Question:
    """Questions about up to three tables of nft, and with `with_iptables` those of iptables.

    `bases` are what chains may hang on: some of the hooks of each way.
    """
    made_here = draw(st.booleans())
    # The destinations of iptables' strategy are of IPv4.
    packets = "ip" if with_iptables else draw(st.sampled_from(["ip", "ip", "ip6"]))
    hung = [base for base in bases if base[0] in WAYS[made_here]]
    found: dict[tuple[str, str], Table] = {}
    for name in draw(st.sampled_from([("a",), ("a", "b"), ("a", "b"), ("a", "b", "c")])):
        family = draw(st.sampled_from([packets, packets, "inet", "inet", "ip", "ip6"]))
        table = draw(
            tables(
                family,
                name,
                draw(st.lists(st.sampled_from(hung), min_size=1, max_size=3)),
                kinds,
            )
        )
        dormant = draw(st.integers(0, 9)) == 0
        found[family, name] = replace(table, flags=("dormant",)) if dormant else table
    nft = NftRuleset(tables=found, input_format="nft", file="made")
    iptables = draw(whole_rulesets(made_here, unknown=False)) if with_iptables else None
    flow = draw(flows(packets, made_here=made_here))
    turns = draw(merged([len(row) for row in rows_of(nft, iptables)]))
    return Question(nft, iptables, flow, made_here, turns)


def rows_of(nft: NftRuleset, iptables: Ruleset | None) -> list[list[Registration]]:
    """What registers chains, a row for all that comes in one order."""
    of_nft = nft.tables.values()
    return registrations([of_nft] if iptables is None else [of_nft, iptables])


@st.composite
def merged(draw: st.DrawFn, lengths: list[int]) -> tuple[int, ...]:
    """Rows of these lengths merged in any way, each in its own order: whose turn it is."""
    left = dict(enumerate(lengths))
    found: list[int] = []
    while left := {row: count for row, count in left.items() if count}:
        row = list(left)[draw(st.integers(0, len(left) - 1))]
        left[row] -= 1
        found.append(row)
    return tuple(found)


def in_turns(rows: list[list[Registration]], turns: tuple[int, ...]) -> list[Registration]:
    """All registrations of `rows`, each row in its own order."""
    waiting = [iter(row) for row in rows]
    return [next(waiting[row]) for row in turns]


def fate_of(leaf: Leaf) -> Fate:
    """The fate of a leaf of which everything is known."""
    packet = leaf.packet
    assert not packet.mark.unknown
    assert not packet.flow_mark.unknown
    marks = packet.mark.value, packet.flow_mark.value
    match leaf.outcome:
        case Drop() | PolicyDrop():
            return Fate("drop", None, None, False, marks)
        case Reject():
            return Fate("reject", None, None, False, marks)
        case Delivered(here):
            kind = "here" if here else "sent"
            port = packet.destination_port
            return Fate(kind, packet.destination, port, bool(packet.masqueraded), marks)
        case _:
            raise AssertionError(leaf)


Compares = Callable[[Leaf], bool]


def may_be(fate: Fate) -> Compares:
    """Whether a leaf may stand for a fate, as far as it is known."""

    def compared(leaf: Leaf) -> bool:
        packet = leaf.packet
        kind = fate_kind(leaf)
        if kind != fate.kind:
            return False
        if not agree((packet.mark, packet.flow_mark), fate.marks):
            return False
        if kind in {"drop", "reject"}:
            return True
        known = (
            (packet.destination, fate.destination),
            (packet.destination_port, fate.port),
            (packet.masqueraded, fate.masqueraded),
        )
        return all(said is None or said == real for said, real in known)

    return compared


def must_be(fate: Fate) -> Compares:
    """Whether a leaf certainly stands for a fate."""

    def compared(leaf: Leaf) -> bool:
        packet = leaf.packet
        if packet.mark.unknown or packet.flow_mark.unknown:
            return False
        gone = fate.kind in {"drop", "reject"}
        known = packet.destination, packet.destination_port, packet.masqueraded
        return may_be(fate)(leaf) and (gone or None not in known)

    return compared


def fate_kind(leaf: Leaf) -> str:
    """What becomes of the packet of a leaf."""
    match leaf.outcome:
        case Drop() | PolicyDrop():
            return "drop"
        case Reject():
            return "reject"
        case Delivered(here):
            return "here" if here else "sent"
        case _:
            raise AssertionError(leaf)
