"""``conntrack -L``, with or without ``-o extended``, and ``/proc/net/nf_conntrack``.

Source: conntrack-tools, src/conntrack.c, ``dump_cb``; libnetfilter_conntrack,
src/conntrack/snprintf_default.c; Linux, net/netfilter/nf_conntrack_standalone.c, ``ct_seq_show``.
"""

from __future__ import annotations

import re

from analyzer.errors import InputError
from analyzer.model.addresses import address_from_text
from analyzer.model.conntrack import Tracked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ENTRY: Final = re.compile(
    r"(?:ipv[46] +\d+ +)?(tcp|udp|sctp|dccp|udplite) +\d+ +(?:(\d{1,10}) )?(?:([A-Z][A-Z0-9_]*) )?"
    r"src=(\S+) dst=(\S+) sport=(\d{1,5}) dport=(\d{1,5}) "
    # Programs and /proc differ in the order of these.
    r"(?:packets=\d+ bytes=\d+ |zone-orig=\d+ ){0,2}"
    r"(\[UNREPLIED\] )?src=(\S+) dst=\S+ sport=(\d{1,5}) dport=\d{1,5}(?: |$)"
)
#: The beginning of any entry, with or without ports.
_ANY: Final = re.compile(r"(?:ipv[46] +\d+ +)?[a-z][a-z0-9-]* +\d+ +(?:\d+ |src=)")
#: The beginning of an entry that may be a flow to a Service.
_WITH_PORTS: Final = re.compile(r"(?:ipv[46] +\d+ +)?(?:tcp|udp|sctp|dccp|udplite) +\d+ ")
#: Marks of entries offloaded to a flowtable or a network card; these have no time and no state.
_OFFLOADED: Final = ("[OFFLOAD]", "[HW_OFFLOAD]")


def parse_conntrack(data: bytes, file: str) -> tuple[tuple[Tracked, ...], tuple[int, ...]]:
    """Return the flows that have ports, and the numbers, from 1, of the lines not understood.

    Other protocols, such as ICMP, have no flows to Services.

    Raises:
        InputError: it is something else.
    """
    lines = data.decode("utf-8", "replace").split("\n")
    read = [(at, _entry(line)) for at, line in enumerate(lines, 1) if line]
    found = tuple(each for _, each in read if each is not None)
    unread = tuple(
        at for at, each in read if each is None and _WITH_PORTS.match(lines[at - 1].lstrip())
    )
    others = [
        at for at, line in enumerate(lines, 1) if line.strip() and not _ANY.match(line.lstrip())
    ]
    # conntrack prints the number of entries to stderr, which is sometimes mixed in.
    if not found and (others or not any(_ANY.match(line.lstrip()) for line in lines)):
        raise InputError(f"{file}: it contains no flows; expected the output of `conntrack -L`")
    return found, unread


def _entry(line: str) -> Tracked | None:
    match = _ENTRY.match(line.lstrip())
    if match is None:
        return None
    protocol, seconds, state, *rest = match.groups()
    source, destination, sport, dport, unreplied, reply, reply_port = rest
    addresses = [address_from_text(each) for each in (source, destination, reply)]
    offloaded = any(each in line for each in _OFFLOADED)
    if any(each is None for each in addresses) or (seconds is None and not offloaded):
        return None
    first, second, third = (each for each in addresses if each is not None)
    return Tracked(
        protocol=protocol,
        seconds=None if seconds is None else int(seconds),
        # Only answered flows are offloaded.
        state="ESTABLISHED" if offloaded and state is None else state,
        source=first,
        source_port=int(sport),
        destination=second,
        destination_port=int(dport),
        reply_source=third,
        reply_source_port=int(reply_port),
        replied=unreplied is None and state != "SYN_SENT",
    )
