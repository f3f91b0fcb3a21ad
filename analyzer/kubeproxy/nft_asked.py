"""What the chains of a Service ask about the source of a flow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    summarize_address_range,
)

from analyzer.model.addresses import Address, Network
from analyzer.model.nft import Chain, Rule, Table
from analyzer.model.nft_expressions import (
    AnonymousSet,
    Concat,
    Expression,
    Jump,
    MapLookup,
    Payload,
    Prefix,
    Range,
    SetRef,
)
from analyzer.model.nft_statements import Dnat, Match, MetaSet, SetUpdate, Vmap


def networks_asked(chains: Iterable[Chain], table: Table) -> Iterator[Network]:
    """Give the networks by which rules tell sources apart.

    Those of `is_of_endpoint` chains, which ask for the endpoint itself, are not among them; nor
    are sets that keep session affinity, of which it is assumed what they hold.
    """
    for chain in chains:
        if is_of_endpoint(chain):
            continue
        for rule in chain.rules:
            for statement in rule.statements:
                match statement:
                    case Match(_, left, right) if _is_source(left):
                        yield from _networks(right, table)
                    case Vmap(key, where) if _is_source(key):
                        yield from _networks(where, table)
                    case Dnat(address=MapLookup(key, where)) if _is_source(key):
                        yield from _networks(where, table)
                    case _:
                        pass


def is_of_endpoint(chain: Chain) -> bool:
    """Tell whether a chain marks flows of its endpoint, sends all on, and does nothing else."""
    rules = chain.rules
    if not len(rules):
        return False
    *before, last = rules
    return _sends_on(last) and all(_marks_one(rule) or _keeps(rule) for rule in before)


def _sends_on(rule: Rule) -> bool:
    match rule.statements:
        case (Dnat(address=IPv4Address() | IPv6Address()),):
            return True
        case (Match(), Dnat(address=IPv4Address() | IPv6Address())):
            return True
        case _:
            return False


def _marks_one(rule: Rule) -> bool:
    match rule.statements:
        case (Match("==", Payload(_, "saddr"), IPv4Address() | IPv6Address()), Jump() | MetaSet()):
            return True
        case _:
            return False


def _keeps(rule: Rule) -> bool:
    return all(isinstance(statement, SetUpdate) for statement in rule.statements)


def _is_source(given: Expression) -> bool:
    match given:
        case Payload("ip" | "ip6", "saddr"):
            return True
        case Concat(parts):
            return any(map(_is_source, parts))
        case _:
            return False


def _networks(given: Expression, table: Table) -> Iterator[Network]:
    match given:
        case IPv4Address():
            yield IPv4Network(given)
        case IPv6Address():
            yield IPv6Network(given)
        case Prefix(IPv4Address() as address, length):
            yield IPv4Network((address, length), strict=False)
        case Prefix(IPv6Address() as address, length):
            yield IPv6Network((address, length), strict=False)
        case Range(IPv4Address() | IPv6Address() as first, IPv4Address() | IPv6Address() as last):
            yield from _of_range(first, last)
        case AnonymousSet(elements):
            for element in elements:
                yield from _networks(element.key, table)
        case SetRef(name) if name in table.sets and table.sets[name].timeout is None:
            for element in table.sets[name].elements:
                yield from _networks(element.key, table)
        case Concat(parts):
            for part in parts:
                yield from _networks(part, table)
        case _:
            pass


def _of_range(first: Address, last: Address) -> Iterator[Network]:
    if isinstance(first, IPv4Address) and isinstance(last, IPv4Address):
        yield from summarize_address_range(first, last)
    if isinstance(first, IPv6Address) and isinstance(last, IPv6Address):
        yield from summarize_address_range(first, last)


def unmarked_network(chains: Iterable[Chain]) -> Network | None:
    """Return the network that rules spare from the mark of masquerade, if any does."""
    for chain in chains:
        for rule in chain.rules:
            marks = any(isinstance(s, Jump | MetaSet) for s in rule.statements)
            for statement in rule.statements:
                match statement:
                    case Match("!=", Payload("ip" | "ip6", "saddr"), Prefix() as spared) if marks:
                        return next(_networks(spared, _NO_TABLE))
                    case _:
                        pass
    return None


_NO_TABLE = Table(family="ip", name="", chains={}, sets={}, objects={}, flowtables={})


def affinity(chains: Iterable[Chain], table: Table) -> int | None:
    """Return the seconds for which a Service's chains keep a client's endpoint, if they do."""
    for chain in chains:
        for rule in chain.rules:
            for statement in rule.statements:
                match statement:
                    case Match("==", left, SetRef(name)) if _is_source(left):
                        held = table.sets.get(name)
                        if held is not None and held.timeout is not None:
                            return held.timeout
                    case _:
                        pass
    return None
