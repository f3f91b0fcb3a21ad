"""How flows end that reach no endpoint."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from analyzer.model.diagnostics import Location
from analyzer.model.probability import NEVER, Bounds, capped_sum
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias


#: `Ending.how` of flows refused by a mark alone: by kube-proxy up to 1.23, if they pass FORWARD.
PASSES: Final = "pass"


@enum.unique
class EndKind(enum.Enum):
    """What happens to a flow that reaches no endpoint.

    REFUSED: kube-proxy's own rules drop or reject it, because it has no endpoint or its source is
    not allowed. DROPPED, REJECTED: by a rule or policy of another program. NOT_TRANSLATED:
    conntrack does not track it, so the nat table is not evaluated. LEFT_OVER: it enters the chain
    of a Service and no draw takes it. UNCHANGED: no rule takes it. UNKNOWN: the dump does not show
    what happens to it. UNANSWERED: it reaches an endpoint, and a rule or policy ends the answer.
    """

    REFUSED = "refused"
    DROPPED = "dropped"
    REJECTED = "rejected"
    NOT_TRANSLATED = "not-translated"
    LEFT_OVER = "left-over"
    UNCHANGED = "unchanged"
    UNKNOWN = "unknown"
    UNANSWERED = "unanswered"  # last, as the columns of tsv: earlier ones keep their places


@value(kw_only=True)
class Ending:
    """One way for flows to reach no endpoint.

    Attributes:
        how: what a REJECT answers; the policy that drops; NOTRACK, of answers; how kube-proxy's own
            rules end it, or `PASSES`: they mark it to be dropped, but no rule on its path drops it.
        rule: the one that decides, as in the dump; of a long row with one outcome the first, and
            how many follow; empty if it is a policy, or nothing.
        place: of that rule, or of the policy, if known; endings by rules with the same text in the
            same chain are equal.
        chain: the chain of the rule or policy.
        table: of the chain.
    """

    kind: EndKind
    how: str = ""
    rule: str = ""
    place: Location | None = None
    chain: str = ""
    table: str = ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ending):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, ...]:
        return self.kind.value, self.table, self.chain, self.rule, self.how

    def __lt__(self, other: Ending) -> bool:
        """Return whether it sorts before another; the order is independent of the shares."""
        return self._key() < other._key()


#: Endings, each once and in order, with their shares of the flows.
Endings: TypeAlias = "tuple[tuple[Ending, Bounds], ...]"

UNKNOWN_END: Final = Ending(kind=EndKind.UNKNOWN)


def total(endings: Iterable[tuple[Ending, Bounds]]) -> Bounds:
    """Return the share of flows that all endings have together."""
    every = [bounds for _, bounds in endings]
    if not every:
        return Bounds(NEVER, NEVER)
    return Bounds(capped_sum(b.lower for b in every), capped_sum(b.upper for b in every))


def summed(endings: Iterable[tuple[Ending, Bounds]]) -> Endings:
    """Return the endings, each once, with the sum of its shares."""
    found: dict[Ending, list[Bounds]] = {}
    for ending, bounds in endings:
        found.setdefault(ending, []).append(bounds)
    return tuple([(ending, total((ending, b) for b in found[ending])) for ending in sorted(found)])


def any_of(given: Iterable[Endings]) -> Endings:
    """Return the endings if one of several sets applies, but it is not known which."""
    distinct = list(dict.fromkeys(given))
    if len(distinct) == 1:
        return distinct[0]
    found: dict[Ending, list[Bounds]] = {}
    for each in distinct:
        for ending, bounds in dict(each).items():
            found.setdefault(ending, []).append(bounds)
    return tuple([(ending, _one_of(found[ending], len(distinct))) for ending in sorted(found)])


def _one_of(bounds: Sequence[Bounds], sets: int) -> Bounds:
    """Return the bounds of an ending that is in some of the sets, of which one applies."""
    lower = min(b.lower for b in bounds) if len(bounds) == sets else NEVER
    return Bounds(lower, max(b.upper for b in bounds))


def part(endings: Endings, of: Bounds) -> Endings:
    """Return the endings of flows that are themselves a part `of` others."""
    return tuple([(e, Bounds(b.lower * of.lower, b.upper * of.upper)) for e, b in endings])
