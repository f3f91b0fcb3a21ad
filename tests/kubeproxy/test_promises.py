"""On every capture `trace` gives what kube-proxy's design promises, as the objects tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.base_chains import Rules
from tests.support.promised_flows import OUTSIDE, dumps, ends, kept, may_keep
from tests.support.promises import Frontend, Promises, Source

_MANY = 400


@cache
def ruleset(path: Path) -> Rules:
    return read_ruleset(path.read_bytes(), path.name)


def sources(promises: Promises, family: int) -> Iterator[Source]:
    yield Source("a pod here", promises.pod_here())
    if promises.node_addresses:
        yield Source("the node", promises.node_addresses[0], made_here=True)
    for address in OUTSIDE[family]:
        yield Source("outside", address)


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
