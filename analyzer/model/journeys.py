"""Journeys as the user writes them: sequences of steps."""

from __future__ import annotations

from analyzer.model.value import value


@value
class JourneyStep:
    """A step.

    Attributes:
        kind: `lookup` or `connect`.
        what: a name to look up, or the name of a ServicePort.
        client: the client that does it; None for the default one.
    """

    kind: str
    what: str
    client: str | None = None


@value
class WrittenJourney:
    """A journey, which succeeds if all its steps do."""

    name: str
    steps: tuple[JourneyStep, ...]
