"""What all invariants use: a dump's rules, which chains jump where, and what each is for.

Each rule is a `ChainRule`; those of chains that are `settled` are left out. A chain belongs to the
ServicePorts named in the comments of the rules that jump there; which flows reach it follows from
the frontends that lead to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.settled import settled
from analyzer.kubeproxy.check.usual import Usual
from analyzer.kubeproxy.matched.chain_rule import ChainRule, rules_of
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.addresses import Address
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.model.services import ApiServicePort
from analyzer.parsers.rows import RowChains

#: Chains of which kube-proxy has one for each ServicePort or endpoint.
OWN_PREFIXES: Final = (*names.SERVICE_PREFIXES, names.ENDPOINT_PREFIX)
#: Chains that draw an endpoint.
DRAWING: Final = ("KUBE-SVC-", "KUBE-SVL-", "KUBE-XLB-")
#: Most frontends that are named in a message.
_NAMED: Final = 2
#: Number of endpoints from which on kube-proxy leaves out comments and removes old chains later.
#: Source: kubernetes, pkg/proxy/iptables/proxier.go, ``largeClusterEndpointsThreshold``.
LARGE_CLUSTER: Final = 1000


class DumpFacts:
    """The rules of one dump, and `wanted`: the Services of the API, empty if not given.

    Attributes:
        node: the node that the dump is from, if known.
        routed: the ServicePorts of the dump, with the routes of their flows.
        settled: chains that draw and in which no invariant finds anything: by the names of the
            chains of their endpoints, which are settled too, where these send flows.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        wanted: tuple[ApiServicePort, ...] = (),
        node: str | None = None,
        zone: str | None = None,
        routed: Iterable[ServicePort] = (),
    ) -> None:
        self.ruleset = ruleset
        self._routed = routed
        self.wanted = wanted
        self.node = node
        self.zone = zone
        self.nat = self._table("nat")
        self.filter = self._table("filter")
        self._named: dict[tuple[str, ...], list[str]] = {}
        self._usual = Usual(self.nat)
        self._rows: dict[str, dict[str, list[ChainRule]]] = {}
        #: Rows of settled chains that something has used all the same.
        self._asked: dict[str, list[ChainRule]] = {}
        self.settled: dict[str, dict[str, str]] = {}
        self._ends: frozenset[str] = frozenset()
        self._settle()
        self._rows["filter"] = _rules(self.filter, self.filter.chains)

    def _settle(self) -> None:
        """Make rows of the chains that are not settled."""
        usual, every = self._usual, list(self.nat.chains)
        odd = [name for name in every if name not in usual.endpoints and name not in usual.drawing]
        rows = _rules(self.nat, odd)
        rows.update({name: each.marks for name, each in usual.drawing.items()})
        self._rows["nat"] = {name: rows[name] for name in every if name in rows}
        # A lost mark may be reported for each rule that jumps to it.
        if rows.get(names.MARK_MASQUERADE):
            frontends = self._frontends()
            self.settled = settled(
                usual,
                self.all_rows(),
                self._owners(frontends),
                {each.frontend_key for each in frontends if not each.is_loopback},
            )
        self._ends = frozenset(end for each in self.settled.values() for end in each)
        opened = [*usual.drawing.keys() - self.settled.keys(), *usual.endpoints.keys() - self._ends]
        rows.update(_rules(self.nat, opened))
        self._open = [name for name in every if name in rows and name not in self.settled]
        self._rows["nat"] = {name: rows[name] for name in every if name in rows}

    def _table(self, name: str) -> Table:
        return self.ruleset.tables.get(name) or Table(self.ruleset.family, name, {})

    def rows(self, chain: str, table: str = "nat") -> list[ChainRule]:
        """Return the rules of a chain; none if there is no such chain."""
        if table == "nat" and (chain in self.settled or chain in self._ends):
            if chain not in self._asked:
                self._asked[chain] = list(rules_of(self.nat.chains[chain]))
            return self._asked[chain]
        return self._rows[table].get(chain, [])

    def has_rows(self, chain: str) -> bool:
        """Return whether a chain of the nat table has rules."""
        return chain in self.settled or bool(self.rows(chain))

    def all_rows(self, table: str = "nat") -> Iterator[ChainRule]:
        """Return the rules of all chains of a table, chain by chain.

        Without those of settled endpoints, and those that draw them.
        """
        return itertools.chain.from_iterable(self._rows[table].values())

    def chains(self, *prefixes: str) -> Sequence[str]:
        """Return the names of the nat table's chains that begin with a prefix, none settled."""
        found = self._named.get(prefixes)
        if found is None:  # many invariants use the same long list
            found = [name for name in self._open if name.startswith(prefixes)]
            self._named[prefixes] = found
        return found

    @cached_property
    def spellings(self) -> dict[Address, tuple[str, ...]]:
        """The addresses of endpoints as written in the objects, of several in each way."""
        found: dict[Address, tuple[str, ...]] = {}
        for each in (each for want in self.wanted for each in want.endpoints):
            found[each.address] = tuple(
                dict.fromkeys((*found.get(each.address, ()), *each.spellings))
            )
        return found

    # --- frontends ---

    @cached_property
    def frontends(self) -> list[ChainRule]:
        """The rules of KUBE-SERVICES and KUBE-NODEPORTS that jump to a chain of a Service."""
        return self._frontends()

    def _frontends(self) -> list[ChainRule]:
        return [
            row
            for chain in (names.SERVICES, names.NODE_PORTS)
            for row in self.rows(chain)
            if row.is_jump and (row.target or "").startswith(names.SERVICE_PREFIXES)
        ]

    @cached_property
    def refusals(self) -> list[ChainRule]:
        """The rules of the filter table that refuse flows to a frontend without endpoints."""
        chains = (names.SERVICES, names.EXTERNAL_SERVICES, names.NODE_PORTS)
        return [
            row
            for chain in chains
            for row in self.rows(chain, "filter")
            if row.target in {"REJECT", "DROP"} and not row.is_unconditional
        ]

    # --- who leads where ---

    @cached_property
    def callers(self) -> dict[str, list[ChainRule]]:
        """The rules of the nat table that jump to a chain."""
        found: dict[str, list[ChainRule]] = {}
        for row in self.all_rows():
            if row.is_jump and row.target is not None:
                found.setdefault(row.target, []).append(row)
        return found

    @cached_property
    def _by_chain(self) -> dict[str, list[ChainRule]]:
        found: dict[str, list[ChainRule]] = {}
        for frontend in self.frontends:
            found.setdefault(frontend.target or "", []).append(frontend)
        return found

    def frontends_of(self, chain: str) -> list[ChainRule]:
        """Return the frontends whose flows may reach a chain."""
        found: list[ChainRule] = []
        seen, rest = {chain}, [chain]
        while rest:
            at = rest.pop()
            found += self._by_chain.get(at, [])
            for row in self.callers.get(at, []):
                if row.chain not in seen and row.chain.startswith(OWN_PREFIXES):
                    seen.add(row.chain)
                    rest.append(row.chain)
        return found

    def traffic(self, chain: str) -> str:
        """Return in words which new flows reach a chain."""
        found = self.frontends_of(chain)
        if found:
            return f"new flows to {listed(found)}"
        name = next((row.comment for row in self.rows(chain) if "/" in row.comment), "")
        name = name.split(" ")[0]
        return f"new flows of {name}" if name else f"new flows that reach {chain}"

    @cached_property
    def owners(self) -> dict[str, dict[tuple[str, str], ChainRule]]:
        """By chain of a Service or endpoint: name and protocol of the ServicePorts it serves.

        A name is as kube-proxy hashes it, and comes with the rule that has it. Chains of settled
        endpoints are left out.
        """
        return self._owners(self.frontends)

    def _owners(
        self, frontends: Iterable[ChainRule]
    ) -> dict[str, dict[tuple[str, str], ChainRule]]:
        found: dict[str, dict[tuple[str, str], ChainRule]] = {}
        rest: list[str] = []
        for frontend in frontends:
            chain = frontend.target or ""
            if frontend.service and frontend.protocol:
                key = frontend.service, frontend.protocol
                found.setdefault(chain, {}).setdefault(key, frontend)
                rest.append(chain)
        while rest:
            chain = rest.pop()
            for row in self._rows["nat"].get(chain, ()):
                if not (row.is_jump and row.target and row.target.startswith(OWN_PREFIXES)):
                    continue
                theirs = found.setdefault(row.target, {})
                new = [key for key in found[chain] if key not in theirs]
                for key in new:
                    theirs[key] = row
                if new:
                    rest.append(row.target)
        return found

    # --- endpoints ---

    @cached_property
    def routed(self) -> Mapping[tuple[str, str], ServicePort]:
        """The ServicePorts as flows are routed, by name and protocol."""
        return {(names.plain_name(s.name.text), s.protocol): s for s in self._routed}

    @cached_property
    def destinations(self) -> dict[str, str]:
        """Address and port that each KUBE-SEP chain sends flows to, if it is just one."""
        found = {chain: to for each in self.settled.values() for chain, to in each.items()}
        for chain in self.chains(names.ENDPOINT_PREFIX):
            to = {row.dnat for row in self.rows(chain) if row.dnat is not None}
            if len(to) == 1:
                found[chain] = to.pop()
        return found

    def endpoint(self, chain: str) -> str:
        """Return the endpoint of a KUBE-SEP chain, in words."""
        to = self.destinations.get(chain)
        return f"endpoint {to}" if to is not None else f"the endpoint of {chain}"

    def draws(self, chain: str) -> list[ChainRule]:
        """Return the rules of a chain that send new clients to an endpoint."""
        return [row for row in self.endpoint_rows(chain) if row.recent is None]

    def endpoint_rows(self, chain: str) -> list[ChainRule]:
        """Return the rules of a chain that lead to an endpoint, rchecks of affinity included."""
        return [
            row
            for row in self.rows(chain)
            if row.is_jump and (row.target or "").startswith(names.ENDPOINT_PREFIX)
        ]

    @cached_property
    def is_large(self) -> bool:
        """Whether kube-proxy treats this as a large cluster."""
        every = (name for name in self.nat.chains if name.startswith(names.ENDPOINT_PREFIX))
        return sum(1 for _ in every) > LARGE_CLUSTER

    @cached_property
    def masquerade_mark(self) -> int | None:
        """The bit that KUBE-MARK-MASQ sets, if it sets just one."""
        return self.bit_set_by(names.MARK_MASQUERADE)

    def bit_set_by(self, chain: str) -> int | None:
        """Return the one bit that a chain sets in every packet's mark."""
        sets = [row.sets_mark for row in self.rows(chain) if row.is_unconditional]
        marks = [mark for mark in sets if mark is not None]
        if len(marks) != 1 or marks[0].value != marks[0].mask or marks[0].value.bit_count() != 1:
            return None
        return marks[0].value


def _rules(table: Table, wanted: Iterable[str]) -> dict[str, list[ChainRule]]:
    """Return the rules of some chains of a table."""
    chains = table.chains
    if isinstance(
        chains, RowChains
    ):  # in the order of the text, in which lines are counted fastest
        groups = chains.block.groups
        wanted = sorted(wanted, key=lambda name: groups.get(name, (0, 0)))
    return {name: list(rules_of(chains[name])) for name in wanted}


def listed(frontends: Iterable[ChainRule]) -> str:
    """Return frontends in words, those beyond a few only counted."""
    node_ports_last = sorted(frontends, key=lambda frontend: frontend.host is None)
    texts = list(dict.fromkeys(map(str, node_ports_last)))
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
