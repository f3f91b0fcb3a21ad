"""What each expression and each comparison of nft says of packets, known and not."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

import pytest

from analyzer.model.packet import UNKNOWN_PACKET, Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.situation import Situation
from tests.support.nft.packets import (
    BACK,
    BEFORE,
    BLANK,
    HAZY,
    HERE,
    HIDDEN,
    LATER,
    LOST,
    MARKED,
    NODE,
    NOWHERE,
    PACKET,
    PING,
    PING6,
    POD,
    SENT,
    SIX,
    UDP,
    dropped,
)

TRUE, FALSE, UNKNOWN = Bounds(ALWAYS, ALWAYS), Bounds(NEVER, NEVER), Bounds(NEVER, ALWAYS)
Q1, Q2, Q3 = (Bounds(d, d) for d in (Dyadic.of(n, 2) for n in (1, 2, 3)))
THIRD: Final = Bounds(*[Dyadic.of(0x55555556, 32)] * 2)


Row = tuple[str, Packet, Any]

#: Rules without their `drop`, and how often they hold.
PAYLOADS: Final[list[Row]] = [
    ("ip daddr 10.2.3.4", PACKET, TRUE),
    ("ip daddr 10.2.3.5", PACKET, FALSE),
    ("ip daddr != 10.2.3.5", PACKET, TRUE),
    ("ip daddr 10.2.3.4", BLANK, UNKNOWN),
    ("ip daddr != 10.2.3.4", BLANK, UNKNOWN),
    ("ip daddr 10.2.0.0/16", PACKET, TRUE),
    ("ip daddr 10.3.0.0/16", PACKET, FALSE),
    ("ip daddr 10.2.3.0-10.2.3.4", PACKET, TRUE),
    ("ip daddr 10.2.3.5-10.2.3.9", PACKET, FALSE),
    ("ip daddr & 255.255.0.0 == 10.2.0.0", PACKET, TRUE),
    ("ip saddr 10.1.0.9", PACKET, TRUE),
    ("ip saddr 10.1.0.9", HIDDEN, UNKNOWN),
    # A header that a packet does not have ends the rule, whatever is asked of it.
    ("ip daddr 10.2.3.4", SIX, FALSE),
    ("ip daddr != 10.2.3.4", SIX, FALSE),
    ("ip6 daddr fd00:2::4", SIX, TRUE),
    ("ip6 daddr fd00:2::/32", SIX, TRUE),
    ("ip6 daddr != fd00:2::4", PACKET, FALSE),
    ("ip protocol tcp", PACKET, TRUE),
    ("ip protocol tcp", SIX, FALSE),
    ("ip6 nexthdr tcp", SIX, TRUE),
    ("ip version 4", PACKET, TRUE),
    ("ip dscp 0x04", PACKET, UNKNOWN),
    ("tcp dport 80", PACKET, TRUE),
    ("tcp dport 80", UDP, FALSE),
    ("tcp dport != 80", UDP, FALSE),
    ("tcp dport 80", BLANK, UNKNOWN),
    ("tcp dport != 81", replace(PACKET, protocol=None), UNKNOWN),
    ("tcp dport != 80", replace(PACKET, protocol=None), FALSE),
    ("udp dport 53", UDP, TRUE),
    ("tcp sport 40000", PACKET, TRUE),
    ("tcp sport < 40000", PACKET, FALSE),
    ("tcp sport <= 40000", PACKET, TRUE),
    ("tcp sport > 40000", PACKET, FALSE),
    ("tcp sport >= 40000", PACKET, TRUE),
    ("tcp sport >= 40001", PACKET, FALSE),
    ("tcp sport < 40000", HIDDEN, UNKNOWN),
    ("th dport 80", PACKET, TRUE),
    # `< 81` and `> 53`, `>= 81` and `<= 53`: nft lists the two as one.
    ("th dport != 81-53", PACKET, TRUE),
    ("th dport != 81-53", UDP, FALSE),
    ("th dport != 80-53", PACKET, FALSE),
    ("th dport != 81-80", PACKET, FALSE),
    ("th dport 81-53", PACKET, FALSE),
    ("th dport != 81-53", BLANK, UNKNOWN),
    ("meta mark != 0x00004002-0x00004000", HAZY, UNKNOWN),
    ("meta mark != 0x00004000-0x00000001", HAZY, FALSE),
    ("th dport 80", UDP, FALSE),
    ("th dport 80", PING, UNKNOWN),
    ("@th,16,16 80", PACKET, TRUE),
    ("@th,16,16 81", PACKET, FALSE),
    ("@nh,128,32 0x0a020304", PACKET, TRUE),
    ("@nh,96,32 0x0a020304", PACKET, FALSE),
    ("@nh,64,8 64", PACKET, UNKNOWN),
    ("icmp type echo-request", PING, TRUE),
    ("icmp type echo-reply", PING, FALSE),
    ("icmp type != echo-reply", PACKET, FALSE),
    ("icmpv6 type echo-request", PING6, TRUE),
    ("icmpv6 type echo-request", PING, FALSE),
    ("tcp flags syn", PACKET, TRUE),
    ("tcp flags ack", PACKET, FALSE),
    ("tcp flags urg", PACKET, UNKNOWN),
    ("tcp flags syn / fin,syn,rst,ack", PACKET, TRUE),
    ("tcp flags & (fin | syn | rst | ack) == syn", PACKET, TRUE),
    ("tcp flags syn", UDP, FALSE),
    ("udp length 8", UDP, UNKNOWN),
    ("udp length 8", PACKET, FALSE),
    ("esp spi 5", PACKET, FALSE),
    ("exthdr frag exists", SIX, UNKNOWN),
]
METAS: Final[list[Row]] = [
    ("meta l4proto tcp", PACKET, TRUE),
    ("meta l4proto 6", PACKET, TRUE),
    ("meta l4proto != tcp", PACKET, FALSE),
    ("meta l4proto tcp", BLANK, UNKNOWN),
    ("meta l4proto ipv6-icmp", PING6, TRUE),
    ("meta l4proto gre", replace(PACKET, protocol="47"), TRUE),
    ("meta nfproto ipv4", PACKET, TRUE),
    ("meta nfproto ipv4", SIX, FALSE),
    ("meta protocol ip", PACKET, TRUE),
    ("meta protocol ip6", PACKET, FALSE),
    ("meta mark 0x4001", MARKED, TRUE),
    ("meta mark 0x4001", HAZY, UNKNOWN),
    ("meta mark 0x8000", HAZY, FALSE),
    ("meta mark != 0x8000", HAZY, TRUE),
    ("meta mark & 0x4000 == 0x4000", HAZY, TRUE),
    ("meta mark & 0x4001 == 0x4001", HAZY, UNKNOWN),
    ("meta mark | 0x1 == 0x4001", HAZY, TRUE),
    ("meta mark ^ 0x4001 == 0", MARKED, TRUE),
    ("meta mark & 0x1 == 0", MARKED, FALSE),
    ("meta mark > 0x3fff", HAZY, TRUE),
    ("meta mark < 0x4001", HAZY, UNKNOWN),
    ('iifname "eth0"', PACKET, TRUE),
    ('iifname "eth*"', PACKET, TRUE),
    ('iifname "eth\\*"', PACKET, FALSE),
    ('iifname != "lo"', PACKET, TRUE),
    ('iif "lo"', PACKET, FALSE),
    ('iifname "lo"', BLANK, UNKNOWN),
    # Where there is no device there is an empty name.
    ('oifname "eth0"', PACKET, FALSE),
    ('oifname != "eth0"', PACKET, TRUE),
    ("meta skuid 0", PACKET, FALSE),
    ("meta skuid != 0", PACKET, FALSE),
    ("meta length > 100", PACKET, UNKNOWN),
    ("meta random & 0x3 == 0", PACKET, Q1),
    ("meta random & 0x3 != 0", PACKET, Q3),
    ("meta random & 2147483647 < 536870912", PACKET, Q1),
    ("meta random < 0x40000000", PACKET, Q1),
    ("meta random >= 0x40000000", PACKET, Q3),
    ("meta random & 0x5 == 0", PACKET, UNKNOWN),
]
FLOWS: Final[list[Row]] = [
    ("ct state new", PACKET, TRUE),
    ("ct state established,new", PACKET, TRUE),
    ("ct state established,related", PACKET, FALSE),
    ("ct state ! new", PACKET, FALSE),
    ("ct state == new", PACKET, TRUE),
    ("ct state != new", PACKET, FALSE),
    ("ct state { established, new }", PACKET, TRUE),
    ("ct state invalid", PACKET, FALSE),
    ("ct state untracked", LOST, TRUE),
    ("ct state new", LOST, FALSE),
    ("ct state new", UNKNOWN_PACKET, UNKNOWN),
    ("ct status dnat", PACKET, FALSE),
    ("ct status dnat", SENT, TRUE),
    ("ct status ! dnat", SENT, FALSE),
    ("ct status dnat,snat", SENT, TRUE),
    ("ct status snat", HIDDEN, UNKNOWN),
    ("ct status assured", PACKET, FALSE),
    ("ct status confirmed", PACKET, FALSE),
    ("ct status confirmed", BACK, TRUE),
    # nat notes in bits without a name that it has looked at the flow.
    ("ct status == dnat", SENT, UNKNOWN),
    ("ct status dnat", LOST, FALSE),
    ("ct status ! dnat", LOST, FALSE),
    ("ct direction original", PACKET, TRUE),
    ("ct direction reply", PACKET, FALSE),
    ("ct mark 2", MARKED, TRUE),
    ("ct mark & 2 == 2", MARKED, TRUE),
    ("ct mark != 2", MARKED, FALSE),
    ("ct mark 2", HAZY, UNKNOWN),
    ("ct mark != 2", LOST, FALSE),
    ("ct mark 2", replace(MARKED, tracked=None), UNKNOWN),
    ("ct mark 3", replace(MARKED, tracked=None), FALSE),
    ("ct original ip daddr 10.2.3.4", SENT, TRUE),
    ("ct original ip daddr 10.2.3.4", SIX, FALSE),
    ("ct original ip daddr != 10.2.3.4", SIX, FALSE),
    ("ct original ip6 daddr != fd00::1", PACKET, FALSE),
    ("ct reply ip saddr 10.1.0.9", SENT, TRUE),
    ("ct reply ip daddr 10.1.0.9", SENT, TRUE),
    ("ct reply ip daddr 10.1.0.9", HIDDEN, UNKNOWN),
    ("ct original proto-dst 80", SENT, TRUE),
    ("ct reply proto-src 53", SENT, TRUE),
    ("ct original proto-dst 80", LOST, FALSE),
    ("ct protocol tcp", PACKET, TRUE),
    ("ct bytes > 5", PACKET, UNKNOWN),
    ("ct helper ftp", PACKET, UNKNOWN),
]
NODES: Final[list[Row]] = [
    ("fib daddr type local", PACKET, FALSE),
    ("fib daddr type local", replace(PACKET, destination=NODE), TRUE),
    ("fib daddr type local", replace(PACKET, destination=ip_address("127.0.0.1")), TRUE),
    ("fib daddr type != local", PACKET, TRUE),
    ("fib daddr type local", BLANK, UNKNOWN),
    ("fib daddr type local", replace(BLANK, to_node=True), TRUE),
    ("fib daddr type unicast", PACKET, UNKNOWN),
    ("meta pkttype broadcast", PACKET, UNKNOWN),
    ("fib daddr type multicast", PACKET, FALSE),
    ("fib daddr type multicast", replace(PACKET, destination=ip_address("224.0.0.9")), TRUE),
    ("fib daddr type unicast", replace(PACKET, destination=ip_address("239.1.1.1")), FALSE),
    ("fib daddr type broadcast", replace(PACKET, destination=ip_address("255.255.255.255")), TRUE),
    ("fib daddr type unicast", replace(PACKET, destination=NODE), FALSE),
    ("fib daddr type { local, unicast }", replace(PACKET, destination=NODE), TRUE),
    ("fib daddr . iif type local", replace(PACKET, destination=NODE), UNKNOWN),
    ("fib daddr . iif type local", PACKET, FALSE),
    ("fib saddr type local", replace(PACKET, source=NODE), TRUE),
    ("fib saddr type local", PACKET, FALSE),
    ("fib saddr . iif oif missing", PACKET, UNKNOWN),
]
SETS_AND_MAPS: Final[list[Row]] = [
    ("ip daddr { 10.2.3.4, 10.9.9.9 }", PACKET, TRUE),
    ("ip daddr != { 10.2.3.4, 10.9.9.9 }", PACKET, FALSE),
    ("ip daddr @nets", PACKET, TRUE),
    ("ip daddr @nets", replace(PACKET, destination=ip_address("10.4.0.9")), TRUE),
    ("ip daddr @nets", replace(PACKET, destination=ip_address("10.4.0.10")), FALSE),
    ("ip daddr @nets", replace(PACKET, destination=ip_address("10.4.0.0")), FALSE),
    ("ip daddr != @nets", PACKET, FALSE),
    ("ip daddr @nets", BLANK, UNKNOWN),
    ("ip daddr @none", BLANK, FALSE),
    ("ip daddr @most", BLANK, TRUE),
    ("ip daddr @gone", PACKET, UNKNOWN),
    ("ip daddr != @nets", SIX, FALSE),
    ("tcp dport @ports", PACKET, TRUE),
    ("tcp dport != @ports", UDP, FALSE),
    ("meta l4proto { tcp, udp } th dport { 53, 70-80 }", PACKET, TRUE),
    ("ip saddr @banned", PACKET, UNKNOWN),
    ("ip saddr != @banned", PACKET, UNKNOWN),
    ("ip saddr @affinity-a", PACKET, TRUE),
    ("ip saddr @affinity-b", PACKET, FALSE),
    ("ip saddr != @affinity-b", PACKET, TRUE),
    ("ip saddr @affinity-a", SIX, FALSE),
    ("ip daddr . tcp dport { 10.2.0.0/16 . 70-80, 10.9.9.9 . 1 }", PACKET, TRUE),
    ("ip daddr . tcp dport { 10.2.0.0/16 . 70-79, 10.2.3.4 . 1 }", PACKET, FALSE),
    ("ip daddr . tcp dport { 10.2.3.4 . 80 }", replace(PACKET, destination=None), UNKNOWN),
    ("ip daddr . tcp dport { 10.2.3.4 . 81 }", replace(PACKET, destination=None), FALSE),
    ("ip daddr . meta l4proto . th dport { 10.2.3.4 . tcp . 80 }", PACKET, TRUE),
    ("ip daddr . meta l4proto . th dport { 10.2.3.4 . tcp . 80 }", UDP, FALSE),
    ('iifname . ip saddr { "eth0" . 10.1.0.9 }', PACKET, TRUE),
    ('iifname . ip saddr { "lo" . 10.1.0.9 }', PACKET, FALSE),
]
NUMBERS: Final[list[Row]] = [
    # What is full takes no other, and the rule ends there.
    ("add @banned { ip saddr }", PACKET, TRUE),
    ("add @full { ip saddr }", PACKET, UNKNOWN),
    ("update @full { ip saddr } counter", SIX, FALSE),
    ("numgen random mod 4 0", PACKET, Q1),
    ("numgen random mod 4 != 0", PACKET, Q3),
    ("numgen random mod 4 < 2", PACKET, Q2),
    ("numgen random mod 4 <= 2", PACKET, Q3),
    ("numgen random mod 4 > 2", PACKET, Q1),
    ("numgen random mod 4 >= 2", PACKET, Q2),
    ("numgen random mod 4 { 0, 2-3 }", PACKET, Q3),
    # Two draws: `>= 2` and `<= 1`, `< 2` and `> 1`.
    ("numgen random mod 4 2-1", PACKET, Q1),
    ("numgen random mod 4 != 2-1", PACKET, Q1),
    ("numgen random mod 4 != { 0, 2-3 }", PACKET, Q1),
    # One draw, or `>= 1` and `<= 2` of two; none of `< 1` and `> 2`.
    ("numgen random mod 4 1-2", PACKET, UNKNOWN),
    ("numgen random mod 4 != 1-2", PACKET, UNKNOWN),
    ("numgen random mod 4 offset 1 4", PACKET, Q1),
    ("numgen random mod 4 offset 1 0", PACKET, FALSE),
    ("numgen random mod 4 4", PACKET, FALSE),
    ("numgen random mod 4 < 4", PACKET, TRUE),
    ("numgen random mod 4 != 7", PACKET, TRUE),
    ("numgen random mod 1 0", PACKET, TRUE),
    ("numgen random mod 3 0", PACKET, THIRD),
    ("numgen inc mod 4 0", PACKET, UNKNOWN),
    ("numgen inc mod 4 4", PACKET, FALSE),
    ("numgen inc mod 1 0", PACKET, TRUE),
    ("jhash ip saddr mod 2 0", PACKET, UNKNOWN),
    ("symhash mod 2 5", PACKET, FALSE),
    ("numgen random mod 2 0 numgen random mod 2 0", PACKET, Q1),
]


@pytest.mark.parametrize(
    ("rule", "packet", "want"),
    [*PAYLOADS, *METAS, *FLOWS, *NODES, *SETS_AND_MAPS, *NUMBERS],
)
def test_an_expression_holds_as_often_as_in_the_kernel(
    rule: str, packet: Packet, want: Bounds
) -> None:
    assert dropped(f"{rule} drop", packet, HERE) == want


#: Traffic within the rates of limits and beyond; the reverse-path check that passes, and fails.
UNDER, OVER, PASSES, FAILS = (
    replace(HERE, assumed=Assumed({name: of}))
    for name, of in (
        ("limits", "under"),
        ("limits", "over"),
        ("reverse-path", "pass"),
        ("reverse-path", "fail"),
    )
)
USUAL = replace(HERE, assumed=Assumed({"address-type": "unicast"}))
#: Neither IPsec nor a socket.
PLAIN = replace(HERE, assumed=Assumed({"policy": "none", "socket": "none"}))
#: A SYN has an MSS of 536 or more.
SIZES = replace(HERE, assumed=Assumed({"segment-size": "usual"}))
NOT_LOCAL = replace(NOWHERE, assumed=Assumed({"cluster-ip": "not-local"}))
TO_CLUSTER_IP = replace(PACKET, cluster_ip=PACKET.destination)


@pytest.mark.parametrize(
    ("rule", "packet", "situation", "want"),
    [
        # Before conntrack there is a state, and nothing else.
        ("ct state invalid", PACKET, BEFORE, TRUE),
        ("ct state new", PACKET, BEFORE, FALSE),
        ("ct mark 0", PACKET, BEFORE, FALSE),
        ("ct mark != 7", PACKET, BEFORE, FALSE),
        ("ct status ! dnat", PACKET, BEFORE, FALSE),
        ("ct direction original", PACKET, BEFORE, FALSE),
        ("ct state new", replace(PACKET, template=True), BEFORE, TRUE),
        ("ct mark 0", replace(PACKET, template=True), BEFORE, UNKNOWN),
        # Of later packets conntrack knows more than we do.
        ("ct state established", PACKET, LATER, TRUE),
        ("ct status assured", PACKET, LATER, UNKNOWN),
        ("ct direction reply", PACKET, LATER, UNKNOWN),
        ("ct original ip daddr 10.2.3.4", PACKET, LATER, UNKNOWN),
        ("tcp flags syn", PACKET, LATER, UNKNOWN),
        ("fib daddr type local", PACKET, NOWHERE, UNKNOWN),
        ("fib daddr type != local", PACKET, NOWHERE, UNKNOWN),
        ("ip saddr @affinity-a", PACKET, NOWHERE, UNKNOWN),
        ("ct original ip daddr 10.2.3.4", PACKET, NOWHERE, UNKNOWN),
        ("meta skuid 0", PACKET, NOWHERE, UNKNOWN),
        ("limit rate 3/second", PACKET, UNDER, TRUE),
        ("limit rate over 3/second", PACKET, UNDER, FALSE),
        ("limit rate 3/second", PACKET, OVER, FALSE),
        ("limit rate 3/second", PACKET, HERE, UNKNOWN),
        ("fib saddr . iif oif missing", PACKET, HERE, UNKNOWN),
        ("meta pkttype broadcast", PACKET, USUAL, FALSE),
        ("meta pkttype { broadcast, multicast }", PACKET, USUAL, FALSE),
        ("meta pkttype host", PACKET, USUAL, TRUE),
        ("fib daddr type unicast", PACKET, USUAL, TRUE),
        ("fib daddr type broadcast", PACKET, USUAL, FALSE),
        ("fib saddr . iif oif missing", PACKET, PASSES, FALSE),
        ("fib saddr . iif oif exists", PACKET, PASSES, TRUE),
        ("fib saddr . mark . iif oif missing", PACKET, FAILS, TRUE),
        ("fib saddr . iif oif exists", PACKET, FAILS, FALSE),
        ("fib saddr . iif oif 0", PACKET, PASSES, FALSE),
        ("fib saddr . iif oif != 0", PACKET, PASSES, TRUE),
        ("fib saddr . iif oif 3", PACKET, PASSES, UNKNOWN),
        ("fib saddr . iif oif 3", PACKET, FAILS, FALSE),
        ('fib saddr . iif oifname "eth0"', PACKET, PASSES, UNKNOWN),
        ('fib saddr . iif oifname "eth0"', PACKET, FAILS, FALSE),
        ("fib saddr . iif oif missing", BACK, FAILS, FALSE),
        # Of the routes that other look-ups go by nothing is assumed.
        ("fib saddr oif missing", PACKET, PASSES, UNKNOWN),
        ("fib daddr . iif oif missing", PACKET, PASSES, UNKNOWN),
        ("meta ipsec exists", PACKET, HERE, UNKNOWN),
        ("meta ipsec exists", PACKET, PLAIN, FALSE),
        ("rt ipsec missing", PACKET, PLAIN, TRUE),
        ("ipsec in reqid 1", PACKET, PLAIN, FALSE),
        ("ipsec in reqid != 1", PACKET, PLAIN, FALSE),
        ("socket transparent 1", PACKET, PLAIN, FALSE),
        ("socket transparent 0", PACKET, PLAIN, FALSE),
        ("socket transparent 1", PACKET, HERE, UNKNOWN),
        ("socket transparent 1", replace(PACKET, destination=NODE), PLAIN, UNKNOWN),
        ("fib daddr type local", TO_CLUSTER_IP, replace(NOWHERE, assumed=Assumed()), UNKNOWN),
        ("fib daddr type local", TO_CLUSTER_IP, NOT_LOCAL, FALSE),
        ("fib daddr type != local", TO_CLUSTER_IP, NOT_LOCAL, TRUE),
        ("fib daddr type local", replace(TO_CLUSTER_IP, destination=POD), NOT_LOCAL, UNKNOWN),
        ("tcp option maxseg size 1-535", PACKET, SIZES, FALSE),
        ("tcp option maxseg size < 500", PACKET, SIZES, FALSE),
        ("tcp option maxseg size { 100, 200 }", PACKET, SIZES, FALSE),
        ("tcp option maxseg size >= 536", PACKET, SIZES, TRUE),
        ("tcp option maxseg size 1361-1500", PACKET, SIZES, UNKNOWN),
        ("tcp option maxseg size 1400", PACKET, SIZES, UNKNOWN),
        ("tcp option maxseg exists", PACKET, SIZES, TRUE),
        ("tcp option maxseg missing", PACKET, SIZES, FALSE),
        ("tcp option maxseg size 1-535", PACKET, HERE, UNKNOWN),
        ("tcp option maxseg missing", PACKET, HERE, UNKNOWN),
        ("quota 3 bytes", PACKET, HERE, UNKNOWN),
        ("ct count 3", PACKET, HERE, UNKNOWN),
        ("ct count over 0", PACKET, HERE, TRUE),
    ],
)
def test_what_is_assumed_of_the_flow_decides(
    rule: str, packet: Packet, situation: Situation, want: Bounds
) -> None:
    assert dropped(f"{rule} drop", packet, situation) == want
