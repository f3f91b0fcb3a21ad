"""Clients played step by step, with ports and conntrack's table, over all that may be drawn.

Each is a program of its own, as its library has it: nothing is shared with `analyzer.clients` but
what a resolv.conf says, names of results and of fates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

#: Chances of what a flow meets, by its name.
Chances = Mapping[str, Fraction]
#: How an operation ended, and when.
End = tuple[str, Fraction]

_FORGETS: Final = 30


@dataclass
class Dice:
    """What was drawn, in order; behind that the first of all that may be, the others kept."""

    given: tuple[str, ...]
    drawn: list[str] = field(default_factory=list)
    chance: Fraction = Fraction(1)
    others: list[tuple[str, ...]] = field(default_factory=list)

    def draw(self, chances: Chances) -> str:
        faces = [face for face, chance in chances.items() if chance]
        if len(self.drawn) < len(self.given):
            face = self.given[len(self.drawn)]
        else:
            face, *rest = faces
            self.others += [(*self.drawn, each) for each in rest]
        self.drawn.append(face)
        self.chance *= chances[face]
        return face


def every(play: Callable[[Dice], End]) -> dict[End, Fraction]:
    """Return the chance of each end of a play, over all that may be drawn in it."""
    found: dict[End, Fraction] = defaultdict(Fraction)
    todo: list[tuple[str, ...]] = [()]
    while todo:
        dice = Dice(todo.pop())
        end = play(dice)
        found[end] += dice.chance
        todo += dice.others
    return dict(found)


class Host:
    """A client's host: a clock, ports, and the conntrack of the node behind it."""

    def __init__(self, dice: Dice, servers: Sequence[Chances]) -> None:
        self.dice, self.servers = dice, servers
        self.now = Fraction(0)
        self._ports = 0
        self._tracked: dict[tuple[int, int], tuple[str, Fraction]] = {}

    def socket(self) -> int:
        self._ports += 1
        return self._ports

    def send(self, port: int, server: int) -> str:
        """Send a datagram and return what becomes of it."""
        known = self._tracked.get((port, server))
        if known is None or self.now - known[1] > _FORGETS:
            fate = self.dice.draw(self.servers[server])
        else:
            fate = known[0]
        self._tracked[port, server] = fate, self.now
        return fate


@dataclass(frozen=True)
class Name:
    """What is looked up: names in the order of the search, the one as it was given told apart."""

    searched: tuple[str, ...]
    given: str
    given_first: bool
    there: frozenset[str]


Options = tuple[int, int]


def glibc(host: Host, name: Name, options: Options) -> End:
    timeout, attempts = options

    def query(asked: str) -> str:
        sockets: dict[int, int] = {}
        heard = False
        for _ in range(attempts):
            for server in range(len(host.servers)):
                port = sockets.setdefault(server, host.socket())
                fate = host.send(port, server)
                if fate == "answered":
                    return "found" if asked in name.there else "none"
                if fate == "refused":
                    sockets.clear()
                    continue
                seconds = timeout << server
                if server:
                    seconds //= len(host.servers)
                host.now += max(1, seconds)
                heard = True
        return "timed-out" if heard else "refused"

    errors = {"none": "no-such-name", "timed-out": "timed-out", "refused": "refused"}
    first = None
    if name.given_first:
        first = query(name.given)
        if first == "found":
            return "answered", host.now
    last = "none"
    for each in name.searched:
        last = query(each)
        if last == "found":
            return "answered", host.now
        if last == "refused":
            return errors[first or last], host.now
        if last == "timed-out":
            break
    if first is None:
        last = query(name.given)
        if last == "found":
            return "answered", host.now
        return errors[last], host.now
    return errors[first], host.now


def musl(host: Host, name: Name, options: Options) -> End:
    timeout, attempts = options
    asked = [name.given] if name.given_first else [*name.searched, name.given]
    for each in asked:
        port, begun, answered = host.socket(), host.now, False
        for turn in range(attempts):
            host.now = begun + Fraction(timeout, attempts) * turn
            fates = [host.send(port, server) for server in range(len(host.servers))]
            answered = "answered" in fates
            if answered:
                break
        if not answered:
            return "timed-out", begun + timeout
        if each in name.there:
            return "answered", host.now
    return "no-such-name", host.now


def go(host: Host, name: Name, options: Options) -> End:
    timeout, attempts = options
    asked = [*name.searched, name.given]
    if name.given_first:
        asked = [name.given, *name.searched]

    def exchange(begun: Fraction) -> tuple[str, Fraction]:
        now, silent = begun, False
        for _ in range(attempts):
            for server in range(len(host.servers)):
                fate = host.send(host.socket(), server)
                if fate == "answered":
                    return "answered", now
                if fate != "refused":
                    silent = True
                    now += timeout
        return "timed-out" if silent else "refused", now

    error = None
    for each in asked:
        a, a_over = exchange(host.now)
        _, aaaa_over = exchange(host.now)
        host.now = max(a_over, aaaa_over)
        if a == "answered" and each in name.there:
            return "answered", host.now
        if error is None or each != name.given:
            error = "no-such-name" if a == "answered" else a
    assert error is not None
    return error, host.now


def dig(host: Host, name: Name, _: Options) -> End:
    heard = False
    # Measured: the first server has three attempts, each further one has one.
    for server, attempts in enumerate([3, *[1] * (len(host.servers) - 1)]):
        for _attempt in range(attempts):
            fate = host.send(host.socket(), server)
            if fate == "answered":
                found = name.given in name.there
                return "answered" if found else "no-such-name", host.now
            if fate != "refused":
                heard = True
                host.now += 5
    return "timed-out" if heard else "refused", host.now


RESOLVERS: Final = {"glibc": glibc, "musl": musl, "go": go, "dig": dig}


def curl(host: Host, timeout: Fraction, tries: int, *, pinned: bool) -> End:
    """Connect as curl --retry does; with `pinned` session affinity holds the first endpoint."""
    held = None
    for turn in range(tries):
        if turn:
            host.now += min(2 ** (turn - 1), 4)
        fate = held or host.send(host.socket(), 0)
        if pinned:
            held = fate
        if fate == "answered":
            return "answered", host.now
        if fate == "refused":
            return "refused", host.now
        host.now += timeout
    return "timed-out", host.now


def one_after_another(
    dice: Dice, endpoints: Sequence[str], timeouts: Sequence[Fraction], *, around: bool
) -> End:
    """Connect to endpoints, given by what each does, in an order that is drawn."""
    order: list[str] = []
    left = list(endpoints)
    while left:
        place = int(dice.draw({str(at): Fraction(1, len(left)) for at in range(len(left))}))
        order.append(left.pop(place))
    now = Fraction(0)
    error = "refused"
    for turn, timeout in enumerate(timeouts):
        if turn >= len(order) and not around:
            break
        fate = order[turn % len(order)]
        if fate == "answered":
            return "answered", now
        error = "refused" if fate == "refused" else "timed-out"
        if fate != "refused":
            now += timeout
    return "closed" if around else error, now
