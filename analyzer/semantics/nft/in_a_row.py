"""What a rule of nft certainly does with all packets from the sources that it matches."""

from __future__ import annotations

from typing import NamedTuple

from analyzer.model.bits import ANY
from analyzer.model.intervals import Intervals, everything
from analyzer.model.iptables import targets
from analyzer.model.nft.expressions import (
    Accept,
    Binary,
    Ct,
    Drop,
    Expression,
    Meta,
    Return,
)
from analyzer.model.nft.ruleset import Rule, Table
from analyzer.model.nft.statements import (
    Counter,
    CtSet,
    Log,
    Match,
    MetaSet,
    Reject,
    Statement,
)
from analyzer.model.packet import Packet
from analyzer.model.region import Parted
from analyzer.model.ternary import Ternary
from analyzer.semantics.in_a_row import Decided, is_long
from analyzer.semantics.masquerade import is_from_masquerade, is_to_masquerade
from analyzer.semantics.match_result import CERTAIN
from analyzer.semantics.nft.chain_index import source_of
from analyzer.semantics.nft.rejects import is_rejected, reject_name
from analyzer.semantics.tree import AnyRule, FellThrough, Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.in_a_row import End
    from analyzer.semantics.nft.traverse import NftTraversal


class Row(NamedTuple):
    """A long row of rules of which each decides on one network's packets, all in one way.

    Attributes:
        others: how many follow the first.
        behind: the index of the rule after the last of them.
    """

    first: AnyRule
    outcome: End
    others: int
    behind: int

    def taken(self, packet: Packet) -> Leaf:
        """Return what happens to a packet that the first of them matches."""
        return Leaf(self.outcome, packet, (self.first,))


class DecidingRules:
    """The rules of a table that decide on packets by their sources; keeps what they do to all."""

    def __init__(self, table: Table, walks: NftTraversal) -> None:
        self._table = table
        self._walks = walks
        self._of_all: dict[tuple[str, int, str], _OnAll | None] = {}
        self._rows: dict[tuple[str, int, str], Row | None] = {}

    def decides(self, chain: str, at: int, packet: Packet) -> Decided | None:
        """Return what a rule does with packets like this one from the sources that it matches.

        None: it is not certain, it changes packets, it does not split their sources once, or there
        is no rule with the index `at`.
        """
        rules = self._table.chains[chain].rules
        if at >= len(rules):
            return None
        return self.decides_alone(chain, at, packet) or _decides(rules[at], packet, self._walks)

    def decides_alone(self, chain: str, at: int, packet: Packet) -> Decided | None:
        """Return the same for a rule that reads nothing of a packet but its source and marks."""
        if at >= len(self._table.chains[chain].rules):
            return None
        on_all = self._on_all(chain, at, "daddr" if packet.is_answer else "saddr")
        if on_all is None:
            return None
        rule, asked, does = on_all
        if not isinstance(does, tuple):
            return Decided(rule, asked, does)
        marked = self._walks.changes.marked(does, packet, self._walks.situation)
        return None if marked is None else Decided(rule, asked, marked)

    def row(self, chain: str, at: int, packet: Packet) -> Row | None:
        """Return the long row of rules from `at` on of which any may decide on a packet.

        None: something is known of the address that they match on, there are few, or they do more
        than decide on one network's packets.
        """
        for field in ("saddr", "daddr"):
            if self._is_unknown(packet, field):
                key = chain, at, field
                if key not in self._rows:
                    self._rows[key] = self._row(*key)
                if self._rows[key] is not None:
                    return self._rows[key]
        return None

    def _on_all(self, chain: str, at: int, field: str) -> _OnAll | None:
        key = chain, at, field
        if key not in self._of_all:
            rule = self._table.chains[chain].rules[at]
            self._of_all[key] = _on_all(rule, field, self._walks.family)
        return self._of_all[key]

    def _is_unknown(self, packet: Packet, field: str) -> bool:
        """Return whether nothing is known of an address of a packet."""
        if field == "saddr":
            known, by_masquerade = packet.source or packet.sources, is_from_masquerade(packet)
        else:
            known, by_masquerade = (
                packet.destination or packet.destinations,
                is_to_masquerade(packet),
            )
        chosen = self._walks.situation.masquerades
        return known is None and (not by_masquerade or chosen is None or chosen.bits is ANY)

    def _row(self, chain: str, start: int, field: str) -> Row | None:
        rules = self._table.chains[chain].rules
        every = (everything(4 if self._walks.family == "ip" else 6),)
        found: list[tuple[AnyRule, End]] = []
        at = start
        while at < len(rules):
            decided = self._on_all(chain, at, field)
            if decided is None or decided.asked == every:
                break
            rule, asked, does = decided
            if asked:  # else it is for the other family
                if isinstance(does, tuple) or (found and does != found[0][1]):
                    break
                found.append((rule, does))
            at += 1
        return Row(*found[0], len(found) - 1, at) if is_long(len(found)) else None


class _OnAll(NamedTuple):
    """What a rule does with all packets from some sources, whatever else they are.

    Attributes:
        does: how it ends them, or statements that at most set marks.
    """

    rule: Rule
    asked: Intervals
    does: End | tuple[Statement, ...]


def _on_all(rule: Rule, field: str, family: str) -> _OnAll | None:
    """Return what a rule does with all packets from some sources; None: it asks for more."""
    source, end = source_of(rule, field), _outcome(rule, family)
    if source is None or isinstance(end, targets.Reject):
        return None
    acts = rule.statements if end is None else rule.statements[:-1]
    compared = [at for at, each in enumerate(acts) if isinstance(each, Match)]
    rest = acts[compared[-1] + 1 :]
    if len(compared) > 1 or not all(
        isinstance(each, Counter | Log) for each in acts[: compared[0]]
    ):
        return None
    if not all(_is_plain(each, may_mark=end is None) for each in rest):
        return None
    version, asked = source
    return _OnAll(rule, asked if version == (4 if family == "ip" else 6) else (), end or rest)


def _is_plain(statement: Statement, *, may_mark: bool) -> bool:
    """Return whether a statement at most sets marks, to what depends on nothing but marks."""
    match statement:
        case Counter() | Log():
            return True
        case MetaSet("mark", operand) | CtSet("mark", operand):
            return may_mark and _is_of_marks(operand)
        case _:
            return False


def _is_of_marks(operand: Expression) -> bool:
    match operand:
        case int() | Meta("mark") | Ct("mark"):
            return True
        case Binary(_, left, right):
            return _is_of_marks(left) and _is_of_marks(right)
        case _:
            return False


def _outcome(rule: Rule, family: str) -> End | None:
    """Return what the last statement of a rule does to a packet that reaches it; None: more."""
    match rule.statements[-1:]:
        case [Accept()]:
            return targets.Accept()
        case [Drop()]:
            return targets.Drop()
        case [Return()]:
            return FellThrough()
        case [Reject() as how]:
            return targets.Reject(reject_name(how, family))
        case _:
            return None


def _decides(rule: Rule, packet: Packet, walks: NftTraversal) -> Decided | None:
    last = max(
        (at for at, each in enumerate(rule.statements) if isinstance(each, Match)), default=-1
    )
    before, rest = rule.statements[: last + 1], rule.statements[last + 1 :]
    outcome: End | Packet | None = _outcome(rule, walks.family)
    if outcome is None:
        try:
            outcome = walks.changes.marked(rest, packet, walks.situation)
        except Parted:
            return None
    elif not all(isinstance(each, Counter | Log) for each in rest[:-1]):
        return None
    if outcome is None or not all(isinstance(each, Match | Counter | Log) for each in before):
        return None
    nothing = Decided(rule, (), outcome)
    if not isinstance(outcome, Packet):
        match is_rejected(rest[-1], packet, walks.family, walks.situation):
            case Ternary.UNKNOWN:
                return None
            case Ternary.FALSE:
                return nothing
            case Ternary.TRUE:
                pass
    asked: Intervals | None = None
    for match in before:
        if not isinstance(match, Match):
            continue
        try:
            result = walks.compare(match, packet)
        except Parted as by:
            if asked is not None or not _tells_apart(match, by, packet, walks):
                return None
            asked = by.asked
            continue
        if result.known is Ternary.FALSE or not result.chance:
            return nothing
        if result != CERTAIN:
            return None
    return None if asked is None else Decided(rule, asked, outcome)


def _tells_apart(match: Match, by: Parted, packet: Packet, walks: NftTraversal) -> bool:
    """Return whether a comparison is certainly true for the one part and false for the other."""
    if by.region is not packet.clients:
        return False
    try:
        inside, outside = (walks.compare(match, part) for part in packet.parted(by))
    except Parted:
        return False
    return inside == CERTAIN and outside.known is Ternary.FALSE
