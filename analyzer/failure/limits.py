"""Whether a share of new flows exceeds the allowed share.

Rules draw endpoints by whole multiples of 2**-31 (`statistic --probability`), or by the ten digits
that kube-proxy writes: of four endpoints, two are drawn slightly more or less often than half of
the time, which a limit of 50% should allow.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final

#: A draw is off by less than this part of all flows, for each endpoint that it chooses from.
_DRAWS: Final = 1 << 31


def allowed(most: Fraction, endpoints: int) -> Fraction:
    """Return the allowed loss `most`, plus the inaccuracy of draws among so many endpoints.

    If no loss is allowed, that is 0.
    """
    from fractions import Fraction

    return most + Fraction(endpoints, _DRAWS) if most else most
