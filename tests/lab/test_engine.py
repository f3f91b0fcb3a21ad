"""What sends and hears packets: each one once, and none passed over in silence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

#: Two hosts and a link; flows from one are heard by the other's ring, which has little room.
PROGRAM = """
import json, os, socket
from ipaddress import IPv4Address, IPv4Network
from netns_lab import filters
from netns_lab.command import run
from netns_lab.columns import sockaddr_of
from netns_lab.layout import PacketLayout
from netns_lab.messages import Messages
from netns_lab.namespace import Namespace, leave_host
from netns_lab.netlink import Netlink, attribute
from netns_lab.ready import wait_until_ready
from netns_lab.replay import ChosenFlows, Flows
from netns_lab.ring import Ring
leave_host()
one, other = Namespace("one"), Namespace("other")
macs = "02:00:00:00:00:01", "02:00:00:00:00:02"
asked = Netlink(one)
asked.veth("eth0", 11, macs[0], (other, "eth0", 2, macs[1]))
asked.up(11)
asked.send()
asked = Netlink(other)
asked.up(2)
asked.send()
wait_until_ready([one, other])
layout = PacketLayout(4, "udp")
ring = Ring(other, "eth0", layout.ethertype, filters.arrivals(layout), slot=128, most=512)
tag = ring.slots.column("I", layout.tag)
to = IPv4Address("10.0.0.1"), 53
flows = Flows(layout, to, (IPv4Address("10.0.0.2"),), (macs[1], macs[0]), 2000)
link = one.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("eth0", 0))
heard = []
def take():
    for first, last in ring.take():
        heard.extend(tag[first:last].tolist())
waiting = []
for first in range(0, 2000, 250):  # round the ring more than once
    flows.send(link.fileno(), first, 100)
    waiting.append(ring.waiting())
    flows.send(link.fileno(), first + 100, 150)
    waiting.append(ring.waiting())
    take()
    waiting.append(ring.waiting())
found = {"heard": len(heard), "different": len(set(heard)), "dropped": ring.dropped()}
found["waiting"] = waiting
flows.send(link.fileno(), 0, 2000)
found["all_that_wait"] = ring.waiting()
take()
found["of_too_many"] = len(heard) - 2000
found["said_dropped"] = ring.dropped()
not_ours = Flows(layout, to, (IPv4Address("10.0.0.2"),), ("02:00:00:00:00:09", macs[0]), 10)
not_ours.send(link.fileno(), 0, 10)
found["for_another_mac"] = sum(1 for _ in ring.take())
address = socket.AF_INET.to_bytes(2, "little") + bytes(2) + to[0].packed + bytes(8)
own = Flows(layout, to, (IPv4Address("10.0.0.2"),), macs, 20, address)
raw = one.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
found["kept_back"] = own.send(raw.fileno(), 0, 20)
asked_here = Netlink(one)
asked_here.address(11, IPv4Address("10.0.0.2"))
asked_here.beside(11, to[0], macs[1])
asked_here.send()
chosen = [(IPv4Address("10.0.0.2"), 1024 + at, 0) for at in range(1500)]
many = ChosenFlows(layout, to, macs, chosen, address)
found["kept_back_of_many"] = many.send(raw.fileno(), 0, 1500)
take()
ring.dropped()
rules = "type filter hook output priority 0; counter; udp sport & 3 == 1 drop"
run(one, ["nft", "-f", "-"], f"table ip t {{ chain c {{ {rules}\\n}}\\n}}\\n")
heard.clear()
found["some_kept_back"] = own.send(raw.fileno(), 0, 20), list(own.kept_back[-5:])
take()
inverted = [socket.ntohs(each & 0xFFFF) for each in heard]
found["ports_of_those_heard"] = sorted(0xFFFF - each for each in inverted)
counted = run(one, ["nft", "list", "table", "t"]).stdout
found["seen_by_rules"] = counted.partition("packets ")[2].split()[0]
try:
    asked.address(99, to[0])
    asked.send()
except Exception as error:
    found["refused"] = str(error)
asked.add("device of a new kind", 16, bytes(16) + attribute(18, attribute(1, b"new")), 0x600)
try:
    asked.send()
except Exception as error:
    found["no_such_kind"] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> Any:
    return json.loads(in_lab(PROGRAM))


def test_each_packet_is_heard_once_round_the_ring(found: Any) -> None:
    assert (found["heard"], found["different"], found["dropped"]) == (2000, 2000, 0)


def test_packets_that_find_no_room_are_counted(found: Any) -> None:
    assert 0 < found["of_too_many"] < 2000
    assert found["of_too_many"] + found["said_dropped"] == 2000


def test_packets_that_wait_are_counted_before_they_are_taken(found: Any) -> None:
    assert found["waiting"] == [100, 250, 0] * 8
    assert found["all_that_wait"] == found["of_too_many"]


def test_packets_for_another_host_are_not_heard(found: Any) -> None:
    assert found["for_another_mac"] == 0


def test_packets_that_the_own_stack_keeps_back_are_counted(found: Any) -> None:
    assert found["kept_back"] == 20  # there is no route


def test_what_the_kernel_refuses_is_named(found: Any) -> None:
    assert found["refused"] == "address 10.0.0.1 in other: No such device"


def test_a_kind_of_device_that_the_kernel_lacks_is_named(found: Any) -> None:
    assert found["no_such_kind"] == (
        "device of a new kind in other: Operation not supported; this kernel may lack the module "
        "for it"
    )


def test_more_packets_than_one_call_takes_are_sent_by_several(found: Any) -> None:
    assert found["kept_back_of_many"] == 0


def test_packets_that_the_own_stack_keeps_back_among_others_are_told_and_not_sent_again(
    found: Any,
) -> None:
    """One in four is dropped by a rule; sent again, rules would see it twice."""
    assert found["some_kept_back"] == [5, [1, 5, 9, 13, 17]]
    assert found["ports_of_those_heard"] == [32_768 + at for at in range(20) if at % 4 != 1]
    assert found["seen_by_rules"] == "20"
