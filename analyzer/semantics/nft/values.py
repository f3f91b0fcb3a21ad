"""The possible values of an nft expression: numbers, names, address types, draws.

Source: Linux, net/netfilter/nft_numgen.c, ``nft_ng_random_gen``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.bits import Bits
from analyzer.model.devices import Devices
from analyzer.model.nft import names
from analyzer.model.probability import NUMGEN_BITS, Dyadic
from analyzer.model.region import Region
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.semantics.address_types import has_type

_TYPES: Final = {number: (name,) for name, number in names.ADDRESS_TYPES.items()}


@value
class Type:
    """The type of an address.

    Attributes:
        local: whether it is an address of the node, on a device that counts.
        of: the address, or those among which it is; None if they are not known.
        assume: returns what is assumed, by name.
    """

    local: Ternary
    of: Address | Region | None
    assume: Callable[[str], str | None]

    def equals(self, number: int) -> Ternary:
        """Return whether it is the type with that number."""
        return has_type(_TYPES.get(number, ()), self.local, self.of, self.assume)


@value
class ReplyRoute:
    """The device by which a reply would leave, among the routes of the device it came in by.

    Attributes:
        exists: whether there is one.
    """

    exists: Ternary

    def equals(self, given: bool | int | str) -> Ternary:
        """Return whether it equals ``exists``, a number, or a name."""
        if given is True:
            return self.exists
        # If there is none, the kernel gives 0, or an empty name.
        return ~self.exists if given in {0, ""} else self.exists & Ternary.UNKNOWN


@value
class Draw:
    """A number from `offset` to ``offset + modulus - 1``, drawn for this packet.

    `is_random`: each number has the weight that numgen gives it; otherwise weights are not known.
    """

    modulus: int
    offset: int = 0
    is_random: bool = True

    def chance(self, first: int, last: int) -> Dyadic:
        """Return the probability of the numbers `first` to `last` in a random draw."""
        low = min(max(first - self.offset, 0), self.modulus)
        high = min(max(last + 1 - self.offset, low), self.modulus)
        return Dyadic.of(self._edge(high) - self._edge(low), NUMGEN_BITS)

    def _edge(self, number: int) -> int:
        return -(-(number << NUMGEN_BITS) // self.modulus)


#: None: an unknown name; devices: the name of one of them; a region: one of its addresses.
Value: TypeAlias = (
    "Bits | str | Devices | Type | ReplyRoute | Draw | Region | tuple[Value, ...] | None"
)


@value
class Evaluated:
    """The value of an expression.

    Attributes:
        applies: whether it has any; a rule whose expression does not ends there.
        words: numbers of the words that it may be compared with; for a concatenation, by part.
    """

    applies: Ternary
    held: Value
    words: Mapping[str, int] | tuple[Mapping[str, int], ...] = {}
