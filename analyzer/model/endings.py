"""How flows end that reach no endpoint."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from analyzer.model.diagnostics import Location
from analyzer.model.probability import NEVER, Bounds, capped_sum
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias


#: Of a flow that is refused by a mark alone, as up to 1.23 of those that FORWARD sees.
PASSES: Final = "pass"


@enum.unique
class EndKind(enum.Enum):
    """What becomes of a flow that reaches no endpoint.

    REFUSED: kube-proxy's own rules drop or reject it, since there is no endpoint for it or its
    source is not admitted. DROPPED, REJECTED: by a rule or policy of somebody else. NOT_TRANSLATED:
    conntrack does not see it, and so nat is not asked. LEFT_OVER: it comes to the chain of a
    Service and no draw takes it. UNCHANGED: no rule takes it. UNKNOWN: what becomes of it the
    dump does not tell.
    """

    REFUSED = "refused"
    DROPPED = "dropped"
    REJECTED = "rejected"
    NOT_TRANSLATED = "not-translated"
    LEFT_OVER = "left-over"
    UNCHANGED = "unchanged"
    UNKNOWN = "unknown"


@value(kw_only=True)
class Ending:
    """One way for flows to reach no endpoint.

    Attributes:
        how: what a REJECT answers; the policy that drops; how kube-proxy's own rules end it, or
            `PASSES`: they mark it to be dropped, and no rule drops it where it comes by.
        rule: that decides, as it stands in the dump; empty where a policy does, or none.
        place: of that rule; two endings of rules that say the same in the same chain are equal.
        chain: that the rule stands in, or whose policy it is.
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
        """Tell whether it comes before another: in an order that says nothing of how many."""
        return self._key() < other._key()


#: Endings, each once and in order, and of how many flows each is.
Endings: TypeAlias = "tuple[tuple[Ending, Bounds], ...]"

UNKNOWN_END: Final = Ending(kind=EndKind.UNKNOWN)


def total(endings: Iterable[tuple[Ending, Bounds]]) -> Bounds:
    """Return of how many flows all endings together are."""
    every = [bounds for _, bounds in endings]
    if not every:
        return Bounds(NEVER, NEVER)
    return Bounds(capped_sum(b.lower for b in every), capped_sum(b.upper for b in every))


def summed(endings: Iterable[tuple[Ending, Bounds]]) -> Endings:
    """Return endings, each once, of as many flows as it is of in all."""
    found: dict[Ending, list[Bounds]] = {}
    for ending, bounds in endings:
        found.setdefault(ending, []).append(bounds)
    return tuple([(ending, total((ending, b) for b in found[ending])) for ending in sorted(found)])


def any_of(given: Iterable[Endings]) -> Endings:
    """Return the endings of flows of which one of several sets holds, not known which."""
    distinct = list(dict.fromkeys(given))
    if len(distinct) == 1:
        return distinct[0]
    every = [dict(each) for each in distinct]
    never = Bounds(NEVER, NEVER)
    found: list[tuple[Ending, Bounds]] = []
    for ending in sorted({ending for each in every for ending in each}):
        bounds = [each.get(ending, never) for each in every]
        found.append((ending, Bounds(min(b.lower for b in bounds), max(b.upper for b in bounds))))
    return tuple(found)


def part(endings: Endings, of: Bounds) -> Endings:
    """Return the endings of flows that are themselves a part `of` others."""
    return tuple([(e, Bounds(b.lower * of.lower, b.upper * of.upper)) for e, b in endings])
