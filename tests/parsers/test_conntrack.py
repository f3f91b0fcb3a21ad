"""What conntrack prints, in its forms, and what is none of it."""

from __future__ import annotations

import pytest

from analyzer.errors import InputError
from analyzer.parsers.conntrack import parse_conntrack

UDP = (
    "udp      17 29 src=10.244.1.9 dst=10.96.0.10 sport=1025 dport=53 [UNREPLIED] "
    "src=10.244.0.3 dst=10.244.1.9 sport=53 dport=1025 mark=0 use=1"
)
TCP = (
    "tcp      6 431999 ESTABLISHED src=10.0.0.5 dst=10.96.0.1 sport=4000 dport=443 "
    "src=192.168.0.10 dst=10.0.0.5 sport=6443 dport=4000 [ASSURED] mark=0 use=1"
)
COUNTED = (
    "tcp      6 119 SYN_SENT src=10.0.0.5 dst=10.96.0.1 sport=4000 dport=443 packets=3 bytes=180 "
    "[UNREPLIED] src=192.168.0.10 dst=10.0.0.5 sport=6443 dport=4000 packets=0 bytes=0 mark=0"
)
ICMP = "icmp     1 29 src=10.0.0.5 dst=10.0.0.6 type=8 code=0 id=1 src=10.0.0.6 dst=10.0.0.5 type=0"


def read(*lines: str) -> list[tuple[str, str | None, str, int, str, int, bool]]:
    found, _ = parse_conntrack("\n".join([*lines, ""]).encode(), "conntrack.txt")
    return [
        (
            e.protocol,
            e.state,
            str(e.destination),
            e.destination_port,
            str(e.reply_source),
            e.reply_source_port,
            e.replied,
        )
        for e in found
    ]


def test_an_entry_says_what_was_asked_for_who_was_drawn_and_whether_it_answered() -> None:
    assert read(UDP, TCP, COUNTED, ICMP) == [
        ("udp", None, "10.96.0.10", 53, "10.244.0.3", 53, False),
        ("tcp", "ESTABLISHED", "10.96.0.1", 443, "192.168.0.10", 6443, True),
        ("tcp", "SYN_SENT", "10.96.0.1", 443, "192.168.0.10", 6443, False),
    ]


@pytest.mark.parametrize("before", ["ipv4     2 ", "ipv6     10 "])
def test_the_extended_form_and_that_of_proc_say_the_same(before: str) -> None:
    assert read(before + TCP) == read(TCP)


@pytest.mark.parametrize(
    ("line", "before"),
    [
        (UDP, "[UNREPLIED]"),
        (TCP, "src=192.168.0.10"),
        (COUNTED, "[UNREPLIED]"),
        (COUNTED, "packets=3"),
        (COUNTED, "mark=0"),
    ],
)
def test_the_zone_of_one_direction_changes_nothing(line: str, before: str) -> None:
    """Of flows that rules put into a zone, and not their answers: -j CT --zone-orig 5."""
    zone = "zone-reply=5" if before == "mark=0" else "zone-orig=5"
    assert read(line.replace(before, f"{zone} {before}")) == read(line)


def test_ipv6_is_read() -> None:
    line = UDP.replace("10.96.0.10", "fd00::a").replace("10.244.0.3", "fd00::3")
    (found,) = read(line.replace("10.244.1.9", "fd00::9"))
    assert found[2:5] == ("fd00::a", 53, "fd00::3")


def test_what_conntrack_says_on_stderr_is_passed_by() -> None:
    assert (
        len(read(UDP, "conntrack v1.4.7 (conntrack-tools): 1 flow entries have been shown.")) == 1
    )


def test_numbers_that_are_none_of_the_kernels_are_no_flow() -> None:
    assert (
        read(TCP.replace("431999", "9" * 5000), TCP.replace("=6443", "=" + "1" * 5000), ICMP) == []
    )


@pytest.mark.parametrize("text", ["", "hello\n", "*nat\nCOMMIT\n", "\x00\xff", "{}"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"c\.txt: it contains no flows; expected the output of"):
        parse_conntrack(text.encode(), "c.txt")


def test_a_node_without_flows_to_services_is_fine() -> None:
    assert read(ICMP) == []


OFFLOADED = (
    "ipv4     2 tcp      6 src=10.244.1.254 dst=10.96.18.52 sport=9 dport=80 packets=1 bytes=1 "
    "src=10.244.0.7 dst=10.244.1.254 sport=8080 dport=9 packets=1 bytes=1 [OFFLOAD] mark=0 zone=0"
)


@pytest.mark.parametrize("line", [OFFLOADED, OFFLOADED.replace("[OFF", "[HW_OFF")])
def test_a_flow_that_is_offloaded_has_no_time_and_was_answered(line: str) -> None:
    (found,), unread = parse_conntrack(line.encode(), "c")
    assert (found.seconds, found.state, found.replied) == (None, "ESTABLISHED", True)
    assert str(found.reply_source) == "10.244.0.7"
    assert unread == ()


@pytest.mark.parametrize(
    "line",
    [
        TCP.replace("431999", "43199900000000"),
        TCP.replace("src=10.0.0.5", "src=10.0.0.500", 1),
        TCP.replace("ESTABLISHED", "EST\x1b"),
        OFFLOADED.replace("[OFFLOAD] ", ""),
    ],
)
def test_lines_that_are_not_understood_are_counted(line: str) -> None:
    found, unread = parse_conntrack(f"{UDP}\n{line}\n{ICMP}\n".encode(), "c")
    assert (len(found), unread) == (1, (2,))
