"""Whether a share of new flows exceeds the allowed share.

Rules draw endpoints by whole multiples of 2**-31 (`statistic --probability`) or by the text of ten
digits that kube-proxy writes: of four endpoints two are drawn a little more or less often than half
of the time, and nobody who allows 50% means that.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final

#: A draw is off by less than this part of all flows, for each endpoint that it chooses among.
_DRAWS: Final = 1 << 31


def allowed(most: Fraction, endpoints: int) -> Fraction:
    """Return what may be lost where `most` is allowed, by how far draws among endpoints are off.

    Where nothing is allowed that is nothing.
    """
    from fractions import Fraction

    return most + Fraction(endpoints, _DRAWS) if most else most
