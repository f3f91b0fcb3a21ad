"""What the lab measured while hosts died, or rules were replaced, under traffic."""

from __future__ import annotations

from analyzer.model.value import value


@value(kw_only=True)
class RunEvent:
    """Something that was done during a run.

    Attributes:
        at: the second it was planned for.
        begun, ended: when it was done; new flows in between may behave as before or as after.
        says: what, as it was requested: ``kill node worker2``.
    """

    at: float
    begun: float
    ended: float
    says: str


@value(kw_only=True)
class Arrival:
    """Flows in a period that arrived at one endpoint, and those that it answered."""

    name: str
    landed: int
    answered: int


@value(kw_only=True)
class Bucket:
    """The new flows that were sent in a period."""

    begins: float
    ends: float
    flows: int
    answered: int
    endpoints: tuple[Arrival, ...]


@value
class Hang:
    """A period in which a connection received nothing; `ends` is None if it lasted to the end."""

    begins: float
    ends: float | None


@value(kw_only=True)
class EndpointOutage:
    """When the endpoint of a connection was dead.

    Attributes:
        begun, by: when it was killed, at the earliest and at the latest.
        ends: when it was revived, the same; None if it stayed dead.
        is_reset: its process was gone, so its kernel answers with a reset.
    """

    begun: float
    by: float
    ends: tuple[float, float] | None
    is_reset: bool = False


@value(kw_only=True)
class OpenConnection:
    """A TCP connection that was opened before any event, and sends a byte at a time.

    Attributes:
        route: the number of its route.
        endpoint: the one it is connected to; None if it was never opened.
        answered: bytes that came back.
        hangs: periods without an answer, of half a second or more.
        ended: when it was reset or closed; None if it was open to the end.
        outages: of its endpoint; None if nothing is predicted.
        expected: how it should behave, in words; None if nothing is predicted.
        agrees: whether it did; None if nothing is predicted.
    """

    number: int
    endpoint: str | None
    answered: int
    hangs: tuple[Hang, ...] = ()
    ended: float | None = None
    outages: tuple[EndpointOutage, ...] | None = None
    expected: str | None = None
    agrees: bool | None = None
    route: int = 0

    @property
    def fate(self) -> str:
        """``survived``, ``hung``, ``reset`` or ``not-opened``."""
        if self.endpoint is None:
            return "not-opened"
        if self.ended is not None:
            return "reset"
        return "hung" if self.hangs else "survived"
