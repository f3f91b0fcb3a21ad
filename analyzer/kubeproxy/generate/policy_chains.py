"""The chains of one Service since 1.24: SVC, SVL, EXT and FW, by traffic policy.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``,
``writeServiceToEndpointRules``; the captures of these versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.reach import EndpointChain, Reach, reach
from analyzer.kubeproxy.generate.rows import (
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
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.names import (
    EXTERNAL_SERVICES,
    MARK_DROP,
    MARK_MASQUERADE,
    NODE_PORTS,
    SERVICES,
    chain_hash,
)

FIREWALL: Final = "KUBE-PROXY-FIREWALL"


class PolicyChains:
    """Writes the rules of one ServicePort."""

    __slots__ = (
        "_filter",
        "_large",
        "_localhost",
        "_marks",
        "_name",
        "_nat",
        "_proxy",
        "_reach",
        "_service",
        "_tells_end",
    )

    def __init__(
        self,
        service: ServicePortSpec,
        proxy: ProxyConfig,
        tables: tuple[TableDraft, TableDraft],
        *,
        large: bool,
        localhost: str = "",
        tells_end: bool = True,
        marks_drops: bool = False,
    ) -> None:
        """Take the filter and nat tables, and the match, if any, that counts localhost NodePorts.

        `tells_end`: a rule without a target at the end of FW says in its comment where the rest is
        dropped. `marks_drops`: there, and where no endpoint is local, flows are marked, not
        dropped.
        """
        self._service = service
        self._proxy = proxy
        self._filter, self._nat = tables
        self._large = large
        self._localhost = localhost
        self._tells_end = tells_end
        self._marks = marks_drops
        self._reach: Reach = reach(service, proxy)
        self._name = chain_hash(service.name, service.protocol)

    def write(self) -> None:
        """Write everything that the ServicePort adds to both tables."""
        service, found = self._service, self._reach
        if not found.any_at_all:
            self._refuse_inside("has no endpoints", reject(service))
            self._refuse_outside("has no endpoints", reject(service))
        else:
            self._lead_in()
            if service.is_external:
                self._external_chain()
            if self._service.has_firewall:
                self._firewall_chain()
            self._endpoints_of(self._chain("SVC"), found.cluster)
            if self._marks and (found.drops_inside or found.drops_outside):
                says = comment(f"{service.name} has no local endpoints")
                self._nat.add(self._chain("SVL"), f"{says} -j {MARK_DROP}")
            self._endpoints_of(self._chain("SVL"), found.local)
            for target in found.every:
                write_endpoint(self._nat, service, target, large=self._large)
        if service.health_check_node_port:
            says = comment(f"{service.name} health check node port")
            port = to_port("tcp", service.health_check_node_port)
            self._filter.add(NODE_PORTS, f"-p tcp {says} {port} -j ACCEPT")

    def _chain(self, kind: str) -> str:
        return f"KUBE-{kind}-{self._name}"

    # --- the ways in ---

    def _lead_in(self) -> None:
        """Write the rules that jump to the chains, and those that drop for lack of endpoints."""
        service, nat, outside = self._service, self._nat, self._chain("EXT")
        if self._reach.drops_inside and not self._marks:
            self._refuse_inside("has no local endpoints", "DROP")
        else:
            self._write_cluster_ip()
        for address in service.external_ips:
            nat.add(SERVICES, f"{flow(service, address, 'external IP')} -j {outside}")
        first = self._chain("FW") if self._service.has_firewall else outside
        for address in service.load_balancer_ips:
            nat.add(SERVICES, f"{flow(service, address, 'loadbalancer IP')} -j {first}")
            if self._service.has_firewall and not self._marks:
                dropped = flow(service, address, f"traffic not accepted by {first}")
                self._filter.add(FIREWALL, f"{dropped} -j DROP")
        if service.node_port:
            protocol = service.protocol
            named = f"-p {protocol} {comment(service.name)} {to_port(protocol, service.node_port)}"
            if self._localhost:
                nat.add(NODE_PORTS, f"-d 127.0.0.0/8 {named}{self._localhost} -j {outside}")
            nat.add(NODE_PORTS, f"{named} -j {outside}")
        if self._reach.drops_outside and not self._marks:
            self._refuse_outside("has no local endpoints", "DROP")

    def _write_cluster_ip(self) -> None:
        service, proxy = self._service, self._proxy
        chain = self._chain("SVL" if service.internal_local else "SVC")
        to_it = flow(service, service.cluster_ip, "cluster IP")
        self._nat.add(SERVICES, f"{to_it} -j {chain}")
        if proxy.masquerade_all:
            self._nat.add(chain, f"{to_it} -j {MARK_MASQUERADE}")
        elif proxy.cluster_cidr is not None:
            self._nat.add(chain, f"! -s {proxy.cluster_cidr} {to_it} -j {MARK_MASQUERADE}")

    def _refuse_inside(self, says: str, target: str) -> None:
        to_it = flow(self._service, self._service.cluster_ip, says)
        self._filter.add(SERVICES, f"{to_it} -j {target}")

    def _refuse_outside(self, says: str, target: str) -> None:
        service = self._service
        for address in (*service.external_ips, *service.load_balancer_ips):
            self._filter.add(EXTERNAL_SERVICES, f"{flow(service, address, says)} -j {target}")
        if service.node_port:
            self._filter.add(EXTERNAL_SERVICES, f"{local_flow(service, says)} -j {target}")

    # --- the chains ---

    def _external_chain(self) -> None:
        """Write EXT: flows from outside are masqueraded, or stay on this node."""
        nat, chain, name = self._nat, self._chain("EXT"), self._service.name
        if not self._service.external_local:
            says = comment(f"masquerade traffic for {name} external destinations")
            nat.add(chain, f"{says} -j {MARK_MASQUERADE}")
            nat.add(chain, f"-j {self._chain('SVC')}")
            return
        everywhere = self._chain("SVC")
        if self._proxy.cluster_cidr is not None:
            says = comment(f"pod traffic for {name} external destinations")
            nat.add(chain, f"-s {self._proxy.cluster_cidr} {says} -j {everywhere}")
        for what, target in (("masquerade", MARK_MASQUERADE), ("route", everywhere)):
            says = comment(f"{what} LOCAL traffic for {name} external destinations")
            nat.add(chain, f"{says} -m addrtype --src-type LOCAL -j {target}")
        if self._marks or not self._reach.drops_outside:
            nat.add(chain, f"-j {self._chain('SVL')}")

    def _firewall_chain(self) -> None:
        """Write FW: what reaches its end returns, and KUBE-PROXY-FIREWALL drops it."""
        service, chain, outside = self._service, self._chain("FW"), self._chain("EXT")
        says = comment(f"{service.name} loadbalancer IP")
        own = self._proxy.node_address
        allowed = [str(network) for network in service.load_balancer_source_ranges]
        if own is not None and any(own in n for n in service.load_balancer_source_ranges):
            # On a node that has the address itself, its own flows come from there.
            allowed += map(host, service.load_balancer_ips)
        # 1.24 writes all of it again for each address.
        for _ in service.load_balancer_ips if self._marks else (None,):
            for network in allowed:
                self._nat.add(chain, f"-s {network} {says} -j {outside}")
            if self._marks:
                self._nat.add(chain, f"{says} -j {MARK_DROP}")
        if self._tells_end:
            end = comment(f"other traffic to {service.name} will be dropped by {FIREWALL}")
            self._nat.add(chain, end)

    def _endpoints_of(self, chain: str, targets: Sequence[EndpointChain]) -> None:
        name = self._service.name
        jumps = [
            ("" if self._large else comment(f"{name} -> {target.text}"), target.chain)
            for target in targets
        ]
        write_affinity(self._nat, self._service, chain, jumps)
        write_draws(self._nat, chain, jumps)
