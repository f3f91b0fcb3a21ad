"""``kubeodds trace --from``: addresses as programs log them, and those that no client has."""

from __future__ import annotations

from typing import Any

from tests.support.captures import FIXTURES
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.json_reader import read

RULES6 = FIXTURES.parent / "check/1.36.2-iptables-legacy/dual-stack/ip6tables-legacy-save.txt"
GIVEN = [DUMP, *OBJECTS, "--node", "worker1", "--to"]
APP = "10.96.18.52:80"


def traced(command: Command, *arguments: str) -> Any:
    done = command("trace", *arguments, "--format", "json")
    assert done.status == 0
    return read(done.out)


def odd(found: Any) -> list[str]:
    return [each["message"] for each in found["diagnostics"] if each["code"] == "odd-source"]


def test_an_ipv4_mapped_address_is_the_ipv4_address(command: Command) -> None:
    found = traced(command, *GIVEN, f"[::ffff:{APP[:-3]}]:80", "--from", "::ffff:10.244.1.200")
    assert found == traced(command, *GIVEN, APP, "--from", "10.244.1.200")


def test_a_source_that_no_client_has_is_named(command: Command) -> None:
    (says,) = odd(traced(command, *GIVEN, APP, "--from", "10.96.0.10"))
    assert says.startswith("--from 10.96.0.10: that is a ClusterIP")
    assert not odd(traced(command, *GIVEN, APP, "--from", "10.244.1.200"))
    # An answer has it, where its translation is undone.
    answer = ["--from", "10.96.0.10", "--ctstate", "ESTABLISHED"]
    assert not odd(traced(command, *GIVEN, APP, *answer))


def test_link_local_addresses_of_ipv6_do_not_get_past_the_node(command: Command) -> None:
    found = traced(command, str(RULES6), "--from", "fe80::1%eth0", "--to", "[fd00::1]:80")
    assert found["packet"]["from"] == "fe80::1"
    assert odd(found) == [
        "--from fe80::1: the kernel forwards no packets from link-local addresses"
    ]
