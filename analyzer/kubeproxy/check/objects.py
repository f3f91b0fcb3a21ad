"""The rules match the API's Services and endpoints, as far as all versions agree.

Every version of kube-proxy uses a ready endpoint, unless a traffic policy or a topology hint
reserves it for others; which policy applies where depends on the version (`docs/reference.md`). So
an endpoint counts as missing only if no version could leave it out, and as stale only if no version
could use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Final, TypeAlias

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.kubeproxy.names import plain_name
from analyzer.model.addresses import Address, address_and_port_from_text, address_to_text
from analyzer.model.services import ApiEndpoint, ApiServicePort

#: Name, without a colon at its end, and protocol.
PlainNameAndProtocol: TypeAlias = tuple[str, str]
#: Kind, address (None: any of the node), port.
ApiFrontend: TypeAlias = tuple[str, Address | None, int]

#: Prefixes of chains for the endpoints of the node alone.
_OF_LOCAL: Final = ("KUBE-SVL-", "KUBE-XLB-")
#: OpenShift's kube-proxy sends a node's DNS queries to an endpoint on that node, if there is one.
_PREFERS_LOCAL: Final = "openshift-dns/dns-default:"


def objects(facts: DumpFacts) -> Iterator[Finding]:
    """Find Services, frontends and endpoints that are only in the rules or only in the objects."""
    if not facts.wanted:
        return
    there: dict[PlainNameAndProtocol, list[ChainRule]] = {}
    for frontend in (*facts.frontends, *facts.refusals):
        if frontend.service:
            there.setdefault((plain_name(frontend.service), frontend.protocol or ""), []).append(
                frontend
            )
    wanted = {(want.name, want.protocol): want for want in facts.wanted}
    chains = _chains(facts)
    for key, found in there.items():
        if key not in wanted:
            yield Finding(
                code="stale-service",
                message=(
                    f"new flows to {found[0]} are still matched, but the objects have no such "
                    "ServicePort: the rules are older than its deletion, or the objects are not "
                    "of all namespaces"
                ),
                line=found[0].line,
            )
    for key, want in wanted.items():
        if key in there:
            yield from _frontends(want, there[key])
            yield from _endpoints(facts, want, chains.get(key, []))
            yield from _affinity(facts, want, chains.get(key, []))
        elif "filter" in facts.ruleset.tables or any(e.is_certain for e in want.endpoints):
            places = [_text(place, want.protocol) for place in want.frontends]
            yield Finding(
                code="missing-service",
                message=(
                    f"no rule matches new flows to {', '.join(places[:2])} ({want.name}), which is "
                    "in the objects: they leave untranslated. The dump is older, or was taken in "
                    "the middle of a sync"
                ),
            )


def _text(place: ApiFrontend, protocol: str) -> str:
    _, address, port = place
    host = "*" if address is None else address_to_text(address)
    return f"[{host}]:{port}/{protocol}" if ":" in host else f"{host}:{port}/{protocol}"


def _chains(facts: DumpFacts) -> dict[PlainNameAndProtocol, list[str]]:
    """Return the chains that draw endpoints of each ServicePort."""
    found: dict[PlainNameAndProtocol, list[str]] = {}
    for chain, owners in facts.owners.items():
        draws = chain in facts.settled or facts.draws(chain)
        if draws and not chain.startswith(names.ENDPOINT_PREFIX):
            for name, protocol in owners:
                found.setdefault((plain_name(name), protocol), []).append(chain)
    return found


def _frontends(want: ApiServicePort, found: list[ChainRule]) -> Iterator[Finding]:
    asked = {(address, port): (kind, address, port) for kind, address, port in want.frontends}
    there = {
        (f.host, f.port): f
        for f in found
        # From 1.33 on an additional rule counts packets to a NodePort over loopback.
        if f.port is not None and (f.destination is None or f.host is not None)
    }
    for place, frontend in there.items():
        if place not in asked:
            yield Finding(
                code="stale-frontend",
                message=(
                    f"new flows to {frontend} are still matched, but {want.name} has no such "
                    "address and port in the objects"
                ),
                line=frontend.line,
            )
    for place, whole in asked.items():
        if place not in there and not any(f.port is None for f in found):
            yield Finding(
                code="missing-frontend",
                message=(
                    f"no rule matches new flows to {_text(whole, want.protocol)}, which is the "
                    f"{whole[0]} of {want.name}: they leave untranslated"
                ),
                line=found[0].line,
            )


def _affinity(facts: DumpFacts, want: ApiServicePort, chains: list[str]) -> Iterator[Finding]:
    for chain in chains:
        if chain in facts.settled and want.affinity is None:
            continue  # a settled chain has no affinity
        rows = facts.endpoint_rows(chain)
        checks = [row for row in rows if row.recent is not None and row.recent.seconds is not None]
        seconds = {row.recent.seconds for row in checks if row.recent is not None}
        if seconds != ({want.affinity} if want.affinity is not None else set()):
            told = ", ".join(f"{s} s" for s in sorted(s for s in seconds if s is not None))
            stay = f"stay at an endpoint for {told}" if told else "have no session affinity"
            asked = "no session affinity" if want.affinity is None else f"{want.affinity} s"
            yield Finding(
                code="affinity-differs",
                message=(f"{facts.traffic(chain)} {stay}, but the objects say {asked}"),
                line=(checks or rows)[0].line,
            )
            return


# --- endpoints ---


def _endpoints(facts: DumpFacts, want: ApiServicePort, chains: list[str]) -> Iterator[Finding]:
    # Texts are compared first: parsing all addresses of a large dump again takes long.
    by_text = {text_of(each): each for each in want.endpoints}
    no_ready = not any(each.is_ready for each in want.endpoints)
    ready = {text for text, each in by_text.items() if each.is_ready}
    stale: set[str] = set()
    for chain in chains:
        if chain in facts.settled:
            known = facts.settled[chain].values()
            if len(by_text) == len(known) and ready.issuperset(known):
                continue  # all endpoints are there
        rows = facts.draws(chain)
        texts = [facts.destinations.get(row.target or "") for row in rows]
        if ready.issuperset(texts) and len(by_text) == len(set(texts)):
            continue
        told = {(each.address, each.port): each for each in want.endpoints}
        drawn: set[object] = set()
        for row, text in zip(rows, texts, strict=True):
            place = None if text is None else address_and_port_from_text(text)
            drawn.add(place)
            if text is None or text in stale:
                continue
            spec = None if place is None or place[1] is None else told.get((place[0], place[1]))
            fallback = (
                spec is not None and spec.may_serve and (no_ready or _is_for_local(chain, want))
            )
            if spec is None or not (spec.is_ready or fallback):
                stale.add(text)
                yield _stale(facts, row, text, spec, len(rows))
        if None in drawn:
            continue  # where a rule leads is not known
        missing = [e for e in required(facts, chain, want) if (e.address, e.port) not in drawn]
        if missing:
            yield _lacking(facts, chain, missing, rows[0])
    if not chains:
        yield from _without_chain(facts, want)


def _stale(
    facts: DumpFacts, row: ChainRule, text: str, spec: ApiEndpoint | None, number: int
) -> Finding:
    why = "no longer list it" if spec is None else "say that it is not ready"
    return Finding(
        code="stale-endpoint" if spec is None else "unready-endpoint",
        message=(
            f"{facts.traffic(row.chain)} are still sent to endpoint {text}, one of {number} "
            f"there, but the EndpointSlices {why}: the rules are older than the objects"
        ),
        line=row.line,
    )


def _lacking(facts: DumpFacts, chain: str, missing: list[ApiEndpoint], first: ChainRule) -> Finding:
    texts = [text_of(each) for each in missing]
    more = f" and {len(texts) - 2} more" if texts[2:] else ""
    return Finding(
        code="missing-endpoint",
        message=(
            f"{facts.traffic(chain)} are never sent to {', '.join(texts[:2])}{more}, which the "
            "EndpointSlices list as ready: the others take its share"
        ),
        line=first.line,
    )


def text_of(each: ApiEndpoint) -> str:
    """Return address and port of an endpoint, as in rules."""
    if isinstance(each.address, IPv4Address) and each.spellings:
        return f"{each.spellings[0]}:{each.port}"  # there is just one spelling
    text = address_to_text(each.address)
    return f"[{text}]:{each.port}" if ":" in text else f"{text}:{each.port}"


def _is_for_local(chain: str, want: ApiServicePort) -> bool:
    """Return whether a chain may be for the node's own endpoints only."""
    return chain.startswith(_OF_LOCAL) or want.internal_local


def required(facts: DumpFacts, chain: str, want: ApiServicePort) -> list[ApiEndpoint]:
    """Return the endpoints that every version draws in a chain."""
    ready = [each for each in want.endpoints if each.is_certain]
    if want.name.startswith(_PREFERS_LOCAL):
        return []
    if _is_for_local(chain, want):
        ready = [] if facts.node is None else [e for e in ready if e.node == facts.node]
    if chain.startswith(_OF_LOCAL):
        return ready
    # Beside a chain for the node's own endpoints, since 1.24, that of all respects hints.
    return [e for e in ready if _is_here(facts, e)]


def _is_here(facts: DumpFacts, endpoint: ApiEndpoint) -> bool:
    """Return whether no topology hint may reserve an endpoint for other nodes."""
    for_us = not endpoint.zones or facts.zone in endpoint.zones
    return for_us and (not endpoint.nodes or facts.node in endpoint.nodes)


def _without_chain(facts: DumpFacts, want: ApiServicePort) -> Iterator[Finding]:
    """Find Services that are refused although they have ready endpoints."""
    if want.internal_local or not any(each.is_certain for each in want.endpoints):
        return
    for refusal in facts.refusals:
        if (plain_name(refusal.service), refusal.protocol) != (want.name, want.protocol):
            continue
        if refusal.target == "REJECT":
            ready = sum(each.is_certain for each in want.endpoints)
            yield Finding(
                code="missing-endpoint",
                message=(
                    f"new flows to {refusal} are rejected for lack of endpoints, but the "
                    f"EndpointSlices list {ready} as ready: the rules are older than they are"
                ),
                line=refusal.line,
            )
            return
