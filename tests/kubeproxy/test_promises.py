"""On every capture `trace` gives what kube-proxy's design promises, as the objects tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from analyzer.kubeproxy.trace import Question, trace
from analyzer.model.packet import Packet
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.fate import End
from tests.support.promises import Frontend, Promise, Promises, Source

_MANY = 400
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


@cache
def ruleset(path: Path) -> Rules:
    return read_ruleset(path.read_bytes(), path.name)


def sources(promises: Promises, family: int) -> Iterator[Source]:
    yield Source("a pod here", promises.pod_here())
    if promises.node_addresses:
        yield Source("the node", promises.node_addresses[0], made_here=True)
    for address in OUTSIDE[family]:
        yield Source("outside", address)


def ends(rules: Rules, promises: Promises, frontend: Frontend, source: Source) -> tuple[End, ...]:
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


def kept(found: tuple[End, ...], promise: Promise, promises: Promises) -> bool:
    if not all(end.probability.is_exact for end in found):
        return False
    if promise.kind != "endpoint":
        kinds = {"no-service", "local"} if promise.kind == "pass" else {promise.kind}
        return len(found) == 1 and found[0].fate.kind in kinds
    sent = {(end.fate.address, end.fate.port) for end in found if end.fate.kind == "endpoint"}
    masked = {(e.fate.address, e.fate.port) for e in found if e.masquerade}
    if any(end.masquerade is None for end in found):
        return False
    shares = Counter(end.probability.lower.as_fraction() for end in found)
    return (
        len(sent) == len(found)
        and sent == promise.endpoints
        and masked == promise.masqueraded
        and shares == Counter(promises.shares(len(found)))
    )


def may_keep(found: tuple[End, ...], promise: Promise) -> bool:
    """Tell whether a promise lies within bounds, as where ``-m physdev`` decides.

    Up to 1.21 it asks of a flow to an external IP whether it came over a bridge, which no dump
    tells. What it does not take passes on.
    """
    upper = {(e.fate.address, e.fate.port): e.probability.upper for e in found}
    share = 1 / len(promise.endpoints)
    return {end.fate.kind for end in found} == {"endpoint", "no-service"} and all(
        float(upper[endpoint]) > share * 0.999 for endpoint in promise.endpoints
    )


def frontends_of(promises: Promises) -> list[tuple[Any, Any, Frontend]]:
    """Return all frontends; of thousands a few dozen, as the rules of all are alike."""
    found = list(promises.frontends())
    return found if len(found) < _MANY else found[:: len(found) // 20]


def test_every_flow_ends_as_promised(captures: Path) -> None:
    broken, asked = [], Counter[str]()
    for path, family in dumps(captures):
        promises = Promises(path.parent, family)
        place = f"{path.parent.parent.name}/{path.parent.name}/{path.name}"
        for service, port, frontend in frontends_of(promises):
            for source in sources(promises, family):
                promise = promises.promise(service, port, frontend, source)
                asked[promise.kind] += 1
                found = ends(ruleset(path), promises, frontend, source)
                by_bridge = promises.version < (1, 22) and frontend.kind == "ExternalIP"
                if by_bridge and promise.kind == "endpoint" and not source.made_here:
                    holds = may_keep(found, promise)
                else:
                    holds = kept(found, promise, promises)
                if not holds:
                    got = [(e.fate.kind, str(e.fate.address), e.masquerade) for e in found[:3]]
                    broken.append(f"{place} {frontend} from {source.name}: {promise} {got}")
    assert broken == []
    assert {"endpoint", "reject", "drop", "pass"} <= set(asked)
    assert sum(asked.values()) > 5_000
