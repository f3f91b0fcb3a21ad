"""Reasons why a route is not measured; reports name each such route with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.rows.texts import rows_of
from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, ServicePort, Source
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.endings import EndKind
from analyzer.model.iptables.rules import Ruleset
from analyzer.semantics.base_chains import Rules
from netns_lab.layout import PROTOCOLS

#: Most addresses of a network that are looked at one by one.
_FEW: Final = 64
#: Why an endpoint sends no flows to its own Services.
DEAD: Final = "dead endpoints send no flows"
OWN: Final = "an endpoint that has the node's own address sends as the node does"
DIRECT: Final = "pods of its node answer an endpoint that has another node's address directly"
BEHIND: Final = "what endpoints of a node with rules of its own send traverses these first"
#: Why a route is not measured whose turn did not come.
INTERRUPTED: Final = "the run was interrupted before"
#: The same of flows of a capture.
NOT_SENT: Final = f"{INTERRUPTED} they were sent"


def why_not(
    service: ServicePort,
    route: Route,
    *,
    ports_of: str | None = None,
) -> str | None:
    """Return why the flows of a route cannot be replayed; None if they can.

    `ports_of`: the node at whose address the rules accept NodePorts, if that is not the node of
    the dump.
    """
    if service.protocol not in PROTOCOLS:
        return f"the lab builds no packets of {service.protocol}"
    if route.frontend.port is None:
        return f"the dump has lost the port of {route.frontend}"
    if ports_of is not None and route.frontend.kind is FrontendKind.NODE_PORT:
        return (
            f"the rules accept NodePorts only at the address of {ports_of}; pass --node {ports_of}"
        )
    if route.source is Source.HAIRPIN and not route.shares and not route.unresolved:
        return (
            "the rules return no flow from there to its endpoint; those of pods show how they end"
        )
    if not route.shares and all(end.kind is EndKind.UNKNOWN for end, _ in route.astray):
        return "its flows from there are sent to no endpoint, and how they end is not predicted"
    return None


def why_no_client(route: Route, used: Callable[[], Collection[Address]]) -> str | None:
    """Return why no client of the lab can send the flows of a route; None if one can.

    `used` returns the addresses that no client may have: in a large dump, many to gather.
    """
    network = route.network
    if network is None or network.num_addresses > _FEW or any(a not in used() for a in network):
        return None
    return f"the cluster itself uses every address in {network}, so that no client can have one"


def why_elsewhere(route: Route, node: str | None, cluster: Cluster) -> str | None:
    """Return why a route's flows cannot come from a pod of the dump's node; None if they can.

    Without a named node, it is not known which pods are its own. Those in another node's
    network would get no answers from there: that node takes their addresses for its own pods'.
    """
    network = route.network
    if route.source is not Source.POD or network is None or node in cluster.nodes:
        return None
    name = cluster.pod_networks.owner(network.network_address)
    if name is None:
        return None
    return f"pods in {network} are {name}'s, which may not be this dump's node; pass --node"


def passes_by(route: Route, rulesets: Iterable[Rules]) -> bool:
    """Return whether flows may bypass the rules that refuse a frontend without endpoints.

    Those of external addresses are evaluated in INPUT and, in later versions, in FORWARD; what the
    node itself sends passes neither. In 1.14 those of load balancers' addresses are among the rules
    for ClusterIPs, which all flows traverse. Measured: 1.14.0-iptables-legacy/features+kubelet and
    1.36.2-iptables-legacy/features, feat/no-endpoints-lb.
    """
    outer = (FrontendKind.EXTERNAL_IP, FrontendKind.LOAD_BALANCER_IP)
    if route.frontend.kind not in outer:
        return False
    rulesets = tuple(rulesets)
    if any(_refuses_everywhere(each, route.frontend) for each in rulesets):
        return False
    return route.source is Source.NODE or any(map(_forwards_unasked, rulesets))


def _refuses_everywhere(ruleset: Rules, to: Frontend) -> bool:
    """Return whether rules that flows from everywhere traverse refuse those to a frontend."""
    table = ruleset.tables.get("filter") if isinstance(ruleset, Ruleset) else None
    if table is None or to.address is None:
        return False
    of = rf"-d {re.escape(str(to.address))}/{to.address.max_prefixlen} .*--dport {to.port} "
    asked = rf"(?m)^(?:\[\d+:\d+\] )?-A {names.SERVICES} {of}.*-j (?:REJECT|DROP)"
    return re.search(asked, rows_of(table)) is not None


def _forwards_unasked(ruleset: Rules) -> bool:
    """Return whether FORWARD has no jump to the rules that refuse external addresses."""
    table = ruleset.tables.get("filter") if isinstance(ruleset, Ruleset) else None
    if table is None or names.EXTERNAL_SERVICES not in table.chains:
        return False
    asked = rf"(?m)^(?:\[\d+:\d+\] )?-A FORWARD .*-j {names.EXTERNAL_SERVICES}$"
    return re.search(asked, rows_of(table)) is None
