"""What ``watch`` knows of a node's rules: the latest check, and those so far."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from analyzer.failure.loss import LossState
from analyzer.model.probability import NEVER, Bounds
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Why a look came to nothing: reading the rules, understanding them, finding Services in them,
#: the objects, who is dead, and files that are older than they may be.
FAILURES: Final = ("read", "rules", "no-services", "objects", "dead", "stale")


@value(kw_only=True)
class Seen:
    """One ServicePort.

    Attributes:
        family: ``ip`` or ``ip6``; empty if not known.
        endpoints, dead: how many it has, and how many of these are dead.
        loss: of new flows, on the worst route.
        beyond: whether that may be more than is allowed; surely: whether it certainly is.
        drift: how many differences there are from the objects.
        since: when it was first seen as it is, in seconds since 1970; None without an earlier look.
    """

    name: str
    namespace: str
    protocol: str
    family: str
    state: LossState
    endpoints: int
    dead: int
    loss: Bounds
    beyond: bool = False
    surely: bool = False
    drift: int = 0
    since: float | None = None

    @property
    def is_affected(self) -> bool:
        """Whether it loses anything, or may."""
        return bool(self.loss.upper or self.dead or self.drift or self.state not in _FINE)


_FINE: Final = frozenset({LossState.UNTOUCHED, LossState.NO_ENDPOINTS})
_NUMBERS: Final = count(1)


@value(kw_only=True)
class CheckResult:
    """The result of a check.

    Attributes:
        rules: how many there are.
        services: by name.
        not_judged: names of ServicePorts that are not judged, or only in part.
        is_whole: whether nothing is known to be missing.
        drift: how many differences from the objects there are, by kind; None if not known.
        drifted: the same by ServicePort: name and protocol; with those that the rules lack.
        why_no_drift: why `drift` is not known.
        drift_unknown: names of ServicePorts whose drift is not known.
        dead: how many endpoints are dead.
        gone: what was declared dead but is in no rule.
        number: distinguishes results.
    """

    rules: int
    services: tuple[Seen, ...]
    not_judged: tuple[str, ...]
    is_whole: bool
    drift: Mapping[str, int] | None
    drifted: Mapping[tuple[str, str], int]
    why_no_drift: str
    drift_unknown: tuple[str, ...]
    dead: int
    gone: tuple[str, ...]
    number: int = 0

    @property
    def worst(self) -> Seen | None:
        """The ServicePort that may lose most; None if none loses any."""
        some = [each for each in self.services if each.loss.upper]
        return max(some, key=lambda each: (each.loss.upper, each.loss.lower), default=None)

    @property
    def worst_loss(self) -> Bounds:
        """The greatest lower and the greatest upper bound of all."""
        lower = max((each.loss.lower for each in self.services), default=NEVER)
        upper = max((each.loss.upper for each in self.services), default=NEVER)
        return Bounds(lower, upper)

    @property
    def beyond(self) -> tuple[Seen, ...]:
        """Those that may exceed the threshold; those that certainly do first, then the worst."""
        found = [each for each in self.services if each.beyond]
        found.sort(key=lambda each: (not each.surely, -float(each.loss.upper), each.name))
        return tuple(found)

    @property
    def differences(self) -> int:
        """How many differences from the objects there are, as far as known."""
        return sum((self.drift or {}).values())


def numbered() -> int:
    """Return a number that no result has had."""
    return next(_NUMBERS)


@value(kw_only=True)
class Ages:
    """Times of events, in seconds since 1970; None if not known, or if there are none.

    Attributes:
        success: the last look that could read and judge everything.
        changed: since when the rules have been as they are, as far as looks show.
        rules: when each file of rules was written, by its name.
        objects, dead: when these files were.
    """

    success: float | None = None
    changed: float | None = None
    rules: Mapping[str, float] = {}
    objects: float | None = None
    dead: float | None = None


@value(kw_only=True)
class Watched:
    """All that is known after a check.

    Attributes:
        at: when that was, in seconds since 1970.
        failure: why it came to nothing, one of FAILURES; empty where it did not.
        why: the same in words.
        result: of the rules as they are now; None where the look failed.
        looks: so far, by what they came to: judged, unchanged, failed.
        took: seconds of this look.
        every: seconds from one to the next; None if there is one alone.
        is_ok: whether all was judged, and nothing is beyond what is allowed.
    """

    at: float
    failure: str
    why: str
    result: CheckResult | None
    ages: Ages
    looks: Mapping[str, int]
    took: float
    every: float | None
    is_ok: bool
    cpu: float = 0.0
    resident: int = 0
    version: str = ""
