"""Faults in the walk through one table of nft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from analyzer.model.iptables import targets as t
from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import Rule
from analyzer.model.probability import NUMGEN_BITS, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.nft import covered as nft_covered
from analyzer.semantics.nft import covering as nft_covering
from analyzer.semantics.nft import ct_fields
from analyzer.semantics.nft import fields as nft_fields
from analyzer.semantics.nft import found as nft_found
from analyzer.semantics.nft import index as nft_index
from analyzer.semantics.nft import matching as nft_matching
from analyzer.semantics.nft import nat as nft_nat
from analyzer.semantics.nft import rule as nft_rule
from analyzer.semantics.nft.changes import ChangedPackets, Changes
from analyzer.semantics.nft.found import Found
from analyzer.semantics.nft.matching import Lookups
from analyzer.semantics.nft.nat import NatStatements
from analyzer.semantics.nft.rule import RuleWalk
from analyzer.semantics.nft.values import Draw, Evaluated
from analyzer.semantics.path import Path
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Leaf
from tests.support.seeded.fault import Fault, Make, Patch, method

FALSE, UNKNOWN, TRUE = Ternary


def verdicts(change: Callable[[Any], Any]) -> Fault:
    """Each verdict is taken for another, in rules and in maps."""

    def of_group(where: Any) -> Any:
        if not isinstance(where, e.AnonymousSet):
            return where
        return e.AnonymousSet(
            tuple([replace(each, value=change(each.value)) for each in where.elements])
        )

    def of(each: Any) -> Any:
        return s.Vmap(each.key, of_group(each.map)) if isinstance(each, s.Vmap) else change(each)

    return statements(of)


def statements(change: Callable[[Any], Any]) -> Fault:
    """Each statement is taken for another."""

    def faulty(right: Any) -> Any:
        def init(self: Any, walks: Any, path: Any, rule: Rule, *rest: Any) -> None:
            # The rule itself stays what it is, as the way tells of it.
            right(self, walks, path, rule, *rest)
            self._rule = _Shown(rule, tuple(map(change, rule.statements)))

        return init

    return method(RuleWalk, "__init__", faulty)


class _Shown:
    """A rule that does something else than it shows."""

    def __init__(self, rule: Rule, held: tuple[Any, ...]) -> None:
        self._real = rule
        self.statements = held

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def when(kind: Any, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda each: change(each) if isinstance(each, kind) else each


def applying(right: Any) -> Any:
    def faulty(*arguments: Any) -> Evaluated:
        found: Evaluated = right(*arguments)
        return replace(found, applies=TRUE) if found.applies is FALSE else found

    return faulty


def broken_is_not_equal(right: Any) -> Any:
    def faulty(self: Lookups, match: s.Match, packet: Any) -> MatchResult:
        broken = self.read(match.left, packet).applies is FALSE
        if broken and match.operator in {"!=", "!"}:
            return MatchResult(TRUE)
        found: MatchResult = right(self, match, packet)
        return found

    return faulty


def uniform(_: Any) -> Any:
    def faulty(self: Draw, first: int, last: int) -> Dyadic:
        count = min(last - self.offset, self.modulus - 1) - max(first - self.offset, 0) + 1
        return Dyadic.of((max(count, 0) << NUMGEN_BITS) // self.modulus, NUMGEN_BITS)

    return faulty


def going_on(kinds: Any) -> Make:
    """Where a statement ends its rule, the rule goes on."""

    def make(right: Any) -> Any:
        def faulty(self: Any, given: Any, at: int, packet: Any) -> Any:
            found = right(self, given, at, packet)
            return packet if found is None and isinstance(given, kinds) else found

        return faulty

    return make


def changes_lost(right: Any) -> Any:
    def faulty(self: Any, first: int, packet: Any) -> Any:
        ended = []
        meet = self._meet

        def watched(given: Any, at: int, now: Any) -> Any:
            found = meet(given, at, now)
            ended.append(found is None)
            return found

        self._meet = watched
        found = right(self, first, packet)
        return packet if ended and ended[-1] else found

    return faulty


def intervals(change: Callable[[int, int], tuple[int, int]]) -> Fault:
    def make(right: Any) -> Any:
        def faulty(given: Any, words: Mapping[str, int]) -> Any:
            found = right(given, words)
            return change(*found) if found is not None and isinstance(given, e.Range) else found

        return faulty

    def fault(patch: Patch) -> None:
        for module in (nft_covering, nft_found, nft_index, nft_matching):
            method(module, "interval_of", make)(patch)

    return fault


def elements(change: Callable[[list[e.Element]], list[e.Element]]) -> Make:
    def make(right: Any) -> Any:
        def faulty(self: Lookups, where: Any) -> Any:
            found = right(self, where)
            return None if found is None else change(list(found))

        return faulty

    return make


def first_part_only(right: Any) -> Any:
    return lambda compared, at: right(compared[:1], at)


def state(name: str) -> Fault:
    return method(ct_fields, "state_of", lambda _: lambda _packet, _situation: name)


def returning(right: Any) -> Any:
    def faulty(self: RuleWalk, verdict: Any, at: int, packet: Any) -> Any:
        found = right(self, verdict, at, packet)
        ends = isinstance(verdict, e.Return) and self.place.chain == "base0"
        return Leaf(t.Accept(), packet) if ends else found

    return faulty


def not_reduced(_: Any) -> Any:
    def faulty(self: Any, chance: Dyadic, taken: Any) -> bool:
        self._branches.append((chance, taken))
        self._left = ~chance
        return not self._left

    return faulty


def every_rule_tells(right: Any) -> Any:
    def faulty(self: Any, first: int, packet: Any) -> Any:
        found = right(self, first, packet)
        self._path.passes(self._rule)
        return found

    return faulty


def no_operator(operator: str) -> Make:
    return lambda right: lambda op, left, *rest: left if op == operator else right(op, left, *rest)


def unchanged(right: Any) -> Any:
    def faulty(self: Changes, given: Any, packet: Any, situation: Situation) -> ChangedPackets:
        found: ChangedPackets = right(self, given, packet, situation)
        return replace(found, ways=((packet, None),))

    return faulty


def of_any_family(right: Any) -> Any:
    return lambda self, given, packet: right(
        self, replace(given, family=None) if hasattr(given, "family") else given, packet
    )


FAULTS: Final[dict[str, Fault]] = {
    "goto as jump": verdicts(when(e.Goto, lambda v: e.Jump(v.chain))),
    "jump as goto": verdicts(when(e.Jump, lambda v: e.Goto(v.chain))),
    "return ignored": verdicts(when(e.Return, lambda _: e.Continue())),
    "continue as return": verdicts(when(e.Continue, lambda _: e.Return())),
    "accept as return": verdicts(when(e.Accept, lambda _: e.Return())),
    "accept as drop": verdicts(when(e.Accept, lambda _: e.Drop())),
    "return of a base chain as accept": method(RuleWalk, "_taken", returning),
    "wrong header read": method(nft_matching, "read", applying),
    "!= of what is not there holds": method(Lookups, "evaluate", broken_is_not_equal),
    "numbers drawn uniformly": method(Draw, "chance", uniform),
    "offset of numgen ignored": method(
        Draw, "chance", lambda right: lambda d, a, b: right(replace(d, offset=0), a, b)
    ),
    "negated draw not complemented": statements(
        when(s.Match, lambda m: replace(m, operator="==") if m.operator == "!=" else m)
    ),
    "chance of later rules not reduced": method(Path, "branches", not_reduced),
    "a miss in a verdict map holds": method(RuleWalk, "_meet", going_on(s.Vmap)),
    "a miss in a map translates to nowhere": method(RuleWalk, "_meet", going_on(s.Dnat)),
    "a miss in a map leaves the mark, and the rule goes on": method(
        RuleWalk, "_meet", going_on((s.MetaSet, s.CtSet))
    ),
    "changes lost where a rule ends": method(RuleWalk, "walk", changes_lost),
    "first of an interval left out": intervals(lambda a, b: (a + 1, b)),
    "last of an interval left out": intervals(lambda a, b: (a, b - 1)),
    "two comparisons, listed as one, for a range": method(
        nft_matching, "reversed_range", lambda _: lambda *_: None
    ),
    "prefix one bit short": method(
        nft_covering,
        "_covers_number",
        lambda right: (
            lambda given, *rest: right(
                replace(given, length=given.length - 15) if isinstance(given, e.Prefix) else given,
                *rest,
            )
        ),
    ),
    "less or equal as less": statements(
        when(s.Match, lambda m: replace(m, operator="<") if m.operator == "<=" else m)
    ),
    "greater as greater or equal": statements(
        when(s.Match, lambda m: replace(m, operator=">=") if m.operator == ">" else m)
    ),
    "bits as a number": statements(
        when(s.Match, lambda m: replace(m, operator="==") if m.operator == "in" else m)
    ),
    "catch-all left out": method(
        Lookups,
        "_elements",
        elements(lambda held: [h for h in held if not isinstance(h.key, e.Wildcard)]),
    ),
    "last element left out": method(Lookups, "_elements", elements(lambda held: held[:-1])),
    "only the first part of a concatenation": method(nft_covered, "_compared", first_part_only),
    "conntrack has always seen it": state("NEW"),
    "conntrack never calls it untracked": method(
        ct_fields,
        "state_of",
        lambda right: lambda p, s: {"UNTRACKED": "INVALID"}.get(right(p, s), right(p, s)),
    ),
    "mark not set": method(Changes, "changed", unchanged),
    "mask ignored": method(nft_fields, "_computed", no_operator("&")),
    "xor ignored": method(nft_fields, "_computed", no_operator("^")),
    "or ignored": method(nft_fields, "_computed", no_operator("|")),
    "shift ignored": method(nft_fields, "_computed", no_operator("<<")),
    "draw cut wrong": method(
        nft_fields, "_cut", lambda right: lambda op, draw, other: right(op, draw, other >> 1)
    ),
    "translations of another family": method(NatStatements, "translation", of_any_family),
    "DNAT leaves the destination": method(
        nft_nat, "translated", lambda _: lambda packet, _: packet
    ),
    "port of a translation ignored": method(
        nft_nat,
        "translated",
        lambda right: lambda packet, to: right(packet, replace(to, first_port=None)),
    ),
    "notrack of what has an entry": method(
        Changes,
        "changed",
        lambda right: (
            lambda self, given, packet, _: right(
                self, given, packet, Situation(has_entry=not isinstance(given, s.Notrack))
            )
        ),
    ),
    "affinity forgotten": method(
        Lookups, "_find_changing", lambda _: lambda _self, key, _held: Found(key.applies, (), False)
    ),
    "sets updated whatever the header": method(RuleWalk, "_meet", going_on(s.SetUpdate)),
    "rates over as rates under": statements(when(s.Limit, lambda limit: replace(limit, over=True))),
    "rules forgotten": method(nft_rule, "after", lambda _: lambda _, rest: rest),
    "rules told that ended": method(RuleWalk, "walk", every_rule_tells),
}
#: What the matches of tables are about that show a fault sooner than others: see `Kinds`.
ABOUT: Final = {
    "affinity forgotten": "affinity",
    "conntrack never calls it untracked": "untracked",
    "conntrack has always seen it": "invalid",
    "only the first part of a concatenation": "Concat",
    "prefix one bit short": "Prefix",
    "draw cut wrong": "random",
    "shift ignored": "mark",
    "xor ignored": "mark",
    "or ignored": "mark",
    "mask ignored": "mark",
    "changes lost where a rule ends": "mark",
    "chance of later rules not reduced": "andom",
    "sets updated whatever the header": "mark",
    "port of a translation ignored": "daddr",
}
