"""When rules and objects were taken; comes first in a report if the times differ."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.value import value
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.phrases import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Final

#: Seconds by which times may differ: kubelets report at least every 5 min.
SAME_TIME: Final = 900


@value(kw_only=True)
class Freshness:
    """When the data behind an answer was taken; None where not known.

    Attributes:
        rules: when the dump was taken; by its node's clock, which is assumed to be in UTC.
        synced: when kube-proxy last wrote rules, by its metrics in a bundle.
        objects: when the objects were taken, or shortly before.
    """

    rules: datetime | None = None
    synced: datetime | None = None
    objects: datetime | None = None


#: If nothing is known.
UNKNOWN: Final = Freshness()


def freshness_line(found: Freshness) -> Iterator[Line]:
    """Yield a line that says so if the times are far apart."""
    told = (
        ("rules of", found.rules),
        (
            "written by kube-proxy at" if found.rules else "rules written by kube-proxy at",
            found.synced,
        ),
        ("objects of", found.objects),
    )
    known = [(words, time) for words, time in told if time is not None]
    times = [time for _, time in known]
    if not times or (max(times) - min(times)).total_seconds() <= SAME_TIME:
        return
    days = {time.date() for time in times}
    form = "%H:%M" if len(days) == 1 else "%Y-%m-%d %H:%M"
    said = ", ".join(f"{words} {time:{form}}" for words, time in known)
    apart = (max(times) - min(times)).total_seconds()
    yield Line((Span(f"{said[:1].upper()}{said[1:]}: {long(apart)} apart.", Style.WARNING),))


def freshness_json(found: Freshness) -> dict[str, str | None]:
    """Return the times for JSON, as RFC 3339 in UTC."""
    times = {"rules": found.rules, "last_sync": found.synced, "objects": found.objects}
    return {
        name: None if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}" for name, time in times.items()
    }


def long(seconds: float) -> str:
    """Return a duration in its largest unit, rounded down."""
    for length, unit in ((86_400, "day"), (3_600, "hour")):
        if seconds >= length:
            return count(int(seconds // length), unit)
    return count(int(seconds // 60), "minute")
