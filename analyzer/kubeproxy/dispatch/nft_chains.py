"""Which chains of an nft table jump to which, by rules and by verdict maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address

from analyzer.model.addresses import Address
from analyzer.model.nft.expressions import (
    AnonymousSet,
    Concat,
    Element,
    Goto,
    Jump,
    MapLookup,
    SetRef,
)
from analyzer.model.nft.ruleset import Chain, Rule, Table
from analyzer.model.nft.statements import Dnat, Vmap


def elements_of(given: Vmap, table: Table) -> Iterable[Element]:
    """Return the elements of a verdict map; none if the map is not in the dump."""
    match given.map:
        case AnonymousSet(elements):
            return elements
        case SetRef(name) if name in table.sets:
            return table.sets[name].elements
        case _:
            return ()


def every_map(_: Vmap) -> bool:
    """Follow all verdict maps."""
    return True


def no_map(_: Vmap) -> bool:
    """Follow no verdict map."""
    return False


def leads_to(
    rule: Rule,
    table: Table,
    maps: Callable[[Vmap], bool] = every_map,
) -> Iterator[str]:
    """Yield the chains that a rule sends packets to, directly or by the verdict maps `maps`."""
    for statement in rule.statements:
        match statement:
            case Jump(chain) | Goto(chain):
                yield chain
            case Vmap() if maps(statement):
                for element in elements_of(statement, table):
                    match element.value:
                        case Jump(chain) | Goto(chain):
                            yield chain
                        case _:
                            pass
            case _:
                pass


def reached_by(
    table: Table,
    starts: Iterable[str],
    maps: Callable[[Vmap], bool] = every_map,
) -> Iterator[Chain]:
    """Yield the chains that packets in the chains `starts` may reach, `starts` included.

    `maps` selects which verdict maps are followed.
    """
    seen = dict.fromkeys(starts)
    rest = list(seen)
    while rest:
        chain = table.chains.get(rest.pop(0))
        if chain is None:
            continue
        yield chain
        for rule in chain.rules:
            for name in leads_to(rule, table, maps):
                if name not in seen:
                    seen[name] = None
                    rest.append(name)


def destinations(given: Dnat) -> Iterator[Address]:
    """Yield the addresses that a DNAT statement may set."""
    match given.address:
        case IPv4Address() | IPv6Address():
            yield given.address
        case MapLookup(_, AnonymousSet(elements)):
            for element in elements:
                match element.value:
                    case IPv4Address() | IPv6Address():
                        yield element.value
                    case Concat((IPv4Address() | IPv6Address() as address, *_)):
                        yield address
                    case _:
                        pass
        case _:
            pass
