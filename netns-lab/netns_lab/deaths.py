"""What is dead in the lab, and how: ``--dead WHAT:KIND``, as words and as values.

A kind says what happens to a packet that reaches the dead host or endpoint; the rules of the node
are not aware of it. What is slow is alive: it answers late.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Final

from analyzer.clients.responses import FlowResponse
from analyzer.errors import UsageError
from analyzer.failure.models import Dead
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.value import replace
from analyzer.parsers.durations import duration_from_text
from analyzer.questions.evaluating import dead_of
from netns_lab.errors import LabError

#: What a client sees of each kind; None if that changes over time.
FATES: Final[Mapping[str, FlowResponse | None]] = {
    "silent": FlowResponse.SILENT,
    "arp": FlowResponse.UNREACHABLE,
    "process": FlowResponse.REFUSED,
    "unreachable": FlowResponse.UNREACHABLE,
    "drop": FlowResponse.SILENT,
    "reject": FlowResponse.REFUSED,
    "slow": FlowResponse.ANSWERED,
    "flap": None,
}
#: Value of the kinds that have one.
_VALUES: Final = {"slow": "MS", "flap": "UP/DOWN"}
GRAMMAR: Final = "silent, arp, process, unreachable, drop, reject, slow=MS or flap=UP/DOWN"
#: The options that say what is dead, by their names in the namespace of the command line.
OPTIONS: Final[Mapping[str, str]] = {"dead": "--dead", "dead_node": "--dead-node"}
#: Milliseconds; the lab considers slower answers lost.
_SLOWEST: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeathKind:
    """A kind of death.

    Attributes:
        milliseconds: delay of what is slow.
        up, down: seconds, for what flaps; it is up first.
    """

    name: str
    milliseconds: int = 0
    up: float = 0.0
    down: float = 0.0

    def __str__(self) -> str:
        if self.name == "slow":
            return f"slow={self.milliseconds}"
        return f"flap={self.up:g}s/{self.down:g}s" if self.name == "flap" else self.name

    @property
    def is_dead(self) -> bool:
        """Whether flows to it are lost from the start; what is slow or flaps is alive then."""
        return self.name not in _VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """What dies in one way.

    Attributes:
        what: as it was named.
        node: the node, if it is one.
        endpoints: those of the dump that die with it.
        whole: whether every port of its addresses dies.
        option: by which it was given.
    """

    what: str
    kind: DeathKind
    node: str | None = None
    endpoints: frozenset[Endpoint] = frozenset()
    whole: bool = True
    option: str = "--dead"

    @property
    def words(self) -> str:
        """The option as it was given."""
        return f"{self.option} {self.what}:{self.kind}"


SILENT: Final = DeathKind(name="silent")


def kind_from_text(text: str) -> DeathKind | None:
    """Return the kind that a text names; None if it names none.

    Raises:
        UsageError: its value is wrong.
    """
    name, sign, value = text.partition("=")
    if name not in FATES:
        return None
    if name not in _VALUES:
        if sign:
            raise UsageError(f"--dead: {text!r}: {name} takes no value")
        return DeathKind(name=name)
    if name == "slow":
        if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= _SLOWEST:
            raise UsageError(
                f"--dead: {text!r}: expected milliseconds from 1 to {_SLOWEST:,}, for example "
                "slow=200"
            )
        return DeathKind(name=name, milliseconds=int(value))
    up, _, down = value.partition("/")
    times = [_seconds(each) for each in (up, down)]
    if not all(times):
        raise UsageError(
            f"--dead: {text!r}: expected how long it is up and how long down, for example "
            "flap=5s/2s"
        )
    return DeathKind(name=name, up=times[0], down=times[1])


def _seconds(text: str) -> float:
    found = duration_from_text(text if text[-1:].isalpha() else f"{text}s")
    return 0.0 if found is None else float(found)


def parted(word: str, nodes: Collection[str] = ()) -> tuple[str, DeathKind | None]:
    """Return what a word of ``--dead`` names, and the kind after it; None if there is none.

    Raises:
        UsageError: the kind's value is wrong, nothing stands before the kind, or what follows a
            node, a pod or an address is neither a kind nor a port.
    """
    what, sign, last = word.rpartition(":")
    kind = kind_from_text(last) if sign else None
    if kind is None:
        if what in nodes or (_is_named(what) and not _is_address(word) and not last.isdecimal()):
            port = "" if what in nodes else ", nor a port"
            raise UsageError(f"--dead {word}: {last!r} is not one of {GRAMMAR}{port}")
        return word, None
    if not what:
        raise UsageError(f"--dead {word}: nothing is named before :{last}; expected WHAT:KIND")
    return what, kind


@contextmanager
def said_of(option: str, word: str) -> Iterator[None]:
    """Attribute errors about a name to the option that it was given with."""
    try:
        yield
    except UsageError as error:
        says = str(error).partition(": ")[2]
        raise UsageError(f"{option} {word}: {says}") from None


def _is_named(what: str) -> bool:
    """Return whether a text is an address, with a port or without, a network, or a pod."""
    return "/" in what or any(map(_is_address, (what, what.rpartition(":")[0].strip("[]"))))


def _is_address(text: str) -> bool:
    try:
        ip_address(text.strip("[]"))
    except ValueError:
        return False
    return True


def deaths_of(options: SimpleNamespace, given: Input) -> tuple[Dead, tuple[Death, ...]]:
    """Return what is dead, and how, where a kind was given; what is slow is not dead.

    Raises:
        UsageError: a name that does not occur, or a kind that does not fit it.
    """
    deaths: list[Death] = []
    lasting: dict[str, list[str]] = {"dead": [], "dead_node": []}
    for name, option in OPTIONS.items():
        for word in getattr(options, name):
            with said_of(option, word):
                what, kind = parted(word, given.cluster.node_names)
                is_node = name == "dead_node" or what in given.cluster.node_names
                if kind is not None:
                    death = death_of(what, kind, options, given, is_node=is_node)
                    deaths.append(dataclasses.replace(death, option=option))
            if kind is None or kind.is_dead:
                lasting["dead_node" if is_node else "dead"].append(what)
    told = SimpleNamespace(**{**vars(options), **lasting})
    _check_apart(deaths)
    return dead_of(told, given), tuple(deaths)


def death_of(
    what: str, kind: DeathKind, options: SimpleNamespace, given: Input, *, is_node: bool
) -> Death:
    """Return how something dies.

    Raises:
        UsageError: nothing has that name, or the kind does not fit it.
    """
    named = {"dead": [] if is_node else [what], "dead_node": [what] if is_node else []}
    alone = SimpleNamespace(**{**vars(options), **named, "dead_zone": []})
    found = dead_of(alone, given)
    ports = {each for each in given.view.endpoints if each not in found.endpoints}
    living = {each.address for each in ports}
    whole = is_node or not any(each.address in living for each in found.endpoints)
    if kind.name == "arp" and not whole:
        raise UsageError(
            f"--dead {what}:arp: a neighbour entry is for an address, not for one port"
        )
    return Death(
        what=what,
        kind=kind,
        node=what if is_node else None,
        endpoints=found.endpoints,
        whole=whole,
    )


def _check_apart(deaths: Iterable[Death]) -> None:
    """Raise a UsageError if something would die in two ways."""
    seen: dict[object, Death] = {}
    for each in deaths:
        for what in (*([each.node] if each.node else []), *each.endpoints):
            if what in seen:
                raise UsageError(
                    f"{each.words}: {what} is already {seen[what].kind}, by {seen[what].what}"
                )
            seen[what] = each


def without_flapping(deaths: Iterable[Death]) -> tuple[Death, ...]:
    """Return the deaths, none of which flaps.

    Raises:
        LabError: one flaps, which takes time to observe.
    """
    every = tuple(deaths)
    for each in every:
        if each.kind.name == "flap":
            raise LabError(
                f"{each.words}: flapping takes time to observe; add --for, for example --for 30s"
            )
    return every


def without(dead: Dead, deaths: Iterable[Death]) -> Dead:
    """Return what is dead apart from `deaths`, which are brought about separately."""
    every = [each for each in deaths if each.kind.is_dead]
    gone = frozenset(endpoint for each in every for endpoint in each.endpoints)
    nodes = {each.node for each in every}
    return replace(
        dead,
        endpoints=dead.endpoints - gone,
        nodes=tuple(each for each in dead.nodes if each not in nodes),
    )
