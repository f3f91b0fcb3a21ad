"""Whether a share of new flows exceeds the allowed share.

Rules draw endpoints by whole multiples of 2**-31 (`statistic --probability`), or by the ten digits
that kube-proxy writes: of four endpoints, two are drawn slightly more or less often than half of
the time, which a limit of 50% should allow.
"""

from __future__ import annotations

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final

    from analyzer.failure.loss import ServiceLoss

#: A draw is off by less than this part of all flows, for each endpoint that it chooses from.
_DRAWS: Final = 1 << 31


def allowed(most: Fraction, endpoints: int) -> Fraction:
    """Return the allowed loss `most`, plus the inaccuracy of draws among so many endpoints.

    If no loss is allowed, that is 0.
    """
    from fractions import Fraction

    return most + Fraction(endpoints, _DRAWS) if most else most


@value(kw_only=True)
class Threshold:
    """``--max-loss`` of ``loss``, and whether it is kept.

    Attributes:
        most: the share of new flows that a ServicePort may lose.
        beyond: what ServicePorts lose that may lose more, each once.
        is_whole: whether everything is judged.
    """

    most: Fraction
    beyond: tuple[ServiceLoss, ...]
    is_whole: bool


def is_broken(threshold: Threshold | None) -> bool:
    """Return whether a threshold is broken, or not known to be kept; none never is."""
    return threshold is not None and (bool(threshold.beyond) or not threshold.is_whole)
