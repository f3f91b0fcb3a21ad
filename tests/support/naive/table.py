"""A naive interpreter of small tables: straight recursion, every draw taken from a script.

It shares no code with analyzer/semantics. Each choice that is not the rules' own is asked of the
script: a random draw of nature, an unknown match of an adversary who sees what happened so far.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Final, TypeAlias, TypeVar

from analyzer.model.iptables.matches import (
    Match,
    MatchConnlimit,
    MatchHashlimit,
    MatchLimit,
    MatchMark,
    MatchNot,
    MatchPolicy,
    MatchRandom,
    MatchRpfilter,
    MatchSocket,
    MatchUnknown,
)
from analyzer.model.iptables.rules import Rule, Table
from analyzer.model.iptables.targets import (
    Accept,
    Dnat,
    Drop,
    Goto,
    Jump,
    Masquerade,
    Reject,
    Return,
    SetMark,
    Target,
    TargetUnknown,
)
from analyzer.model.value import replace

ALWAYS_DRAWN: Final = 1 << 31


@dataclass(frozen=True)
class End:
    """How a walk ended; `target` is None when no rule decided.

    `path` holds the rules that matched and led somewhere: not those that only set marks.
    """

    target: Target | None
    mark: int
    path: tuple[str, ...]


class Unreadable(Exception):  # noqa: N818  # an outcome, not an error
    """A target that nobody can read was met: from here on anything may happen."""


@dataclass
class Draw(Exception):  # noqa: N818  # a question, not an error
    """Nature draws; True comes with this probability."""

    chance: Fraction


class Choice(Exception):  # noqa: N818  # a question, not an error
    """An unknown match: nobody knows."""


class Scripted:
    """Something whose draws and choices are taken from a script in turn."""

    def __init__(self, script: tuple[bool, ...]) -> None:
        self._rest = list(script)

    def asked(self, question: Exception) -> bool:
        """Return the next answer; where there is none, `question` is raised."""
        if not self._rest:
            raise question
        return self._rest.pop(0)

    def drawn(self, threshold: int) -> bool:
        """Tell whether a random number lies below `threshold`; who knows it need not ask."""
        if threshold in {0, ALWAYS_DRAWN}:
            return bool(threshold)
        return self.asked(Draw(Fraction(threshold, ALWAYS_DRAWN)))


@dataclass
class Run(Scripted):
    """One walk; True and False are taken from the script in turn."""

    table: Table
    script: tuple[bool, ...]
    mark: int = 0
    path: list[str] = field(default_factory=list)
    #: What is so at the node, by name; nobody knows the rest.
    facts: Mapping[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.script)

    def end(self, chain: str) -> End:
        target = self.chain(chain)
        return End(None if isinstance(target, Return) else target, self.mark, tuple(self.path))

    def chain(self, name: str) -> Target | None:
        """Return the target that decided, or None where the chain came to its end."""
        for rule in self.table.chains[name].rules:
            # A draw behind one that failed is not asked for: its outcome decides nothing.
            if not all(self.holds(match) for match in rule.matches) or rule.target is None:
                continue
            target = rule.target
            if not isinstance(target, SetMark):
                self.path.append(str(rule.location))
            match target:
                case Jump(chain):
                    found = self.chain(chain)
                    if found is not None:
                        return found
                case Goto(chain):
                    return self.chain(chain)
                case Return():
                    return None
                case SetMark(value, mask):
                    self.mark = (self.mark & ~mask) ^ value
                case TargetUnknown():
                    raise Unreadable
                case Accept() | Drop() | Reject() | Dnat() | Masquerade():
                    return target
                case _:
                    raise AssertionError(target)
        return None

    def holds(self, match: Match) -> bool:
        match match:
            case MatchNot(MatchUnknown()) | MatchUnknown():
                return self.asked(Choice())
            case MatchNot(inner):
                return not self.holds(inner)
            case MatchMark(mark):
                return self.mark & mark.mask == mark.value
            case MatchRandom(threshold):
                return self.drawn(threshold)
            case MatchRpfilter(invert=invert):
                return self.fact("reply leaves where it came in") is not invert
            case MatchPolicy(policy=policy):
                return self.fact("encrypted") is (policy == "ipsec")
            case MatchSocket():
                return self.fact("socket waits")
            case MatchLimit():
                return self.fact("tokens left")
            case MatchHashlimit(above=above):
                return self.fact("tokens left") is (above is None)
            case MatchConnlimit(above=above):
                return self.fact("tokens left") is (above is None)
            case _:
                raise AssertionError(match)

    def fact(self, name: str) -> bool:
        return self.facts[name] if name in self.facts else self.asked(Choice())


K = TypeVar("K", bound=Hashable)
#: One run, its draws and choices taken from a script; it raises what the script does not answer.
Start: TypeAlias = Callable[[tuple[bool, ...]], K]


def explored(start: Start[K]) -> dict[K, Fraction]:
    """The exact distribution of what comes out where nothing is unknown."""
    found: dict[K, Fraction] = {}

    def explore(script: tuple[bool, ...], weight: Fraction) -> None:
        try:
            end = start(script)
        except Draw as draw:
            explore((*script, True), weight * draw.chance)
            explore((*script, False), weight * (1 - draw.chance))
        else:
            found[end] = found.get(end, Fraction(0)) + weight

    explore((), Fraction(1))
    return found


Interval: TypeAlias = tuple[Fraction, Fraction]


def reachable(start: Start[K], happens: Callable[[K], bool]) -> Interval:
    """The least and the greatest probability of an event that an adversary can bring about."""

    def explore(script: tuple[bool, ...]) -> Interval:
        try:
            happened = Fraction(happens(start(script)))
        except Unreadable:
            return Fraction(0), Fraction(1)
        except Draw as draw:
            (a, b), (c, d) = explore((*script, True)), explore((*script, False))
            p = draw.chance
            return p * a + (1 - p) * c, p * b + (1 - p) * d
        except Choice:
            (a, b), (c, d) = explore((*script, True)), explore((*script, False))
            return min(a, c), max(b, d)
        return happened, happened

    return explore(())


def distribution(
    table: Table, chain: str, facts: Mapping[str, bool] | None = None
) -> dict[End, Fraction]:
    """The exact distribution of a table without anything unknown."""
    return explored(lambda script: Run(table, script, facts=facts or {}).end(chain))


Event: TypeAlias = Callable[[End], bool]


def extremes(table: Table, chain: str, event: Event) -> Interval:
    """The least and the greatest probability of `event` that an adversary can bring about."""
    return reachable(lambda script: Run(table, script).end(chain), event)


def resolutions(table: Table, decisive: Target) -> Iterator[Table]:
    """Every way to replace each unknown match by never or always, each unknown target by one."""
    spots = [
        (chain.name, at, place)
        for chain in table.chains.values()
        for at, rule in enumerate(chain.rules)
        for place in _unknown(rule)
    ]
    for choices in product(range(3), repeat=len(spots)):
        if any(
            c == 2 and place is not None for c, (_, _, place) in zip(choices, spots, strict=True)
        ):
            continue
        rules = {name: list(chain.rules) for name, chain in table.chains.items()}
        for choice, (name, at, place) in zip(choices, spots, strict=True):
            rules[name][at] = _resolved(rules[name][at], place, choice, decisive)
        yield replace(
            table,
            chains={n: replace(c, rules=tuple(rules[n])) for n, c in table.chains.items()},
        )


def _unknown(rule: Rule) -> list[int | None]:
    """The places of unknown matches; None stands for the target."""
    places: list[int | None] = [
        at
        for at, match in enumerate(rule.matches)
        if isinstance(match, MatchUnknown)
        or (isinstance(match, MatchNot) and isinstance(match.match, MatchUnknown))
    ]
    return [*places, None] if isinstance(rule.target, TargetUnknown) else places


def _resolved(rule: Rule, place: int | None, choice: int, decisive: Target) -> Rule:
    if place is None:
        return replace(rule, target=(None, decisive, SetMark(3))[choice])
    matches = list(rule.matches)
    matches[place] = MatchRandom(choice * ALWAYS_DRAWN)
    return replace(rule, matches=tuple(matches))
