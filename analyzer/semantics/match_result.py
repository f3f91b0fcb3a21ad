"""The result of evaluating a match: what is known of it, and its random part."""

from __future__ import annotations

from analyzer.model.probability import ALWAYS, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@value
class MatchResult:
    """The result of matches: `known` without the random part, whose probability is `chance`."""

    known: Ternary
    chance: Dyadic = ALWAYS

    def __and__(self, other: MatchResult) -> MatchResult:
        return MatchResult(self.known & other.known, self.chance * other.chance)


#: The result of what the packet certainly matches; for a rule of iptables always this object.
CERTAIN: Final = MatchResult(Ternary.TRUE)
