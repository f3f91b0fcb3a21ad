"""Socket addresses, tags and acknowledgements of a batch, beside those of each packet."""

from __future__ import annotations

import struct
import sys
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from netns_lab.columns import NO_PORT, Columns, raw_sockaddr, sockaddr_of, tag_of
from netns_lab.layout import ANSWER, PacketLayout
from netns_lab.ring import Slots

Address = IPv4Address | IPv6Address

SLOT = 256
IP_AT = 80
PORTS = st.integers(0, 65_535)
ADDRESSES = {4: st.ip_addresses(v=4), 6: st.ip_addresses(v=6)}


class Packet(NamedTuple):
    """A segment of TCP, and what an error of ICMP would quote of another one."""

    source: Address
    source_port: int
    destination: Address
    destination_port: int
    tag: int
    acknowledges: int

    def written(self, layout: PacketLayout) -> bytes:
        """Return its headers, those of IP with their addresses alone."""
        ports = struct.pack(">HH", self.source_port, self.destination_port)
        numbers = struct.pack(">II", self.tag, self.acknowledges)
        addresses = self.source.packed + self.destination.packed
        return bytes(layout.source) + addresses + ports + numbers


def packets(version: int) -> st.SearchStrategy[list[Packet]]:
    some = st.lists(ADDRESSES[version], min_size=1, max_size=3).flatmap(st.sampled_from)
    ports = st.sampled_from([0, 53, 65_535]) | PORTS
    number = st.integers(0, 2**32 - 1)
    each = st.builds(Packet, some, ports, some, ports, number, number)
    return st.lists(each, min_size=1, max_size=9)


def columns(layout: PacketLayout, given: list[Packet], behind: int = 0) -> Columns:
    """Return the columns of packets in slots, each `behind` so many bytes of headers."""
    written = [bytes(IP_AT + behind) + each.written(layout) for each in given]
    memory = b"".join(each.ljust(SLOT, b"\0") for each in written)
    return Columns(Slots(memoryview(memory), SLOT, IP_AT), layout)


@given(st.data(), st.sampled_from([4, 6]))
def test_a_socket_address_is_read_from_memory_as_it_was_written(
    data: st.DataObject, version: int
) -> None:
    address, port = data.draw(ADDRESSES[version]), data.draw(PORTS)
    raw = raw_sockaddr(address.packed, port)
    assert sockaddr_of(raw) == (int(address), port)


@given(PORTS, st.integers(0, 32_767))
def test_a_tag_is_made_of_its_port_and_its_client(port: int, client: int) -> None:
    tag = tag_of(client, port)
    assert tag.to_bytes(4, sys.byteorder) == ((port ^ 0xFFFF) << 16 | client << 1).to_bytes(4)
    assert tag == tag_of(client, NO_PORT) | tag_of(0, port)


@given(st.data(), st.sampled_from([4, 6]))
def test_a_batch_is_read_as_each_packet_alone(data: st.DataObject, version: int) -> None:
    layout = PacketLayout(version, "tcp")
    given = data.draw(packets(version))
    read = columns(layout, given)
    first = data.draw(st.integers(0, len(given) - 1))
    last = data.draw(st.integers(first + 1, len(given)))
    of = [raw_sockaddr(e.source.packed, e.source_port) for e in given[first:last]]
    to = [raw_sockaddr(e.destination.packed, e.destination_port) for e in given[first:last]]
    assert list(read.of.read(first, last)) == of
    assert list(read.to.read(first, last)) == to
    tags = [int.from_bytes(each.tag.to_bytes(4), sys.byteorder) for each in given[first:last]]
    assert read.tags(first, last) == tags
    for sockaddrs, sockaddr in ((read.of, of[0]), (read.to, to[-1])):
        every = of if sockaddrs is read.of else to
        are = sockaddrs.which_are(sockaddr, first, last)
        assert are == (
            None if all(e == sockaddr for e in every) else [e == sockaddr for e in every]
        )


@given(packets(4), st.sampled_from([4, 6]))
def test_a_mark_of_udp_stands_behind_its_tag(given: list[Packet], version: int) -> None:
    layout = PacketLayout(version, "udp")
    marks = bytes(at % 2 * ANSWER for at in range(len(given)))
    slots = [
        (bytes(IP_AT + layout.tag) + each.tag.to_bytes(4) + marks[at : at + 1]).ljust(SLOT, b"\0")
        for at, each in enumerate(given)
    ]
    read = Columns(Slots(memoryview(b"".join(slots)), SLOT, IP_AT), layout)
    assert read.marks(0, len(given)) == marks
    assert read.tags(0, 1) == [int.from_bytes(given[0].tag.to_bytes(4), sys.byteorder)]


@given(packets(4), st.integers(0, 2**31 - 1))
def test_an_acknowledgement_is_one_more_than_a_tag(given: list[Packet], half: int) -> None:
    layout, tag = PacketLayout(4, "tcp"), 2 * half
    given = [e._replace(acknowledges=tag + at % 2) for at, e in enumerate(given)]
    found = columns(layout, given).acknowledged(0, len(given))
    raw = int.from_bytes(tag.to_bytes(4), sys.byteorder)
    # What acknowledges something else is no tag: these are even.
    assert [each == raw for each in found] == [at % 2 == 1 for at in range(len(given))]
    assert all(each.to_bytes(4, sys.byteorder)[3] % 2 for each in found[::2])


@given(st.data(), st.sampled_from([4, 6]))
def test_quoted_packets_are_read_too(data: st.DataObject, version: int) -> None:
    layout = PacketLayout(version, "tcp")
    given = data.draw(packets(version))
    sockaddrs, tags = columns(layout, given, layout.quoted).quoted()
    assert list(sockaddrs.read(0, len(given))) == [
        raw_sockaddr(each.destination.packed, each.destination_port) for each in given
    ]
    assert [each.to_bytes(4, sys.byteorder) for each in tags.tolist()] == [
        each.tag.to_bytes(4) for each in given
    ]
