"""Recognises Services in kube-proxy's rules in nftables mode.

Theory of operation
===================

What the rules at the nat hooks do with packets to an address and port is a frontend
(`nft_places`); what those at the filter hooks refuse is one without endpoints. For each frontend
and each kind of source the first packet of such a flow is made and evaluated at the hooks
(`flows`), so that what kube-proxy of some version means by its maps need not be known. The names of
chains, and the comments of elements, are used as names and for nothing else.

A ruleset of nft has both families. Each is recognised by itself, since kube-proxy treats them as
two proxies; a Service of both has a ServicePort in each.

Source: kubernetes, pkg/proxy/nftables/proxier.go, ``syncProxyRules``; versions 1.30 to 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from analyzer.kubeproxy import names
from analyzer.kubeproxy.assumed import rests_on
from analyzer.kubeproxy.nft_family import NftFamily
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.untold import of_frames
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Source, View
from analyzer.model.addresses import IPV4, VERSIONS, Address, Network
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.nft.expressions import Concat, Unknown
from analyzer.model.nft.ruleset import NftRuleset, Set
from analyzer.model.routing import Routes
from analyzer.parsers.formats import Advance
from analyzer.parsers.nft.survey import survey
from analyzer.semantics.assumed import DEFAULTS
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import PodPlaces
from analyzer.semantics.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.kubeproxy.dispatch.object_names import ObjectNames
    from analyzer.model.intervals import Intervals

_FAMILIES: Final = ("ip", "ip6")
#: The table of kube-proxy, in either family.
_TABLE: Final = "kube-proxy"
_VERDICTS: Final = ("verdict",)


def _has_unknown(held: Set) -> bool:
    """Return whether a set may be a verdict map with elements that cannot be read."""
    if held.key == ("unknown",):
        return True
    return held.value == _VERDICTS and any(
        isinstance(part, Unknown)
        for element in held.elements
        for key in [element.key]
        for part in (element.value, *(key.parts if isinstance(key, Concat) else (key,)))
    )


class NftRecogniser:
    """The Services of a ruleset of nft; as `iptables.Recogniser` in all else."""

    def __init__(
        self,
        ruleset: NftRuleset,
        cluster: Cluster,
        *,
        node: str | None = None,
        node_addresses: tuple[Address, ...] = (),
        plainly: bool = True,
        advance: Advance | None = None,
        object_names: ObjectNames | None = None,
        others: Sequence[Rules] = (),
        assumed: Mapping[str, str] = DEFAULTS,
        routes: Callable[[], Routes] = Routes,
    ) -> None:
        self._assumed = assumed
        self._ruleset = ruleset
        self._others = others
        self._node = node
        self._families = [
            NftFamily(
                family,
                (ruleset, *others),
                cluster,
                node=node,
                own=tuple(a for a in node_addresses if a.version == VERSIONS[family]),
                object_names=object_names,
                advance=advance,
                plainly=plainly and not others,
                assumed=assumed,
                routes=routes,
            )
            for family in _FAMILIES
        ]

    def view(self) -> View:
        """Return all ServicePorts with their routes, those of IPv4 first."""
        services = tuple(each for family in self._families for each in family.services())
        for family in self._families:
            family.settle()
        diagnostics = [each for family in self._families for each in family.diagnostics()]
        mode, message = self._mode()
        unseen = "" if any(family.of_services for family in self._families) else message
        if unseen:
            diagnostics.append(self._warning("no-kube-proxy-chains", unseen))
        untold = dict(of_frames((self._ruleset, *self._others))) if services else {}
        diagnostics += untold.values()
        used = {name for family in self._families for name in family.used}
        diagnostics += rests_on(used, self._assumed, self._ruleset.file)
        return View(
            services=services,
            mode=mode,
            node=self._node,
            pod_sources=tuple(pod for of in self._families if (pod := of.pod_source) is not None),
            diagnostics=(*self._ruleset.diagnostics, *self._survey(), *diagnostics),
            cut=tuple(self._cut()),
            untold=tuple(untold),
            unseen=unseen,
            left_out=tuple(self._left_out()),
        )

    def _cut(self) -> Iterator[int]:
        """Yield the IP versions for which a truncated dump has no whole table with nat chains."""
        tables = self._ruleset.tables.values()
        if all(table.complete for table in tables):
            return
        for version, family in ((4, "ip"), (6, "ip6")):
            whole = [t for t in tables if t.complete and t.family in {family, "inet"}]
            if not any(chain.type == "nat" for t in whole for chain in t.chains.values()):
                yield version

    def assumed(self) -> list[Diagnostic]:
        """Return the assumptions that the trees so far rest on besides the dump."""
        used = {name for family in self._families for name in family.trees_used}
        return rests_on(used, self._assumed, self._ruleset.file)

    def covers(self, source: Source, address: Address) -> bool:
        """Return whether the routes of a kind of source are of `address` too, as far as known."""
        return self._families[address.version != IPV4].covers(source, address)

    def is_outside(self, address: Address) -> bool:
        """Return whether an address is certainly neither a pod's nor the node's."""
        return self._families[address.version != IPV4].is_outside(address)

    def tree(self, service: ServicePort, route: Route) -> Tree:
        """Return what happens to a new flow on `route`, from its hook on."""
        family = next(f for f in self._families if f.has(service))
        return family.tree(service, route)

    def source_address(
        self,
        version: int,
        frontend: Frontend,
        protocol: str,
        source: Source,
        network: Network | None = None,
    ) -> Address | None:
        """Return the address that represents a route's sources, by IP version; None: not known.

        A frontend need not have such a route.
        """
        return self._of(version).source_address(frontend, protocol, source, network)

    def node_port_address(self, version: int) -> Address | None:
        """Return the address of the node to which flows to a NodePort go, if it is known."""
        return self._of(version).node_port_address

    def places(self, version: int) -> PodPlaces:
        """Return where addresses of an IP version are, as far as known."""
        return self._of(version).places()

    def bridges(self, version: int) -> Intervals | None:
        """Return the addresses of an IP version of which bridges of the node may have some."""
        return self._of(version).bridges()

    def _of(self, version: int) -> NftFamily:
        return self._families[0 if version == IPV4 else 1]

    def _left_out(self) -> Iterator[str]:
        """Yield the verdict maps of kube-proxy's tables that cannot be read completely."""
        plain = {each for family in self._families for each in family.plain()[1]}
        theirs = {dispatch.table.name for f in self._families for dispatch in f.of_services}
        for (family, name), table in self._ruleset.tables.items():
            if name != _TABLE and name not in theirs:
                continue
            for held in table.sets.values():
                known = (family, name, held.name) in plain
                if not known and _has_unknown(held):
                    yield f"map {held.name} of table {family} {name}"

    def _survey(self) -> Iterator[Diagnostic]:
        plain = [family.plain() for family in self._families]
        read = {chain for chains, _ in plain for chain in chains}
        others = {
            f"{table.family} {table.name}": [
                name for name in table.chains if (table.family, table.name, name) not in read
            ]
            for table in self._ruleset.tables.values()
        }
        return survey(self._ruleset, others, {each for _, maps in plain for each in maps})

    def _mode(self) -> tuple[ProxyMode, str]:
        """Return the mode of kube-proxy, and the message for a dump without Services."""
        tables = [dispatch.table for family in self._families for dispatch in family.of_services]
        if any(names.SERVICES not in table.chains for table in tables):
            return ProxyMode.NFTABLES, ""
        for (family, name), table in self._ruleset.tables.items():
            if names.SERVICES in table.chains:
                return ProxyMode.IPTABLES, (
                    f"table {family} {name} contains rules of iptables-nft, and nft leaves out "
                    "what is needed; run `iptables-save` on the node and give its output instead"
                )
        if any(name == _TABLE for _, name in self._ruleset.tables):
            return ProxyMode.NFTABLES, self._terse()
        return ProxyMode.NONE, (
            "no map or rule sends packets to a Service's address and port to a chain: kube-proxy "
            "in nftables mode has not written these rules, or the dump leaves them out; if "
            "kube-proxy runs in iptables mode, run `iptables-save`"
        )

    def _terse(self) -> str:
        """Return the message for a listing without the elements of maps; empty: it has them."""
        for (family, name), table in self._ruleset.tables.items():
            # After its hash the name of such a chain has those of namespace and Service.
            if name == _TABLE and any("/" in chain for chain in table.chains):
                return (
                    f"table {family} {name} has chains of Services, and no map has an element that "
                    "leads to them, as in a listing by `nft --terse`; run `nft list ruleset`"
                )
        return ""

    def _warning(self, code: str, message: str) -> Diagnostic:
        return partial_warning(code, message, self._ruleset.file)
