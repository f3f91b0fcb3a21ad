"""Prometheus' text format: metrics, each with all of its samples together.

Source: Prometheus, docs/instrumenting/exposition_formats.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from analyzer.model.probability import Dyadic
from analyzer.model.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    MetricLabels: TypeAlias = dict[str, str]
    Sample: TypeAlias = tuple[MetricLabels, float]


def metric(
    name: str,
    says: str,
    samples: Iterable[Sample],
    worse: Callable[[float, float], float] = max,
    kind: str = "gauge",
) -> Iterator[str]:
    """Yield a metric in pieces; nothing if it has no samples.

    Two samples of one series would make a collector drop the whole file: the `worse` stays.
    """
    told: dict[str, float] = {}
    for labels, number in samples:
        inside = ",".join([f'{key}="{escaped(text)}"' for key, text in labels.items()])
        key = f"{name}{{{inside}}}" if inside else name
        told[key] = worse(told[key], number) if key in told else number
    if told:
        yield f"# HELP {name} {says}\n# TYPE {name} {kind}\n"
        yield "".join([f"{key} {number!r}\n" for key, number in told.items()])


def escaped(text: str) -> str:
    """Return the value of a label, with newlines and control characters escaped."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def at_most(value: Dyadic) -> float:
    """Return the nearest float that is not less, so that an upper bound stays one."""
    from math import inf, nextafter

    found = float(value)
    return found if _compared(found, value) >= 0 else nextafter(found, inf)


def at_least(value: Dyadic) -> float:
    """Return the nearest float that is not more."""
    from math import nextafter

    found = float(value)
    return found if _compared(found, value) <= 0 else nextafter(found, 0.0)


def _compared(found: float, value: Dyadic) -> int:
    """Return how a float stands to the number that it is rounded from: less, the same or more."""
    numerator, denominator = found.as_integer_ratio()
    return (numerator << value.exponent) - value.numerator * denominator
