"""What a match says about a packet: the only place that gives matches their meaning."""

from __future__ import annotations

from functools import reduce
from typing import Final, TypeVar, assert_never

from analyzer.model.matches import (
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
from analyzer.model.options import AddressRange, Option, Range
from analyzer.model.packet import Address, Network, Packet
from analyzer.model.probability import ALWAYS, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.semantics.situation import Situation

T = TypeVar("T")

#: Numbers that ``-p`` may print instead of names. Source: IANA, protocol numbers.
_NUMBERS: Final = {"1": "icmp", "6": "tcp", "17": "udp", "58": "ipv6-icmp", "132": "sctp"}
#: kube-proxy names the list of a session affinity after the endpoint's chain.
AFFINITY_LISTS: Final = "KUBE-SEP-"
_ALL_PORTS: Final = Range(0, 0xFFFF)
_ALIASES: Final = {"icmpv6": "ipv6-icmp", "0": "all"}


@value
class MatchResult:
    """`known` judges the packet; `chance` is the probability of the random part."""

    known: Ternary
    chance: Dyadic = ALWAYS

    def __and__(self, other: MatchResult) -> MatchResult:
        return MatchResult(self.known & other.known, self.chance * other.chance)


_TRUE: Final = MatchResult(Ternary.TRUE)
_FALSE: Final = MatchResult(Ternary.FALSE)
_UNKNOWN: Final = MatchResult(Ternary.UNKNOWN)


def match_all(matches: tuple[Match, ...], packet: Packet, situation: Situation) -> MatchResult:
    """Judge a rule: its matches are joined by *and*, its random draws independent."""
    result = _TRUE
    for match in matches:
        result = result & judge(match, packet, situation)
        if result.known is Ternary.FALSE:
            return _FALSE
    return result


def judge(match: Match, packet: Packet, situation: Situation) -> MatchResult:
    """Judge one match."""
    match match:
        case MatchRandom():
            return MatchResult(Ternary.TRUE, match.probability)
        case MatchNot(MatchRandom() as random):
            return MatchResult(Ternary.TRUE, ~random.probability)
        case MatchNot(inner):
            return MatchResult(~judge(inner, packet, situation).known)
        case MatchProtocol(protocol):
            return MatchResult(_protocol(packet, protocol))
        case MatchSource(network):
            return MatchResult(_within(packet.source, network))
        case MatchDestination(network):
            return MatchResult(_within(packet.destination, network))
        case MatchInInterface(name):
            return MatchResult(_interface(packet.in_interface, name))
        case MatchOutInterface(name):
            return MatchResult(_interface(packet.out_interface, name))
        case MatchFragment():
            return _FALSE  # conntrack has put the packet together before any rule
        case MatchComment() | MatchNfacct():
            return _TRUE
        case MatchTcp() | MatchUdp() | MatchSctp():
            return MatchResult(_transport(match, packet))
        case MatchMultiport():
            return MatchResult(_multiport(match, packet))
        case MatchIprange(source=source, destination=destination):
            return MatchResult(
                _in_range(packet.source, source) & _in_range(packet.destination, destination)
            )
        case MatchState(states):
            return MatchResult(Ternary.of(situation.state in states))
        case MatchMark(mark):
            return MatchResult(packet.mark.equals(mark.value, mark.mask))
        case MatchConntrack():
            return MatchResult(_conntrack(match, packet, situation))
        case MatchAddrtype():
            return MatchResult(_addrtype(match, packet, situation))
        case MatchRecent():
            return MatchResult(_recent(match, situation))
        case (
            MatchNth()
            | MatchPhysdev()
            | MatchIcmp()
            | MatchIcmp6()
            | MatchConnmark()
            | MatchSet()
            | MatchOwner()
            | MatchLimit()
            | MatchHashlimit()
            | MatchSocket()
            | MatchRpfilter()
            | MatchLength()
            | MatchTtl()
            | MatchHl()
            | MatchMac()
            | MatchPkttype()
            | MatchString()
            | MatchTcpmss()
            | MatchConnlimit()
            | MatchPolicy()
            | MatchIpvs()
            | MatchUnknown()
        ):
            return _UNKNOWN
        case _:
            assert_never(match)


def _protocol(packet: Packet, protocol: str) -> Ternary:
    wanted = _ALIASES.get(protocol, _NUMBERS.get(protocol, protocol))
    if wanted == "all":
        return Ternary.TRUE
    if packet.protocol is None:
        return Ternary.UNKNOWN
    return Ternary.of(packet.protocol == wanted)


def _within(address: Address | None, network: Network) -> Ternary:
    if network.prefixlen == 0:
        return Ternary.TRUE
    if address is None:
        return Ternary.UNKNOWN
    return Ternary.of(address in network)


def _interface(interface: str | None, name: str) -> Ternary:
    if name == "+":
        return Ternary.TRUE
    if interface is None:
        return Ternary.UNKNOWN
    if name.endswith("+"):
        return Ternary.of(interface.startswith(name[:-1]))
    return Ternary.of(interface == name)


def _all(*parts: Ternary) -> Ternary:
    return reduce(Ternary.__and__, parts, Ternary.TRUE)


def _signed(option: Option[T] | None, holds: Ternary) -> Ternary:
    """Return what an option contributes: nothing when it is absent."""
    if option is None:
        return Ternary.TRUE
    return ~holds if option.negated else holds


def _port(port: int | None, option: Option[Range] | None) -> Ternary:
    if option is None:
        return Ternary.TRUE
    if port is None:
        whole = option.value == _ALL_PORTS
        return _signed(option, Ternary.TRUE if whole else Ternary.UNKNOWN)
    return _signed(option, Ternary.of(port in option.value))


def _multiport(match: MatchMultiport, packet: Packet) -> Ternary:
    source, destination = packet.source_port, packet.destination_port
    either = _port_in(source, match.ports) | _port_in(destination, match.ports)
    return _all(
        _signed(match.source_ports, _port_in(source, match.source_ports)),
        _signed(match.destination_ports, _port_in(destination, match.destination_ports)),
        _signed(match.ports, either),
    )


def _port_in(port: int | None, option: Option[tuple[Range, ...]] | None) -> Ternary:
    if option is None or port is None:
        return Ternary.UNKNOWN
    return Ternary.of(any(port in each for each in option.value))


def _in_range(address: Address | None, option: Option[AddressRange] | None) -> Ternary:
    if option is None:
        return Ternary.TRUE
    if address is None:
        return Ternary.UNKNOWN
    return _signed(option, Ternary.of(address in option.value))


def _transport(match: MatchTcp | MatchUdp | MatchSctp, packet: Packet) -> Ternary:
    names = {MatchTcp: "tcp", MatchUdp: "udp", MatchSctp: "sctp"}
    ports = _all(
        # The kernel refuses these matches without the -p of the same name.
        _protocol(packet, names[type(match)]),
        _port(packet.source_port, match.source_port),
        _port(packet.destination_port, match.destination_port),
    )
    match match:
        case MatchTcp(tcp_option=option, flags=flags):
            # A new flow begins with SYN and none of ACK, RST and FIN.
            syn = flags and frozenset({"SYN"}) & flags.value.mask == flags.value.flags
            return _all(
                ports,
                _signed(option, Ternary.UNKNOWN),
                _signed(flags, Ternary.of(bool(syn))),
            )
        case MatchSctp(chunk_types=chunks):
            return _all(ports, _signed(chunks, Ternary.UNKNOWN))
        case _:
            return ports


def _conntrack(match: MatchConntrack, packet: Packet, situation: Situation) -> Ternary:
    judged = _signed(match.state, _state(match, packet, situation))
    others = (
        match.protocol,
        match.original_source,
        match.original_destination,
        match.reply_source,
        match.reply_destination,
        match.original_source_port,
        match.original_destination_port,
        match.reply_source_port,
        match.reply_destination_port,
        match.status,
        match.expire,
        match.direction,
    )
    if any(other is not None for other in others):
        return judged & Ternary.UNKNOWN
    return judged


def _state(match: MatchConntrack, packet: Packet, situation: Situation) -> Ternary:
    wanted = match.state.value if match.state is not None else ()
    if situation.state in wanted:
        return Ternary.TRUE
    # The virtual states ask whether the flow's addresses were changed so far.
    held = Ternary.FALSE
    if "DNAT" in wanted:
        held |= Ternary.UNKNOWN if packet.translated is None else Ternary.of(packet.translated)
    if "SNAT" in wanted:
        held |= Ternary.UNKNOWN
    return held


def _addrtype(match: MatchAddrtype, packet: Packet, situation: Situation) -> Ternary:
    if match.limit_in_interface or match.limit_out_interface:
        return Ternary.UNKNOWN
    return _all(
        _signed(match.source_type, _type(match.source_type, packet.source, situation)),
        _signed(
            match.destination_type,
            _destination_type(match.destination_type, packet, situation),
        ),
    )


def _destination_type(
    option: Option[tuple[str, ...]] | None, packet: Packet, situation: Situation
) -> Ternary:
    # A DNAT has led the flow elsewhere.
    if situation.destination_is_local and packet.translated is False and option is not None:
        return Ternary.of("LOCAL" in option.value)
    return _type(option, packet.destination, situation)


def _type(
    option: Option[tuple[str, ...]] | None, address: Address | None, situation: Situation
) -> Ternary:
    local = situation.is_local(address)
    if option is None or local is Ternary.UNKNOWN:
        return Ternary.UNKNOWN
    if local is Ternary.TRUE:
        return Ternary.of("LOCAL" in option.value)
    # Which type another address has depends on routes that we do not see; that it is not
    # LOCAL we know.
    return Ternary.FALSE if option.value == ("LOCAL",) else Ternary.UNKNOWN


def _recent(match: MatchRecent, situation: Situation) -> Ternary:
    if match.action.value == "set":
        return _signed(match.action, Ternary.TRUE)
    # Which of the lists holds the client is known only where none of kube-proxy's does.
    if situation.has_affinity is False and match.name.startswith(AFFINITY_LISTS):
        return _signed(match.action, Ternary.FALSE)
    return Ternary.UNKNOWN
