"""Frontends of an nft ruleset whose rules are alike up to names and addresses.

Theory of operation
===================

As for iptables (`alike`): what happens to flows to a frontend follows from what such flows may hit,
and most of that is the Service's own. These are the elements of sets and maps with its address, or
with its port and no address; the rules of shared chains that match one of these; and the chains
that they lead to. Their text is split once for each chain into a template and the names of chains,
addresses and ports in it (`nft_templates`), which are then replaced by numbers, equal ones by the
same number. The rest of the ruleset must not distinguish two frontends: `alike.Around` records what
it may match on.

Chains that packets reach from base chains without such an element or rule are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property

from analyzer.kubeproxy.fastpath.alike import MOST_NETWORKS, Closure
from analyzer.kubeproxy.fastpath.around import Around
from analyzer.kubeproxy.fastpath.nft_templates import (
    RuleTemplate,
    asked_otherwise,
    of_element,
    of_rule,
    pieces_of,
    rules_of,
)
from analyzer.kubeproxy.routes.pod_networks import PodNetworks
from analyzer.kubeproxy.view import Endpoint, Frontend
from analyzer.model.addresses import Address, address_from_text
from analyzer.model.nft.ruleset import Chain, Table
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: A chain: its table's family and name, and its own name.
    ChainOfTable: TypeAlias = tuple[str, str, str]


@value
class _Row:
    """An element, or a rule of a shared chain, for one address or port.

    Attributes:
        place: the set, or the chain with the number of earlier rules for any frontend.
        at: its number among all rows, so that rules keep their order.
    """

    place: Hashable
    template: RuleTemplate
    at: int
    table: Table


class _Listed:
    """Rows for one address or port each, and the rest."""

    def __init__(self) -> None:
        self.by_host: dict[str, list[_Row]] = {}
        #: Those without an address.
        self.by_port: dict[int, list[_Row]] = {}
        #: Those with one, by each port that they name.
        self.of_any_host: dict[int, list[_Row]] = {}
        self.shared: list[RuleTemplate] = []
        self._rows = 0

    def add(self, place: Hashable, template: RuleTemplate, table: Table) -> bool:
        """Add a row for one address or port; return False if it is for others too."""
        if not template.hosts and not template.ports:
            return False
        row = _Row(place, template, self._rows, table)
        self._rows += 1
        for host in dict.fromkeys(template.hosts):
            self.by_host.setdefault(host, []).append(row)
        for port in dict.fromkeys(template.ports):
            held = self.of_any_host if template.hosts else self.by_port
            held.setdefault(port, []).append(row)
        return True

    def of_endpoint(self, endpoint: Endpoint) -> list[_Row]:
        """Return the rows that flows may hit after DNAT to an endpoint, in order."""
        of_host = self.by_host.get(str(endpoint.address), ())
        return _in_order([*of_host, *self.by_port.get(endpoint.port or 0, ())])


class NftClosures:
    """The closures of the frontends of one family in tables of nft.

    `own` are the node's addresses, if known; `pods` are the networks of pods. `tells` returns what
    rules may match on of an address other than the address itself.
    """

    def __init__(
        self,
        tables: Iterable[Table],
        own: Iterable[Address],
        pods: PodNetworks,
        tells: Callable[[Address], Hashable] = lambda _: None,
    ) -> None:
        self._tells = tells
        self._tables = list(tables)
        self._own = frozenset(own)
        self._pods = pods
        self._templates: dict[ChainOfTable, tuple[RuleTemplate, ...] | None] = {}

    def of(self, frontend: Frontend, protocol: str) -> Closure | None:
        """Return the frontend's own rows that its flows may hit; None: it is in no class."""
        listed, around = self._listed, self._around
        if listed is None or around is None or frontend.port is None:
            return None
        places = [self._rows(frontend, listed)]
        endpoints: tuple[Endpoint, ...] = ()
        while True:
            found = self._behind([row for rows in places for row in rows])
            if found is None:
                return None
            chains, templates = found
            # A rule of a shared chain may translate flows itself, as those of hostPorts do.
            every = [*[row.template for row in places[0]], *templates]
            before, endpoints = endpoints, tuple(dict.fromkeys(_endpoints(every)))
            if endpoints == before:
                break
            # Flows after DNAT may hit rows for their address and port, for example those of
            # hairpins.
            places[1:] = map(listed.of_endpoint, endpoints)
        if len({name for *_, name in chains}) < len(chains):
            return None  # chains of two tables: which one is meant does not follow from the text
        hosts = {str(address): at for at, address in enumerate(_addresses(endpoints))}
        ports = [frontend.port, *[each.port or 0 for each in endpoints]]
        numbers = _Numbers(hosts, chains, str(frontend.address), ports)
        numbered = (
            tuple([tuple([(r.place, numbers.of(r.template)) for r in rows]) for rows in places]),
            tuple([numbers.of(each) for each in templates]),
        )
        literals = around.with_(numbers.literals, numbers.asked_ports)
        key = (
            *(frontend.kind, protocol, len(chains), numbered),
            self._relation(frontend.address, literals),
            tuple([self._relation(each.address, literals) for each in endpoints]),
            tuple([each.port for each in endpoints]),
            tuple([literals.of_port(port) for port in numbers.ports]),
            tuple([self._is_own(each) for each in numbers.others]),
        )
        return Closure(key, endpoints, literals.told)

    def _relation(self, address: Address | None, around: Around) -> Hashable:
        if address is None:
            return None
        pods = self._pods
        return (
            address in self._own or address.is_loopback,
            *(any(address in n for n in theirs) for theirs in (pods.here, pods.elsewhere)),
            around.of_address(address),
            self._tells(address),
        )

    def _is_own(self, host: str) -> bool:
        address = address_from_text(host)
        return address is None or address in self._own or address.is_loopback

    def _rows(self, frontend: Frontend, listed: _Listed) -> list[_Row]:
        """Return the rows that flows to a frontend may hit, in order."""
        port = frontend.port or 0
        found = list(listed.by_port.get(port, ()))
        if frontend.address is not None:
            found += listed.by_host.get(str(frontend.address), ())
        else:
            # It goes to some address of the node, which may not be known.
            found += listed.of_any_host.get(port, ())
            for own in self._own:
                found += listed.by_host.get(str(own), ())
        return _in_order(found)

    def _behind(
        self, rows: Sequence[_Row]
    ) -> tuple[dict[ChainOfTable, int], list[RuleTemplate]] | None:
        """Return the chains that rows lead to, numbered, and the templates of their rules."""
        numbers: dict[ChainOfTable, int] = {}
        found: list[RuleTemplate] = []
        rest = [_name(row.table, chain) for row in rows for chain in row.template.chains][::-1]
        while rest:
            name = rest.pop()
            if name in numbers:
                continue
            numbers[name] = len(numbers)
            templates = self._of_chain(name)
            if templates is None:
                return None
            found += templates
            rest += [(*name[:2], chain) for each in templates for chain in each.chains][::-1]
        return numbers, found

    def _of_chain(self, name: ChainOfTable) -> tuple[RuleTemplate, ...] | None:
        if name not in self._templates:
            table = self._by_name[name[:2]]
            chain = table.chains.get(name[2])
            self._templates[name] = None if chain is None else _templates(chain, table)
        return self._templates[name]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Table]:
        return {(table.family, table.name): table for table in self._tables}

    @cached_property
    def _listed(self) -> _Listed | None:
        """The rows of each table; None: some of it cannot be split into templates."""
        found = _Listed()
        for table in self._tables:
            if not table.complete or "dormant" in table.flags:
                return None
            otherwise = {name for chain in table.chains.values() for name in asked_otherwise(chain)}
            starts = [c.name for c in table.chains.values() if c.hook is not None or c.is_unplaced]
            for held in table.sets.values():
                pieces = pieces_of(held)
                if pieces is None:
                    return None
                for piece in pieces:
                    template = of_element(piece)
                    own = found.add((table.family, table.name, held.name), template, table)
                    if not own:
                        found.shared.append(template)
                    if not own or held.name in otherwise:
                        starts += template.chains  # which flows reach these is not known
            if not self._share(found, table, starts):
                return None
        return found

    def _share(self, listed: _Listed, table: Table, starts: Iterable[str]) -> bool:
        """Add the rules of shared chains; return whether all of them could be split."""
        seen = set(starts)
        rest = list(seen)
        while rest:
            chain = table.chains.get(rest.pop())
            templates = None if chain is None else _templates(chain, table)
            if chain is None or templates is None:
                return False
            others = 0
            for each in templates:
                place = table.family, table.name, chain.name, others
                leads = (each.chains or each.endpoints) and each.is_for_one
                if leads and listed.add(place, each, table):
                    continue
                others += 1
                listed.shared.append(each)
                rest += [name for name in each.chains if name not in seen]
                seen.update(each.chains)
        return True

    @cached_property
    def _around(self) -> Around | None:
        """Everything named in rules and elements that are of no Service; None: too much."""
        if self._listed is None:
            return None
        shared = self._listed.shared
        literals = {name for each in shared for name in each.literals}
        literals |= {of for each in shared for kind, of in each.tokens if kind in {"to", "host"}}
        if len(literals) > MOST_NETWORKS or any(each.endpoints for each in shared):
            return None
        return Around.of(literals, {port for each in shared for port in each.asked_ports})


class _Numbers:
    """Which names and addresses of templates are the same, as numbers.

    Attributes:
        ports: that of the frontend, those of endpoints, and others that rules match on.
        others: addresses besides the frontend's and the endpoints' to which flows may go.
        literals: what else the templates name.
    """

    def __init__(
        self,
        hosts: dict[str, int],
        chains: dict[ChainOfTable, int],
        asked: str,
        ports: Iterable[int],
    ) -> None:
        self._hosts = hosts
        self._chains = {name[-1]: at for name, at in chains.items()}
        self._others: dict[str, int] = {}
        self._asked = asked
        self._lists: dict[str, int] = {}
        self._ports = {port: at for at, port in enumerate(dict.fromkeys(ports))}
        self.literals: dict[str, None] = {}
        self.asked_ports: set[str] = set()

    @property
    def ports(self) -> list[int]:
        return list(self._ports)

    @property
    def others(self) -> list[str]:
        return list(self._others)

    def of(self, template: RuleTemplate) -> Hashable:
        """Return a template with its tokens as numbers."""
        self.literals.update(dict.fromkeys(template.literals))
        self.asked_ports.update(template.asked_ports)
        tokens = [self._number(*token) for token in template.tokens]
        return template.text, tuple(tokens)

    def _number(self, kind: str, text: str) -> Hashable:
        match kind:
            case "chain":
                return self._chains.get(text, text)
            case "port":
                return self._ports.setdefault(int(text), len(self._ports))
            case "name":
                return text
            case "list":
                return self._lists.setdefault(text, len(self._lists))
            case _ if text == self._asked:
                return "asked", self._hosts.get(text)
            case _ if text in self._hosts:
                return "host", self._hosts[text]
            case "to":
                # Others, for example the ClusterIP of a NodePort's Service, need only differ from
                # this one.
                return "other", self._others.setdefault(text, len(self._others))
            case _:
                self.literals[text] = None
                return text


def _in_order(rows: Iterable[_Row]) -> list[_Row]:
    """Return rows in their order, each once."""
    return sorted({row.at: row for row in rows}.values(), key=lambda row: row.at)


def _endpoints(templates: Iterable[RuleTemplate]) -> Iterator[Endpoint]:
    for each in templates:
        yield from each.endpoints


def _addresses(endpoints: Iterable[Endpoint]) -> Iterator[Address]:
    yield from dict.fromkeys(each.address for each in endpoints)


def _name(table: Table, chain: str) -> ChainOfTable:
    return table.family, table.name, chain


def _templates(chain: Chain, table: Table) -> tuple[RuleTemplate, ...] | None:
    """Return the templates of a chain's rules; None: some of it cannot be split."""
    rules = rules_of(chain)
    if rules is None:
        return None
    found = [of_rule(rule, table) for rule in rules]
    known = [each for each in found if each is not None]
    return tuple(known) if len(known) == len(found) else None
