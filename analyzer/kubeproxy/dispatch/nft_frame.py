"""What the rules around the chains of Services match on a flow's destination.

Two flows from the same source for which all these matches have the same results are treated alike
until they reach the chain of their Service, and again after it. So one of them is evaluated, and
the result holds for the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from ipaddress import IPv4Address, IPv6Address

from analyzer.kubeproxy.dispatch.nft_chains import elements_of, no_map, reached_by
from analyzer.kubeproxy.rows.nft import words_of
from analyzer.model.intervals import Interval
from analyzer.model.nft.expressions import (
    Accept,
    AnonymousSet,
    Binary,
    Concat,
    Continue,
    Ct,
    Drop,
    Expression,
    Fib,
    Flags,
    Goto,
    Jump,
    Meta,
    Payload,
    Prefix,
    Range,
    Return,
    SetRef,
)
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import Rule, Table
from analyzer.model.nft.statements import (
    Counter,
    CtSet,
    Dnat,
    Limit,
    Log,
    Masquerade,
    Match,
    MetaSet,
    Notrack,
    Redirect,
    Reject,
    SetUpdate,
    Snat,
    Vmap,
    Xt,
)
from analyzer.model.packet import Packet
from analyzer.model.value import value
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.nft.covering import interval_of
from analyzer.semantics.nft.matching import Lookups
from analyzer.semantics.situation import Situation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Statements that match nothing, and whose effect does not depend on the destination.
_SILENT: Final = (
    Accept,
    Continue,
    Counter,
    Drop,
    Goto,
    Jump,
    Limit,
    Log,
    Notrack,
    Reject,
    Return,
    SetUpdate,
    Xt,
)
#: Keys that do not depend on the destination.
_ELSEWHERE: Final = frozenset(
    {"mark", "l4proto", "nfproto", "protocol", "iifname", "iif", "random", "skuid", "skgid"}
)
#: In place of a result: the flow goes where a map sends it.
_LED_AWAY: Final = "led away"
_WORD: Final = re.compile(r"[\w.:]+")
_OF_FLOW: Final = frozenset({"state", "mark", "status", "direction"})


@value
class _Asked:
    """One match of one table: a comparison, or a look-up in a map."""

    lookups: Lookups
    table: Table
    question: Match | Vmap


class SurroundingRules:
    """Everything that some chains of several tables match on.

    Those chains are the base chains of each table at `hooks`, and all chains reached from them;
    rules
    of a chain after the map `plain`, whose verdicts are final, are not evaluated.
    """

    def __init__(
        self,
        tables: Iterable[Table],
        hooks: frozenset[str],
        family: str,
        situation: Situation,
        plain: str | None = None,
    ) -> None:
        self._plain = plain
        self._asked: list[_Asked] = []
        #: Whether it is known for all rules what they match on.
        self.is_plain = True
        for table in tables:
            lookups = Lookups(table, family, situation)
            bases = [chain.name for chain in table.chains.values() if chain.hook in hooks]
            for chain in reached_by(table, bases, no_map):
                for rule in chain.rules:
                    self._ask(rule, table, lookups)
                    if self._is_plain_map(rule):
                        break

    def _is_plain_map(self, rule: Rule) -> bool:
        plain = SetRef(self._plain or "")
        return any(isinstance(each, Vmap) and each.map == plain for each in rule.statements)

    def _ask(self, rule: Rule, table: Table, lookups: Lookups) -> None:
        for statement in rule.statements:
            match statement:
                case Match(_, left, right):
                    if _depends(left) or _depends(right):
                        self._asked.append(_Asked(lookups, table, statement))
                case Vmap(_, SetRef(name)) if name == self._plain:
                    pass
                case Vmap(key):
                    if _depends(key):
                        self._asked.append(_Asked(lookups, table, statement))
                    elif not _leads_nowhere(statement, table):
                        self.is_plain = False
                case MetaSet(_, operand) | CtSet(_, operand) if not _depends(operand):
                    pass
                case Dnat() | Redirect() | Snat() | Masquerade() if not self._picks(statement):
                    pass
                case _ if isinstance(statement, _SILENT):
                    pass
                case _:
                    self.is_plain = False

    def _picks(self, given: Dnat | Redirect | Snat | Masquerade) -> bool:
        """Return whether the new address or port depends on the destination of the flow."""
        parts = [given.port, given.address if isinstance(given, Dnat | Snat) else None]
        return any(part is not None and _depends(part) for part in parts)

    @cached_property
    def _quick(self) -> list[tuple[_Asked, frozenset[str], bool]]:
        """Matches with the words of all addresses in them; whether the set has just those."""
        found = []
        for each in self._asked:
            words = _addresses(each)
            of_parts = _words_of_parts(each) if words is None else None
            if words is not None:
                found.append((each, words, True))
            elif of_parts is not None:
                found.append((each, of_parts, False))
        return found

    @cached_property
    def _within(self) -> list[tuple[_Asked, Interval, dict[bool, object]]]:
        """Matches on a network of destinations, and the results inside and outside of it."""
        found = []
        for each in self._asked:
            interval = _network(each)
            if interval is not None:
                found.append((each, interval, dict[bool, object]()))
        return found

    @cached_property
    def _others(self) -> list[_Asked]:
        known = {id(each) for each, *_ in (*self._quick, *self._within)}
        return [each for each in self._asked if id(each) not in known]

    def answers(
        self, address: str, number: int, packet: Callable[[], Packet]
    ) -> tuple[object, ...] | None:
        """Return the results for a packet sent to `address`, written as nft writes it.

        None: a map sends it elsewhere. `number` is that of the address; `packet` is called only if
        the address alone does not decide.
        """
        found: list[object] = []
        for asked, words, just in self._quick:
            known = address in words
            found.append(known if just or not known else _answer(asked, packet()))
        for asked, (first, last), results in self._within:
            inside = first <= number <= last
            if inside not in results:
                results[inside] = _answer(asked, packet())
            found.append(results[inside])
        if self._others:
            made = packet()
            found += [_answer(asked, made) for asked in self._others]
        return None if _LED_AWAY in found else tuple(found)


def _answer(asked: _Asked, packet: Packet) -> object:
    question = asked.question
    if isinstance(question, Match):
        return _one_of(asked.lookups.evaluate(question, packet))
    # A packet that no element covers continues as if there were no map.
    return _LED_AWAY if asked.lookups.find(question, packet).hits else False


@cache
def _one_of(_result: MatchResult) -> object:
    """Return an object of its own for each result; to hash the result takes ten times as long."""
    return object()


def _addresses(asked: _Asked) -> frozenset[str] | None:
    """Return the set that the destination is looked up in; None: it matches on something else."""
    match asked.question:
        case Match("==" | "!=", Payload("ip" | "ip6", "daddr"), SetRef(name)):
            held = asked.table.sets.get(name)
            return None if held is None or held.flags else words_of(held)
        case _:
            return None


def _network(asked: _Asked) -> Interval | None:
    """Return the network that the destination is compared with; None: it is something else."""
    match asked.question:
        case Match("==" | "!=", Payload("ip" | "ip6", "daddr"), Prefix() as held):
            return interval_of(held, {})
        case _:
            return None


def _words_of_parts(asked: _Asked) -> frozenset[str] | None:
    """Return all words of a set or map whose keys have the destination as a part.

    A destination that is none of them is in no element.
    """
    match asked.question:
        case Match("==", Concat(parts), SetRef(name)) | Vmap(Concat(parts), SetRef(name)):
            held = asked.table.sets.get(name)
            if held is None or held.flags or not any(map(_is_destination, parts)):
                return None
            elements = held.elements
            source = elements.source if isinstance(elements, Lazy) else elements
            return frozenset(_WORD.findall(str(source)))
        case _:
            return None


def _is_destination(given: Expression) -> bool:
    return isinstance(given, Payload) and given.field == "daddr"


def _leads_nowhere(given: Vmap, table: Table) -> bool:
    """Return whether a map on something else sends flows to no chain."""
    verdicts = [element.value for element in elements_of(given, table)]
    return not any(isinstance(verdict, Jump | Goto) for verdict in verdicts)


def _depends(given: Expression) -> bool:
    """Return whether an expression may depend on the destination of a flow."""
    match given:
        case Payload(_, "saddr" | "sport"):
            return False
        case Meta(key):
            return key not in _ELSEWHERE
        case Ct(key, direction):
            return key not in _OF_FLOW or direction is not None
        case Fib(_, flags):
            return "daddr" in flags
        case Concat(parts):
            return any(_depends(part) for part in parts)
        case Binary(_, left, right):
            return any(_depends(part) for part in (left, right))
        case AnonymousSet() | SetRef():
            return False
        case Prefix() | Range() | Flags() | int() | str() | IPv4Address() | IPv6Address():
            return False  # a constant
        case _:
            return True
