"""When dumps and objects were taken, as far as they say so themselves.

Theory of operation: a kubelet reports its node's status at least every 5 minutes, and renews the
node's Lease more often. So objects were taken shortly after the latest of these times, as long as
any kubelet was able to report, and never before it. All other times in objects may be years old. A
dump of iptables-save says when it was taken by the node's clock, without the time zone; nft does
not say.

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
    """Return when a dump was taken, read as UTC; None if that is not in ctime(3)'s form."""
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
    """Return an RFC 3339 time; None if it is none, or has no time zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found.astimezone(UTC)


def objects_taken(objects: Iterable[Object]) -> datetime | None:
    """Return the latest heartbeat of any node; None if the objects have none."""
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
