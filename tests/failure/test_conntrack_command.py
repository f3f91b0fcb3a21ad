from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.failure.conntrack_command import delete_command
from analyzer.kubeproxy.view import Endpoint

FOUR = Endpoint(ip_address("10.0.0.1"), 53)
SIX = Endpoint(ip_address("fd00::1"), 80)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            delete_command("udp", FOUR),
            "conntrack -D -p udp --reply-src 10.0.0.1 --reply-port-src 53",
        ),
        (
            delete_command("udp", FOUR, Endpoint(ip_address("10.96.0.10"), 53)),
            "conntrack -D -p udp --orig-dst 10.96.0.10 --orig-port-dst 53 "
            "--reply-src 10.0.0.1 --reply-port-src 53",
        ),
        (
            delete_command("tcp", SIX),
            "conntrack -D -f ipv6 -p tcp --reply-src fd00::1 --reply-port-src 80",
        ),
        (
            delete_command("tcp", Endpoint(FOUR.address, None)),
            "conntrack -D -p tcp --reply-src 10.0.0.1",
        ),
    ],
)
def test_entries_are_those_of_a_protocol_at_an_endpoint(command: str, says: str) -> None:
    assert command == says
