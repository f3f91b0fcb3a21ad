"""Membership in an ipset as the manual page tells it, from the text that ``ipset save`` prints.

It shares no code with the analyzer: it reads the text anew, and looks at each entry in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address, ip_network


@dataclass(frozen=True)
class Sent:
    """A packet, all of it known."""

    source: str
    destination: str
    protocol: str
    source_port: int
    destination_port: int
    device: str = "eth0"
    mark: int = 0


def is_in(saved: str, name: str, flags: str, sent: Sent) -> bool:
    """Tell whether a packet is in a set; the most specific entry that holds it decides."""
    kind = next(w[2] for w in map(str.split, saved.splitlines()) if w[:2] == ["create", name])
    parts = kind.partition(":")[2].split(",")
    entries = [w[2:] for w in map(str.split, saved.splitlines()) if w[:2] == ["add", name]]
    if kind == "list:set":
        return any(is_in(saved, entry[0], flags, sent) for entry in entries)
    sides = flags.split(",")
    if len(sides) < len(parts):
        return False
    found: list[tuple[list[int], bool]] = []
    for text, *options in entries:
        asked = list(zip(parts, text.split(","), sides, strict=False))
        if "iface" in parts and _holds(*asked[0], sent) and not _holds(*asked[1], sent):
            # A network with another device hides wider ones, and loses to itself with this one.
            found.append(([-ip_network(asked[0][1]).prefixlen, 1], False))
        if all(_holds(*each, sent) for each in asked):
            lengths = [-ip_network(t).prefixlen for part, t, _ in asked if part == "net"]
            found.append((lengths, "nomatch" not in options))
    return bool(found) and min(found)[1]


def _holds(part: str, text: str, side: str, sent: Sent) -> bool:
    match part:
        case "ip" | "net":
            address = sent.source if side == "src" else sent.destination
            return ip_address(address) in ip_network(text)
        case "port":
            protocol, sign, number = text.rpartition(":")
            port = sent.source_port if side == "src" else sent.destination_port
            return (not sign or protocol == sent.protocol) and int(number) == port
        case "iface":
            return side == "src" and text == sent.device
        case _:
            raise AssertionError(part)
