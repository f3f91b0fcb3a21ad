"""Bounds on the work for one packet, and which of them a walk reached.

No ruleset of kube-proxy comes near these bounds. What lies beyond them is unresolved, or a mark of
which some bits are not known, so that the answer is a range that holds the truth; `exceeded` says
why.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from analyzer.model.packet import ALL_BITS, Mark, Packet
from analyzer.model.value import replace

R = TypeVar("R")


#: Rules that match on one way of a packet.
MOST_RULES: Final = 5_000
#: Chains of which each leads into the next, that a packet is in at once.
MOST_NESTED: Final = 4_000
#: Branches of a tree that are made anew, where chains return some of their packets and not others.
MOST_BRANCHES: Final = 50_000
#: Packets that fork at one rule into two that differ in nothing but their marks: where the rule
#: may match, nobody knows how often, and where that is drawn. Of more the marks are joined.
MOST_FORKS: Final = {False: 8, True: 32}


#: Times that rules part the sources of one packet; what they ask from then on is not known.
MOST_PARTS: Final = 20_000
#: Rules of all the chains to which one chain sends flows by their device that are followed where it
#: is not known which device it is; of more of them nothing is known.
MOST_BY_DEVICE: Final = 400


class TooMany(Exception):  # noqa: N818  # a bound that was met, not an error
    """The tree of a walk has more branches than it may."""


class Effort:
    """What one question has cost so far.

    `asked_bits` gives the bits of marks that rules match on; it is called once marks differ.
    """

    def __init__(self, asked_bits: Callable[[], int] = lambda: ALL_BITS) -> None:
        self._ask = asked_bits
        self._asked: int | None = None
        self.begin()
        #: The bounds that were met, in words, each once.
        self.exceeded: dict[str, None] = {}

    def begin(self) -> None:
        """Begin with another question."""
        self._branches = 0
        self._parts = 0
        self._forks: dict[Hashable, int] = {}
        self._widest: dict[Hashable, Packet] = {}

    def spend(self, branches: int) -> None:
        """Note that a node with so many branches is made anew.

        Raises:
            TooMany: there were more than `MOST_BRANCHES`.
        """
        self._branches += branches
        if self._branches > MOST_BRANCHES:
            raise TooMany

    def parts(self) -> bool:
        """Note that sources are told apart; tell whether they may be."""
        self._parts += 1
        if self._parts <= MOST_PARTS:
            return True
        self._cut_off(f"rules split sources more than {MOST_PARTS:,} times")
        return False

    def too_many_devices(self) -> str:
        """Note that the chains of some devices were not walked, and return why."""
        return self._cut_off(
            f"rules dispatch flows by device to chains of more than {MOST_BY_DEVICE:,} rules"
        )

    def too_many_branches(self) -> str:
        """Note that a tree was cut off, and return why."""
        return self._cut_off(f"the paths of a packet have more than {MOST_BRANCHES:,} branches")

    def too_many_chains(self) -> str:
        """Note that a way was not followed any deeper, and return why."""
        return self._cut_off(f"more than {MOST_NESTED:,} chains are nested")

    def shortened(self, rules: tuple[R, ...]) -> tuple[R, ...]:
        """Return the first and the last of too many rules that match on one way."""
        self.note(
            f"more than {MOST_RULES:,} rules match on one path of a packet: not all are reported"
        )
        return (*rules[: MOST_RULES // 2], *rules[-MOST_RULES // 2 :])

    def joined(self, place: Hashable, one: Packet, other: Packet, *, drawn: bool) -> Packet | None:
        """Return a packet that stands for both that leave a rule; None: follow one and the other.

        They differ in their marks only. Bits that no rule matches on are forgotten; those that
        one does, and all where the chance of each packet is known, which is `drawn`, only where
        many packets have come to that `place` in the same way.
        """
        bare = replace(one, mark=Mark(), flow_mark=Mark())
        if bare != replace(other, mark=Mark(), flow_mark=Mark()):
            return None
        both = _joined(one, other)
        if not drawn and not self._are_asked(one, other):
            return both
        key = place, bare, drawn
        forks = self._forks[key] = self._forks.get(key, 0) + 1
        if forks <= MOST_FORKS[drawn]:
            return None
        # All that come from now on go on as one, so that their number stays that of the bits.
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

    def _are_asked(self, one: Packet, other: Packet) -> bool:
        """Tell whether a rule matches on a bit of the marks in which two packets differ."""
        return bool(differing_bits(one, other) & self.asked_bits())

    def _cut_off(self, bound: str) -> str:
        self.note(f"{bound}: answers that would need more are ranges")
        return bound

    def note(self, bound: str) -> None:
        """Note a bound that was met, and what it means for the answer."""
        self.exceeded[bound] = None


def _joined(one: Packet, other: Packet) -> Packet:
    return replace(
        one,
        mark=one.mark.joined(other.mark),
        flow_mark=one.flow_mark.joined(other.flow_mark),
    )


def differing_bits(one: Packet, other: Packet) -> int:
    """Return the bits of marks that are not known alike of two packets."""
    found = 0
    for a, b in ((one.mark, other.mark), (one.flow_mark, other.flow_mark)):
        found |= (a.value ^ b.value) | (a.unknown ^ b.unknown)
    return found
