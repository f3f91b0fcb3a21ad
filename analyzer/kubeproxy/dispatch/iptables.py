"""Frontends in an iptables dump: rules that send flows to chains of Services.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from analyzer.kubeproxy import names
from analyzer.kubeproxy.rows.plain import PlainTable
from analyzer.kubeproxy.rows.plain_shares import PlainService
from analyzer.kubeproxy.rows.shapes import host
from analyzer.kubeproxy.view import Frontend, FrontendKind
from analyzer.model.addresses import Address, Network, address_from_text, network_from_text
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Rule, Ruleset, Table
from analyzer.model.value import value
from analyzer.parsers.rows import RuleRows

TYPE_CHECKING = False
if TYPE_CHECKING:  # only loaded for dumps that need it
    from typing import Final

    from analyzer.kubeproxy.dispatch.entries import Entry, OddRule
    from analyzer.kubeproxy.dispatch.host_ports import HostPort
    from analyzer.kubeproxy.dispatch.object_names import ObjectNames
    from analyzer.kubeproxy.grouping import NameAndProtocol, Refusals

#: Faster than calling the enumeration, once for each Service of a dump.
_KINDS: Final = {kind.value: kind for kind in FrontendKind}


@value
class IptablesDispatch:
    """One frontend of one ServicePort, and the plain rows that it leads to, if these are all."""

    name: str
    protocol: str
    frontend: Frontend
    chain: str
    plain: PlainService | None = None


class IptablesDispatches:
    """All rules of table nat that lead to Services.

    `plain` are the rows of nat in the plainest shapes; `object_names` names Services whose rules
    have no comment; `own` are the node's addresses, if known.

    Attributes:
        found: all frontends, those of plain rows first.
        odd: rules that lead to chains of Services, of more than one address or port.
        unnamed: how many frontends have no Service name; they are reported by address and port.
        written: the network of pods as the rules write it.
    """

    def __init__(
        self,
        nat: Table,
        plain: PlainTable,
        object_names: ObjectNames | None,
        cluster: Cluster,
        own: tuple[Address, ...],
    ) -> None:
        self._nat = nat
        self._plain = plain
        self._object_names = object_names
        self._cluster = cluster
        self._own = own
        self.odd: list[OddRule] = []
        self.unnamed = 0
        self.found = list(self._find())
        self.written = self._unmarked_network()

    @property
    def left_out(self) -> tuple[str, ...]:
        """The names of Services that a rule leads to which is not of any frontend."""
        return tuple(dict.fromkeys(odd.name for odd in self.odd if not odd.lacks_port))

    def _find(self) -> Iterator[IptablesDispatch]:
        for service in self._plain.services.values():
            name, kind = names.name_and_kind(service.comment)
            address = host(service.address)
            if name is None and self._object_names is not None:
                way = service.chain, address, service.port, service.protocol
                name, kind = self._object_names.of(*way)
            frontend = Frontend(_KINDS[kind or "ClusterIP"], address, service.port)
            self.unnamed += name is None
            yield IptablesDispatch(
                name or str(frontend), service.protocol, frontend, service.chain, service
            )
        for chain in (names.SERVICES, names.NODE_PORTS):
            rules = list(self._other_rules(chain))
            if not rules:
                continue
            from analyzer.kubeproxy.dispatch.entries import Entry, every_entry

            for each in every_entry(chain, rules, self._object_names):
                if isinstance(each, Entry):
                    assert each.chain is not None  # those of nat send flows on
                    self.unnamed += each.name == str(each.frontend)
                    yield IptablesDispatch(each.name, each.protocol, each.frontend, each.chain)
                else:
                    self.odd.append(each)

        for host_port in self._host_ports():
            yield IptablesDispatch(
                host_port.name, host_port.protocol, host_port.frontend, host_port.chain
            )

    def _host_ports(self) -> Iterator[HostPort]:
        if any(name.startswith(names.HOST_PORTS) for name in self._nat.chains):
            from analyzer.kubeproxy.dispatch.host_ports import host_ports

            yield from host_ports(self._nat)

    def _other_rules(self, name: str) -> Iterator[Rule | re.Match[str]]:
        """Yield the rules of a chain that may be frontends and are not plain.

        If a row has a known shape, its match.
        """
        chain = self._nat.chains.get(name)
        if chain is None:
            return
        if name != names.SERVICES or not isinstance(chain.rules, RuleRows):
            yield from chain.rules
        elif len(self._plain.read_rows) < len(chain.rules):
            for at, (number, line) in enumerate(chain.rules.rows):
                if at not in self._plain.read_rows:
                    entry = self._plain.entries.get(at)
                    yield chain.rules.understand(number, line) if entry is None else entry

    def _unmarked_network(self) -> Network | None:
        """Return the network of pods as the rules write it: the one exempt from masquerade."""
        for service in self._plain.services.values():
            text = service.unmarked
            written = network_from_text(text) if isinstance(text, str) else None
            if written is not None:
                return written
        others = [e for e in self.found if e.plain is None]
        others = [e for e in others if e.frontend.kind is not FrontendKind.HOST_PORT]
        if others:
            from analyzer.kubeproxy.dispatch.entries import network_of_pods, unmarked_network

            chains = [e.chain for e in others]
            written = unmarked_network(self._nat, [names.SERVICES, *chains])
            return network_of_pods(self._nat) if written is None else written
        return None

    def taken(self) -> Callable[[Address], bool]:
        """Return a test of whether an address is in use: by a node, a pod or a Service."""
        placements = self._cluster.placements
        taken = {*self._own}
        others = [e.frontend.address for e in self.found if e.plain is None]
        taken.update(address for address in others if address is not None)
        taken |= self._endpoint_sources()
        services = {service.address for service in self._plain.services.values()}
        return lambda address: (
            address in taken
            or address in placements
            or str(address) in services
            or self._plain.endpoints.has_address(address)
        )

    def endpoint_addresses(self) -> Iterator[Address]:
        """Yield the addresses of all endpoints that have chains."""
        yield from filter(None, map(address_from_text, self._plain.endpoints.addresses()))
        yield from self._endpoint_sources()

    def _endpoint_sources(self) -> set[Address]:
        """Return the addresses of the endpoints whose chains are not plain."""
        if self._plain.has_all_endpoints:
            return set()
        from analyzer.kubeproxy.dispatch.entries import endpoint_sources

        return endpoint_sources(self._nat, self._plain.endpoints.__contains__)

    @cached_property
    def cluster_ips(self) -> frozenset[Address]:
        """Addresses that certainly are ClusterIPs; without comments, the kind is a guess."""
        if self.unnamed:
            return frozenset()
        frontends = (each.frontend for each in self.found)
        of_kind = (f.address for f in frontends if f.kind is FrontendKind.CLUSTER_IP)
        return frozenset(address for address in of_kind if address is not None)

    def is_empty(self, dispatch: IptablesDispatch) -> bool:
        """Return whether a frontend leads to an empty chain."""
        if dispatch.plain is not None:
            return False
        chain = self._nat.chains.get(dispatch.chain)
        return chain is not None and not len(chain.rules)

    def affinity(self, dispatches: list[IptablesDispatch]) -> int | None:
        """Return the session affinity timeout in seconds; None: no session affinity."""
        for dispatch in dispatches:
            if dispatch.plain is None:
                from analyzer.kubeproxy.dispatch.entries import affinity

                found = affinity(self._nat, dispatch.chain)
                if found is not None:
                    return found
        return None

    def refused(self, rulesets: Iterable[Ruleset]) -> dict[NameAndProtocol, Refusals]:
        """Return the frontends that table filter of `rulesets` refuses, by ServicePort."""
        refusing = [each for each in rulesets if _may_refuse(each)]
        if not refusing:
            return {}
        from analyzer.kubeproxy.dispatch.entries import refusals

        found: dict[NameAndProtocol, Refusals] = {}
        known = {_place(each): each.frontend for each in self.found}
        for entry, how in (e for rules in refusing for e in refusals(rules, self._object_names)):
            # A refusal's comment does not have the kind; that of the rule in nat does.
            frontend = known.get(_place(entry), entry.frontend)
            found.setdefault((entry.name, entry.protocol), []).append((frontend, how))
        return found


def _place(dispatch: IptablesDispatch | Entry) -> tuple[str, Address | None, int | None]:
    return dispatch.protocol, dispatch.frontend.address, dispatch.frontend.port


def _may_refuse(ruleset: Ruleset) -> bool:
    table = ruleset.tables.get("filter")
    if table is None:
        return False
    chains = (names.SERVICES, names.EXTERNAL_SERVICES, names.NODE_PORTS)
    return any(len(table.chains[name].rules) for name in chains if name in table.chains)
