"""The value that an nft expression loads from a flow's conntrack entry.

Source: nft(8), "CT EXPRESSIONS"; Linux, net/netfilter/nft_ct.c; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.model.bits import ANY, Bits
from analyzer.model.nft import names
from analyzer.model.packet import Packet
from analyzer.model.region import Region
from analyzer.model.routing import LOOPBACK
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.flow_matching import sent, state_of
from analyzer.semantics.nft.header_fields import NUMBERS, address_of, port_of, protocol_of
from analyzer.semantics.nft.values import Evaluated
from analyzer.semantics.situation import FIRST, MASQUERADED, Situation

_STATES: Final = {"NEW": 8, "ESTABLISHED": 2, "RELATED": 4, "INVALID": 1, "UNTRACKED": 64}
#: Fields of a reply, by the corresponding ones of the first packet.
_SWAPPED: Final = {
    "saddr": "daddr",
    "daddr": "saddr",
    "proto-src": "proto-dst",
    "proto-dst": "proto-src",
}
#: Bits of a flow's status, with or without a name.
_STATUS_BITS: Final = 32
_NONE: Final[Mapping[str, int]] = {}


def ct(
    key: str, direction: str | None, packet: Packet, family: str, situation: Situation
) -> Evaluated:
    """Return the value of a field of the entry; `direction` is None where none is given."""
    if key == "state":
        state = state_of(packet, situation)
        return Evaluated(
            Ternary.TRUE, ANY if state is None else Bits(_STATES[state]), names.CT_STATES
        )
    if packet.tracked is None or packet.template:
        applies = Ternary.UNKNOWN
    else:
        # A packet without an entry has only the state.
        applies = Ternary.of(packet.tracked and situation.has_entry)
    if key.startswith(("ip ", "ip6 ")) and not key.startswith(f"{family} "):
        return Evaluated(Ternary.FALSE, ANY)
    first = situation.state in FIRST
    match key:
        case "mark":
            return Evaluated(applies, Bits(packet.flow_mark.value, packet.flow_mark.unknown))
        case "status" if first or packet.is_answer:
            situation.ask(MASQUERADED)
            return Evaluated(applies, _status(packet), names.CT_STATUSES)
        case "direction" if first or packet.is_answer:
            return Evaluated(applies, Bits(int(packet.is_answer)), names.CT_DIRECTIONS)
        case "l3proto":
            return Evaluated(applies, ANY, names.NF_PROTOCOLS)
        case "protocol":
            return Evaluated(applies, protocol_of(packet, situation), NUMBERS)
        case _ if packet.is_answer:
            situation.ask_any_port()  # as some of these do
            situation.ask(MASQUERADED)
            return Evaluated(applies, _tuple_of_answer(key, direction, packet))
        case _ if first:
            situation.ask_port(packet)  # as some of these do
            return Evaluated(applies, _tuple(key, direction, packet, sent(packet, situation)))
        case _:
            return Evaluated(applies, ANY, names.CT_STATUSES if key == "status" else _NONE)


def _status(packet: Packet) -> Bits:
    """Return the status of a flow whose first packet passes, or the answer to it.

    Bits without a name are not followed: for which directions nat is settled, and others. Source:
    Linux, include/uapi/linux/netfilter/nf_conntrack_common.h, ``enum ip_conntrack_status``.
    """
    bits = names.CT_STATUSES
    # A packet that comes back to the node that sent it was confirmed on its way out.
    held = bits["confirmed"] if packet.in_interface == LOOPBACK else 0
    unknown = ((1 << _STATUS_BITS) - 1) & ~sum(bits.values())
    if packet.is_answer:
        held, unknown = bits["confirmed"] | bits["seen-reply"], unknown | bits["assured"]
    found = Bits(held, unknown)
    for word, changed in (("dnat", packet.translated), ("snat", packet.masqueraded)):
        # A source that is masqueraded as itself does not count as changed.
        is_known = changed is not None and not (word == "snat" and changed)
        found |= (Bits(bits[word]) if changed else Bits(0)) if is_known else Bits(0, bits[word])
    return found


def _tuple(key: str, direction: str | None, packet: Packet, flow: Packet | None) -> Bits | Region:
    """Return an address or port of a flow whose first packet passes."""
    field = key.removeprefix("ip ").removeprefix("ip6 ")
    first = direction in {None, "original"}
    # A reply goes from the packet's destination to its source, as translated so far.
    seen = flow if first else packet
    if seen is None:
        return ANY
    match field if first else _SWAPPED.get(field, field):
        case "saddr":
            return address_of(seen.source, seen.sources)
        case "daddr":
            return address_of(seen.destination, seen.destinations)
        case "proto-src":
            return port_of(seen, "sport")
        case "proto-dst":
            return port_of(seen, "dport")
        case _:
            return ANY


def _tuple_of_answer(key: str, direction: str | None, packet: Packet) -> Bits | Region:
    """Return an address or port of a flow that an answer belongs to."""
    if direction != "reply":
        to, port = packet.original or (None, None)
        flow = Packet(
            source=packet.destination,
            sources=packet.destinations,
            destination=to,
            destination_port=port,
        )
        return _tuple(key, "original", packet, flow)
    if packet.masqueraded is not False:  # it goes to an address of the node first
        packet = replace(packet, destination=None, destinations=None)
    # In reply to what it answers, not to itself.
    field = key.removeprefix("ip ").removeprefix("ip6 ")
    return _tuple(field, "original", packet, replace(packet, destination_port=None))
