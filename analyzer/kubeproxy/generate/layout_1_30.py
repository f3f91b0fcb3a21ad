"""The layout of 1.27 to 1.30, and of 1.36 except for its counters.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``iptablesJumpChains``, ``syncProxyRules``;
the captures of 1.30.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analyzer.kubeproxy.generate import frame
from analyzer.kubeproxy.generate.config import IPV4, ProxyConfig
from analyzer.kubeproxy.generate.policy_chains import FIREWALL, PolicyChains
from analyzer.kubeproxy.generate.rows import LARGE, TableDraft, comment
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.names import EXTERNAL_SERVICES, NODE_PORTS, SERVICES

_NODE_FIREWALL: Final = "KUBE-FIREWALL"


def tables(
    services: Sequence[ServicePortSpec],
    proxy: ProxyConfig,
    *,
    invalid: str = "",
    localhost: str = "",
    guards_loopback: bool = True,
    marks_drops: bool = False,
) -> tuple[TableDraft, ...]:
    """Return filter, mangle and nat.

    `invalid` and `localhost` are matches that count invalid packets, and those to NodePorts of
    localhost; `guards_loopback`: kube-proxy itself keeps flows from elsewhere off 127.0.0.0/8, as
    the kubelet did before, and says in a comment at the end of FW where the rest is dropped.
    `marks_drops`: it only marks packets that are to be dropped, as 1.24 does.
    """
    filter_table = _filter_table(
        proxy, invalid, guards_loopback=guards_loopback, has_firewall=not marks_drops
    )
    nat = frame.nat_table(proxy.layout.minor)
    # Endpoints that no rule leads to count as well.
    large = sum(len(service.endpoints) for service in services) > LARGE
    for service in services:
        both = (filter_table, nat)
        PolicyChains(
            service,
            proxy,
            both,
            large=large,
            localhost=localhost,
            tells_end=guards_loopback,
            marks_drops=marks_drops,
        ).write()
    # NodePorts of ::1 never work, those of 127.0.0.1 only with a sysctl.
    excepts = guards_loopback and (proxy.family != IPV4 or not proxy.localhost_node_ports)
    frame.write_node_ports_last(nat, f"! -d {frame.loopback(proxy)} " if excepts else "")
    return filter_table, frame.mangle_table(), nat


def _filter_table(
    proxy: ProxyConfig, invalid: str, *, guards_loopback: bool, has_firewall: bool
) -> TableDraft:
    first = (f"-j {_NODE_FIREWALL}",) if guards_loopback else ()
    own = (_NODE_FIREWALL,) if guards_loopback else ()
    if has_firewall:
        own = (*own, FIREWALL)
    table = frame.filter_table((EXTERNAL_SERVICES, NODE_PORTS, *own))
    firewall = f"{frame.NEW} {comment('kubernetes load balancer firewall')} -j {FIREWALL}"
    portals = f"{frame.NEW} {frame.PORTALS} -j {SERVICES}"
    outside = f"{frame.NEW} {frame.OUTSIDE_PORTALS} -j {EXTERNAL_SERVICES}"
    health = f"{comment('kubernetes health check service ports')} -j {NODE_PORTS}"
    for chain, rows in (
        ("INPUT", (*first, firewall, health, outside)),
        ("FORWARD", (firewall, f"{frame.FORWARDING} -j {frame.FORWARD}", portals, outside)),
        ("OUTPUT", (*first, firewall, portals)),
    ):
        for row in rows:
            if has_firewall or row is not firewall:
                table.add(chain, row)
    if guards_loopback and proxy.family == IPV4 and proxy.localhost_node_ports:
        says = comment("block incoming localnet connections")
        others = f"! -s 127.0.0.0/8 -d 127.0.0.0/8 {says}"
        state = "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT"
        table.add(_NODE_FIREWALL, f"{others} {state} -j DROP")
    frame.write_forward(table, invalid, ("kubernetes forwarding conntrack rule",))
    return table
