"""Whether flows that DNAT has sent on are masqueraded, by where they come from and go to.

Theory of operation
===================

The rules behind nat are few and ask little of a flow besides its mark. So the packet that is walked
through them has all addresses for its source and for its destination (`region`), and what the
rules ask parts these: one walk for each mark tells it of all flows of a dump.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.kubeproxy.between import Between
from analyzer.model.addresses import Address
from analyzer.model.packet import Packet
from analyzer.model.region import Intervals, Parted, Region, everything
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.parts import Asked, Parts, at, holds, of_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: Which sources are masqueraded, and what of them makes a difference.
    BySource: TypeAlias = tuple[Parts[Ternary], Asked]
    #: That for each part of the destinations; None: for all.
    Boxes: TypeAlias = Sequence[tuple[Intervals | None, BySource]]

#: Parts of the destinations; of more, what the rules ask of them is not known.
_MOST_PARTS: Final = 2_000
_TOO_MANY: Final = (
    f"rules behind DNAT tell more than {_MOST_PARTS:,} destinations apart: whether flows to the "
    "rest are masqueraded may not be told"
)
_VERSIONS: Final = {"ip": 4, "ip6": 6}


class Leaving:
    """The flows of one family that leave through `hooks`; on the way `between` may change them."""

    def __init__(self, hooks: Hooks, family: str, between: Between) -> None:
        self._hooks = hooks
        self._between = between
        version = _VERSIONS[family]
        # Two of them: which one a rule asks for is told by identity.
        self._sources, self._destinations = (
            Region(version, (everything(version),)) for _ in range(2)
        )
        self._known: dict[Packet, Boxes] = {}
        #: The bounds on work that were met, in words.
        self.exceeded: dict[str, None] = {}

    def by_source(self, packet: Packet) -> BySource:
        """Tell of which sources a packet gets another one that was sent to its destination.

        With ``in_interface=""`` the node has made it. Where it comes from is not looked at.
        """
        to = packet.destination
        if to is None:
            return of_all(Ternary.UNKNOWN), frozenset()
        boxes = self._boxes(packet)
        return boxes[0][1] if len(boxes) == 1 else _first(boxes, int(to))

    def masquerades(self, packet: Packet, source: Address | None) -> Ternary:
        """Tell it of one source; None: not known which."""
        parts, _ = self.by_source(packet)
        answers = set(at(parts, source))
        return answers.pop() if len(answers) == 1 else Ternary.UNKNOWN

    def asked(self, packet: Packet) -> set[Intervals]:
        """Return the sources that fare otherwise than others, wherever the packet is sent to.

        Without those that do so only towards themselves (hairpin).
        """
        every = ((to, where) for to, (_, asked) in self._boxes(packet) for where in asked)
        return {where for to, where in every if not (where == to and _is_one(where))}

    def _boxes(self, packet: Packet) -> Boxes:
        passed = self._between.passed(packet)
        wide = replace(
            passed,
            source=None,
            sources=None if self._between.header else self._sources,
            destination=None,
            destinations=None if self._between.header else self._destinations,
            destination_port=None,
        )
        found = self._told(wide)
        if all(answer is not Ternary.UNKNOWN for _, (parts, _) in found for _, answer in parts):
            return found  # whatever the port
        return self._told(replace(wide, destination_port=passed.destination_port))

    def _told(self, wide: Packet) -> Boxes:
        known = self._known.get(wide)
        if known is not None:
            return known
        found: list[tuple[Intervals | None, BySource]] = []
        rest = [wide]
        while rest:
            packet = rest.pop()
            try:
                told = self._hooks.masquerades(packet)
            except Parted as by:
                if len(found) + len(rest) < _MOST_PARTS:
                    rest += reversed(packet.parted(by))
                    continue
                self.exceeded[_TOO_MANY] = None
                told = self._hooks.masquerades(replace(packet, destinations=None))
            to = packet.destinations
            found.append((None if to is None else to.intervals, told))
        self._known[wide] = found
        return found


def _first(boxes: Boxes, number: int) -> BySource:
    return next(told for where, told in boxes if holds(where, number))


def _is_one(where: Intervals) -> bool:
    """Tell whether a part is a single address."""
    return len(where) == 1 and where[0][0] == where[0][1]
