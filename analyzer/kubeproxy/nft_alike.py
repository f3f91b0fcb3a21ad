"""Frontends of a ruleset of nft whose rules are alike up to names and addresses.

Theory of operation
===================

As of iptables (`alike`): what becomes of flows to a frontend follows from what such flows may
meet, and most of that is the Service's own. These are the elements of sets and maps that name its
address, or its port and no address; the rules of shared chains that match one of these; and the
chains behind them. Their text is taken apart once for each chain, into a template and the names of
chains, addresses and ports that stood in it (`nft_templates`); which of these are one and the same
is put in their place. What stands anywhere else in the ruleset must not tell two frontends apart:
`alike.Around` notes what it can.

Shared are the chains that packets come to from base chains without such an element or rule.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property

from analyzer.kubeproxy.alike import MOST_NETWORKS, Around, Closure
from analyzer.kubeproxy.nft_templates import Template, of_element, of_rule, pieces_of, rules_of
from analyzer.kubeproxy.sources import PodNetworks
from analyzer.kubeproxy.view import Endpoint, Frontend
from analyzer.model.addresses import Address, address_from_text
from analyzer.model.nft import Chain, Table
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: A chain, by its table's family and name, and its own.
    Name: TypeAlias = tuple[str, str, str]


@value
class _Row:
    """An element, or a rule of a shared chain, that is for one address or port.

    Attributes:
        place: the set, or the chain with the number of rules before that are for everybody.
        at: its number among all rows, so that rules keep their order.
    """

    place: Hashable
    template: Template
    at: int
    table: Table


class _Listed:
    """What is for one address or port each, and the rest."""

    def __init__(self) -> None:
        self.by_host: dict[str, list[_Row]] = {}
        #: Of rows without an address.
        self.by_port: dict[int, list[_Row]] = {}
        #: Of rows with one, by each port that they name.
        self.of_any_host: dict[int, list[_Row]] = {}
        self.shared: list[Template] = []
        self._rows = 0

    def add(self, place: Hashable, template: Template, table: Table) -> bool:
        """Take what is for one address or port; or tell that it is for others too."""
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


class NftClosures:
    """The closures of the frontends of one family in tables of nft.

    `own` are the node's addresses, if known; `pods` are the networks of pods.
    """

    def __init__(self, tables: Iterable[Table], own: Iterable[Address], pods: PodNetworks) -> None:
        self._tables = list(tables)
        self._own = frozenset(own)
        self._pods = pods
        self._templates: dict[Name, tuple[Template, ...] | None] = {}

    def of(self, frontend: Frontend, protocol: str) -> Closure | None:
        """Return what flows to a frontend may meet of its own; None: it is in no class."""
        listed, around = self._listed, self._around
        if listed is None or around is None or frontend.port is None:
            return None
        rows = self._rows(frontend, listed)
        found = self._behind(rows)
        if found is None:
            return None
        chains, templates = found
        if len({name for *_, name in chains}) < len(chains):
            return None  # of two tables: which one is meant no text says
        told = [*(row.template for row in rows), *templates]
        endpoints = tuple(dict.fromkeys(e for each in told for e in each.endpoints))
        hosts = {str(address): at for at, address in enumerate(_addresses(endpoints))}
        # What is sent on may meet elements for its address, as those of hairpins.
        for host in hosts:
            told += [row.template for row in listed.by_host.get(host, ())]
            rows += listed.by_host.get(host, ())
        numbers = _Numbers(hosts, chains, str(frontend.address), frontend.port)
        numbered = tuple([numbers.of(each) for each in told])
        literals = around.with_(numbers.literals, numbers.asked_ports)
        key = (
            *(frontend.kind, protocol, len(chains), numbered, tuple([row.place for row in rows])),
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
        )

    def _is_own(self, host: str) -> bool:
        address = address_from_text(host)
        return address is None or address in self._own or address.is_loopback

    def _rows(self, frontend: Frontend, listed: _Listed) -> list[_Row]:
        """Return the rows that flows to a frontend may meet, in order."""
        port = frontend.port or 0
        found = list(listed.by_port.get(port, ()))
        if frontend.address is not None:
            found += listed.by_host.get(str(frontend.address), ())
        else:
            # It comes to some address of the node, which need not be known.
            found += listed.of_any_host.get(port, ())
            for own in self._own:
                found += listed.by_host.get(str(own), ())
        return sorted({row.at: row for row in found}.values(), key=lambda row: row.at)

    def _behind(self, rows: Sequence[_Row]) -> tuple[dict[Name, int], list[Template]] | None:
        """Return the chains that rows lead to, numbered, and what is in them."""
        numbers: dict[Name, int] = {}
        found: list[Template] = []
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

    def _of_chain(self, name: Name) -> tuple[Template, ...] | None:
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
        """What each table lists; None: some of it is not understood."""
        found = _Listed()
        for table in self._tables:
            if not table.complete or "dormant" in table.flags:
                return None
            for held in table.sets.values():
                pieces = pieces_of(held)
                if pieces is None:
                    return None
                for piece in pieces:
                    template = of_element(piece)
                    if not found.add((table.family, table.name, held.name), template, table):
                        found.shared.append(template)
            bases = [c.name for c in table.chains.values() if c.hook is not None or c.is_unplaced]
            if not self._share(found, table, bases):
                return None
        return found

    def _share(self, listed: _Listed, table: Table, bases: list[str]) -> bool:
        """Take the rules of shared chains; tell whether all of them are understood."""
        seen, rest = set(bases), list(bases)
        while rest:
            chain = table.chains.get(rest.pop())
            templates = None if chain is None else _templates(chain, table)
            if chain is None or templates is None:
                return False
            others = 0
            for each in templates:
                place = table.family, table.name, chain.name, others
                leads = each.chains and each.is_for_one
                if leads and listed.add(place, each, table):
                    continue
                others += 1
                listed.shared.append(each)
                rest += [name for name in each.chains if name not in seen]
                seen.update(each.chains)
        return True

    @cached_property
    def _around(self) -> Around | None:
        """What rules and elements name that are of no Service; None: too much of it."""
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
        ports: those that rules match on, and that of the frontend before them.
        others: addresses besides the frontend's and the endpoints' to which flows may go.
        literals: what else the templates name.
    """

    def __init__(
        self,
        hosts: dict[str, int],
        chains: dict[Name, int],
        asked: str,
        port: int,
    ) -> None:
        self._hosts = hosts
        self._chains = {name[-1]: at for name, at in chains.items()}
        self._others: dict[str, int] = {}
        self._asked = asked
        self._lists: dict[str, int] = {}
        self._ports = {port: 0}
        self.literals: dict[str, None] = {}
        self.asked_ports: set[str] = set()

    @property
    def ports(self) -> list[int]:
        return list(self._ports)

    @property
    def others(self) -> list[str]:
        return list(self._others)

    def of(self, template: Template) -> Hashable:
        """Return a template with numbers for what it names."""
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
                # Others, such as the ClusterIP behind a NodePort, are just not this one.
                return "other", self._others.setdefault(text, len(self._others))
            case _:
                self.literals[text] = None
                return text


def _addresses(endpoints: Iterable[Endpoint]) -> Iterator[Address]:
    yield from dict.fromkeys(each.address for each in endpoints)


def _name(table: Table, chain: str) -> Name:
    return table.family, table.name, chain


def _templates(chain: Chain, table: Table) -> tuple[Template, ...] | None:
    """Return the templates of a chain's rules; None: some of it is not understood."""
    rules = rules_of(chain)
    if rules is None:
        return None
    found = [of_rule(rule, table) for rule in rules]
    known = [each for each in found if each is not None]
    return tuple(known) if len(known) == len(found) else None
