"""What is predicted from objects, beside what rules of a node say when they are walked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analyzer.kubeproxy.generate import RulesLayout, service_ports
from analyzer.kubeproxy.predict.every_node import EveryNode, every_node
from analyzer.kubeproxy.predict.settings import ClusterSettings, proxies
from analyzer.kubeproxy.predict.versions import Version
from analyzer.kubeproxy.predict.walked import walked
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import ServicePort, Source, each_network
from analyzer.model.addresses import Network, network_from_text
from analyzer.model.cluster import Cluster
from tests.support.parsed_objects import parse_objects


def settings_of(layout: RulesLayout, flags: Sequence[str], mode: ProxyMode) -> ClusterSettings:
    """Return what the flags of a kube-proxy say of all."""
    given = dict(flag.lstrip("-").partition("=")[::2] for flag in flags)
    texts = [text for text in given.get("cluster-cidr", "").split(",") if text]
    networks: list[Network] = [n for n in map(network_from_text, texts) if n is not None]
    return ClusterSettings(
        version=Version(minor=layout.minor, layout=layout),
        mode=mode,
        cluster_cidrs=tuple(networks),
        masquerade_all="masquerade-all" in given,
    )


def cluster_of(items: Sequence[Any]) -> Cluster:
    return parse_objects([("objects.json", json.dumps({"items": list(items)}).encode())])


def predicted(
    items: Sequence[Any], settings: ClusterSettings, family: int
) -> tuple[EveryNode, ...]:
    services = service_ports(items, settings.version.layout, family)
    known = proxies(items, settings, family)
    return every_node(services, known, settings.mode, cluster_of(items))


def read(
    items: Sequence[Any], settings: ClusterSettings, family: int, *nodes: str
) -> Mapping[str, Any]:
    """Return the ServicePorts of each node, or of these, as rules generated in whole show them."""
    services = list(service_ports(items, settings.version.layout, family))
    cluster = cluster_of(items)
    return {
        name: walked(services, proxy, settings.mode, cluster).services
        for name, proxy in proxies(items, settings, family).items()
        if not nodes or name in nodes
    }


def differences(
    found: Sequence[EveryNode],
    node: str,
    services: Sequence[ServicePort],
    *,
    knows_pods: bool = True,
) -> Iterator[str]:
    """Give what is not the same at a node; `knows_pods`: `uses_networks` of its cluster."""
    mine = {}
    for each in found:
        at = [of for of in each.at if node in of.nodes]
        assert len(at) == 1, each
        mine[at[0].service.name.text, at[0].service.protocol] = at[0].service
    theirs = {(each.name.text, each.protocol): each for each in services}
    for name in mine.keys() ^ theirs.keys():
        yield f"{node}: {name} is only {'predicted' if name in mine else 'read'}"
    for name in mine.keys() & theirs.keys():
        one, other = mine[name], theirs[name]
        for what in ("affinity", "unfilled", "protocol"):
            if getattr(one, what) != getattr(other, what):
                yield f"{node}: {name}: {what}"
        for what in ("frontends", "refusals"):
            if set(getattr(one, what)) != set(getattr(other, what)):
                yield f"{node}: {name}: {what} {getattr(one, what)} {getattr(other, what)}"
        routes, walks = _routes(one), _routes(other)
        for key in routes.keys() ^ walks.keys():
            told, others = ("predicted", walks) if key in routes else ("read", routes)
            # Which networks a walk tells apart the rest of a dump decides too.
            alike = [each for k, (each, _) in others.items() if k[0] == key[0]]
            if key[3] is None or (routes | walks)[key][0] not in alike:
                yield f"{node}: {name}: a route is only {told}: {key}"
        for key in routes.keys() & walks.keys():
            (ours, masked), (drawn, marks) = routes[key], walks[key]
            is_open = not knows_pods and key[2] in (Source.POD, Source.POD_ELSEWHERE)
            if ours != drawn:
                yield f"{node}: {name}: {key}: {ours} {drawn}"
            if not all(_agrees(m, marks.get(end), is_open=is_open) for end, m in masked.items()):
                yield f"{node}: {name}: {key}: masquerade {masked} {marks}"


def _routes(service: ServicePort) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for route in each_network(service.routes):
        if route.source is not Source.HAIRPIN:
            endpoints, shares = route.draws()
            key = str(route.frontend), route.frontend.kind, route.source, route.network
            # In which order a walk finds endpoints of equal shares tells nothing.
            assert not route.losses()
            astray = {(each.kind, each.how): number for each, number in route.astray}
            drawn = dict(zip(endpoints, shares, strict=True)), route.unresolved, astray
            assert key not in found, key
            found[key] = drawn, dict(zip(endpoints, route.masquerades(), strict=True))
    return found


def _agrees(predicted: bool | None, read: bool | None, *, is_open: bool) -> bool:
    """Return whether what is predicted of masquerade may be said beside what was read.

    Where pods have addresses that are not in podCIDRs (`is_open`), a walk does not know which
    sources are pods: they may be the endpoint itself, whose hairpin flows are not predicted here.
    """
    return predicted in (None, read) or (is_open and read is None)


def uses_networks(cluster: Cluster) -> bool:
    """Return whether all endpoints have addresses of their nodes, or in a podCIDR of theirs."""
    nodes = cluster.nodes.values()
    hosts = {address for node in nodes for address in node.addresses}
    for address, placement in cluster.placements.items():
        theirs = [each for each in nodes if placement.node in (None, each.name)]
        networks = [network for node in theirs for network in node.pod_networks]
        if address not in hosts and not any(address in network for network in networks):
            return False
    return True
