"""Numbers of which only some bits are known: marks, and fields under a mask."""

from __future__ import annotations

from analyzer.model.ternary import Ternary
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Width of the widest field, an IPv6 address.
WIDTH: Final = 128
_ALL: Final = (1 << WIDTH) - 1


@value
class Bits:
    """A number from 0 to 2**128 - 1, as far as it is known.

    Attributes:
        value: the bits that are known to be set.
        unknown: the bits that may be set or not; none of them is in `value`.
    """

    value: int
    unknown: int = 0

    @property
    def known(self) -> int | None:
        """The number, if all of it is known."""
        return None if self.unknown else self.value

    def equals(self, wanted: int, mask: int = _ALL) -> Ternary:
        """Return whether the bits of `mask` equal `wanted`."""
        seen = mask & ~self.unknown
        if self.value & seen != wanted & seen or wanted & ~mask:
            return Ternary.FALSE
        return Ternary.UNKNOWN if mask & self.unknown else Ternary.TRUE

    def is_within(self, first: int, last: int) -> Ternary:
        """Return whether it is one of `first` to `last`."""
        least, most = self.value, self.value | self.unknown
        if most < first or least > last:
            return Ternary.FALSE
        return Ternary.of(True) if first <= least and most <= last else Ternary.UNKNOWN

    def __and__(self, other: Bits) -> Bits:
        may_be = (self.value | self.unknown) & (other.value | other.unknown)
        value = self.value & other.value
        return Bits(value, may_be & ~value)

    def __or__(self, other: Bits) -> Bits:
        value = self.value | other.value
        return Bits(value, (self.unknown | other.unknown) & ~value)

    def __xor__(self, other: Bits) -> Bits:
        unknown = self.unknown | other.unknown
        return Bits((self.value ^ other.value) & ~unknown, unknown)

    def shifted(self, left: int, width: int) -> Bits:
        """Return the number shifted to the left or, if `left` is negative, to the right."""
        if left < 0:
            return Bits(self.value >> -left, self.unknown >> -left)
        cut = (1 << width) - 1
        left = min(left, width)  # however far a hostile dump would shift it
        return Bits(self.value << left & cut, self.unknown << left & cut)


#: An unknown number.
ANY: Final = Bits(0, _ALL)
