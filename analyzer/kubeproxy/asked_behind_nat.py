"""What rules behind nat ask about where a flow comes from, and where it is sent.

Two flows that such rules do not tell apart by these are masqueraded alike, so that one of them is
walked and stands for the other. That holds only where every rule is looked at: one that is not
understood here leaves each flow to be walked for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache, cached_property

from analyzer.model.addresses import Address, Network
from analyzer.model.hooks import TABLES
from analyzer.model.matches import (
    MatchAddrtype,
    MatchComment,
    MatchConnmark,
    MatchDestination,
    MatchInInterface,
    MatchLimit,
    MatchMark,
    MatchNfacct,
    MatchNot,
    MatchNth,
    MatchOutInterface,
    MatchOwner,
    MatchPhysdev,
    MatchPolicy,
    MatchProtocol,
    MatchRandom,
    MatchSctp,
    MatchSet,
    MatchSource,
    MatchState,
    MatchTcp,
    MatchUdp,
    MatchUnknown,
)
from analyzer.model.nft import NftRuleset
from analyzer.model.packet import Packet
from analyzer.model.rules import Rule, Ruleset, Table
from analyzer.model.targets import Dnat, Goto, Jump, Redirect
from analyzer.model.value import replace, value
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.situation import Situation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.matches import Match

#: Matches whose answer is the same wherever a packet comes from and goes to, as far as that is not
#: the node: of those that nobody can read, and of sets, it is never known.
_SILENT: Final = (
    MatchComment,
    MatchConnmark,
    MatchInInterface,
    MatchLimit,
    MatchMark,
    MatchNfacct,
    MatchNth,
    MatchOutInterface,
    MatchOwner,
    MatchPhysdev,
    MatchPolicy,
    MatchProtocol,
    MatchRandom,
    MatchSet,
    MatchState,
    MatchUnknown,
)


@value
class _Asked:
    """The networks that rules ask for."""

    sources: frozenset[Network]
    destinations: frozenset[Network]


#: The hooks that change sources: of what leaves the node, and of what stays.
_LEAVING: Final = "POSTROUTING"
_STAYING: Final = "INPUT"


class BehindNat:
    """What the rules of a node ask, of packets of a family that nat has sent on.

    `rulesets` are all that the node has; `situation` tells which addresses are its own.
    """

    def __init__(self, rulesets: Iterable[Rules], family: str, situation: Situation) -> None:
        self._rulesets = tuple(rulesets)
        self._family = family
        self._situation = situation

    def alike(self, packet: Packet) -> Hashable:
        """Return what packets have in common that are all masqueraded, or none is."""
        if self._questions is None:
            return packet
        ends = self._situation.is_from_node(packet), self._situation.is_local(packet)
        anywhere = replace(
            packet,
            source=None,
            from_node=None,
            destination=None,
            destination_port=None,
            to_node=None,
        )
        return anywhere, *ends, *[answer(packet) for answer in self._questions]

    @cached_property
    def _questions(self) -> Sequence[Callable[[Packet], Hashable]] | None:
        """What answers the questions of each ruleset; None: some are not understood."""
        found: list[Callable[[Packet], Hashable]] = []
        for ruleset in self._rulesets:
            if isinstance(ruleset, NftRuleset):
                from analyzer.kubeproxy.nft_frame import asked_behind_nat

                answers = asked_behind_nat(ruleset, self._family, self._situation)
            elif ruleset.family == self._family:
                asked = _asked(ruleset)
                answers = None if asked is None else _holding(asked)
            else:
                continue
            if answers is None:
                return None
            found.append(answers)
        return found


def _holding(asked: _Asked) -> Callable[[Packet], Hashable]:
    """Return what tells which networks hold the ends of a packet."""

    @cache
    def holding(address: Address | None, networks: frozenset[Network]) -> frozenset[Network] | None:
        return None if address is None else frozenset([n for n in networks if address in n])

    return lambda packet: (
        holding(packet.source, asked.sources),
        holding(packet.destination, asked.destinations),
    )


def _asked(ruleset: Ruleset) -> _Asked | None:
    sources: set[Network] = set()
    destinations: set[Network] = set()
    for hook in (_LEAVING, *([_STAYING] if _changes_what_stays(ruleset) else [])):
        for name in TABLES[hook]:
            for rule in _met(ruleset.tables.get(name), hook):
                if isinstance(rule.target, Dnat | Redirect):
                    return None
                for match in rule.matches:
                    inner = match.match if isinstance(match, MatchNot) else match
                    match inner:
                        case MatchSource(network):
                            sources.add(network)
                        case MatchDestination(network):
                            destinations.add(network)
                        case _ if not _is_silent(inner):
                            return None
                        case _:
                            pass
    return _Asked(frozenset(sources), frozenset(destinations))


def _changes_what_stays(ruleset: Ruleset) -> bool:
    """Tell whether what stays on the node may get another source, by nat or by what is lost."""
    for name in TABLES[_STAYING]:
        table = ruleset.tables.get(name)
        chain = None if table is None else table.chains.get(_STAYING)
        if chain is None:
            if table is not None and not table.complete:
                return True
        elif name == "nat" and (len(chain.rules) or chain.policy != "ACCEPT"):
            return True
    return False


def _met(table: Table | None, hook: str) -> Iterator[Rule]:
    """Give the rules of a table that packets may meet at a hook."""
    if table is None:
        return
    seen, rest = {hook}, [hook]
    while rest:
        chain = table.chains.get(rest.pop())
        for rule in chain.rules if chain is not None else ():
            yield rule
            match rule.target:
                case Jump(to) | Goto(to) if to not in seen:
                    seen.add(to)
                    rest.append(to)
                case _:
                    pass


def _is_silent(match: Match) -> bool:
    match match:
        case MatchTcp() | MatchUdp() | MatchSctp():
            return match.destination_port is None
        case MatchAddrtype():
            types = match.source_type, match.destination_type
            return all(each is None or each.value == ("LOCAL",) for each in types)
        case _:
            return isinstance(match, _SILENT)
