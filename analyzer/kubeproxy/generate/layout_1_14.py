"""The layouts of 1.14 to 1.23: local policies in XLB, load balancers in FW, marks for drops.

Differences by version are in `_Era`. Source: kubernetes, pkg/proxy/iptables/proxier.go,
``syncProxyRules``, pkg/proxy/topology.go, ``FilterEndpoints``, of each version; its captures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from analyzer.kubeproxy.generate import frame
from analyzer.kubeproxy.generate.config import ProxyConfig, RulesLayout
from analyzer.kubeproxy.generate.reach import EndpointChain, targets
from analyzer.kubeproxy.generate.rows import (
    LARGE,
    TableDraft,
    comment,
    flow,
    host,
    local_flow,
    reject,
    to_port,
    write_affinity,
    write_draws,
    write_endpoint,
)
from analyzer.kubeproxy.generate.specs import EndpointSpec, ServicePortSpec
from analyzer.kubeproxy.names import (
    EXTERNAL_SERVICES,
    MARK_DROP,
    MARK_MASQUERADE,
    NODE_PORTS,
    SERVICES,
    chain_hash,
)
from analyzer.model.value import replace, value

_NODE_FIREWALL: Final = "KUBE-FIREWALL"


@value
class _Era:
    """How kube-proxy 1.`minor` differs from others up to 1.23."""

    minor: int

    @property
    def ends_names_with_colon(self) -> bool:
        """Whether the name of a port without a name is written as ``ns/name:``."""
        return self.minor <= RulesLayout.V1_18.minor

    @property
    def leaves_comments_out(self) -> bool:
        """Whether SVC and SEP have no comments, which 1.18 fixed."""
        return self.minor <= RulesLayout.V1_17.minor

    @property
    def routes_own_flows(self) -> bool:
        """Whether the node's own flows to XLB go to any endpoint: since 1.15 (#77523)."""
        return self.minor >= RulesLayout.V1_16.minor

    @property
    def knows_policy_of_external_ips(self) -> bool:
        """Whether externalTrafficPolicy applies to external IPs."""
        return self.minor >= RulesLayout.V1_20.minor

    @property
    def takes_all_to_external_ips(self) -> bool:
        """Whether flows from bridges and from the node match too (#96296)."""
        return self.minor >= RulesLayout.V1_21.minor

    @property
    def masquerades_in_service(self) -> bool:
        """Whether the rules that mark for masquerade are in SVC."""
        return self.minor >= RulesLayout.V1_22.minor

    @property
    def knows_internal_policy(self) -> bool:
        """Whether internalTrafficPolicy applies: to all frontends, up to 1.23."""
        return self.minor >= RulesLayout.V1_22.minor

    @property
    def counts_unready(self) -> bool:
        """Whether unready endpoints count if none is ready: 1.22.0 to 1.22.3 (#106030)."""
        return self.minor == RulesLayout.V1_22.minor


def usable(service: ServicePortSpec, layout: RulesLayout, node: str) -> tuple[EndpointSpec, ...]:
    """Return the endpoints that have chains at a node; in 1.22 unready ones are among them.

    Source: pkg/proxy/topology.go, ``FilterEndpoints``, up to 1.23.
    """
    era = _Era(layout.minor)
    local = era.knows_internal_policy and service.internal_local and not service.external_local
    return tuple(
        e
        for e in service.endpoints
        if (e.ready or era.counts_unready) and (not local or e.node == node)
    )


def tables(services: Sequence[ServicePortSpec], proxy: ProxyConfig) -> tuple[TableDraft, ...]:
    """Return filter, mangle if the version has it, and nat.

    KUBE-MARK-DROP is empty except for the rules of the kubelet of that time; since 1.20 kube-proxy
    declares it.
    """
    era = _Era(proxy.layout.minor)
    filter_table, nat = _filter_table(proxy, era), frame.nat_table(era.minor)
    if proxy.kubelet or proxy.layout.declares_marks:
        nat.rows.setdefault(MARK_DROP, [])
    if proxy.kubelet:
        write_marked_drops(filter_table, nat)
    found = [usable(s, proxy.layout, proxy.node) for s in services]
    counted = found if era.minor < RulesLayout.V1_21.minor else [s.endpoints for s in services]
    large = sum(map(len, counted)) > LARGE
    for given, endpoints in zip(services, found, strict=True):
        named = era.ends_names_with_colon and ":" not in given.name
        service = replace(given, name=f"{given.name}:") if named else given
        chains = _Chains(service, endpoints, proxy, (filter_table, nat), large=large)
        chains.write()
    frame.write_node_ports_last(nat)
    mangle = [frame.mangle_table()] if era.minor >= frame.SINCE_CANARY else []
    return filter_table, *mangle, nat


def _filter_table(proxy: ProxyConfig, era: _Era) -> TableDraft:
    checks = era.minor >= RulesLayout.V1_21.minor
    own = [EXTERNAL_SERVICES, *([NODE_PORTS] if checks else [])]
    table = frame.filter_table(own, canary=era.minor >= frame.SINCE_CANARY)
    portals = f"{frame.NEW} {frame.PORTALS} -j {SERVICES}"
    outside = f"{frame.NEW} {frame.OUTSIDE_PORTALS} -j {EXTERNAL_SERVICES}"
    if checks:
        says = comment("kubernetes health check service ports")
        table.add("INPUT", f"{says} -j {NODE_PORTS}")
    elif era.minor < RulesLayout.V1_20.minor:
        table.add("INPUT", portals)
    table.add("INPUT", outside)
    table.add("FORWARD", f"{frame.FORWARDING} -j {frame.FORWARD}")
    table.add("FORWARD", portals)
    if era.minor >= RulesLayout.V1_20.minor:
        table.add("FORWARD", outside)
    table.add("OUTPUT", portals)
    _write_forward(table, proxy, era)
    return table


def _write_forward(table: TableDraft, proxy: ProxyConfig, era: _Era) -> None:
    says = "kubernetes forwarding conntrack pod {} rule"
    both = (says.format("source"), says.format("destination"))
    cidr = proxy.cluster_cidr
    if era.minor >= RulesLayout.V1_23.minor:
        frame.write_forward(table, "", ("kubernetes forwarding conntrack rule",))
    elif era.minor >= RulesLayout.V1_18.minor:
        frame.write_forward(table, "", both)
    elif cidr is None:
        frame.write_forward(table, "", ())
    else:
        frame.write_forward(table, "", both, (f"-s {cidr} ", f"-d {cidr} "))


def write_marked_drops(filter_table: TableDraft, nat: TableDraft) -> None:
    """Write the kubelet's rules up to 1.24 that drop marked packets.

    Source: kubernetes 1.20, pkg/kubelet/kubelet_network_linux.go, ``syncNetworkUtil``.
    """
    nat.add(MARK_DROP, "-j MARK --set-xmark 0x8000/0x8000")
    says = comment("kubernetes firewall for dropping marked packets")
    filter_table.add(_NODE_FIREWALL, f"{says} -m mark --mark 0x8000/0x8000 -j DROP")
    says = comment("block incoming localnet connections")
    state = "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT"
    filter_table.add(_NODE_FIREWALL, f"! -s 127.0.0.0/8 -d 127.0.0.0/8 {says} {state} -j DROP")
    for hook in ("INPUT", "OUTPUT"):
        filter_table.add(hook, f"-j {_NODE_FIREWALL}")


class _Chains:
    """Writes the rules of one ServicePort."""

    __slots__ = (
        "_era",
        "_filter",
        "_large",
        "_local_only",
        "_name",
        "_nat",
        "_proxy",
        "_service",
        "_targets",
    )

    def __init__(
        self,
        service: ServicePortSpec,
        endpoints: Iterable[EndpointSpec],
        proxy: ProxyConfig,
        written: tuple[TableDraft, TableDraft],
        *,
        large: bool,
    ) -> None:
        """Take the endpoints that have chains, and the filter and the nat table."""
        self._service = service
        self._targets = targets(service, endpoints, proxy.layout)
        self._proxy = proxy
        self._filter, self._nat = written
        self._large = large
        self._era = _Era(proxy.layout.minor)
        self._name = chain_hash(service.name, service.protocol)
        self._local_only = service.external_local

    def write(self) -> None:
        """Write everything that the ServicePort adds to both tables."""
        service = self._service
        if self._local_only:
            self._nat.rows.setdefault(self._chain("XLB"), [])
        if service.health_check_node_port and self._era.minor >= RulesLayout.V1_21.minor:
            says = comment(f"{service.name} health check node port")
            port = to_port("tcp", service.health_check_node_port)
            self._filter.add(NODE_PORTS, f"-p tcp {says} {port} -j ACCEPT")
        if not self._targets:
            self._refuse()
            return
        self._nat.rows.setdefault(self._chain("SVC"), [])
        self._cluster_ip()
        for address in service.external_ips:
            self._external_ip(flow(service, address, "external IP"))
        if service.load_balancer_ips:
            self._load_balancer()
        if service.node_port:
            self._node_port()
        self._endpoints_of(self._chain("SVC"), [t for t in self._targets if t.endpoint.ready])
        bare = self._large or self._era.leaves_comments_out
        for target in self._targets:
            write_endpoint(self._nat, service, target, large=bare)
        if self._local_only:
            self._local_chain()

    def _chain(self, kind: str) -> str:
        return f"KUBE-{kind}-{self._name}"

    @property
    def _outside(self) -> str:
        """The chain of flows from outside."""
        return self._chain("XLB" if self._local_only else "SVC")

    def _says(self) -> str:
        bare = self._large or self._era.leaves_comments_out
        return "" if bare else comment(self._service.name)

    def _refuse(self) -> None:
        """Write the rules that reject flows to a Service without endpoints."""
        service, says, table = self._service, "has no endpoints", self._filter
        target = reject(service)
        table.add(SERVICES, f"{flow(service, service.cluster_ip, says)} -j {target}")
        for address in service.external_ips:
            table.add(EXTERNAL_SERVICES, f"{flow(service, address, says)} -j {target}")
        old = self._era.minor < RulesLayout.V1_20.minor
        for address in service.load_balancer_ips:
            chain = SERVICES if old else EXTERNAL_SERVICES
            table.add(chain, f"{flow(service, address, says)} -j {target}")
        if service.node_port:
            table.add(EXTERNAL_SERVICES, f"{local_flow(service, says)} -j {target}")

    # --- the ways in ---

    def _mark_others(self, to_it: str) -> None:
        """Mark flows from outside, in KUBE-SERVICES or in the Service's own chain."""
        pods = self._proxy.cluster_cidr
        chain = self._chain("SVC") if self._era.masquerades_in_service else SERVICES
        others = "" if pods is None else f"! -s {pods} "
        self._nat.add(chain, f"{others}{to_it} -j {MARK_MASQUERADE}")

    def _cluster_ip(self) -> None:
        to_it = flow(self._service, self._service.cluster_ip, "cluster IP")
        if self._proxy.masquerade_all:
            chain = self._chain("SVC") if self._era.masquerades_in_service else SERVICES
            self._nat.add(chain, f"{to_it} -j {MARK_MASQUERADE}")
        elif self._proxy.cluster_cidr is not None:
            self._mark_others(to_it)
        self._nat.add(SERVICES, f"{to_it} -j {self._chain('SVC')}")

    def _external_ip(self, to_it: str) -> None:
        """Write the rules of an external IP; up to 1.20 not for flows from a bridge or the node."""
        local = self._local_only and self._era.knows_policy_of_external_ips
        target = self._chain("XLB" if local else "SVC")
        if self._era.takes_all_to_external_ips:
            if not local:
                self._mark_others(to_it)
            self._nat.add(SERVICES, f"{to_it} -j {target}")
            return
        if not local:
            self._nat.add(SERVICES, f"{to_it} -j {MARK_MASQUERADE}")
        for where in (
            "-m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL",
            "-m addrtype --dst-type LOCAL",
        ):
            self._nat.add(SERVICES, f"{to_it} {where} -j {target}")

    def _load_balancer(self) -> None:
        """Write FW, again for each address as kube-proxy does, and the rules that jump to it."""
        service, nat, chain = self._service, self._nat, self._chain("FW")
        says = comment(f"{service.name} loadbalancer IP")
        ranges, own = service.load_balancer_source_ranges, self._proxy.node_address
        for address in service.load_balancer_ips:
            nat.add(SERVICES, f"{flow(service, address, 'loadbalancer IP')} -j {chain}")
            if not self._local_only:
                nat.add(chain, f"{says} -j {MARK_MASQUERADE}")
            allowed = [f"-s {network} " for network in ranges] or [""]
            if own is not None and any(own in network for network in ranges):
                # On a node that has the address itself, its own flows come from there.
                allowed.append(f"-s {host(address)} ")
            for source in allowed:
                nat.add(chain, f"{source}{says} -j {self._outside}")
            nat.add(chain, f"{says} -j {MARK_DROP}")

    def _node_port(self) -> None:
        service, nat = self._service, self._nat
        protocol = service.protocol
        port = f"-p {protocol} {comment(service.name)} {to_port(protocol, service.node_port)}"
        if self._local_only:
            masked = f"-s {frame.loopback(self._proxy)} {port}"
            nat.add(NODE_PORTS, f"{masked} -j {MARK_MASQUERADE}")
        else:
            chain = self._chain("SVC") if self._era.masquerades_in_service else NODE_PORTS
            nat.add(chain, f"{port} -j {MARK_MASQUERADE}")
        nat.add(NODE_PORTS, f"{port} -j {self._outside}")

    # --- the chains ---

    def _endpoints_of(self, chain: str, ready: Sequence[EndpointChain]) -> None:
        named = self._says()
        kept = self._targets if chain == self._chain("SVC") else ready
        write_affinity(self._nat, self._service, chain, [(named, t.chain) for t in kept])
        write_draws(self._nat, chain, [(named, t.chain) for t in ready], self._proxy.layout.digits)

    def _local_chain(self) -> None:
        """Write XLB: pods and the node go to any endpoint, others to those of this node."""
        nat, chain, everywhere = self._nat, self._chain("XLB"), self._chain("SVC")
        name = self._service.name
        if self._proxy.cluster_cidr is not None:
            says = comment("Redirect pods trying to reach external loadbalancer VIP to clusterIP")
            nat.add(chain, f"-s {self._proxy.cluster_cidr} {says} -j {everywhere}")
        if self._era.routes_own_flows:
            from_here = "-m addrtype --src-type LOCAL"
            says = comment(f"masquerade LOCAL traffic for {name} LB IP")
            nat.add(chain, f"{says} {from_here} -j {MARK_MASQUERADE}")
            says = comment(f"route LOCAL traffic for {name} LB IP to service chain")
            nat.add(chain, f"{says} {from_here} -j {everywhere}")
        mine = [t for t in self._targets if t.endpoint.node == self._proxy.node]
        here = [t for t in mine if t.endpoint.ready]
        if not here:
            nat.add(chain, f"{comment(f'{name} has no local endpoints')} -j {MARK_DROP}")
        elif self._era.minor >= RulesLayout.V1_23.minor:
            self._endpoints_of(chain, here)
        else:
            write_affinity(nat, self._service, chain, [(comment(name), t.chain) for t in here])
            draws = [
                (comment(f"Balancing rule {number} for {name}"), target.chain)
                for number, target in enumerate(here)
            ]
            write_draws(nat, chain, draws, self._proxy.layout.digits)
