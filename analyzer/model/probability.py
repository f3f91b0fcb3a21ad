"""Exact probabilities, and bounds on those that undecided matches leave open.

Netfilter draws only whole numbers of random bits, so each of its probabilities is an integer over a
power of two, and so is every product and sum of them. `Dyadic` keeps them that way. A general
fraction would look for common divisors at each step, which for a Service of 5000 endpoints takes
most of a minute, not a second.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final

#: Random bits that xt_statistic compares with its threshold.
#: Source: Linux, net/netfilter/xt_statistic.c, statistic_mt().
XT_STATISTIC_BITS: Final = 31

#: Bits that a float is rounded from: its 53, and enough to decide rounding.
_FLOAT_BITS: Final = 64
#: From this power of 2 on, a float of so many bits is exact.
_LEAST_SCALE: Final = -1000

#: Random bits that numgen scales with reciprocal_scale().
#: Source: Linux, net/netfilter/nft_numgen.c, nft_ng_random_gen().
NUMGEN_BITS: Final = 32


@value
class Dyadic:
    """A probability: `numerator` over 2 to the power of `exponent`.

    Created by `Dyadic.of`, which normalises it.
    """

    numerator: int
    exponent: int

    @classmethod
    def of(cls, numerator: int, exponent: int = 0) -> Dyadic:
        """Return numerator / 2**exponent.

        Raises:
            ValueError: the value is not between 0 and 1.
        """
        if not 0 <= numerator <= 1 << exponent:
            msg = f"{numerator} / 2**{exponent} is not a probability"
            raise ValueError(msg)
        if not numerator:
            return cls(0, 0)
        twos = min(exponent, (numerator & -numerator).bit_length() - 1)
        return cls(numerator >> twos, exponent - twos)

    # Numerators other than 0 are odd, and so are their products, which are normalised already.
    def __mul__(self, other: Dyadic) -> Dyadic:
        numerator = self.numerator * other.numerator
        return Dyadic(numerator, self.exponent + other.exponent) if numerator else NEVER

    def __add__(self, other: Dyadic) -> Dyadic:
        if not other.numerator:
            return self
        exponent = max(self.exponent, other.exponent)
        return Dyadic.of(self.over(exponent) + other.over(exponent), exponent)

    def __invert__(self) -> Dyadic:
        """The probability that the event does not happen."""
        return Dyadic((1 << self.exponent) - self.numerator, self.exponent)

    def __le__(self, other: Dyadic) -> bool:
        exponent = max(self.exponent, other.exponent)
        return self.over(exponent) <= other.over(exponent)

    def __lt__(self, other: Dyadic) -> bool:
        return self <= other and self != other

    def __bool__(self) -> bool:
        """Whether the event can happen."""
        return self.numerator != 0

    def __repr__(self) -> str:
        # In hexadecimal, since shares may have thousands of digits.
        return f"Dyadic({self.numerator:#x}, {self.exponent})"

    def __float__(self) -> float:
        more = self.numerator.bit_length() - _FLOAT_BITS
        scale = more - self.exponent
        if more <= 0 or scale < _LEAST_SCALE:
            return self.numerator / (1 << self.exponent)  # int by int is rounded correctly
        # Of thousands of digits the first suffice, and that others follow: a numerator is odd.
        return float(self.numerator >> more | 1) * 2.0**scale

    def as_fraction(self) -> Fraction:
        """Return the same number for arithmetic beyond products and sums."""
        from fractions import Fraction  # slow to load, and rarely needed

        return Fraction(self.numerator, 1 << self.exponent)

    def over(self, exponent: int) -> int:
        """Return the numerator over 2**exponent, for an exponent no less than its own."""
        return self.numerator << (exponent - self.exponent)


#: Most digits before and after the point, since parsing takes quadratic time.
_DIGITS: Final = (20, 60)

NEVER: Final = Dyadic.of(0)
ALWAYS: Final = Dyadic.of(1)


def threshold_from_text(text: str) -> int:
    """Return the kernel's threshold for ``--probability text``, out of 2**31.

    Raises:
        ValueError: the text is no number between 0 and 1.

    Source: iptables, extensions/libxt_statistic.c, ``lround(0x80000000 * p)``, p by strtod().
    """
    if not _is_decimal(text):
        raise ValueError(f"probability {text!r} is not a decimal number")
    probability = float(text)  # the same double that iptables has: this float is not for printing
    if probability > 1:
        raise ValueError(f"probability {text} is not between 0 and 1")
    scaled = probability * (1 << XT_STATISTIC_BITS)  # exact, by a power of two
    whole = int(scaled)
    return whole + (scaled - whole >= 0.5)  # noqa: PLR2004  # lround() rounds halves up


def _is_decimal(text: str) -> bool:
    parts = text.split(".")
    return len(parts) <= len(_DIGITS) and all(
        part.isascii() and part.isdecimal() and len(part) <= most
        for part, most in zip(parts, _DIGITS, strict=False)
    )


def numgen_weights(modulus: int, *, bits: int = NUMGEN_BITS) -> tuple[Dyadic, ...]:
    """Return the probability of each value of ``numgen random mod modulus``.

    They differ by at most 2**-32, since `modulus` need not divide 2**32.
    """
    edges = [-(-(value << bits) // modulus) for value in range(modulus + 1)]
    return tuple(Dyadic.of(high - low, bits) for low, high in itertools.pairwise(edges))


def capped_sum(parts: Iterable[Dyadic]) -> Dyadic:
    """Return the sum of `parts`, at most 1: bounds may overlap."""
    # Over one denominator, since each intermediate number may have thousands of digits.
    every = [*parts]
    exponent = max([part.exponent for part in every], default=0)
    total = sum(part.over(exponent) for part in every)
    return ALWAYS if total >= 1 << exponent else Dyadic.of(total, exponent)


@value
class Bounds:
    """A closed interval that certainly contains a probability."""

    lower: Dyadic
    upper: Dyadic

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            msg = f"not an interval: {self.lower} to {self.upper}"
            raise ValueError(msg)

    @property
    def is_exact(self) -> bool:
        """Whether nothing unknown can change the probability."""
        return self.lower is self.upper or self.lower == self.upper
