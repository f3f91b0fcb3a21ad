"""What a rule does to a packet that it matches, in netfilter's own terms."""

from __future__ import annotations

from typing import TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.iptables.options import Masked, Range
from analyzer.model.value import value


@value
class Jump:
    """``-j CHAIN``: a chain that returns continues after the rule."""

    chain: str


@value
class Goto:
    """``-g CHAIN``: a chain that returns continues at the caller's caller."""

    chain: str


@value
class Accept:
    """``-j ACCEPT``: ends this base chain, not the hook."""


@value
class Drop:
    """``-j DROP``: ends everything."""


@value
class Return:
    """``-j RETURN``."""


@value
class Reject:
    """``-j REJECT``: drops and sends an error; `reject_with` names the ICMP type or RST."""

    reject_with: str | None = None


@value
class SetMark:
    """``-j MARK --set-xmark value/mask``: clears the mask's bits, then XORs the value in."""

    value: int
    mask: int = 0xFFFFFFFF


@value
class NatRange:
    """Addresses and ports to translate to; None keeps the packet's own.

    A single address has `last_address` None, a single port `last_port` None. With `base_port` ports
    are shifted: that one becomes the first of the range.
    """

    first_address: Address | None = None
    last_address: Address | None = None
    first_port: int | None = None
    last_port: int | None = None
    base_port: int | None = None


@value
class Dnat:
    """``-j DNAT --to-destination``."""

    to: NatRange
    random: bool = False
    persistent: bool = False


@value(kw_only=True)
class Masquerade:
    """``-j MASQUERADE``: the source becomes the address of the outgoing interface."""

    ports: Range | None = None
    random: bool = False
    random_fully: bool = False


@value
class Snat:
    """``-j SNAT --to-source``."""

    to: NatRange
    random: bool = False
    random_fully: bool = False
    persistent: bool = False


@value
class Redirect:
    """``-j REDIRECT``: to the node itself, at another port or the packet's own."""

    ports: Range | None = None
    random: bool = False


@value
class SetConnmark:
    """``-j CONNMARK --set-xmark value/mask``: on the flow's conntrack entry."""

    value: int
    mask: int = 0xFFFFFFFF


@value
class CopyConnmark:
    """``-j CONNMARK --save-mark`` (packet to flow) or ``--restore-mark`` (flow to packet)."""

    direction: str
    packet_mask: int = 0xFFFFFFFF
    flow_mask: int = 0xFFFFFFFF


@value(kw_only=True)
class ConnectionTracking:
    """``-j CT``: how conntrack treats the flow; `no_track` keeps it out of nat."""

    no_track: bool = False
    helper: str | None = None
    timeout: str | None = None
    events: str | None = None
    expected_events: str | None = None
    zone: str | None = None
    zone_original: str | None = None
    zone_reply: str | None = None


@value
class NoTrack:
    """``-j NOTRACK``: keeps the flow out of conntrack, and so out of nat."""


@value(kw_only=True)
class Log:
    """``-j LOG``."""

    prefix: str | None = None
    level: int | None = None
    tcp_sequence: bool = False
    tcp_options: bool = False
    ip_options: bool = False
    user: bool = False
    mac_decode: bool = False


@value(kw_only=True)
class NfLog:
    """``-j NFLOG``: to a program that listens to a group."""

    prefix: str | None = None
    group: int | None = None
    range: int | None = None
    size: int | None = None
    threshold: int | None = None


@value(kw_only=True)
class Tproxy:
    """``-j TPROXY``: to a local socket, the packet unchanged."""

    port: int
    address: Address | None = None
    mark: Masked | None = None


@value(kw_only=True)
class SetMss:
    """``-j TCPMSS``; without a value: clamped to the path MTU."""

    mss: int | None = None
    clamp: bool = False


@value(kw_only=True)
class ChangeSet:
    """``-j SET``: adds an address to an ipset, deletes it, or maps it to a mark.

    Attributes:
        action: add-set, del-set or map-set.
        name: of the set.
        directions: which addresses or ports: ``src,dst``.
    """

    action: str
    name: str
    directions: str
    exist: bool = False
    timeout: int | None = None
    map_mark: bool = False
    map_priority: bool = False
    map_queue: bool = False


@value(kw_only=True)
class Queue:
    """``-j NFQUEUE``: passes the packet to a program, which decides."""

    number: int | None = None
    balance: Range | None = None
    bypass: bool = False
    cpu_fanout: bool = False


@value
class Trace:
    """``-j TRACE``: the kernel reports each rule that the packet matches."""


@value
class FillChecksum:
    """``-j CHECKSUM --checksum-fill``."""

    fill: bool = True


@value
class SetDscp:
    """``-j DSCP --set-dscp``."""

    dscp: int


@value
class SetTos:
    """``-j TOS --set-tos value/mask``."""

    tos: str


@value(kw_only=True)
class ChangeTtl:
    """``-j TTL``: how many hops a packet of IPv4 may still take: so many, `less` or `more`."""

    to: int | None = None
    less: int | None = None
    more: int | None = None


@value(kw_only=True)
class ChangeHops:
    """``-j HL``: the same of IPv6."""

    to: int | None = None
    less: int | None = None
    more: int | None = None


@value
class RemoveEcn:
    """``-j ECN --ecn-tcp-remove``."""

    tcp: bool = False


@value
class StripOptions:
    """``-j TCPOPTSTRIP --strip-options``."""

    options: str


@value
class Classify:
    """``-j CLASSIFY --set-class``: for traffic control."""

    to: str


@value
class Audit:
    """``-j AUDIT``: a record of what another rule does."""

    verdict: str


@value
class Tee:
    """``-j TEE``: a copy goes to a gateway."""

    gateway: Address
    device: str | None = None


@value
class TargetUnknown:
    """A target that no extension parses: it may end the traversal or change the packet.

    Attributes:
        is_lost: it represents the rules that a dump may have lost.
    """

    text: str
    is_lost: bool = False


Target: TypeAlias = (
    Jump
    | Goto
    | Accept
    | Drop
    | Return
    | Reject
    | SetMark
    | Dnat
    | Masquerade
    | Snat
    | Redirect
    | SetConnmark
    | CopyConnmark
    | ConnectionTracking
    | NoTrack
    | Log
    | NfLog
    | Tproxy
    | SetMss
    | ChangeSet
    | Queue
    | Trace
    | FillChecksum
    | SetDscp
    | SetTos
    | ChangeTtl
    | ChangeHops
    | RemoveEcn
    | StripOptions
    | Classify
    | Audit
    | Tee
    | TargetUnknown
)
