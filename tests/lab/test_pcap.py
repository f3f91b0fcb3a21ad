"""Captures, whole and cut off, as they are read."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import InputError
from netns_lab.decoding import Segment

pcap = pytest.importorskip("netns_lab.pcap", reason="scapy is not installed")
inet = pytest.importorskip("scapy.layers.inet")
l2 = pytest.importorskip("scapy.layers.l2")
utils = pytest.importorskip("scapy.utils")

FLOWS = 9
#: With addresses: scapy would ask the host's network for what is left out.
ETHER = l2.Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
WRITERS = {"pcap": utils.wrpcap, "pcapng": utils.wrpcapng}
forms = pytest.mark.parametrize("form", WRITERS)


def written(folder: Path, form: str) -> Path:
    """Return a capture of a few datagrams, half a second apart."""
    path = folder / f"flows.{form}"
    packets = []
    for at in range(FLOWS):
        packet = ETHER / inet.IP(src="10.0.0.1", dst="10.0.0.2")
        packets.append(packet / inet.UDP(sport=1000 + at, dport=53) / b"abcd")
        packets[-1].time = 1_700_000_000 + at / 2
    WRITERS[form](str(path), packets)
    return path


def read(path: Path, most: int = 1 << 20) -> tuple[list[Any], str | None]:
    reading = pcap.Reading(str(path), most)
    packets = list(reading)
    assert reading.packets == len(packets)
    return packets, reading.cut


@forms
def test_a_whole_capture_has_all_packets_and_their_times(tmp_path: Path, form: str) -> None:
    packets, cut = read(written(tmp_path, form))
    assert cut is None
    assert [each.number for each in packets] == list(range(1, FLOWS + 1))
    assert [each.at - packets[0].at for each in packets] == [at / 2 for at in range(FLOWS)]
    assert all(isinstance(each.is_, Segment) for each in packets)


@forms
def test_wherever_a_capture_is_cut_off_this_is_said(tmp_path: Path, form: str) -> None:
    data = written(tmp_path, form).read_bytes()
    cut = tmp_path / "cut"
    clean = 0
    for length in range(0, len(data), 3):
        cut.write_bytes(data[:length])
        try:
            packets, says = read(cut)
        except InputError as error:
            assert str(error).startswith(str(cut))  # noqa: PT017  # of some lengths it is none
            continue
        if says:
            assert says == f"it ends in the middle of packet {len(packets) + 1}"
        else:
            clean += 1
            # Just what a capture with fewer packets is.
            cut.write_bytes(data[: length - 1])
            assert read(cut)[1]
    assert clean < FLOWS


def test_a_packed_capture_is_read_and_a_damaged_one_as_far_as_it_goes(tmp_path: Path) -> None:
    data = gzip.compress(written(tmp_path, "pcap").read_bytes())
    path = tmp_path / "packed"
    path.write_bytes(data)
    assert len(read(path)[0]) == FLOWS
    path.write_bytes(data[:-40])
    packets, cut = read(path)
    assert len(packets) < FLOWS
    assert cut


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a packet capture"),
        (b"*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n", "not a packet capture"),
        (
            b"\xd4\xc3\xb2\xa1\x02\0\x04\0" + bytes(12) + b"\x01\0\0\0",
            "it contains no complete packet",
        ),
    ],
)
def test_what_is_no_capture_is_refused(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(data)
    with pytest.raises(InputError, match=says):
        read(path)


def test_a_block_that_claims_to_be_huge_is_not_made_room_for(tmp_path: Path) -> None:
    path = written(tmp_path, "pcapng")
    data = path.read_bytes()
    at = len(data) - 80
    path.write_bytes(data[:at] + b"\x06\0\0\0\xf0\xff\xff\xff" + data[at + 8 :])
    with pytest.raises(InputError, match="is not a packet: damaged"):
        read(path)


def test_no_more_is_read_than_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--max-input allows more"):
        read(written(tmp_path, "pcap"), most=100)


def test_nothing_of_scapy_stays_changed(tmp_path: Path) -> None:
    log = logging.getLogger("scapy.runtime")
    before = log.propagate, log.handlers
    read(written(tmp_path, "pcap"))
    assert (log.propagate, log.handlers) == before
