"""The probability 1/n, as kube-proxy writes and iptables-save prints it.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``probability``: ten digits, five up to 1.16.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from analyzer.model.probability import XT_STATISTIC_BITS, threshold_from_text

_DIGITS: Final = (10, 5)


@cache
def is_one_of(number: int, printed: str) -> bool:
    """Return whether `printed` is 1/number, as kube-proxy writes and iptables-save prints it.

    The kernel keeps a threshold out of 2**31, which iptables-save prints with a number of digits.
    """
    digits = len(printed.partition(".")[2])
    for written in _DIGITS:
        text = f"{1 / number:.{written}f}"
        share = threshold_from_text(text) / (1 << XT_STATISTIC_BITS)
        if printed in {text, f"{share:.{digits}f}"}:
            return True
    return False


@cache
def number_of(printed: str) -> int | None:
    """Return the n for which a probability is 1/n, or None."""
    try:
        threshold = threshold_from_text(printed)
    except ValueError:
        return None
    if not threshold:
        return None
    number = round((1 << XT_STATISTIC_BITS) / threshold)
    return number if number > 1 and is_one_of(number, printed) else None
