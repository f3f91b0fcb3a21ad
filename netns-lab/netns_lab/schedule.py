"""The events of a run in order of time: ``--kill WHAT[:KIND]@TIME`` and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Final, Literal

from analyzer.errors import UsageError
from analyzer.inputs.recognised import Input
from analyzer.model.value import replace
from analyzer.parsers.durations import duration_from_text
from netns_lab.deaths import (
    OPTIONS,
    SILENT,
    Death,
    DeathKind,
    death_of,
    kind_from_text,
    parted,
    said_of,
)

Verb = Literal["kill", "revive", "replace-rules", "resync"]
#: Most seconds that a run may take.
LONGEST: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An event that is to happen.

    Attributes:
        at: seconds after the start of the run.
        death: what dies or revives.
        file: the dump that replaces the loaded rules.
    """

    at: float
    verb: Verb
    death: Death | None = None
    file: str | None = None

    @property
    def says(self) -> str:
        """The event, in words."""
        if self.death is None:
            return self.verb if self.file is None else f"{self.verb} {self.file}"
        kind = f" ({self.death.kind})" if self.verb == "kill" else ""
        return f"{self.verb} {self.death.what}{kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A run: what is dead when it begins, and the events until it ends."""

    seconds: float
    first: tuple[Death, ...]
    events: tuple[Planned, ...]

    @property
    def slowest(self) -> float:
        """The longest delay of a slow endpoint, seconds."""
        deaths = [*self.first, *(each.death for each in self.events if each.death is not None)]
        return max((each.kind.milliseconds for each in deaths), default=0) / 1000


def is_asked(options: SimpleNamespace) -> bool:
    """Return whether the run follows a schedule (``--for``).

    Raises:
        UsageError: events are given without ``--for``.
    """
    happening = [name for name in _OPTIONS if getattr(options, name)]
    if happening and options.seconds is None:
        raise UsageError(f"{_OPTIONS[happening[0]]}: add --for, for example --for 30s")
    return options.seconds is not None


_OPTIONS: Final[Mapping[str, str]] = {
    "kill": "--kill",
    "revive": "--revive",
    "replace": "--replace-rules",
    "resync": "--resync",
}


def words_at(option: str, word: str, seconds: float) -> tuple[str, float]:
    """Return what stands before ``@TIME``, and the time in seconds.

    Raises:
        UsageError: there is no time, or none within the run.
    """
    what, sign, text = word.rpartition("@")
    at = duration_from_text(text)
    if not sign or at is None or (not what) != (option == "--resync"):
        example = "@10s" if option == "--resync" else f"{what or 'WHAT'}@10s"
        raise UsageError(f"{option} {word}: expected when, for example {example}")
    if not 0 < at < seconds:
        raise UsageError(f"{option} {word}: the run lasts {seconds:g}s (--for)")
    return what, float(at)


def files_of(options: SimpleNamespace) -> list[tuple[str, float]]:
    """Return the dumps that replace others, and when, seconds."""
    found = [words_at("--replace-rules", each, options.seconds) for each in options.replace]
    return sorted(found, key=lambda each: each[1])


def schedule(options: SimpleNamespace, given: Input, further: Sequence[Input]) -> Schedule:
    """Return the schedule; names may be from the dump and from those that replace it.

    Raises:
        UsageError: a name that does not occur, something dead that dies, or something alive that
            revives.
    """
    services = (*given.view.services, *(s for each in further for s in each.view.services))
    every = replace(given, view=replace(given.view, services=services))
    seconds = options.seconds
    first: list[Death] = []
    events: list[Planned] = []
    for name, option in OPTIONS.items():
        for word in getattr(options, name):
            with said_of(option, word):
                death = _death(word, options, every, is_node=name == "dead_node")
            if death.kind.name == "flap":
                events += _flapping(death, seconds)
            else:
                first.append(death)
    for word in options.kill:
        what, at = words_at("--kill", word, seconds)
        with said_of("--kill", word):
            death = _death(what, options, every, is_node=False)
        if death.kind.name == "flap":
            raise UsageError(f"--kill {word}: flapping goes on all the time; use --dead")
        events.append(Planned(at=at, verb="kill", death=death))
    for word in options.revive:
        what, at = words_at("--revive", word, seconds)
        with said_of("--revive", word):
            death = _death(what, options, every, is_node=False)
        events.append(Planned(at=at, verb="revive", death=death))
    events += [Planned(at=at, verb="replace-rules", file=f) for f, at in files_of(options)]
    for word in options.resync:
        _, at = words_at("--resync", word, seconds)
        events.append(Planned(at=at, verb="resync"))
    events.sort(key=lambda each: each.at)
    return Schedule(seconds=seconds, first=tuple(first), events=tuple(_named(first, events)))


def _death(word: str, options: SimpleNamespace, given: Input, *, is_node: bool) -> Death:
    what, kind = parted(word, given.cluster.node_names)
    is_node = is_node or what in given.cluster.node_names
    death = death_of(what, kind or SILENT, options, given, is_node=is_node)
    if kind is None and not death.whole:  # its pod lives
        process = kind_from_text("process")
        assert process is not None
        return death_of(what, process, options, given, is_node=is_node)
    return death


def _flapping(death: Death, seconds: float) -> Iterator[Planned]:
    down = Death(
        what=death.what,
        kind=DeathKind(name="silent"),
        node=death.node,
        endpoints=death.endpoints,
        whole=death.whole,
    )
    at = death.kind.up
    while at < seconds:
        yield Planned(at=at, verb="kill", death=down)
        at += death.kind.down
        if at < seconds:
            yield Planned(at=at, verb="revive", death=down)
        at += death.kind.up


def _named(first: Sequence[Death], events: Sequence[Planned]) -> Iterator[Planned]:
    """Yield the events; what revives is the same `Death` that was killed.

    Raises:
        UsageError: something dead dies, or something alive revives.
    """
    dying: list[Death] = []
    for each in (*(Planned(at=0, verb="kill", death=death) for death in first), *events):
        if each.death is None:
            yield each
            continue
        same = next((d for d in dying if _same(d, each.death)), None)
        if each.verb == "kill":
            both = next((d for d in dying if _overlap(d, each.death)), None)
            if both is not None:
                raise UsageError(
                    f"--kill {each.death.what}@{each.at:g}s: {both.what} is {both.kind} by then"
                )
            dying.append(each.death)
            if each.at:
                yield each
        elif same is None:
            raise UsageError(
                f"--revive {each.death.what}@{each.at:g}s: nothing of that name is dead by then"
            )
        else:
            dying.remove(same)
            yield Planned(at=each.at, verb="revive", death=same)


def _same(one: Death, other: Death) -> bool:
    return (one.node, one.endpoints, one.whole) == (other.node, other.endpoints, other.whole)


def _overlap(one: Death, other: Death) -> bool:
    same_node = one.node is not None and one.node == other.node
    return same_node or not one.endpoints.isdisjoint(other.endpoints)
