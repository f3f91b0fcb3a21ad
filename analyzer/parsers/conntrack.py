"""``conntrack -L``, with or without ``-o extended``, and ``/proc/net/nf_conntrack``.

Source: conntrack-tools, src/conntrack.c, ``dump_cb``; libnetfilter_conntrack,
src/conntrack/snprintf_default.c; Linux, net/netfilter/nf_conntrack_standalone.c, ``ct_seq_show``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from analyzer.errors import InputError
from analyzer.model.addresses import address_from_text
from analyzer.model.conntrack import Tracked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ENTRY: Final = re.compile(
    r"(?:ipv[46] +\d+ +)?(tcp|udp|sctp|dccp|udplite) +\d+ (\d{1,10}) (?:([A-Z][A-Z0-9_]*) )?"
    r"src=(\S+) dst=(\S+) sport=(\d{1,5}) dport=(\d{1,5}) (?:packets=\d+ bytes=\d+ )?"
    r"(\[UNREPLIED\] )?src=(\S+) dst=\S+ sport=(\d{1,5}) dport=\d{1,5}(?: |$)"
)
#: How any entry begins, with ports or without.
_ANY: Final = re.compile(r"(?:ipv[46] +\d+ +)?[a-z][a-z0-9-]* +\d+ +\d+ ")


def parse_conntrack(data: bytes, file: str) -> tuple[Tracked, ...]:
    """Return the flows that have ports; others, as of ICMP, are no flows to Services.

    Raises:
        InputError: it is something else.
    """
    lines = data.decode("utf-8", "replace").split("\n")
    found = tuple(_entries(lines))
    others = [
        at for at, line in enumerate(lines, 1) if line.strip() and not _ANY.match(line.lstrip())
    ]
    # conntrack says on stderr how many there are, which is at times mixed in.
    if not found and (others or not any(_ANY.match(line.lstrip()) for line in lines)):
        raise InputError(f"{file}: no flow in it; expected the output of `conntrack -L`")
    return found


def _entries(lines: Iterable[str]) -> Iterator[Tracked]:
    for line in lines:
        match = _ENTRY.match(line.lstrip())
        if match is None:
            continue
        protocol, seconds, state, *rest = match.groups()
        source, destination, sport, dport, unreplied, reply, reply_port = rest
        addresses = [address_from_text(each) for each in (source, destination, reply)]
        if any(each is None for each in addresses):
            continue
        first, second, third = (each for each in addresses if each is not None)
        yield Tracked(
            protocol=protocol,
            seconds=int(seconds),
            state=state,
            source=first,
            source_port=int(sport),
            destination=second,
            destination_port=int(dport),
            reply_source=third,
            reply_source_port=int(reply_port),
            replied=unreplied is None and state != "SYN_SENT",
        )
