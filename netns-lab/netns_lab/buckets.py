"""The flows of a run, grouped by the time they were sent."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from analyzer.model.lab_phases import Arrival, Bucket
from netns_lab.columns import RawSocketAddress, sockaddr_of

if TYPE_CHECKING:
    from netns_lab.columns import FlowResult
    from netns_lab.followed import Followed

#: Most buckets of time that a run is shown in.
_BUCKETS: Final = 15


def buckets(runs: Sequence[Followed], seconds: float) -> tuple[Bucket, ...]:
    """Return the flows of all routes in buckets of the time they were sent."""
    width = _width(seconds)
    rows: dict[int, Counter[FlowResult]] = {}
    names: dict[RawSocketAddress, str] = {}
    for run in runs:
        last = [number for _, number in run.marks]
        times = [at for at, _ in run.marks]
        for number, fate in enumerate(run.fates()):
            at = times[bisect_right(last, number)]
            rows.setdefault(int(at / width), Counter())[fate] += 1
            if fate[0] is not None and fate[0] not in names:
                names[fate[0]] = str(run.endpoint_of(fate[0]))
    found = []
    for at, counted in sorted(rows.items()):
        sockaddrs = sorted(
            {sockaddr for sockaddr, _ in counted if sockaddr is not None}, key=sockaddr_of
        )
        found.append(
            Bucket(
                begins=at * width,
                ends=(at + 1) * width,
                flows=counted.total(),
                answered=sum(n for (_, answered), n in counted.items() if answered),
                endpoints=tuple(
                    Arrival(
                        name=names[sockaddr],
                        landed=sum(n for (d, _), n in counted.items() if d == sockaddr),
                        answered=counted[sockaddr, True],
                    )
                    for sockaddr in sockaddrs
                ),
            )
        )
    return tuple(found)


def _width(seconds: float) -> float:
    """Return the length of a bucket in seconds: 1, 2 or 5 times a power of ten, at least 0.1."""
    width = 0.1
    for factor in (2, 2.5, 2) * 5:
        if seconds / width <= _BUCKETS:
            break
        width *= factor
    return width
