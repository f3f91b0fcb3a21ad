"""Faults in the walk through one table of iptables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from analyzer.model.iptables.matches import Match, MatchMark, MatchNot, MatchRandom
from analyzer.model.iptables.rules import Rule, Table
from analyzer.model.iptables.targets import Accept, Goto, Jump, Return, SetMark
from analyzer.model.packet import Mark, Packet
from analyzer.model.probability import ALWAYS, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics import path, sums, tree
from analyzer.semantics.grow import Grown
from analyzer.semantics.iptables import matching, traverse
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.situation import Situation
from tests.support.agreement.iptables_table import START
from tests.support.seeded.fault import Fault, Patch


def reading(change: Callable[[Rule], Rule]) -> Fault:
    """The traversal takes each rule for another."""

    def fault(patch: Patch) -> None:
        init = Traversal.__init__

        def faulty(self: Traversal, table: Table, situation: Situation | None = None) -> None:
            chains = {
                name: replace(chain, rules=tuple(map(change, chain.rules)))
                for name, chain in table.chains.items()
            }
            init(self, replace(table, chains=chains), situation)

        patch.setattr(Traversal, "__init__", faulty)

    return fault


def goto_as_jump(rule: Rule) -> Rule:
    return replace(rule, target=Jump(rule.target.chain)) if isinstance(rule.target, Goto) else rule


def jump_as_goto(rule: Rule) -> Rule:
    return replace(rule, target=Goto(rule.target.chain)) if isinstance(rule.target, Jump) else rule


def no_return(rule: Rule) -> Rule:
    return replace(rule, target=None) if isinstance(rule.target, Return) else rule


def accept_as_return(rule: Rule) -> Rule:
    return replace(rule, target=Return()) if isinstance(rule.target, Accept) else rule


def no_mask(rule: Rule) -> Rule:
    target = rule.target
    return replace(rule, target=SetMark(target.value)) if isinstance(target, SetMark) else rule


def no_mark(rule: Rule) -> Rule:
    return replace(rule, target=None) if isinstance(rule.target, SetMark) else rule


def first_match_only(rule: Rule) -> Rule:
    return replace(rule, matches=rule.matches[:1])


def judging(change: Callable[[Match, MatchResult], MatchResult]) -> Fault:
    """A match is given another meaning."""

    def fault(patch: Patch) -> None:
        judge = matching.evaluate_match

        def faulty(match: Match, packet: Packet, situation: Situation) -> MatchResult:
            return change(match, judge(match, packet, situation))

        patch.setattr(matching, "evaluate_match", faulty)

    return fault


def negated_chance_not_complemented(match: Match, result: MatchResult) -> MatchResult:
    if isinstance(match, MatchNot) and isinstance(match.match, MatchRandom):
        return replace(result, chance=match.match.probability)
    return result


def negation_ignored(match: Match, result: MatchResult) -> MatchResult:
    if isinstance(match, MatchNot) and isinstance(match.match, MatchMark):
        return replace(result, known=~result.known)
    return result


def unknown_as(known: Ternary) -> Callable[[Match, MatchResult], MatchResult]:
    return lambda _, r: replace(r, known=known if r.known is Ternary.UNKNOWN else r.known)


def wrong_complement(patch: Patch) -> None:
    patch.setattr(Dyadic, "__invert__", lambda self: self if self.exponent else NOT[self])


NOT: Final = {ALWAYS: ~ALWAYS, ~ALWAYS: ALWAYS}


def draws_not_independent(patch: Patch) -> None:
    patch.setattr(
        MatchResult,
        "__and__",
        lambda a, b: MatchResult(a.known & b.known, min(a.chance, b.chance)),
    )


def swapped_bounds(patch: Patch) -> None:
    patch.setattr(sums, "min", max, raising=False)
    patch.setattr(sums, "max", min, raising=False)


def lower_bound_of_the_last_branch(patch: Patch) -> None:
    patch.setattr(sums, "min", lambda *values: values[-1], raising=False)


def rules_forgotten(patch: Patch) -> None:
    patch.setattr(traverse, "after", lambda _, rest: rest)


def mark_lost_after_a_jump(patch: Patch) -> None:
    goto = Traversal.goto

    def unmarked(leaf: tree.Leaf) -> tree.Tree:
        left = isinstance(leaf.outcome, tree.FellThrough)
        return tree.Leaf(leaf.outcome, replace(leaf.packet, mark=Mark())) if left else leaf

    def faulty(self: Traversal, chain: str, packet: Packet) -> tree.Tree:
        found = goto(self, chain, packet)
        return found if chain == START else Grown(unmarked).of(found)

    patch.setattr(Traversal, "goto", faulty)


def chances_of_later_rules_not_reduced(patch: Patch) -> None:
    def faulty(branches: list[tuple[Dyadic, tree.Tree]]) -> tree.Tree:
        return branches[0][1] if len(branches) == 2 else joined(branches)

    joined = path.chance_of
    patch.setattr(path, "chance_of", faulty)


FAULTS: Final[dict[str, Fault]] = {
    "goto as jump": reading(goto_as_jump),
    "jump as goto": reading(jump_as_goto),
    "return ignored": reading(no_return),
    "accept as return": reading(accept_as_return),
    "mask of a mark ignored": reading(no_mask),
    "mark not set": reading(no_mark),
    "only the first match asked": reading(first_match_only),
    "negated chance not complemented": judging(negated_chance_not_complemented),
    "negation ignored": judging(negation_ignored),
    "unknown as false": judging(unknown_as(Ternary.FALSE)),
    "unknown as true": judging(unknown_as(Ternary.TRUE)),
    "complement wrong": wrong_complement,
    "draws not independent": draws_not_independent,
    "bounds swapped": swapped_bounds,
    "lower bound of the last branch": lower_bound_of_the_last_branch,
    "rules forgotten": rules_forgotten,
    "mark lost after a jump": mark_lost_after_a_jump,
    "chance of two taken for certainty": chances_of_later_rules_not_reduced,
}
