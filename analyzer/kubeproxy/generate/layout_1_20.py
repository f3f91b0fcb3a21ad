"""The layout of 1.20: local policies in XLB, load balancers in FW, marks for what is dropped.

Source: kubernetes 1.20, pkg/proxy/iptables/proxier.go, ``syncProxyRules``; the captures of 1.20.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analyzer.kubeproxy.generate import frame
from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.reach import Target, targets
from analyzer.kubeproxy.generate.rows import (
    LARGE,
    Table,
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

_NODE_FIREWALL: Final = "KUBE-FIREWALL"


def tables(services: Sequence[ServicePortSpec], proxy: ProxyConfig) -> tuple[Table, ...]:
    """Return filter, mangle and nat.

    KUBE-MARK-DROP is there and empty: the kubelet of that time filled it, if it was there.
    """
    filter_table, nat = _filter_table(), frame.nat_table()
    nat.rows.setdefault(MARK_DROP, [])
    if proxy.kubelet:
        _write_kubelet(filter_table, nat)
    ready = [targets(s, (e for e in s.endpoints if e.ready), proxy.layout) for s in services]
    large = sum(map(len, ready)) > LARGE
    for service, found in zip(services, ready, strict=True):
        if found:
            _Chains(service, found, proxy, nat, large=large).write()
        else:
            _refuse(service, filter_table)
    frame.write_node_ports_last(nat)
    return filter_table, frame.mangle_table(), nat


def _filter_table() -> Table:
    table = frame.filter_table((EXTERNAL_SERVICES,))
    portals = f"{frame.NEW} {frame.PORTALS} -j {SERVICES}"
    outside = f"{frame.NEW} {frame.OUTSIDE_PORTALS} -j {EXTERNAL_SERVICES}"
    table.add("INPUT", outside)
    table.add("FORWARD", f"{frame.FORWARDING} -j {frame.FORWARD}")
    table.add("FORWARD", portals)
    table.add("FORWARD", outside)
    table.add("OUTPUT", portals)
    says = "kubernetes forwarding conntrack pod {} rule"
    frame.write_forward(table, "", (says.format("source"), says.format("destination")))
    return table


def _write_kubelet(filter_table: Table, nat: Table) -> None:
    """Write what drops packets that kube-proxy marks.

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


def _refuse(service: ServicePortSpec, table: Table) -> None:
    """Write what rejects flows to a Service without endpoints."""
    says, target = "has no endpoints", reject(service)
    table.add(SERVICES, f"{flow(service, service.cluster_ip, says)} -j {target}")
    for address in (*service.external_ips, *service.load_balancer_ips):
        table.add(EXTERNAL_SERVICES, f"{flow(service, address, says)} -j {target}")
    if service.node_port:
        table.add(EXTERNAL_SERVICES, f"{local_flow(service, says)} -j {target}")


class _Chains:
    """One ServicePort with endpoints, while its rules of the nat table are written."""

    __slots__ = ("_large", "_local_only", "_name", "_nat", "_proxy", "_service", "_targets")

    def __init__(
        self,
        service: ServicePortSpec,
        found: tuple[Target, ...],
        proxy: ProxyConfig,
        nat: Table,
        *,
        large: bool,
    ) -> None:
        self._service = service
        self._targets = found
        self._proxy = proxy
        self._nat = nat
        self._large = large
        self._name = chain_hash(service.name, service.protocol)
        self._local_only = service.external_local

    def write(self) -> None:
        self._cluster_ip()
        for address in self._service.external_ips:
            self._external_ip(flow(self._service, address, "external IP"))
        if self._service.load_balancer_ips:
            self._load_balancer()
        if self._service.node_port:
            self._node_port()
        chain, named = self._chain("SVC"), self._says()
        jumps = [(named, target.chain) for target in self._targets]
        write_affinity(self._nat, self._service, chain, jumps)
        write_draws(self._nat, chain, jumps)
        for target in self._targets:
            write_endpoint(self._nat, self._service, target, large=self._large)
        if self._local_only:
            self._local_chain()

    def _chain(self, kind: str) -> str:
        return f"KUBE-{kind}-{self._name}"

    @property
    def _outside(self) -> str:
        """The chain of what comes from elsewhere."""
        return self._chain("XLB" if self._local_only else "SVC")

    def _says(self) -> str:
        return "" if self._large else comment(self._service.name)

    def _cluster_ip(self) -> None:
        to_it = flow(self._service, self._service.cluster_ip, "cluster IP")
        if self._proxy.masquerade_all:
            self._nat.add(SERVICES, f"{to_it} -j {MARK_MASQUERADE}")
        elif self._proxy.cluster_cidr is not None:
            pods = self._proxy.cluster_cidr
            self._nat.add(SERVICES, f"! -s {pods} {to_it} -j {MARK_MASQUERADE}")
        self._nat.add(SERVICES, f"{to_it} -j {self._chain('SVC')}")

    def _external_ip(self, to_it: str) -> None:
        """Write what catches an external IP unless it comes from a bridge or from here."""
        if not self._local_only:
            self._nat.add(SERVICES, f"{to_it} -j {MARK_MASQUERADE}")
        for where in (
            "-m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL",
            "-m addrtype --dst-type LOCAL",
        ):
            self._nat.add(SERVICES, f"{to_it} {where} -j {self._outside}")

    def _load_balancer(self) -> None:
        """Write FW, for each address anew as kube-proxy does, and what leads there."""
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
        masked = f"-s {frame.loopback(self._proxy)} {port}" if self._local_only else port
        nat.add(NODE_PORTS, f"{masked} -j {MARK_MASQUERADE}")
        nat.add(NODE_PORTS, f"{port} -j {self._outside}")

    def _local_chain(self) -> None:
        """Write XLB: pods and the node go to any endpoint, the rest to those of this node."""
        nat, chain, everywhere = self._nat, self._chain("XLB"), self._chain("SVC")
        name = self._service.name
        if self._proxy.cluster_cidr is not None:
            says = comment("Redirect pods trying to reach external loadbalancer VIP to clusterIP")
            nat.add(chain, f"-s {self._proxy.cluster_cidr} {says} -j {everywhere}")
        from_here = "-m addrtype --src-type LOCAL"
        says = comment(f"masquerade LOCAL traffic for {name} LB IP")
        nat.add(chain, f"{says} {from_here} -j {MARK_MASQUERADE}")
        says = comment(f"route LOCAL traffic for {name} LB IP to service chain")
        nat.add(chain, f"{says} {from_here} -j {everywhere}")
        here = [t.chain for t in self._targets if t.endpoint.node == self._proxy.node]
        if not here:
            nat.add(chain, f"{comment(f'{name} has no local endpoints')} -j {MARK_DROP}")
            return
        write_affinity(nat, self._service, chain, [(self._says(), target) for target in here])
        draws = [
            (comment(f"Balancing rule {number} for {name}"), target)
            for number, target in enumerate(here)
        ]
        write_draws(nat, chain, draws)
