"""The values that the operand of an nft statement may have: its own, or those of a map."""

from __future__ import annotations

from analyzer.model.nft.expressions import Expression, MapLookup
from analyzer.model.packet import Packet
from analyzer.model.probability import Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.semantics.nft.matching import Lookups


@value
class Operand:
    """One value that an operand may have; None if there is no operand.

    `chance`: its probability, for a random draw.
    """

    given: Expression | None
    chance: Dyadic | None = None


@value
class Operands:
    """The values that an operand may have.

    Attributes:
        applies: whether it has any; a rule whose operand has none ends there.
        is_sure: whether it certainly has one of them, if it has any.
    """

    values: tuple[Operand, ...]
    applies: Ternary = Ternary.TRUE
    is_sure: bool = True

    @property
    def is_drawn(self) -> bool:
        """Whether only a draw, if anything, decides between the values."""
        if len(self.values) == 1 and self.values[0].chance is None:
            return self.is_sure
        return all(each.chance is not None for each in self.values)


def operands(lookups: Lookups, given: Expression | None, packet: Packet) -> Operands:
    """Return the values of an operand; those of a map are looked up for the packet."""
    if not isinstance(given, MapLookup):
        return Operands((Operand(given),))
    found = lookups.find(given, packet)
    values = tuple(Operand(hit.element.value, hit.chance) for hit in found.hits)
    return Operands(values, found.applies, found.is_sure)
