"""What rules have counted in a set of nft: read by netlink, and emptied if there is much of it."""

from __future__ import annotations

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

PROGRAM = """\
from ipaddress import ip_address
from netns_lab.namespace import Namespace, leave_host
from netns_lab.nft import Nft
from netns_lab.nft_drawn import DrawnSet

leave_host()
node = Namespace("node")
nft = Nft(node)
nft.run("add table inet counts")
for name, kind in (("drawn4", "ipv4_addr"), ("drawn6", "ipv6_addr")):
    what = f"{{ type {kind} . inet_service; flags dynamic; size 9000; counter; }}"
    nft.run(f"add set inet counts {name} {what}")

def count(name, packets):
    for (address, port), number in packets.items():
        told = f"{address} . {port} counter packets {number} bytes 0"
        nft.run(f"add element inet counts {name} {{ {told} }}")

def held(name):
    return nft.run(f"list set inet counts {name}").count("packets")

def raw(packets):
    return {(int(ip_address(a)), port): number for (a, port), number in packets.items()}

for name, of in (("drawn4", "192.0.2.{}"), ("drawn6", "2001:db8::{}")):
    before = {(of.format(1), 80): 3}
    count(name, before)
    drawn = DrawnSet(node, "counts", name)
    assert dict(drawn.new()) == {}, "what was there before is not new"
    some = {(of.format(2), 80): 7, (of.format(2), 65535): 1, (of.format(3), 1): 1 << 40}
    count(name, some)
    assert dict(drawn.new()) == raw(some)
    assert dict(drawn.new()) == {}
    assert held(name) == 4
    assert drawn.packets() == raw(before | some)
    many = {(of.format(4), 1 + at): 1 + at for at in range(3000)}
    count(name, many)
    assert dict(drawn.new()) == raw(many)
    assert held(name) == 0
    # One that was counted before begins at 0 again.
    again = {(of.format(2), 80): 2, (of.format(4), 1): 1}
    count(name, again)
    assert dict(drawn.new()) == raw(again)
    assert dict(drawn.new()) == {}
print("counted")
"""


def test_each_packet_is_told_once() -> None:
    assert in_lab(PROGRAM).splitlines() == ["counted"]
