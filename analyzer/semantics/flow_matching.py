"""Matches on the flow and its history, most of which depend on assumptions.

Source: Linux, net/netfilter/xt_conntrack.c, ``conntrack_mt``; xt_recent.c, ``recent_mt``;
xt_connmark.c; xt_limit.c; xt_hashlimit.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import attrgetter
from typing import Final, TypeVar

from analyzer.model.addresses import Address, Network
from analyzer.model.intervals import span
from analyzer.model.iptables.matches import MatchConntrack, MatchHashlimit, MatchLimit, MatchRecent
from analyzer.model.iptables.options import Masked, Option
from analyzer.model.packet import Packet
from analyzer.model.region import Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.assumed import LIMITS
from analyzer.semantics.option_matching import port, signed
from analyzer.semantics.situation import FIRST, MASQUERADED, Situation

T = TypeVar("T")

_UNDER: Final = {"under": Ternary.TRUE, "over": Ternary.FALSE}


def state_of(packet: Packet, situation: Situation) -> str | None:
    """Return conntrack's state of the packet at this point; None if not known."""
    if packet.tracked is None:
        return None
    if not packet.tracked:
        return "UNTRACKED"
    if packet.template:
        return "NEW"  # what CT has put in its place counts as an entry
    return situation.state if situation.has_entry else "INVALID"


def state_is(states: tuple[str, ...], packet: Packet, situation: Situation) -> Ternary:
    """Evaluate ``--state`` and the real states of ``--ctstate``."""
    state = state_of(packet, situation)
    return Ternary.UNKNOWN if state is None else Ternary.of(state in states)


def conntrack(match: MatchConntrack, packet: Packet, situation: Situation) -> Ternary:
    """Evaluate ``-m conntrack``; what depends on the flow's past is not known."""
    found = signed(match.state, _state(match, packet, situation))
    if _others(match) == _NOTHING:
        return found
    if packet.tracked is None or packet.template:
        return found & Ternary.UNKNOWN
    if not packet.tracked or not situation.has_entry:
        # Without an entry only the state is compared, and must be given.
        return Ternary.FALSE if match.state is None else found
    if packet.is_answer:
        return reduce(Ternary.__and__, _of_answer(match, packet, situation), found)
    if situation.state not in FIRST:
        return found & Ternary.UNKNOWN
    if match.direction is not None:  # the first packet of a flow has its direction
        found &= Ternary.of(match.direction == "ORIGINAL")
    flow = sent(packet, situation)
    if flow is None:
        is_open = any(option is not None for option in _others(match)[:-1])
        return found & Ternary.UNKNOWN if is_open else found
    situation.ask_port(packet)  # as some of these do
    # A reply goes from the packet's destination to its source, as translated so far.
    parts = [
        _address(match.original_source, flow.source),
        _address(match.original_destination, flow.destination),
        _address(match.reply_source, packet.destination, packet.destinations),
        _address(match.reply_destination, packet.source, packet.sources),
        port(flow.source_port, match.original_source_port),
        port(flow.destination_port, match.original_destination_port),
        port(packet.destination_port, match.reply_source_port),
        port(packet.source_port, match.reply_destination_port),
    ]
    unseen = (match.protocol, match.status, match.expire)
    if any(option is not None for option in unseen):
        parts.append(Ternary.UNKNOWN)
    return reduce(Ternary.__and__, parts, found)


def _of_answer(match: MatchConntrack, packet: Packet, situation: Situation) -> Iterator[Ternary]:
    """Yield what a match finds for an answer, besides its state."""
    original, reply = packet.original, packet.masqueraded is False
    to, to_port = (None, None) if original is None else original
    if match.reply_source_port is not None or match.original_destination_port is not None:
        situation.ask_any_port()
    yield _address(match.original_source, packet.destination, packet.destinations)
    yield _address(match.original_destination, to)
    yield _address(match.reply_source, packet.source, packet.sources)
    if match.reply_destination is not None:
        situation.ask(MASQUERADED)
        back = (packet.destination, packet.destinations) if reply else (None, None)
        yield _address(match.reply_destination, *back)
    yield port(packet.destination_port, match.original_source_port)
    yield port(to_port, match.original_destination_port)
    yield port(packet.source_port, match.reply_source_port)
    yield port(None, match.reply_destination_port)
    yield Ternary.TRUE if match.direction is None else Ternary.of(match.direction == "REPLY")
    if any(option is not None for option in (match.protocol, match.status, match.expire)):
        yield Ternary.UNKNOWN


def sent(packet: Packet, situation: Situation) -> Packet | None:
    """Return a packet as conntrack saw it first, as far as it is known; None: not at all."""
    if situation.flow is not None or packet.original is None:
        return situation.flow
    address, to_port = packet.original
    return Packet(destination=address, destination_port=to_port)


#: Reads what a match compares besides the state, the direction last.
_others: Final = attrgetter(
    "protocol",
    "original_source",
    "original_destination",
    "reply_source",
    "reply_destination",
    "original_source_port",
    "original_destination_port",
    "reply_source_port",
    "reply_destination_port",
    "status",
    "expire",
    "direction",
)
_NOTHING: Final = (None,) * 12


def _state(match: MatchConntrack, packet: Packet, situation: Situation) -> Ternary:
    wanted = match.state.value if match.state is not None else ()
    held = state_is(wanted, packet, situation)
    if packet.tracked is False or not situation.has_entry:
        return held
    # The virtual states depend on whether the flow's addresses were changed so far.
    first = packet.is_answer or situation.state in FIRST
    if "DNAT" in wanted:
        known = first and packet.tracked and packet.translated is not None
        held |= Ternary.of(bool(packet.translated)) if known else Ternary.UNKNOWN
    if "SNAT" in wanted:
        # A source that is masqueraded as itself does not count as changed.
        situation.ask(MASQUERADED)
        known = first and packet.tracked and packet.masqueraded is False
        held |= Ternary.FALSE if known else Ternary.UNKNOWN
    return held


def _address(
    option: Option[Network] | None, address: Address | None, among: Region | None = None
) -> Ternary:
    if option is None:
        return Ternary.TRUE
    if address is None and among is not None:
        return signed(option, among.is_within((span(option.value),)))
    known = address is not None
    return signed(option, Ternary.of(address in option.value) if known else Ternary.UNKNOWN)


def recent(match: MatchRecent, situation: Situation) -> Ternary:
    """Evaluate ``-m recent``: only the lists of session affinity are known.

    A number of packets beyond which it matches is a limit of traffic.
    """
    if match.action.value == "set":
        return signed(match.action, Ternary.TRUE)
    if match.hit_count is not None and match.hit_count > 1:
        return signed(match.action, ~is_under_limits(situation))
    known = match.name.startswith(situation.affinity_lists) and match.hit_count is None
    if situation.lists is None or not known:
        return Ternary.UNKNOWN
    return signed(match.action, Ternary.of(match.name in situation.lists))


def limit(match: MatchLimit | MatchHashlimit, situation: Situation) -> Ternary:
    """Evaluate a token bucket, whose level is assumed or not known."""
    above = isinstance(match, MatchHashlimit) and match.above is not None
    under = is_under_limits(situation)
    return ~under if above else under


def connection_limit(most: int, situation: Situation) -> Ternary:
    """Return whether there are at most `most` connections, including the packet's own.

    Their number is assumed or not known.

    Source: Linux, net/netfilter/nf_conncount.c, ``nf_conncount_count``: it adds the packet's own.
    """
    return is_under_limits(situation) if most else Ternary.FALSE


def is_under_limits(situation: Situation) -> Ternary:
    """Return whether token buckets have tokens left, and connections are within limits."""
    return _UNDER.get(situation.assume(LIMITS) or "", Ternary.UNKNOWN)


def flow_mark(mark: Masked, packet: Packet, situation: Situation) -> Ternary:
    """Evaluate ``-m connmark``; without a conntrack entry it is false, even if negated."""
    if packet.tracked is None or packet.template:
        return Ternary.UNKNOWN
    if not packet.tracked or not situation.has_entry:
        return Ternary.FALSE
    return packet.flow_mark.equals(mark.value, mark.mask)
