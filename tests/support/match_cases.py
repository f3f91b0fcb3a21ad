"""Matches, packets that they are asked of, and whether they hold."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

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
    MatchNth,
    MatchOutInterface,
    MatchOwner,
    MatchPhysdev,
    MatchPkttype,
    MatchPolicy,
    MatchProtocol,
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
from analyzer.model.iptables.options import (
    AddressRange,
    ChunkTypes,
    Masked,
    Option,
    Range,
    TcpFlags,
)
from analyzer.model.packet import UNKNOWN_PACKET, Mark, Packet
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.base_chains import before_conntrack
from analyzer.semantics.situation import Situation

FALSE, UNKNOWN, TRUE = Ternary
AFFINITY = "KUBE-SEP-6GOADYOLHEZLYCMN"

#: Traffic within the rates of limits, and beyond.
UNDER, OVER = (Situation(assumed=Assumed({"limits": each})) for each in ("under", "over"))
HERE = Situation(affinity_lists=("KUBE-SEP-",))
NODE = Situation(local_addresses=frozenset({ip_address("172.16.0.1")}))
PACKET = Packet(
    protocol="tcp",
    source=ip_address("10.1.0.9"),
    source_port=40_000,
    destination=ip_address("10.2.3.4"),
    destination_port=53,
    in_interface="eth0",
    out_interface="",
)
LOST = Packet(tracked=False)
PING = Packet(protocol="icmp", icmp=(8, 0))
SERVICE, POD = ip_network("10.2.3.4/32"), ip_network("10.1.0.2/32")
#: The same packet behind a DNAT.
SENT_ON = replace(PACKET, destination=POD.network_address, destination_port=8080, translated=True)
FLOW = Situation(flow=PACKET)
MADE_HERE = Situation(flow=replace(PACKET, in_interface=""))
#: Before conntrack has looked.
BEFORE = Situation(state="INVALID", has_entry=False)
HOLDS = Situation(lists=frozenset({AFFINITY}), affinity_lists=("KUBE-SEP-",))
conntrack = MatchConntrack
TO_NODE = Packet(destination=ip_address("172.16.0.1"))
TO_LOOPBACK = Packet(destination=ip_address("127.0.0.5"))
CLIENTS = ip_network("10.1.0.0/24")
EVERYTHING = ip_network("0.0.0.0/0")

DNS = Option(Range(53, 53))
NOT_DNS = Option(Range(53, 53), negated=True)
ALL_PORTS = Option(Range(0, 65535))
NO_PORTS = Option(Range(0, 65535), negated=True)
SYN = TcpFlags(frozenset({"SYN", "ACK", "RST", "FIN"}), frozenset({"SYN"}))
ACK = TcpFlags(frozenset({"SYN", "ACK"}), frozenset({"SYN", "ACK"}))
NO_FLAGS = TcpFlags(frozenset({"FIN", "RST"}), frozenset())

WEB: Option[tuple[Range, ...]] = Option((Range(80, 80), Range(8000, 8080)))
WEB_OR_DNS: Option[tuple[Range, ...]] = Option((*WEB.value, Range(53, 53)))
TEN_TO_TWENTY = Option(AddressRange(ip_address("10.0.0.10"), ip_address("10.0.0.20")))

TYPE_LOCAL = MatchAddrtype(destination_type=Option(("LOCAL",)))
FROM_LOCAL = MatchAddrtype(source_type=Option(("LOCAL",)))
NOT_LOCAL = MatchAddrtype(destination_type=Option(("LOCAL",), negated=True))
MULTICAST = MatchAddrtype(destination_type=Option(("MULTICAST",)))


def ctstate(*words: str, negated: bool = False) -> MatchConntrack:
    return MatchConntrack(state=Option(words, negated))


def recent(action: str, *, negated: bool = False) -> MatchRecent:
    return MatchRecent(action=Option(action, negated), name=AFFINITY)


CASES: list[tuple[Match, Packet, Situation, Ternary]] = [
    # ---- protocol
    (MatchProtocol("tcp"), PACKET, HERE, TRUE),
    (MatchProtocol("udp"), PACKET, HERE, FALSE),
    (MatchProtocol("6"), PACKET, HERE, TRUE),
    (MatchProtocol("17"), PACKET, HERE, FALSE),
    (MatchProtocol("tcp"), UNKNOWN_PACKET, HERE, UNKNOWN),
    (MatchProtocol("all"), UNKNOWN_PACKET, HERE, TRUE),
    (MatchProtocol("0"), UNKNOWN_PACKET, HERE, TRUE),
    (MatchProtocol("icmpv6"), Packet(protocol="ipv6-icmp"), HERE, TRUE),
    (MatchProtocol("132"), Packet(protocol="sctp"), HERE, TRUE),
    # ---- addresses
    (MatchSource(CLIENTS), PACKET, HERE, TRUE),
    (MatchSource(ip_network("10.2.0.0/16")), PACKET, HERE, FALSE),
    (MatchSource(ip_network("fd00::/8")), PACKET, HERE, FALSE),
    (MatchSource(CLIENTS), UNKNOWN_PACKET, HERE, UNKNOWN),
    (MatchSource(EVERYTHING), UNKNOWN_PACKET, HERE, TRUE),
    (MatchDestination(ip_network("10.2.3.4/32")), PACKET, HERE, TRUE),
    (MatchDestination(CLIENTS), PACKET, HERE, FALSE),
    (MatchDestination(CLIENTS), UNKNOWN_PACKET, HERE, UNKNOWN),
    # ---- interfaces
    (MatchInInterface("eth0"), PACKET, HERE, TRUE),
    (MatchInInterface("eth"), PACKET, HERE, FALSE),
    (MatchInInterface("eth+"), PACKET, HERE, TRUE),
    (MatchInInterface("veth+"), PACKET, HERE, FALSE),
    (MatchInInterface("+"), UNKNOWN_PACKET, HERE, TRUE),
    (MatchInInterface("eth0"), UNKNOWN_PACKET, HERE, UNKNOWN),
    (MatchOutInterface("eth0"), PACKET, HERE, FALSE),
    (MatchOutInterface("eth+"), PACKET, HERE, FALSE),
    (MatchOutInterface("eth0"), UNKNOWN_PACKET, HERE, UNKNOWN),
    # ---- what always holds, and what never does
    (MatchComment("-j DROP"), UNKNOWN_PACKET, HERE, TRUE),
    (MatchNfacct("dropped"), UNKNOWN_PACKET, HERE, TRUE),
    (MatchFragment(), UNKNOWN_PACKET, HERE, FALSE),
    # ---- ports
    (MatchTcp(), PACKET, HERE, TRUE),
    (MatchTcp(destination_port=DNS), PACKET, HERE, TRUE),
    (MatchTcp(destination_port=NOT_DNS), PACKET, HERE, FALSE),
    (MatchTcp(source_port=Option(Range(32768, 60999))), PACKET, HERE, TRUE),
    (MatchTcp(source_port=DNS, destination_port=DNS), PACKET, HERE, FALSE),
    (MatchTcp(source_port=DNS), Packet(protocol="tcp"), HERE, UNKNOWN),
    (MatchTcp(source_port=ALL_PORTS), Packet(protocol="tcp"), HERE, TRUE),
    (MatchTcp(source_port=NO_PORTS), Packet(protocol="tcp"), HERE, FALSE),
    (MatchTcp(destination_port=DNS), Packet(destination_port=53), HERE, UNKNOWN),
    (MatchTcp(destination_port=DNS), Packet(destination_port=54), HERE, FALSE),
    (MatchUdp(destination_port=DNS), PACKET, HERE, FALSE),
    (MatchUdp(destination_port=DNS), Packet(protocol="udp", destination_port=53), HERE, TRUE),
    (MatchUdp(destination_port=NOT_DNS), Packet(protocol="udp"), HERE, UNKNOWN),
    (MatchSctp(destination_port=DNS), Packet(protocol="sctp", destination_port=53), HERE, TRUE),
    (MatchSctp(destination_port=DNS), PACKET, HERE, FALSE),
    (
        MatchSctp(chunk_types=Option(ChunkTypes("any", ("INIT",)))),
        Packet(protocol="sctp"),
        HERE,
        UNKNOWN,
    ),
    # ---- the first packet of a flow is a SYN
    (MatchTcp(flags=Option(SYN)), PACKET, HERE, TRUE),
    (MatchTcp(flags=Option(SYN, negated=True)), PACKET, HERE, FALSE),
    (MatchTcp(flags=Option(ACK)), PACKET, HERE, FALSE),
    (MatchTcp(flags=Option(ACK, negated=True)), PACKET, HERE, TRUE),
    (MatchTcp(flags=Option(NO_FLAGS)), PACKET, HERE, TRUE),
    # Before conntrack has looked at it, the first packet of a flow is the same.
    (MatchTcp(flags=Option(SYN)), PACKET, before_conntrack(HERE), TRUE),
    (MatchTcp(flags=Option(ACK)), PACKET, before_conntrack(HERE), FALSE),
    (MatchTcp(flags=Option(SYN)), PACKET, BEFORE, UNKNOWN),
    (MatchTcp(tcp_option=Option(7)), PACKET, HERE, UNKNOWN),
    (MatchTcp(tcp_option=Option(7, negated=True)), PACKET, HERE, UNKNOWN),
    # ---- mark
    (MatchMark(Masked(0x4000, 0x4000)), Packet(mark=Mark(0xC000)), HERE, TRUE),
    (MatchMark(Masked(0x4000, 0x4000)), Packet(mark=Mark(0x8000)), HERE, FALSE),
    (MatchMark(Masked(0)), Packet(), HERE, TRUE),
    (MatchMark(Masked(1)), Packet(mark=Mark(3)), HERE, FALSE),
    (MatchMark(Masked(2, 1)), Packet(mark=Mark(3)), HERE, FALSE),
    (MatchMark(Masked(1)), UNKNOWN_PACKET, HERE, UNKNOWN),
    # ---- conntrack
    (ctstate("NEW"), PACKET, HERE, TRUE),
    (ctstate("RELATED", "ESTABLISHED"), PACKET, HERE, FALSE),
    (ctstate("ESTABLISHED"), PACKET, Situation(state="ESTABLISHED"), TRUE),
    (ctstate("INVALID", negated=True), PACKET, HERE, TRUE),
    (ctstate("DNAT"), PACKET, HERE, FALSE),
    (ctstate("DNAT"), Packet(translated=True), HERE, TRUE),
    (ctstate("DNAT", negated=True), Packet(translated=True), HERE, FALSE),
    (ctstate("DNAT"), UNKNOWN_PACKET, HERE, UNKNOWN),
    (ctstate("NEW", "DNAT"), UNKNOWN_PACKET, HERE, UNKNOWN),
    (ctstate("SNAT"), PACKET, HERE, FALSE),
    (ctstate("SNAT"), Packet(masqueraded=True), HERE, UNKNOWN),
    (ctstate("NEW"), Packet(tracked=False), HERE, FALSE),
    (ctstate("UNTRACKED"), Packet(tracked=False), HERE, TRUE),
    (ctstate("NEW"), PACKET, BEFORE, FALSE),
    (ctstate("INVALID"), PACKET, BEFORE, TRUE),
    (MatchState(("UNTRACKED",)), Packet(tracked=False), HERE, TRUE),
    # Without an entry nothing of the flow was changed.
    (ctstate("DNAT"), PACKET, BEFORE, FALSE),
    (ctstate("DNAT"), Packet(tracked=False, translated=True), HERE, FALSE),
    (ctstate("SNAT", negated=True), Packet(tracked=False, masqueraded=True), HERE, TRUE),
    (conntrack(original_destination=Option(SERVICE)), SENT_ON, FLOW, TRUE),
    (conntrack(original_destination=Option(SERVICE, negated=True)), SENT_ON, FLOW, FALSE),
    (conntrack(original_destination_port=Option(Range(53, 60))), SENT_ON, FLOW, TRUE),
    (conntrack(original_source_port=Option(Range(1, 60))), SENT_ON, FLOW, FALSE),
    (conntrack(reply_source=Option(SERVICE)), SENT_ON, FLOW, FALSE),
    (conntrack(reply_source=Option(POD)), SENT_ON, FLOW, TRUE),
    (conntrack(reply_source_port=Option(Range(8080, 8080))), SENT_ON, FLOW, TRUE),
    (conntrack(reply_destination=Option(POD)), SENT_ON, FLOW, FALSE),
    (conntrack(direction="ORIGINAL"), SENT_ON, FLOW, TRUE),
    (conntrack(direction="REPLY"), SENT_ON, FLOW, FALSE),
    (conntrack(status=Option(("ASSURED",))), SENT_ON, FLOW, UNKNOWN),
    # A flow without an entry: only the state is looked at, and must be asked for.
    (conntrack(direction="ORIGINAL"), Packet(tracked=False), FLOW, FALSE),
    (conntrack(direction="REPLY", state=Option(("UNTRACKED",))), LOST, FLOW, TRUE),
    (conntrack(direction="REPLY", state=Option(("NEW",))), LOST, FLOW, FALSE),
    # ---- connmark
    (MatchConnmark(Masked(1, 1)), Packet(flow_mark=Mark(3)), HERE, TRUE),
    (MatchConnmark(Masked(1, 1)), Packet(flow_mark=Mark(2)), HERE, FALSE),
    (MatchConnmark(Masked(1, 1)), UNKNOWN_PACKET, HERE, UNKNOWN),
    # ---- icmp
    (MatchIcmp(8), PING, HERE, TRUE),
    (MatchIcmp(8, 0), PING, HERE, TRUE),
    (MatchIcmp(8, 1), PING, HERE, FALSE),
    (MatchIcmp(0), PING, HERE, FALSE),
    (MatchIcmp(None), PING, HERE, TRUE),
    (MatchIcmp(8), PACKET, HERE, FALSE),
    (MatchIcmp(8), Packet(protocol="icmp"), HERE, UNKNOWN),
    (MatchIcmp6(128), Packet(protocol="ipv6-icmp", icmp=(128, 0)), HERE, TRUE),
    (MatchIcmp6(128), PING, HERE, FALSE),
    # ---- whose socket
    (MatchOwner(user=Option(Range(0, 0))), PACKET, FLOW, FALSE),
    (MatchOwner(user=Option(Range(0, 0), negated=True)), PACKET, FLOW, TRUE),
    (MatchOwner(user=Option(Range(0, 0))), PACKET, MADE_HERE, UNKNOWN),
    # ---- buckets
    (MatchLimit(100), PACKET, HERE, UNKNOWN),
    (MatchLimit(100), PACKET, UNDER, TRUE),
    (MatchLimit(100), PACKET, OVER, FALSE),
    (MatchHashlimit(name="x", up_to="1/sec"), PACKET, UNDER, TRUE),
    (MatchHashlimit(name="x", above="1/sec"), PACKET, UNDER, FALSE),
    (MatchHashlimit(name="x", above="1/sec"), PACKET, OVER, TRUE),
    (MatchConnlimit(above=3), PACKET, UNDER, FALSE),
    (MatchConnlimit(above=3), PACKET, OVER, TRUE),
    (MatchConnlimit(up_to=3), PACKET, UNDER, TRUE),
    (MatchConnlimit(up_to=3), PACKET, HERE, UNKNOWN),
    # The packet's own connection is one of them.
    (MatchConnlimit(above=0), PACKET, HERE, TRUE),
    (MatchConnlimit(up_to=0), PACKET, UNDER, FALSE),
    (MatchConntrack(protocol=Option("6")), PACKET, HERE, UNKNOWN),
    (MatchConntrack(direction="ORIGINAL"), PACKET, HERE, TRUE),
    (
        MatchConntrack(state=Option(("ESTABLISHED",)), direction="ORIGINAL"),
        PACKET,
        HERE,
        FALSE,
    ),
    # ---- addrtype
    (TYPE_LOCAL, TO_NODE, NODE, TRUE),
    (TYPE_LOCAL, TO_LOOPBACK, NODE, TRUE),
    (TYPE_LOCAL, PACKET, NODE, FALSE),
    (NOT_LOCAL, TO_NODE, NODE, FALSE),
    (NOT_LOCAL, PACKET, NODE, TRUE),
    (TYPE_LOCAL, TO_NODE, HERE, UNKNOWN),
    (TYPE_LOCAL, Packet(), NODE, UNKNOWN),
    (MULTICAST, TO_NODE, NODE, FALSE),
    (MULTICAST, PACKET, NODE, FALSE),
    (
        MatchAddrtype(destination_type=Option(("UNICAST", "LOCAL"))),
        PACKET,
        NODE,
        UNKNOWN,
    ),
    (
        MatchAddrtype(source_type=Option(("LOCAL",)), destination_type=Option(("LOCAL",))),
        Packet(source=PACKET.source, destination=TO_NODE.destination),
        NODE,
        FALSE,
    ),
    (
        MatchAddrtype(destination_type=Option(("LOCAL",)), limit_in_interface=True),
        TO_NODE,
        NODE,
        UNKNOWN,
    ),
    # Whose addresses are not known, and where it comes from is.
    (FROM_LOCAL, PACKET, HERE, UNKNOWN),
    (FROM_LOCAL, replace(PACKET, from_node=False), HERE, FALSE),
    (FROM_LOCAL, replace(PACKET, from_node=True), HERE, TRUE),
    (FROM_LOCAL, PACKET, NODE, FALSE),
    # ---- session affinity
    (recent("rcheck"), PACKET, HERE, FALSE),
    (recent("rcheck", negated=True), PACKET, HERE, TRUE),
    (recent("update"), PACKET, HERE, FALSE),
    (recent("rcheck"), PACKET, HOLDS, TRUE),
    (recent("rcheck"), PACKET, Situation(lists=None, affinity_lists=("KUBE-SEP-",)), UNKNOWN),
    (recent("set"), PACKET, Situation(lists=None), TRUE),
    (recent("set", negated=True), PACKET, HERE, FALSE),
    (MatchState(("NEW", "RELATED")), PACKET, HERE, TRUE),
    (MatchState(("ESTABLISHED",)), PACKET, HERE, FALSE),
    # ---- several ports, ranges of addresses
    (MatchMultiport(destination_ports=WEB_OR_DNS), PACKET, HERE, TRUE),
    (MatchMultiport(destination_ports=WEB), PACKET, HERE, FALSE),
    (MatchMultiport(destination_ports=Option(WEB.value, negated=True)), PACKET, HERE, TRUE),
    (MatchMultiport(source_ports=WEB_OR_DNS), PACKET, HERE, FALSE),
    (MatchMultiport(ports=WEB_OR_DNS), PACKET, HERE, TRUE),
    (MatchMultiport(ports=WEB_OR_DNS), Packet(source_port=53), HERE, TRUE),
    (MatchMultiport(ports=WEB_OR_DNS), Packet(source_port=54), HERE, UNKNOWN),
    (MatchMultiport(destination_ports=WEB), UNKNOWN_PACKET, HERE, UNKNOWN),
    (MatchMultiport(source_ports=WEB, destination_ports=WEB_OR_DNS), PACKET, HERE, FALSE),
    (MatchIprange(source=TEN_TO_TWENTY), Packet(source=ip_address("10.0.0.20")), HERE, TRUE),
    (MatchIprange(source=TEN_TO_TWENTY), Packet(source=ip_address("10.0.0.21")), HERE, FALSE),
    (MatchIprange(source=TEN_TO_TWENTY), Packet(source=ip_address("::10")), HERE, FALSE),
    (
        MatchIprange(destination=Option(TEN_TO_TWENTY.value, negated=True)),
        PACKET,
        HERE,
        TRUE,
    ),
    (MatchIprange(destination=TEN_TO_TWENTY), UNKNOWN_PACKET, HERE, UNKNOWN),
    # ---- what no packet tells
    (MatchNth(3, 0), PACKET, NODE, UNKNOWN),
    (MatchPhysdev(is_bridged=Option(value=True)), PACKET, NODE, UNKNOWN),
    (MatchUnknown("-m u32"), PACKET, NODE, UNKNOWN),
]

#: Sets, sockets, counters and payloads: what no dump and no packet of ours tells.
BEYOND_THE_PACKET: list[type] = [
    *(MatchSet, MatchSocket, MatchRpfilter, MatchLength, MatchTtl, MatchHl, MatchMac, MatchPkttype),
    *(MatchString, MatchTcpmss, MatchPolicy, MatchIpvs),
]
