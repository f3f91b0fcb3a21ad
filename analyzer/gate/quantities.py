"""Resource quantities of the Kubernetes API.

Source: Kubernetes, staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go, ``ParseQuantity``,
``MilliValue`` and ``Value``, which round up.
"""

from __future__ import annotations

import re
from fractions import Fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_QUANTITY: Final = re.compile(
    r"([-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))(?:([eE][-+]?\d{1,2})|([KMGTPE]i|[numkMGTPE])?)"
)
_SUFFIXES: Final = {
    "": Fraction(1),
    **{s: Fraction(1000) ** n for n, s in enumerate("num", -3)},
    **{s: Fraction(1000) ** n for n, s in enumerate("kMGTPE", 1)},
    **{f"{s}i": Fraction(1024) ** n for n, s in enumerate("KMGTPE", 1)},
}
_CPU: Final = "cpu"


def quantity(resource: str, given: object) -> int:
    """Return a resource quantity: cpu in thousandths, others in whole units.

    Raises:
        ValueError: it is no quantity.
    """
    is_told = isinstance(given, (int, float, str)) and not isinstance(given, bool)
    found = _QUANTITY.fullmatch(str(given).strip()) if is_told else None
    if found is None:
        raise ValueError(f"{given!r} is not a quantity (for example 500m or 1Gi)")
    number = Fraction(found[1].rstrip(".")) * (
        Fraction(10) ** int(found[2][1:]) if found[2] else _SUFFIXES[found[3] or ""]
    )
    if resource == _CPU:
        number *= 1000
    if number < 0:
        raise ValueError(f"{given!r} is negative")
    return -(-number.numerator // number.denominator)
