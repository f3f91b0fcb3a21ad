"""What a rule can match on, in netfilter's own terms.

One value represents one ``-m`` of a rule (or one option that needs none). A match whose module has
several options holds each as an `Option`, since each may be negated by itself. They are in one
file, however long, because together they form one closed union.
"""

from __future__ import annotations

from typing import TypeAlias

from analyzer.model.addresses import Network
from analyzer.model.iptables.options import (
    AddressRange,
    ChunkTypes,
    Masked,
    Option,
    PolicyElement,
    Range,
    TcpFlags,
)
from analyzer.model.probability import XT_STATISTIC_BITS, Dyadic
from analyzer.model.value import value


@value
class MatchProtocol:
    """``-p``: a name of /etc/protocols, or a number."""

    protocol: str


@value
class MatchSource:
    """``-s``."""

    network: Network


@value
class MatchDestination:
    """``-d``."""

    network: Network


@value
class MatchInInterface:
    """``-i``; a final ``+`` represents any continuation."""

    name: str


@value
class MatchOutInterface:
    """``-o``; a final ``+`` represents any continuation."""

    name: str


@value
class MatchFragment:
    """``-f``: a fragment other than the first."""


@value
class MatchComment:
    """``-m comment``: always true."""

    text: str


@value(kw_only=True)
class MatchTcp:
    """``-m tcp``."""

    source_port: Option[Range] | None = None
    destination_port: Option[Range] | None = None
    tcp_option: Option[int] | None = None
    flags: Option[TcpFlags] | None = None


@value
class MatchUdp:
    """``-m udp``."""

    source_port: Option[Range] | None = None
    destination_port: Option[Range] | None = None


@value
class MatchSctp:
    """``-m sctp``."""

    source_port: Option[Range] | None = None
    destination_port: Option[Range] | None = None
    chunk_types: Option[ChunkTypes] | None = None


@value(kw_only=True)
class MatchPhysdev:
    """``-m physdev``: the bridge ports that the packet passes."""

    in_device: Option[str] | None = None
    is_in: Option[bool] | None = None
    out_device: Option[str] | None = None
    is_out: Option[bool] | None = None
    is_bridged: Option[bool] | None = None


@value
class MatchMark:
    """``-m mark``: the packet's mark under the mask equals the value."""

    mark: Masked


@value
class MatchRandom:
    """``-m statistic --mode random``: true for `threshold` draws out of 2**31."""

    threshold: int

    @property
    def probability(self) -> Dyadic:
        """The exact probability that the match is true."""
        return Dyadic.of(self.threshold, XT_STATISTIC_BITS)


@value
class MatchNth:
    """``-m statistic --mode nth``: a counter shared by all flows."""

    every: int
    packet: int


@value
class MatchNfacct:
    """``-m nfacct``: counts in a named object, always true."""

    name: str


@value(kw_only=True)
class MatchAddrtype:
    """``-m addrtype``: the kernel's routing type of an address: LOCAL, UNICAST, ..."""

    source_type: Option[tuple[str, ...]] | None = None
    destination_type: Option[tuple[str, ...]] | None = None
    limit_in_interface: bool = False
    limit_out_interface: bool = False


@value(kw_only=True)
class MatchConntrack:
    """``-m conntrack``; `state` holds the words of ``--ctstate`` as they are."""

    state: Option[tuple[str, ...]] | None = None
    protocol: Option[str] | None = None
    original_source: Option[Network] | None = None
    original_destination: Option[Network] | None = None
    reply_source: Option[Network] | None = None
    reply_destination: Option[Network] | None = None
    original_source_port: Option[Range] | None = None
    original_destination_port: Option[Range] | None = None
    reply_source_port: Option[Range] | None = None
    reply_destination_port: Option[Range] | None = None
    status: Option[tuple[str, ...]] | None = None
    expire: Option[Range] | None = None
    direction: str | None = None


@value(kw_only=True)
class MatchRecent:
    """``-m recent``: a list of addresses, used for kube-proxy's session affinity.

    Attributes:
        action: set, rcheck, update or remove.
        seconds: how recently the address must have been seen; None: ever.
        side: rsource or rdest, the address that is looked up.
        mask: the mask applied to the address first, as text; None on old binaries.
    """

    action: Option[str]
    seconds: int | None = None
    reap: bool = False
    hit_count: int | None = None
    ttl: bool = False
    name: str = "DEFAULT"
    mask: str | None = None
    side: str = "rsource"


@value
class MatchIcmp:
    """``-m icmp``; without a type, any; without a code, any of the type."""

    icmp_type: int | None
    code: int | None = None


@value
class MatchIcmp6:
    """``-m icmp6``; without a code, any of the type."""

    icmp_type: int
    code: int | None = None


@value
class MatchState:
    """``-m state``, the older form of ``--ctstate``."""

    states: tuple[str, ...]


@value
class MatchConnmark:
    """``-m connmark``: the mark of the flow's conntrack entry."""

    mark: Masked


@value(kw_only=True)
class MatchSet:
    """``-m set``: membership in an ipset, whose content is not in a dump of rules.

    Attributes:
        match_set: the name, and which addresses or ports are looked up: ``src,dst``.
    """

    match_set: Option[tuple[str, str]]
    return_nomatch: bool = False
    no_update_counters: bool = False
    no_update_subcounters: bool = False
    packets_equal: Option[int] | None = None
    packets_below: int | None = None
    packets_above: int | None = None
    bytes_equal: Option[int] | None = None
    bytes_below: int | None = None
    bytes_above: int | None = None


@value(kw_only=True)
class MatchOwner:
    """``-m owner``: the socket of a packet sent by the node itself."""

    socket_exists: Option[bool] | None = None
    user: Option[Range] | None = None
    group: Option[Range] | None = None
    supplementary_groups: bool = False


@value
class MatchLimit:
    """``-m limit``: one token bucket for all packets.

    Attributes:
        period: between two packets, in units of 1/10,000 second.
    """

    period: int
    burst: int = 5


@value(kw_only=True)
class MatchHashlimit:
    """``-m hashlimit``: a token bucket for each source, destination or both.

    Attributes:
        rate: as text, ``50/sec`` or ``512kb/s``; exactly one of `up_to` and `above` is given.
    """

    up_to: str | None = None
    above: str | None = None
    burst: str | None = None
    mode: str | None = None
    name: str
    table_size: int | None = None
    table_most: int | None = None
    collect_interval: int | None = None
    expire: int | None = None
    source_mask: int | None = None
    destination_mask: int | None = None
    rate_match: bool = False
    rate_interval: int | None = None


@value(kw_only=True)
class MatchMultiport:
    """``-m multiport``: one of these ports, or ranges of ports."""

    source_ports: Option[tuple[Range, ...]] | None = None
    destination_ports: Option[tuple[Range, ...]] | None = None
    ports: Option[tuple[Range, ...]] | None = None


@value(kw_only=True)
class MatchIprange:
    """``-m iprange``."""

    source: Option[AddressRange] | None = None
    destination: Option[AddressRange] | None = None


@value(kw_only=True)
class MatchSocket:
    """``-m socket``: a local socket would receive the packet."""

    transparent: bool = False
    no_wildcard: bool = False
    restore_mark: bool = False


@value(kw_only=True)
class MatchRpfilter:
    """``-m rpfilter``: a reply would leave by the interface that the packet came in by."""

    loose: bool = False
    valid_mark: bool = False
    accept_local: bool = False
    invert: bool = False


@value
class MatchLength:
    """``-m length``: bytes of the packet, including its IP header."""

    length: Range


@value(kw_only=True)
class MatchTtl:
    """``-m ttl``."""

    equal: Option[int] | None = None
    below: int | None = None
    above: int | None = None


@value(kw_only=True)
class MatchHl:
    """``-m hl``: the hop limit of IPv6."""

    equal: Option[int] | None = None
    below: int | None = None
    above: int | None = None


@value
class MatchMac:
    """``-m mac``: the source's Ethernet address, in lower case."""

    source: str


@value
class MatchPkttype:
    """``-m pkttype``: unicast, broadcast or multicast."""

    packet_type: str


@value(kw_only=True)
class MatchString:
    """``-m string``: a pattern in the packet's bytes, as text or ``|hex|``."""

    text: Option[str] | None = None
    hexadecimal: Option[str] | None = None
    algorithm: str
    first: int | None = None
    last: int | None = None
    ignore_case: bool = False


@value
class MatchTcpmss:
    """``-m tcpmss``: the MSS option of a SYN."""

    mss: Range


@value(kw_only=True)
class MatchConnlimit:
    """``-m connlimit``: the number of connections from or to an address's network."""

    up_to: int | None = None
    above: int | None = None
    mask: int | None = None
    source: bool = False
    destination: bool = False


@value(kw_only=True)
class MatchPolicy:
    """``-m policy``: what IPsec did or will do with the packet."""

    direction: str
    policy: str
    strict: bool = False
    elements: tuple[PolicyElement, ...] = ()


@value(kw_only=True)
class MatchIpvs:
    """``-m ipvs``: properties of a flow that IPVS handles."""

    is_ipvs: Option[bool] | None = None
    protocol: Option[str] | None = None
    address: Option[Network] | None = None
    port: Option[int] | None = None
    direction: str | None = None
    method: Option[str] | None = None
    control_port: Option[int] | None = None


@value
class MatchUnknown:
    """A match that no extension parses; `text` is from the dump, quotes included."""

    text: str


@value
class MatchNot:
    """``!`` before a match that is negated as a whole."""

    match: Match


Match: TypeAlias = (
    MatchProtocol
    | MatchSource
    | MatchDestination
    | MatchInInterface
    | MatchOutInterface
    | MatchFragment
    | MatchComment
    | MatchTcp
    | MatchUdp
    | MatchSctp
    | MatchPhysdev
    | MatchMark
    | MatchRandom
    | MatchNth
    | MatchNfacct
    | MatchAddrtype
    | MatchConntrack
    | MatchRecent
    | MatchIcmp
    | MatchIcmp6
    | MatchState
    | MatchConnmark
    | MatchSet
    | MatchOwner
    | MatchLimit
    | MatchHashlimit
    | MatchMultiport
    | MatchIprange
    | MatchSocket
    | MatchRpfilter
    | MatchLength
    | MatchTtl
    | MatchHl
    | MatchMac
    | MatchPkttype
    | MatchString
    | MatchTcpmss
    | MatchConnlimit
    | MatchPolicy
    | MatchIpvs
    | MatchUnknown
    | MatchNot
)
