"""The name of a chain is the hash of what it is for.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``servicePortChainName``,
``servicePortEndpointChainName``.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.names import plain_name
from analyzer.model.addresses import address_and_port_from_text


def hashes(facts: DumpFacts) -> Iterator[Finding]:
    """Find chains whose names are of other ServicePorts or endpoints than their rules."""
    yield from _of_services(facts)
    yield from _between(facts)
    yield from _of_endpoints(facts)


def _of_services(facts: DumpFacts) -> Iterator[Finding]:
    for frontend in facts.frontends:
        chain = frontend.target or ""
        if not frontend.service or not frontend.protocol:
            continue
        if _suffix(chain) not in _expected(frontend.service, frontend.protocol):
            right = chain[: -len(_suffix(chain))] + names.chain_hash(
                frontend.service, frontend.protocol
            )
            yield Finding(
                code="chain-hash",
                message=(
                    f"new flows to {frontend} are sent to {chain}, but the chain of that "
                    f"ServicePort is {right}: they reach the endpoints of another one, or the "
                    "comment names the wrong one"
                ),
                line=frontend.line,
            )


def _between(facts: DumpFacts) -> Iterator[Finding]:
    for chain in facts.chains(*names.SERVICE_PREFIXES):
        for row in facts.rows(chain):
            target = row.target or ""
            if (
                row.is_jump
                and target.startswith(names.SERVICE_PREFIXES)
                and _suffix(target) != _suffix(chain)
            ):
                yield Finding(
                    code="chain-hash",
                    message=(
                        f"{chain} jumps to {target}, which belongs to another ServicePort: "
                        f"{facts.traffic(chain)} reach the endpoints of that one"
                    ),
                    line=row.line,
                )


def _of_endpoints(facts: DumpFacts) -> Iterator[Finding]:
    # A comment with the wrong ServicePort says nothing about endpoints.
    sound = {
        (frontend.service, frontend.protocol)
        for frontend in facts.frontends
        if frontend.service
        and frontend.protocol
        and _suffix(frontend.target or "") in _expected(frontend.service, frontend.protocol)
    }
    for chain in facts.chains(names.ENDPOINT_PREFIX):
        to = facts.destinations.get(chain)
        if to is None:
            continue
        owners = {k: row for k, row in facts.owners.get(chain, {}).items() if k in sound}
        suffix = _suffix(chain)
        # Nearly all have the hash that is computed first.
        if not owners or any(suffix == names.chain_hash(*key, to) for key in owners):
            continue
        spellings = _spellings(facts, chain, to)
        if spellings and not any(
            suffix in _expected(name, protocol, spelling)
            for name, protocol in owners
            for spelling in spellings
        ):
            (name, protocol), row = next(iter(owners.items()))
            right = names.ENDPOINT_PREFIX + names.chain_hash(name, protocol, spellings[0])
            dnat = next(each for each in facts.rows(chain) if each.dnat is not None)
            yield Finding(
                code="chain-hash",
                message=(
                    f"{chain} sends its share of {facts.traffic(chain)} to {to}, but the chain of "
                    f"that endpoint of {plain_name(name)} is {right}: line {row.line} or this "
                    "rule was meant for another endpoint"
                ),
                line=dnat.line,
            )


def _suffix(chain: str) -> str:
    return chain.rpartition("-")[2]


def _expected(name: str, protocol: str, *more: str) -> set[str]:
    """Return the hashes of all versions: up to 1.18 a port without a name has a colon."""
    plain = plain_name(name)
    found = {names.chain_hash(plain, protocol, *more)}
    if ":" not in plain:
        found.add(names.chain_hash(f"{plain}:", protocol, *more))
    return found


def _spellings(facts: DumpFacts, chain: str, to: str) -> list[str]:
    """Return the spellings of an endpoint that may have been hashed; empty if not known.

    An IPv6 address is hashed as spelled in the API, which comments and objects show but DNAT does
    not.
    """
    if not to.startswith("["):
        return [to]
    place = address_and_port_from_text(to)
    if place is None:
        return []
    arrows = [row.comment.partition(" -> ")[2] for row in facts.callers.get(chain, [])]
    told = [text for text in arrows if address_and_port_from_text(text) == place]
    told += [f"[{text}]:{place[1]}" for text in facts.spellings.get(place[0], ())]
    return [*told, to] if told else []
