"""What the chains of a Service ask about the source of a flow."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    summarize_address_range,
)

from analyzer.kubeproxy.nft_chains import reached_by
from analyzer.kubeproxy.nft_entrances import FILTER_HOOKS, NAT_HOOKS, base_chains
from analyzer.kubeproxy.nft_places import place_of
from analyzer.model.addresses import Address, Network
from analyzer.model.nft import Chain, NftRuleset, Rule, Table
from analyzer.model.nft_expressions import (
    AnonymousSet,
    Concat,
    Ct,
    Expression,
    Jhash,
    Jump,
    MapLookup,
    Meta,
    Payload,
    Prefix,
    Range,
    RawPayload,
    SetRef,
)
from analyzer.model.nft_statements import (
    Counter,
    Dnat,
    Mangle,
    Match,
    MetaSet,
    SetUpdate,
    Statement,
    Vmap,
)
from analyzer.model.value import fields_of


def asked_in_hooks(
    ruleset: NftRuleset, family: str, hooks: Container[str], *, whole: bool
) -> Iterator[Network | None]:
    """Give what the rules ask that packets of a family meet at `hooks`, as `asked`.

    Without those of the chains that flows to one port only come to, unless `whole` is asked for:
    which these are for a Service, `Entrances` tells.
    """
    tables = [
        table
        for table in ruleset.tables.values()
        if table.family in {family, "inet"} and "dormant" not in table.flags
    ]
    around = [] if whole else [(table, list(_around(table, hooks))) for table in tables]
    if whole or any(_changes_headers(chain) for _, chains in around for chain in chains):
        # Where a flow is sent to does not tell then which chains it comes to.
        around = [(table, list(reached_by(table, _bases(table, hooks)))) for table in tables]
    for table, chains in around:
        yield from asked(chains, table)


def _around(table: Table, hooks: Container[str]) -> Iterator[Chain]:
    """Give the chains of a table that flows to any port may meet at `hooks`."""
    nat = set(base_chains(table, NAT_HOOKS, "nat"))
    filters = set(base_chains(table, FILTER_HOOKS, "filter")) - nat
    bases, maps = _bases(table, hooks), _of_any_port(table)
    reached = (
        reached_by(table, [name for name in bases if name in nat], maps, _is_for_any_port),
        reached_by(table, [name for name in bases if name in filters], maps),
        reached_by(table, [name for name in bases if name not in nat | filters]),
    )
    yield from {chain.name: chain for chains in reached for chain in chains}.values()


def _is_for_any_port(rule: Rule) -> bool:
    place = place_of(rule)
    return place.protocol is None or place.port is None


def _bases(table: Table, hooks: Container[str]) -> list[str]:
    return [chain.name for chain in table.chains.values() if chain.hook in hooks]


def _changes_headers(chain: Chain) -> bool:
    return any(isinstance(s, Mangle) for rule in chain.rules for s in rule.statements)


def _of_any_port(table: Table) -> Callable[[Vmap], bool]:
    """Return what tells whether flows to any port may meet an element of a map of a table."""

    def is_of_any_port(given: Vmap) -> bool:
        match given:
            case Vmap(Concat(parts), SetRef(name)):
                ports = any(isinstance(part, Payload) and part.field == "dport" for part in parts)
                held = table.sets.get(name)
                single = held is None or "interval" not in held.flags
                return not (ports and Meta("l4proto") in parts and single)
            case _:
                return True

    return is_of_any_port


def asked(chains: Iterable[Chain], table: Table) -> Iterator[Network | None]:
    """Give the networks by which rules tell sources apart; None: they ask for something else.

    Those of `is_of_endpoint` chains, which ask for the endpoint itself, are not among them; nor
    are sets that keep session affinity, of which it is assumed what they hold.
    """
    for chain in chains:
        if not is_of_endpoint(chain):
            for rule in chain.rules:
                yield from asked_by_rule(rule, table)


def asked_by_rule(rule: Rule, table: Table) -> Iterator[Network | None]:
    """Give what one rule asks, as `asked`."""
    return _asked_by(rule.statements, table)


def _asked_by(given: object, table: Table) -> Iterator[Network | None]:
    match given:
        case Match(_, key, where) | Vmap(key, where) | MapLookup(key, where) if _is_source(key):
            yield from _networks(where, table, _ends(key))
        case Payload(_, "saddr"):
            yield None
        case Ct(key) if key.endswith(("saddr", "daddr")):
            yield None
        case RawPayload("nh"):
            yield None  # it may lie anywhere in the header
        case tuple():
            for each in given:
                yield from _asked_by(each, table)
        case AnonymousSet() | SetUpdate() | Jhash():
            pass  # constants; what is noted; what is not known anyway
        case _ if hasattr(type(given), "__value_fields__"):
            for name in fields_of(type(given)):
                yield from _asked_by(getattr(given, name), table)
        case _:
            pass


def is_of_endpoint(chain: Chain, protocol: str | None = None) -> bool:
    """Tell whether a chain marks flows of its endpoint, sends all on, and does nothing else.

    All flows are those of `protocol`; None: of that of the endpoint.
    """
    rules = chain.rules
    if not len(rules):
        return False
    *before, last = rules
    own = _sends_on(last, protocol)
    return own is not None and all(_marks_one(rule, own) or _keeps(rule) for rule in before)


def _sends_on(rule: Rule, protocol: str | None) -> Address | None:
    """Return where a rule sends flows to, whatever their source; None: it may not."""
    match _uncounted(rule):
        case (Dnat(address=IPv4Address() | IPv6Address() as to),):
            return to
        case (
            Match("==", Meta("l4proto"), asked),
            Dnat(address=IPv4Address() | IPv6Address() as to),
        ) if protocol in {None, asked}:
            return to
        case _:
            return None


def _uncounted(rule: Rule) -> tuple[Statement, ...]:
    return tuple([each for each in rule.statements if not isinstance(each, Counter)])


def _marks_one(rule: Rule, own: Address) -> bool:
    match _uncounted(rule):
        case (Match("==", Payload("ip" | "ip6", "saddr"), address), Jump() | MetaSet()):
            return address == own
        case _:
            return False


def _keeps(rule: Rule) -> bool:
    return all(isinstance(statement, SetUpdate) for statement in _uncounted(rule))


def _is_source(given: Expression) -> bool:
    match given:
        case Payload("ip" | "ip6", "saddr"):
            return True
        case Concat(parts):
            return any(map(_is_source, parts))
        case _:
            return False


def _ends(key: Expression) -> tuple[int, int] | None:
    """Return the places of source and destination in a key that has both."""
    match key:
        case Concat(parts):
            fields = [part.field if isinstance(part, Payload) else "" for part in parts]
            if "saddr" in fields and "daddr" in fields:
                return fields.index("saddr"), fields.index("daddr")
        case _:
            pass
    return None


def _networks(
    given: Expression, table: Table, ends: tuple[int, int] | None = None
) -> Iterator[Network]:
    """Give the networks of a constant or a set; `ends` are source and destination in its keys.

    Where both are one address, nobody but an endpoint that is sent back to itself is meant.
    """
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
                yield from _networks(element.key, table, ends)
        case SetRef(name) if name in table.sets and table.sets[name].timeout is None:
            for element in table.sets[name].elements:
                yield from _networks(element.key, table, ends)
        case Concat(parts) if ends is None or not _are_one(parts[ends[0]], parts[ends[1]]):
            for part in parts:
                yield from _networks(part, table)
        case _:
            pass


def _are_one(source: Expression, destination: Expression) -> bool:
    return isinstance(source, IPv4Address | IPv6Address) and source == destination


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
