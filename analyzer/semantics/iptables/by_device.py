"""Rules that dispatch flows by device, if the device of a flow is not known.

Theory of operation
===================

A network plugin may write a chain for each pod, and a rule that jumps there by the pod's device. If
all that is known of a flow is that its device is one of many, each of these rules may match, and
after each one the remaining packets have another device (`Devices.parted`): after the last one none
are left.

Most of these chains are the same except for their names. So a chain with the same text as one that
was evaluated has its result (`like`), and one that can only set bits of the mark that no rule
matches on is not evaluated (`is_inert`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice

from analyzer.model.devices import Devices, meets
from analyzer.model.iptables.matches import MatchComment, MatchInInterface, MatchOutInterface
from analyzer.model.iptables.rules import LazyRules, Rule, Table
from analyzer.model.iptables.targets import Goto
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.iptables.matching import evaluate_match
from analyzer.semantics.situation import Situation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_COMMENT: Final = r' -m comment --comment (?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\S+)'
_COUNTERS: Final = r"\n\[\d+:\d+\] "
#: A row that may match, and then sets bits of the mark, returns, or jumps to another chain.
_PLAIN: Final = (
    r" -(?:j MARK --set-xmark (?P<value>0x[\da-f]+)/(?P<mask>0x[\da-f]+)"
    r"|j (?P<back>RETURN)|[jg] (?P<chain>\S+))$"
)
_SENDS: Final = r" -[io] \S+(?: .*)? -g (\S+)$"
_DEVICE: Final = " -i ", " -o ", " --physdev-in ", " --physdev-out "
#: Chains that jump to one another, up to which depth they are looked at.
_DEEPEST: Final = 8


class ByDevice:
    """The chains of a table that rules dispatch flows to by device.

    `asked_bits` returns the bits of marks that rules match on.
    """

    def __init__(self, table: Table, asked_bits: Callable[[], int]) -> None:
        self._table = table
        self._asked_bits = asked_bits
        self._bits: int | None = None
        self._said: dict[str, str | None] = {}
        self._inert: dict[str, bool] = {}
        self._like: dict[str, str] = {}
        self._leads_to_more: dict[tuple[str, int], bool] = {}
        self._first: dict[str, str] = {}
        self._runs: dict[tuple[str, int], tuple[int, tuple[str, ...]]] = {}
        self._is_open: dict[tuple[str, int, tuple[str, ...]], bool] = {}

    def is_inert(self, chain: str, depth: int = 0) -> bool:
        """Return whether a chain returns all packets, with no effect that matters."""
        found = self._inert.get(chain)
        if found is None:
            said = self._text(chain) if depth < _DEEPEST else None
            found = said is not None and all(self._does_nothing(row, depth) for row in _rows(said))
            self._inert[chain] = found
        return found

    def like(self, chain: str) -> str:
        """Return the first chain with the same rules that this was called with, maybe itself."""
        found = self._like.get(chain)
        if found is None:
            said = self._text(chain) or f"no {chain}"
            found = chain if _asks_device(said) else self._first.setdefault(said, chain)
            self._like[chain] = found
        return found

    def key(self, rule: Rule) -> str:
        """Return a key shared by rules that send packets to chains with the same rules.

        A rule that goes to no chain, or to one that matches on devices itself, has its own key.
        """
        match rule.target:
            case Goto(chain) if not self.asks_device(chain):
                return self.like(chain)
            case _:
                return f"{rule.location}: {rule.raw}"

    def leads_to_more(self, chain: str, most: int) -> bool:
        """Return whether the chains that a chain dispatches packets to by device have more rules.

        Of chains with the same rules one counts, and none of those without effect.
        """
        found = self._leads_to_more.get((chain, most))
        if found is None:
            found = self._leads_to_more[chain, most] = self._rules_behind(chain, most) > most
        return found

    def _rules_behind(self, chain: str, most: int) -> int:
        """Return the number of rules in these chains, or another above `most`."""
        seen: set[str] = set()
        total = 0
        for row in _rows(self._text(chain) or ""):
            sends = re.search(_SENDS, row)
            if sends is None or self.is_inert(sends[1]):
                continue
            like = self.like(sends[1])
            if like not in seen:
                seen.add(like)
                total += (self._text(like) or "").count("\n")
                if total > most:
                    break
        return total

    def asks_device(self, chain: str) -> bool:
        """Return whether a chain itself matches on devices."""
        return _asks_device(self._text(chain) or "")

    def past_alike(self, chain: str, at: int, packet: Packet) -> tuple[int, Packet]:
        """Return the next rule of a chain that may add anything, and the packet there.

        The rule at `at` has been evaluated; after it come rules that send packets of other devices
        to chains with the same rules.
        """
        match = _only_device(self._table.chains[chain].rules[at])
        device = packet.came_by if isinstance(match, MatchInInterface) else packet.leaves_by
        if match is None or device is None or device.names is None:
            return at + 1, packet
        end, names = self._alike(chain, at)
        key = chain, at, device.open
        if key not in self._is_open:
            self._is_open[key] = any(meets(name, each) for name in names for each in device.open)
        if self._is_open[key]:
            return at + 1, packet
        left = device.names.difference(names)
        if left:
            changed = len(left) < len(device.names)
            return end, _with(match, packet, replace(device, names=left)) if changed else packet
        # The last of them matches for certain: nothing is left for the rules after it.
        last = max(place for place, name in enumerate(names) if name in device.names)
        return at + 1 + last, _with(match, packet, replace(device, names=frozenset({names[last]})))

    def _alike(self, chain: str, at: int) -> tuple[int, tuple[str, ...]]:
        """Return where the rules end that do the same as one, of other devices, and the devices."""
        if (chain, at) not in self._runs:
            rules = self._table.chains[chain].rules
            key, first = self.key(rules[at]), _only_device(rules[at])
            names = []
            for rule in islice(rules, at + 1, None):
                other = _only_device(rule)
                if other is None or type(other) is not type(first) or self.key(rule) != key:
                    break
                names.append(other.name)
            self._runs[chain, at] = at + 1 + len(names), tuple(names)
        return self._runs[chain, at]

    @staticmethod
    def told_apart(
        rule: Rule, packet: Packet, asked: Packet, situation: Situation
    ) -> tuple[Packet, Packet]:
        """Return a packet as it is if a rule that may match does, and as it is otherwise.

        Both are the packet itself if the rule does not match on its device. The rule was evaluated
        for `asked`, those of the packet's sources that it does not distinguish.
        """
        for match in rule.matches:
            if isinstance(match, MatchInInterface):
                device = situation.came_by(packet)
            elif isinstance(match, MatchOutInterface):
                device = situation.leaves_by(packet)
            else:
                continue
            if not isinstance(device, Devices) or device.names is None:
                continue
            if device.is_named(match.name) is not Ternary.UNKNOWN:
                continue
            inside, outside = (_with(match, packet, each) for each in device.parted(match.name))
            others = (each for each in rule.matches if each is not match)
            certain = all(_is_certain(each, asked, situation) for each in others)
            return inside, outside if certain else packet
        return packet, packet

    def _text(self, chain: str) -> str | None:
        """Return the text of a chain's rules, each on a line, without the chain's name.

        None if some may be lost.
        """
        if chain not in self._said:
            known = self._table.chains.get(chain)
            rows = None if known is None else _text(known.rules)
            self._said[chain] = None if rows is None else _without_names(chain, rows)
        return self._said[chain]

    def _does_nothing(self, row: str, depth: int) -> bool:
        found = re.search(_PLAIN, row)
        if found is None or " -m recent " in row:
            return False
        if found["value"] is not None:
            changed = int(found["value"], 16) | int(found["mask"], 16)
            if self._bits is None:
                self._bits = self._asked_bits()
            return not changed & self._bits
        return found["chain"] is None or (
            found["chain"] in self._table.chains and self.is_inert(found["chain"], depth + 1)
        )


def _without_names(chain: str, rows: Sequence[str]) -> str:
    """Return the rows of a chain, each on a line, without its name, counters and comments.

    Thousands of rows take less time together than one by one.
    """
    if not rows:
        return ""
    text = "\n".join(["", *rows, ""])
    if "\n[" in text:
        text = re.sub(_COUNTERS, "\n", text)
    return re.sub(_COMMENT, "", text.replace(f"\n-A {chain} ", "\n "))[1:]


def _asks_device(said: str) -> bool:
    return any(option in said for option in _DEVICE)


def _rows(said: str) -> Sequence[str]:
    return said.split("\n")[:-1]


def _text(rules: Sequence[Rule]) -> Sequence[str] | None:
    return rules.texts() if isinstance(rules, LazyRules) else [rule.raw for rule in rules]


def _only_device(rule: Rule) -> MatchInInterface | MatchOutInterface | None:
    """Return the match on one device of a rule that goes to a chain and matches on nothing else."""
    if not isinstance(rule.target, Goto):
        return None
    found = [each for each in rule.matches if not isinstance(each, MatchComment)]
    match found:
        case [MatchInInterface() | MatchOutInterface() as device] if not device.name.endswith("+"):
            return device
        case _:
            return None


def _is_certain(match: object, packet: Packet, situation: Situation) -> bool:
    result = evaluate_match(match, packet, situation)  # type: ignore[arg-type]  # one of a rule's matches
    return result.known is Ternary.TRUE and result.chance == ALWAYS


def _with(match: object, packet: Packet, devices: Devices) -> Packet:
    if isinstance(match, MatchInInterface):
        return replace(packet, came_by=devices)
    return replace(packet, leaves_by=devices)
