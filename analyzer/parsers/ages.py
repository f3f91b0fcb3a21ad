"""When dumps and objects were taken, as far as they say so themselves.

Theory of operation: a kubelet tells the API at least every 5 minutes that its node lives, and
renews its node's Lease more often. So objects were taken, as long as any kubelet could do so,
shortly after the youngest of these times, and never before. All other times in objects may be of
years ago. A dump of iptables-save says when it was taken by the node's clock, without its time
zone; nft says nothing.

Source: Kubernetes, pkg/kubelet/apis/config/types.go, ``NodeStatusReportFrequency``: 5 min, and
core/v1 NodeCondition ``lastHeartbeatTime``; coordination.k8s.io/v1 Lease ``renewTime``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from analyzer.parsers.api_objects import Object, at, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Names of ctime(3) are those of the C locale, and its times of one form: `strptime`, which reads
#: others too, takes a twentieth of the time of a small dump to load.
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


def dump_taken(header: str) -> datetime | None:
    """Return when a dump was taken, read as UTC; None: that is no time as ctime(3) writes it."""
    match header.split():
        case [weekday, month, day, clock, year] if weekday in _DAYS and month in _MONTHS:
            number = _MONTHS.index(month) + 1
        case _:
            return None
    try:
        return datetime.fromisoformat(f"{year}-{number:02}-{day:0>2}T{clock}+00:00")
    except ValueError:
        return None


def time_from_text(text: str) -> datetime | None:
    """Return a time as RFC 3339 writes it; None: it is none, or of no zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found.astimezone(UTC)


def objects_taken(objects: Iterable[Object]) -> datetime | None:
    """Return the youngest sign of life of a node; None: there is none in the objects."""
    return max((found for item in objects for found in _signs(item)), default=None)


def _signs(item: Object) -> Iterator[datetime]:
    kind = item.get("kind")
    told = []
    if kind == "Node":
        told = [at(each, "lastHeartbeatTime") for each in elements(item, "status", "conditions")]
    elif kind == "Lease":
        told = [at(item, "spec", "renewTime")]
    for each in told:
        if isinstance(each, str):
            try:
                found = datetime.fromisoformat(each)
            except ValueError:
                continue
            if found.tzinfo is not None:
                yield found
