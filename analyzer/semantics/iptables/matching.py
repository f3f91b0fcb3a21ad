"""Evaluates matches against a packet: the only place that gives them their meaning."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final, TypeVar

from analyzer.model.addresses import IPV6, Address, Network
from analyzer.model.devices import Devices
from analyzer.model.intervals import span
from analyzer.model.iptables.matches import (
    Match,
    MatchAddrtype,
    MatchComment,
    MatchConnlimit,
    MatchConnmark,
    MatchConntrack,
    MatchDestination,
    MatchFragment,
    MatchHashlimit,
    MatchHl,
    MatchIcmp,
    MatchIcmp6,
    MatchInInterface,
    MatchIprange,
    MatchIpvs,
    MatchLength,
    MatchLimit,
    MatchMac,
    MatchMark,
    MatchMultiport,
    MatchNfacct,
    MatchNot,
    MatchNth,
    MatchOutInterface,
    MatchOwner,
    MatchPhysdev,
    MatchPkttype,
    MatchPolicy,
    MatchProtocol,
    MatchRandom,
    MatchRecent,
    MatchRpfilter,
    MatchSctp,
    MatchSet,
    MatchSocket,
    MatchSource,
    MatchState,
    MatchString,
    MatchTcp,
    MatchTcpmss,
    MatchTtl,
    MatchUdp,
    MatchUnknown,
)
from analyzer.model.iptables.options import AddressRange, Option
from analyzer.model.packet import Packet
from analyzer.model.region import Parted, Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.address_types import has_type
from analyzer.semantics.flow_matching import (
    connection_limit,
    conntrack,
    flow_mark,
    limit,
    recent,
    state_is,
)
from analyzer.semantics.match_result import CERTAIN, MatchResult
from analyzer.semantics.node_matching import (
    packet_type,
    physdev,
    policy,
    rpfilter,
    segment_size,
    socket,
)
from analyzer.semantics.option_matching import destination_port, multiport, signed, source_port
from analyzer.semantics.situation import PROTOCOL, Situation

T = TypeVar("T")

#: Numbers that ``-p`` may print instead of names. Source: IANA, protocol numbers.
_NUMBERS: Final = {"1": "icmp", "6": "tcp", "17": "udp", "58": "ipv6-icmp", "132": "sctp"}
_ALIASES: Final = {"icmpv6": "ipv6-icmp", "0": "all"}
_TRANSPORTS: Final = {MatchTcp: "tcp", MatchUdp: "udp", MatchSctp: "sctp"}

_FALSE: Final = MatchResult(Ternary.FALSE)
_UNKNOWN: Final = MatchResult(Ternary.UNKNOWN)


def match_all(
    matches: tuple[Match, ...],
    packet: Packet,
    situation: Situation,
    evaluated: set[type] | None = None,
) -> MatchResult:
    """Evaluate a rule: its matches are joined by *and*, its random draws independent.

    The kinds of matches that had to be evaluated are added to `evaluated`.

    Raises:
        Parted: it matches some of the sources or destinations, and not all.
    """
    result = CERTAIN
    parted: Parted | None = None
    by_match: Match | None = None
    for match in matches:
        if type(match) is MatchComment:  # many rules have some
            continue
        if evaluated is not None:
            evaluated.add(_kind(match))
        try:
            one = evaluate_match(match, packet, situation)
        except Parted as by:
            by_match = match if parted is None else None
            parted = by  # which matters only where all else matches
            continue
        if one.known is Ternary.FALSE:
            return _FALSE
        if one is not CERTAIN:
            result = one if result is CERTAIN else result & one
    if parted is not None:
        parted.match = by_match if result is CERTAIN else None
        raise parted
    return result


def _kind(match: Match) -> type:
    found = type(match)
    if found is not MatchNot and found is not MatchTcp:
        return found
    inner = match.match if isinstance(match, MatchNot) else match
    # Only one with flags depends on it being a first packet.
    return MatchProtocol if isinstance(inner, MatchTcp) and inner.flags is None else type(inner)


def _result(known: Ternary) -> MatchResult:
    if known is Ternary.TRUE:
        return CERTAIN
    return _FALSE if known is Ternary.FALSE else _UNKNOWN


def evaluate_match(match: Match, packet: Packet, situation: Situation) -> MatchResult:
    """Evaluate one match."""
    evaluate = EVALUATORS.get(type(match))
    if evaluate is not None:
        return _result(evaluate(match, packet, situation))
    if isinstance(match, MatchRandom):
        return MatchResult(Ternary.TRUE, match.probability)
    assert isinstance(match, MatchNot)
    match match.match:
        case MatchRandom() as random:
            return MatchResult(Ternary.TRUE, ~random.probability)
        case MatchConnmark() if not packet.template and (
            packet.tracked is False or not situation.has_entry
        ):
            return _FALSE  # the kernel answers before it comes to the `!`
        case inner:
            return _result(~evaluate_match(inner, packet, situation).known)


def _protocol(packet: Packet, protocol: str, situation: Situation) -> Ternary:
    wanted = _ALIASES.get(protocol, _NUMBERS.get(protocol, protocol))
    if wanted == "all":
        return Ternary.TRUE
    if packet.protocol is None:
        situation.ask(PROTOCOL)
        return Ternary.UNKNOWN
    return Ternary.of(packet.protocol == wanted)


def _within(address: Address | None, among: Region | None, network: Network) -> Ternary:
    if network.prefixlen == 0:
        return Ternary.TRUE
    if address is None:
        return Ternary.UNKNOWN if among is None else among.is_within((span(network),))
    return Ternary.of(address in network)


def _comes_from(match: MatchSource, packet: Packet, situation: Situation) -> Ternary:
    found = _within(packet.source, packet.sources, match.network)
    return situation.comes_from(packet, match.network) if found is Ternary.UNKNOWN else found


def _goes_to(match: MatchDestination, packet: Packet, situation: Situation) -> Ternary:
    found = _within(packet.destination, packet.destinations, match.network)
    return situation.goes_to(packet, match.network) if found is Ternary.UNKNOWN else found


def _came_by(match: MatchInInterface, packet: Packet, situation: Situation) -> Ternary:
    if match.name == "+":
        return Ternary.TRUE
    return _is_named(situation.came_by(packet), match.name, situation)


def _leaves_by(match: MatchOutInterface, packet: Packet, situation: Situation) -> Ternary:
    if match.name == "+":
        return Ternary.TRUE
    return _is_named(situation.leaves_by(packet), match.name, situation)


def _is_named(interface: str | Devices | None, name: str, situation: Situation) -> Ternary:
    if interface is None:
        return Ternary.UNKNOWN
    if not isinstance(interface, str):
        found = interface.is_named(name)
        return situation.told_by_devices(interface, found, lambda each: each.is_named(name))
    if name.endswith("+"):
        return Ternary.of(interface.startswith(name[:-1]))
    return Ternary.of(interface == name)


def _all(*parts: Ternary) -> Ternary:
    return reduce(Ternary.__and__, parts, Ternary.TRUE)


def _in_range(
    address: Address | None, among: Region | None, option: Option[AddressRange] | None
) -> Ternary:
    if option is None:
        return Ternary.TRUE
    if address is None:
        if among is None:
            return Ternary.UNKNOWN
        asked = (int(option.value.first), int(option.value.last))
        return signed(option, among.is_within((asked,)))
    return signed(option, Ternary.of(address in option.value))


def _transport(
    match: MatchTcp | MatchUdp | MatchSctp, packet: Packet, situation: Situation
) -> Ternary:
    # The kernel refuses these matches without the -p of the same name.
    ports = _protocol(packet, _TRANSPORTS[type(match)], situation)
    if match.source_port is not None:
        ports &= source_port(packet, match.source_port, situation)
    if match.destination_port is not None:
        ports &= destination_port(packet, match.destination_port, situation)
    match match:
        case MatchTcp(tcp_option=None, flags=None) | MatchUdp():
            return ports
        case MatchTcp(tcp_option=option, flags=flags):
            # A new flow begins with SYN and none of ACK, RST and FIN, the answer with SYN and ACK.
            held = frozenset({"SYN", "ACK"} if packet.is_answer else {"SYN"})
            is_known = packet.is_answer or situation.opens_flow
            is_held = flags and held & flags.value.mask == flags.value.flags
            return _all(
                ports,
                signed(option, Ternary.UNKNOWN),
                signed(flags, Ternary.of(bool(is_held)) if is_known else Ternary.UNKNOWN),
            )
        case MatchSctp(chunk_types=chunks):
            return _all(ports, signed(chunks, Ternary.UNKNOWN))


def _icmp(match: MatchIcmp | MatchIcmp6, packet: Packet, situation: Situation) -> Ternary:
    # The kernel refuses these matches without the -p of the same name.
    protocol = "icmp" if isinstance(match, MatchIcmp) else "ipv6-icmp"
    asked = _protocol(packet, protocol, situation)
    if match.icmp_type is None:
        return asked
    if packet.icmp is None:
        return asked & Ternary.UNKNOWN
    found, code = packet.icmp
    return asked & Ternary.of(found == match.icmp_type and match.code in (None, code))


def _owner(match: MatchOwner, packet: Packet, situation: Situation) -> Ternary:
    """Evaluate whose socket sent the packet: one that the node only forwards has none.

    Source: Linux, net/netfilter/xt_owner.c, ``owner_mt``.
    """
    if not situation.is_forwarded(packet):
        return Ternary.UNKNOWN
    asked = (match.socket_exists, match.user, match.group)
    if match.supplementary_groups:
        return Ternary.FALSE  # a question of its own, which `!` does not turn around
    return Ternary.of(all(option is None or option.negated for option in asked))


def _marked(match: MatchMark, packet: Packet, _: Situation) -> Ternary:
    return packet.with_one_mark().mark.equals(match.mark.value, match.mark.mask)


def _addrtype(match: MatchAddrtype, packet: Packet, situation: Situation) -> Ternary:
    if match.limit_in_interface or match.limit_out_interface:
        return Ternary.UNKNOWN
    holds = Ternary.TRUE
    if match.source_type is not None:
        known = packet.source or packet.sources
        local = situation.is_from_node(packet)
        holds &= _type(match.source_type, local, known, situation)
    if match.destination_type is not None:
        known = packet.destination or packet.destinations
        local = situation.is_local(packet)
        holds &= _type(match.destination_type, local, known, situation)
    return holds


def _type(
    option: Option[tuple[str, ...]],
    local: Ternary,
    of: Address | Region | None,
    situation: Situation,
) -> Ternary:
    if of is not None and of.version == IPV6 and option.value != ("LOCAL",):
        return Ternary.UNKNOWN  # of IPv6 an address has several types at once
    wanted = [each.lower() for each in option.value]
    return signed(option, has_type(wanted, local, of, situation.assume))


def _limited(match: MatchLimit | MatchHashlimit, _: Packet, situation: Situation) -> Ternary:
    return limit(match, situation)


def _connections(match: MatchConnlimit, _: Packet, situation: Situation) -> Ternary:
    if match.above is not None:
        return ~connection_limit(match.above, situation)
    return Ternary.UNKNOWN if match.up_to is None else connection_limit(match.up_to, situation)


def _iprange(match: MatchIprange, packet: Packet, _: Situation) -> Ternary:
    from_there = _in_range(packet.source, packet.sources, match.source)
    return from_there & _in_range(packet.destination, packet.destinations, match.destination)


def _in_set(match: MatchSet, packet: Packet, situation: Situation) -> Ternary:
    if situation.ipsets is None:
        return Ternary.UNKNOWN
    if situation.ipsets.may_hold_ports(match.match_set.value[0]):
        situation.ask_any_port()
        situation.ask(PROTOCOL)  # which the ports in a set have, too

    def device(flag: str) -> str | None:
        passes = situation.came_by if flag == "src" else situation.leaves_by
        found = passes(packet)
        return found if isinstance(found, str) else None

    return signed(match.match_set, situation.ipsets.holds(match, packet, device))


def _is_true(*_: object) -> Ternary:
    return Ternary.TRUE


def _is_unknown(*_: object) -> Ternary:
    return Ternary.UNKNOWN


#: The evaluator of each kind of match, except for random draws and ``!``.
EVALUATORS: Final[dict[type, Callable[[Any, Packet, Situation], Ternary]]] = {
    MatchProtocol: lambda match, packet, of: _protocol(packet, match.protocol, of),
    MatchSource: _comes_from,
    MatchDestination: _goes_to,
    MatchInInterface: _came_by,
    MatchOutInterface: _leaves_by,
    # conntrack has reassembled the packet before any rule
    MatchFragment: lambda *_: Ternary.FALSE,
    MatchComment: _is_true,
    MatchNfacct: _is_true,
    MatchTcp: _transport,
    MatchUdp: _transport,
    MatchSctp: _transport,
    MatchMultiport: multiport,
    MatchIprange: _iprange,
    MatchState: lambda match, packet, situation: state_is(match.states, packet, situation),
    MatchMark: _marked,
    MatchConntrack: conntrack,
    MatchAddrtype: _addrtype,
    MatchRecent: lambda match, _, situation: recent(match, situation),
    MatchLimit: _limited,
    MatchHashlimit: _limited,
    MatchConnlimit: _connections,
    MatchConnmark: lambda match, packet, situation: flow_mark(match.mark, packet, situation),
    MatchIcmp: _icmp,
    MatchIcmp6: _icmp,
    MatchOwner: _owner,
    MatchPhysdev: physdev,
    MatchRpfilter: rpfilter,
    MatchPolicy: lambda match, _, situation: policy(match, situation),
    MatchSocket: socket,
    MatchNth: _is_unknown,
    MatchSet: _in_set,
    MatchLength: _is_unknown,
    MatchTtl: _is_unknown,
    MatchHl: _is_unknown,
    MatchMac: _is_unknown,
    MatchPkttype: lambda match, _, situation: packet_type(match, situation),
    MatchString: _is_unknown,
    MatchTcpmss: segment_size,
    MatchIpvs: _is_unknown,
    MatchUnknown: _is_unknown,
}
