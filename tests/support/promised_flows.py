"""Flows of captures, where `trace` says that they end, and whether that is what was promised."""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address
from pathlib import Path

from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.model.packet import Packet
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.fate import PacketEnd
from tests.support.promises import Frontend, Promise, Promises, Source

#: In the ranges of the Services that have some, and outside them.
OUTSIDE = {
    4: (ip_address("192.0.2.10"), ip_address("198.51.100.200")),
    6: (ip_address("2001:db8:ffff::1"),),
}


def dumps(captures: Path) -> list[tuple[Path, int]]:
    """Return each dump with the family that it is asked about."""
    found = [
        (path, 6 if path.name.startswith("ip6") else 4)
        for path in captures.glob("*iptables*/*/ip*-save.txt*")
    ]
    for path in captures.glob("*-nftables/*/nft-list-ruleset*"):
        found += [(path, 4), *([(path, 6)] if "dual" in path.parent.name else [])]
    return sorted(found)


def ends(
    rules: Rules, promises: Promises, frontend: Frontend, source: Source
) -> tuple[PacketEnd, ...]:
    """Return where the flow from `source` to `frontend` ends."""
    packet = Packet(
        protocol=frontend.protocol,
        source=source.address,
        source_port=40_000,
        destination=frontend.address,
        destination_port=frontend.port,
        in_interface="" if source.made_here else "x",
    )
    question = Question(packet=packet, addresses=promises.node_addresses)
    return trace([rules], question, "ip" if promises.family == 4 else "ip6").ends


def kept(found: tuple[PacketEnd, ...], promise: Promise, promises: Promises) -> bool:
    """Tell whether the ends of a flow are just what it is promised."""
    if not all(end.probability.is_exact for end in found):
        return False
    if promise.kind != "endpoint":
        kinds = {"no-service", "local"} if promise.kind == "pass" else {promise.kind}
        return len(found) == 1 and found[0].fate.kind in kinds
    sent = {(end.fate.address, end.fate.port) for end in found if end.fate.kind == "endpoint"}
    masked = {(e.fate.address, e.fate.port) for e in found if e.masquerade}
    if any(end.masquerade is None for end in found):
        return False
    shares = Counter(end.probability.lower for end in found)
    return (
        len(sent) == len(found)
        and sent == promise.endpoints
        and masked == promise.masqueraded
        and shares == Counter(promises.shares(len(found)))
    )


def may_keep(found: tuple[PacketEnd, ...], promise: Promise) -> bool:
    """Tell whether a promise lies within bounds, as where ``-m physdev`` decides.

    Up to 1.21 it asks of a flow to an external IP whether it came over a bridge, which no dump
    tells. What it does not take passes on.
    """
    upper = {(e.fate.address, e.fate.port): e.probability.upper for e in found}
    share = 1 / len(promise.endpoints)
    return {end.fate.kind for end in found} == {"endpoint", "no-service"} and all(
        float(upper[endpoint]) > share * 0.999 for endpoint in promise.endpoints
    )
