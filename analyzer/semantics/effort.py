"""Bounds on the work for one packet, and which of them a traversal reached.

No ruleset of kube-proxy comes near these bounds. What lies beyond them is unresolved, or a mark
with unknown bits, so that the answer is a range that contains the truth; `exceeded` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from analyzer.model.intervals import Intervals
from analyzer.model.packet import ALL_BITS, Mark, MarksDiffer, Packet
from analyzer.model.value import replace

R = TypeVar("R")


#: Rules that match on one path of a packet.
MOST_RULES: Final = 5_000
#: Nested chains that a packet is in at once.
MOST_NESTED: Final = 4_000
#: Branches of a tree that are copied, if chains return some of their packets and not others.
MOST_BRANCHES: Final = 50_000
#: Pairs of packets that differ only in their marks, leaving one rule that may match: with unknown
#: frequency, or at random. Beyond that, their marks are joined.
MOST_FORKS: Final = {False: 8, True: 32}


#: Times that rules split the sources of one packet; later matches on them are unknown.
MOST_PARTS: Final = 20_000
#: Rules of all chains that one chain dispatches flows to by device, followed if the device is not
#: known; beyond that the result is unknown.
MOST_BY_DEVICE: Final = 400
#: Intervals of the sources of one packet that differ in their mark, before rules split it.
MOST_MARKS: Final = 64
#: Packets with other marks by source that one rule matches without splitting them. If endpoints'
#: chains let flows go on to others, there may be one for each set of endpoints.
MOST_JOINED: Final = 4


class TooMany(Exception):  # noqa: N818  # a limit that was reached, not an error
    """The tree of a traversal has more branches than allowed."""


class Effort:
    """The work done so far for one question.

    `asked_bits` returns the bits of marks that rules match on; it is called once marks differ.
    """

    def __init__(self, asked_bits: Callable[[], int] = lambda: ALL_BITS) -> None:
        self._ask = asked_bits
        self._asked: int | None = None
        self.begin()
        #: The bounds that were reached, in words, each once.
        self.exceeded: dict[str, None] = {}

    def begin(self) -> None:
        """Start another question."""
        self._branches = 0
        self._parts = 0
        #: The sources that rules matched on without splitting the packet.
        self.joined_on: set[Intervals] = set()
        self._joined: dict[Hashable, int] = {}
        #: Whether results may be those of a packet that came in another way; and whether some are.
        self.lends = self.has_lent = False
        self._forks: dict[Hashable, int] = {}
        self._widest: dict[Hashable, Packet] = {}

    def spend(self, branches: int) -> None:
        """Count a copied node with this many branches.

        Raises:
            TooMany: there were more than `MOST_BRANCHES`.
        """
        self._branches += branches
        if self._branches > MOST_BRANCHES:
            raise TooMany

    def join(self, asked: Intervals, rule: Hashable) -> None:
        """Count a rule that matched on sources without splitting the packet.

        Raises:
            MarksDiffer: it has matched too many packets in that way.
        """
        self.joined_on.add(asked)
        joined = self._joined[rule] = self._joined.get(rule, 0) + 1
        if joined > MOST_JOINED:
            raise MarksDiffer

    def parts(self) -> bool:
        """Count a split of sources; return whether it is allowed."""
        self._parts += 1
        if self._parts <= MOST_PARTS:
            return True
        self._cut_off(f"rules split sources more than {MOST_PARTS:,} times")
        return False

    def too_many_devices(self) -> str:
        """Record that the chains of some devices were not evaluated, and return why."""
        return self._cut_off(
            f"rules dispatch flows by device to chains of more than {MOST_BY_DEVICE:,} rules"
        )

    def too_many_branches(self) -> str:
        """Record that a tree was cut off, and return why."""
        return self._cut_off(f"the paths of a packet have more than {MOST_BRANCHES:,} branches")

    def too_many_chains(self) -> str:
        """Record that a path was not followed any deeper, and return why."""
        return self._cut_off(f"more than {MOST_NESTED:,} chains are nested")

    def shortened(self, rules: tuple[R, ...]) -> tuple[R, ...]:
        """Return the first and the last of too many rules that match on one path."""
        self.note(
            f"more than {MOST_RULES:,} rules match on one path of a packet: not all are reported"
        )
        return (*rules[: MOST_RULES // 2], *rules[-MOST_RULES // 2 :])

    def joined(self, place: Hashable, one: Packet, other: Packet, *, drawn: bool) -> Packet | None:
        """Return one packet that represents both that leave a rule; None to follow them separately.

        They differ in their marks only. Bits that no rule matches on are forgotten. Other bits are
        joined, as are all if the chance of each packet is known (`drawn`), only after many packets
        have come to `place` in the same way.
        """
        bare = _bare(one)
        if bare != _bare(other):
            return None
        both = _joined(one, other)
        if not drawn and not self._are_asked(one, other):
            return both
        key = place, bare, drawn
        forks = self._forks[key] = self._forks.get(key, 0) + 1
        if forks <= MOST_FORKS[drawn]:
            return None
        # All later ones continue as one, so that their number stays that of the bits.
        widest = self._widest[key] = _joined(self._widest.get(key, both), both)
        if self._are_asked(one, other):
            self._cut_off("too many rules that may or may not match set marks that others match on")
        return widest

    def asked_bits(self) -> int:
        """Return the bits of marks that rules match on."""
        if self._asked is None:
            self._asked = self._ask()  # which looks at all rules
        return self._asked

    def asked_of(self, mark: Mark) -> Mark:
        """Return a mark without the bits that no rule matches on."""
        if mark == Mark():
            return mark
        bits = self.asked_bits()
        return Mark(mark.value & bits, mark.unknown & bits)

    def are_alike(self, one: Packet, other: Packet) -> bool:
        """Return whether two packets differ at most in bits of marks that no rule matches on."""
        same = one is other or _bare(one) == _bare(other)
        return same and not self._are_asked(one, other)

    def as_asked(self, packet: Packet) -> Packet:
        """Return a packet like one that rules have split from others, as far as any rule can tell.

        Packets from many sources may each have a mark of their own, and be told apart by one bit.
        """
        mark, flow_mark = self.asked_of(packet.mark), self.asked_of(packet.flow_mark)
        if packet.marks is not None or (mark, flow_mark) == (packet.mark, packet.flow_mark):
            return packet
        return replace(packet, mark=mark, flow_mark=flow_mark)

    def _are_asked(self, one: Packet, other: Packet) -> bool:
        """Return whether a rule matches on a bit of the marks in which two packets differ."""
        return bool(differing_bits(one, other) & self.asked_bits())

    def _cut_off(self, bound: str) -> str:
        self.note(f"{bound}: answers that would need more are ranges")
        return bound

    def note(self, bound: str) -> None:
        """Record a bound that was reached, and what it means for the answer."""
        self.exceeded[bound] = None


def _bare(packet: Packet) -> Packet:
    return replace(packet, mark=Mark(), flow_mark=Mark())


def _joined(one: Packet, other: Packet) -> Packet:
    return replace(
        one,
        mark=one.mark.joined(other.mark),
        flow_mark=one.flow_mark.joined(other.flow_mark),
    )


def differing_bits(one: Packet, other: Packet) -> int:
    """Return the bits of marks in which the knowledge of two packets differs."""
    found = 0
    for a, b in ((one.mark, other.mark), (one.flow_mark, other.flow_mark)):
        found |= (a.value ^ b.value) | (a.unknown ^ b.unknown)
    return found
