"""Journeys as the user writes them: steps that follow one another."""

from __future__ import annotations

from analyzer.model.value import value


@value
class JourneyStep:
    """A step.

    Attributes:
        kind: `lookup` or `connect`.
        what: a name to look up, or the name of a ServicePort.
        client: who does it; None: the usual one.
    """

    kind: str
    what: str
    client: str | None = None


@value
class WrittenJourney:
    """A journey, of which all steps have to succeed."""

    name: str
    steps: tuple[JourneyStep, ...]
