"""Sources whose flows a chain of nft marks, and lets go the way of all others but for that."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from ipaddress import IPv4Address, IPv6Address

from analyzer.kubeproxy.nft_asked import asked_by_rule, is_of_endpoint
from analyzer.kubeproxy.nft_marks import changed_by_statement
from analyzer.kubeproxy.nft_order import in_table
from analyzer.kubeproxy.sources import Asked, Marked
from analyzer.model.addresses import Address, Network
from analyzer.model.nft import Chain, Rule, Table
from analyzer.model.nft_expressions import Jump, Payload
from analyzer.model.nft_statements import Counter, Match, MetaSet, Statement, Xt
from analyzer.model.value import replace


def asked_behind(chains: Iterable[Chain], table: Table, protocol: str) -> Asked:
    """Return what the chains of a Service ask, but for what an endpoint's asks for the endpoint."""
    found: set[Network | None] = set()
    marked: set[Marked] = set()
    for chain in chains:
        if is_of_endpoint(chain, protocol):
            continue
        one = marked_by(chain, table)
        if one is not None:
            marked.add(one)
            continue
        for rule in chain.rules:
            found.update(asked_by_rule(rule, table))
    return replace(Asked.of(found), marked=frozenset(marked))


def marked_by(chain: Chain, table: Table) -> Marked | None:
    """Return the source whose flows a chain marks, if that is all that it asks of sources."""
    address: Address | None = None
    bits: list[int | None] = []
    for rule in chain.rules:
        networks = list(asked_by_rule(rule, table))
        if not networks:
            continue
        own, changes = _source_of(rule), _changes(rule.statements, table)
        if own is None or changes is None or networks[1:] or address not in {None, own}:
            return None
        address = own
        bits += changes
    if address is None:
        return None
    known = [each for each in bits if each is not None]
    every = reduce(int.__or__, known, 0) if len(known) == len(bits) else None
    return Marked(address, in_table(table, chain.name), every)


def _source_of(rule: Rule) -> Address | None:
    """Return the one source that a rule is for."""
    for statement in rule.statements:
        match statement:
            case Match("==", Payload("ip" | "ip6", "saddr"), IPv4Address() | IPv6Address() as own):
                return own
            case _:
                pass
    return None


def _changes(
    statements: Iterable[Statement], table: Table, *, followed: bool = True
) -> list[int | None] | None:
    """Return the bits of the mark that statements may change; None: they do other things, too.

    None among them: what nobody can read.
    """
    found: list[int | None] = []
    for statement in statements:
        match statement:
            case Match() | Counter() | Xt("match"):
                pass
            case MetaSet("mark"):
                found.append(changed_by_statement(statement, table).mark)
            case Xt("target"):
                found.append(None)
            case Jump(to) if followed and to in table.chains:
                for rule in table.chains[to].rules:
                    inner = _changes(rule.statements, table, followed=False)
                    if inner is None:
                        return None
                    found += inner
            case _:
                return None
    return found
