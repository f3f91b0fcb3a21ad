"""What the lab measured while hosts died, or rules were replaced, under traffic."""

from __future__ import annotations

from analyzer.model.value import value


@value(kw_only=True)
class Event:
    """Something that was done during a run.

    Attributes:
        at: the second that was asked for.
        begun, ended: when it was done; new flows in between may fare as before or as after.
        says: what, as it was asked for: ``kill node worker2``.
    """

    at: float
    begun: float
    ended: float
    says: str


@value(kw_only=True)
class Arrival:
    """Flows of some time that came to one endpoint, and those of them that it answered."""

    name: str
    landed: int
    answered: int


@value(kw_only=True)
class Bucket:
    """The new flows that were sent from one second to another."""

    begins: float
    ends: float
    flows: int
    answered: int
    endpoints: tuple[Arrival, ...]


@value
class Hang:
    """When nothing came by a connection; `ends` None: not until the run ended."""

    begins: float
    ends: float | None


@value(kw_only=True)
class Connection:
    """A connection of TCP that was open before anything happened, and sends a byte at a time.

    Attributes:
        route: the number of the route that it is of.
        endpoint: where it goes; None: it was never opened.
        answered: bytes that came back.
        hangs: times without an answer, of half a second or more.
        ended: when it was reset or closed; None: it was open to the last.
        expected: how it should fare, in words; None: nothing is predicted.
        agrees: whether it did; None: nothing is predicted.
    """

    number: int
    endpoint: str | None
    answered: int
    hangs: tuple[Hang, ...] = ()
    ended: float | None = None
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
