"""Packets, sets and a chain of nft that tests of single rules ask about."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from analyzer.model.iptables.targets import Drop
from analyzer.model.nft.ruleset import NftRuleset, Table
from analyzer.model.packet import UNKNOWN_MARK, UNKNOWN_PACKET, Mark, Packet
from analyzer.model.probability import Bounds
from analyzer.model.value import replace
from analyzer.parsers import nft_text
from analyzer.semantics.base_chains import before_conntrack
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.situation import Situation
from tests.support.odds import bounds

SERVICE, POD, NODE = map(ip_address, ("10.2.3.4", "10.1.0.9", "172.16.0.1"))
PACKET: Final = Packet(
    protocol="tcp",
    source=POD,
    source_port=40_000,
    destination=SERVICE,
    destination_port=80,
    in_interface="eth0",
    out_interface="",
)
UDP: Final = replace(PACKET, protocol="udp", destination_port=53)
PING: Final = Packet(protocol="icmp", source=POD, destination=SERVICE, icmp=(8, 0))
SIX: Final = replace(PACKET, source=ip_address("fd00::9"), destination=ip_address("fd00:2::4"))
PING6: Final = replace(SIX, protocol="ipv6-icmp", icmp=(128, 0))
BLANK: Final = replace(UNKNOWN_PACKET, tracked=True)
MARKED: Final = replace(PACKET, mark=Mark(0x4001), flow_mark=Mark(2))
HAZY: Final = replace(PACKET, mark=Mark(0x4000, 1), flow_mark=UNKNOWN_MARK)
LOST: Final = replace(PACKET, tracked=False)
SENT: Final = replace(PACKET, destination=POD, destination_port=53, translated=True)
HIDDEN: Final = replace(SENT, source=None, source_port=None, masqueraded=True)
BACK: Final = replace(PACKET, in_interface="lo")

HERE: Final = Situation(
    local_addresses=frozenset({NODE}),
    flow=PACKET,
    lists=frozenset({"affinity-a"}),
    affinity_lists=("affinity-",),
)
BEFORE: Final = before_conntrack(HERE)
LATER: Final = replace(HERE, state="ESTABLISHED")
NOWHERE: Final = Situation(lists=None, affinity_lists=("affinity-",))
SETS: Final = """
set nets { type ipv4_addr; flags interval; elements = { 10.2.0.0/16, 10.4.0.1-10.4.0.9 } }
set ports { type inet_service; elements = { 53, 80 } }
set most { type ipv4_addr; elements = { 10.2.3.4, * } }
set none { type ipv4_addr; }
set banned { type ipv4_addr; flags dynamic,timeout; timeout 1h; elements = { 10.9.9.9 } }
set full { type ipv4_addr; size 1; flags dynamic; elements = { 10.9.9.9 } }
set affinity-a { type ipv4_addr; flags dynamic,timeout; timeout 3h; }
set affinity-b { type ipv4_addr; flags dynamic,timeout; timeout 3h; }
map added { type ipv4_addr : mark; flags dynamic; elements = { 10.2.3.4 : 1 } }
map marks { type ipv4_addr : mark; elements = { 10.2.3.4 : 1, 10.1.0.9 : 2 } }
map verdicts { type ipv4_addr . inet_service : verdict; elements = { 10.2.3.4 . 80 : drop } }
"""


def table_of(rules: str, family: str = "inet") -> Table:
    chain = f"chain c {{ type filter hook input priority 0; policy accept;\n{rules}\n}}"
    ruleset: NftRuleset = nft_text.parse(f"table {family} t {{ {SETS}\n{chain}\n}}", "made")
    assert not ruleset.diagnostics
    return ruleset.tables[family, "t"]


def dropped(rules: str, packet: Packet, situation: Situation) -> Bounds:
    version = next((a.version for a in (packet.source, packet.destination) if a), 4)
    family = "ip" if version == 4 else "ip6"  # of IP
    tree = NftTraversal(table_of(rules), family, situation).tree("c", packet)
    return bounds(tree, lambda leaf: isinstance(leaf.outcome, Drop))
