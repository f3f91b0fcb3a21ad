"""Rules that people write by hand around kube-proxy's: what they decide, and what they do not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.commands import Command
from tests.support.json_reader import read
from tests.support.noise import KNOWN, NOISE, shares, told

#: The base chains of the tables that the dump may lack.
_BASES = {"raw": "PREROUTING OUTPUT", "mangle": "PREROUTING INPUT FORWARD OUTPUT POSTROUTING"}


def with_rows(table: str, *rows: str) -> str:
    """Return kube-proxy's dump with rows before its own in a table."""
    text = (NOISE / "base.txt").read_text()
    if f"*{table}\n" not in text:
        bases = "".join(f":{each} ACCEPT [0:0]\n" for each in _BASES[table].split())
        text += f"*{table}\n{bases}COMMIT\n"
    at = text.index(f"*{table}\n")
    first = min(each for each in (text.find("\n-A", at), text.find("\nCOMMIT", at)) if each > 0) + 1
    return text[:first] + "".join(f"{row}\n" for row in rows) + text[first:]


def answered(command: Command, table: str, *rows: str, options: tuple[str, ...] = ()) -> Any:
    file = command.file("admin.txt", with_rows(table, *rows))
    done = command("services", file, *KNOWN, *options, "--format", "json")
    assert done.status == 0, done.err
    return read(done.out)


def lost(found: Any) -> list[Any]:
    """Return what is lost of the flows to default/app, by route."""
    return [
        (route["source"], ending["lower"]["value"], ending["upper"]["value"])
        for service in found["services"]
        if service["name"] == "default/app"
        for route in service["routes"]
        for share in route.get("lost") or ()
        for ending in share or ()
    ]


@pytest.mark.parametrize(
    "target",
    [
        "DSCP --set-dscp 0x0a",
        "TOS --set-tos 0x10/0x3f",
        "CLASSIFY --set-class 0001:0010",
        "TTL --ttl-set 64",
        "TTL --ttl-dec 1",
        "ECN --ecn-tcp-remove",
        "TCPOPTSTRIP --strip-options 8",
        "TEE --gateway 192.168.0.77",
        "TCPMSS --clamp-mss-to-pmtu",
    ],
)
def test_what_writes_to_a_packet_beside_its_addresses_changes_no_share(
    command: Command, target: str
) -> None:
    match = "-p tcp -m tcp --tcp-flags SYN,RST SYN " if "TCPMSS" in target else "-p tcp "
    found = answered(command, "mangle", f"-A PREROUTING {match}-j {target}")
    assert shares(found) == shares(told(command, "services", "base", *KNOWN))
    assert not lost(found)
    assert [each for each in found["diagnostics"] if each["severity"] != "info"] == []


@pytest.mark.parametrize("hops", ["--ttl-set 1", "--ttl-set 2", "--ttl-dec 60"])
def test_a_packet_without_hops_may_not_be_forwarded(command: Command, hops: str) -> None:
    found = answered(command, "mangle", f"-A PREROUTING -p tcp -j TTL {hops}")
    app = next(each for each in found["services"] if each["name"] == "default/app")
    unknown = {route["source"] for route in app["routes"] if route["unresolved"]}
    assert unknown >= {"pod", "external"}
    assert "node" not in unknown


RECENT = "-m conntrack --ctstate NEW -m recent --name scan --{} --mask 255.255.255.255 --rsource"


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ((), None),
        (("--assume", "limits=over"), (1, 1)),
        (("--assume", "limits=unknown"), (0, 1)),
    ],
)
def test_a_client_sends_no_more_than_a_list_lets_it(
    command: Command, options: tuple[str, ...], bounds: tuple[int, int] | None
) -> None:
    rows = (
        f"-A FORWARD -p tcp {RECENT.format('set')}",
        f"-A FORWARD -p tcp {RECENT.format('update --seconds 60 --hitcount 20')} -j DROP",
    )
    found = answered(command, "filter", *rows, options=options)
    of_pods = {(low, high) for source, low, high in lost(found) if source == "pod"}
    assert of_pods == ({bounds} if bounds else set())


def test_a_list_that_is_asked_without_a_number_is_not_known(command: Command) -> None:
    row = f"-A FORWARD -p tcp {RECENT.format('rcheck --seconds 600')} -j DROP"
    found = answered(command, "filter", row)
    assert {(low, high) for source, low, high in lost(found) if source == "pod"} == {(0, 1)}
