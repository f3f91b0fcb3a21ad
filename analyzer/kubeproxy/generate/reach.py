"""Which endpoints a kube-proxy since 1.24 sends flows to, by traffic policy.

Source: kubernetes, pkg/proxy/topology.go, ``CategorizeEndpoints``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TypeAlias

from analyzer.kubeproxy.generate.config import ProxyConfig, RulesLayout
from analyzer.kubeproxy.generate.specs import EndpointSpec, ServicePortSpec
from analyzer.kubeproxy.names import ENDPOINT_PREFIX, chain_hash
from analyzer.model.value import value

#: Returns the name of the chain of a ServicePort's endpoint, given as text.
ChainName: TypeAlias = Callable[[ServicePortSpec, str], str]


@value
class EndpointChain:
    """An endpoint with the chain that leads to it.

    Attributes:
        text: address and port, after which kube-proxy names the chain.
        chain: in nftables mode without the prefix, in which chains and affinity sets differ.
    """

    endpoint: EndpointSpec
    text: str
    chain: str


@value
class Reach:
    """The endpoints of a ServicePort that one node uses.

    Attributes:
        cluster: under the policy Cluster.
        local: under the policy Local.
        every: of both, each once.
        any_at_all: whether some node of the cluster has a usable endpoint.
        drops_inside: whether internal flows are dropped, since no endpoint is on this node.
        drops_outside: whether external flows are.
    """

    cluster: tuple[EndpointChain, ...]
    local: tuple[EndpointChain, ...]
    every: tuple[EndpointChain, ...]
    any_at_all: bool
    drops_inside: bool = False
    drops_outside: bool = False


def iptables_chain(service: ServicePortSpec, text: str) -> str:
    """Return the name of an endpoint's chain in iptables mode."""
    return f"{ENDPOINT_PREFIX}{chain_hash(service.name, service.protocol, text)}"


def targets(
    service: ServicePortSpec,
    endpoints: Iterable[EndpointSpec],
    layout: RulesLayout,
    chain: ChainName = iptables_chain,
) -> tuple[EndpointChain, ...]:
    """Return endpoints of a Service in the order of kube-proxy's rules: that of their text.

    Up to 1.18 it is that of the Endpoints object. 1.36 normalizes addresses, as the captures of
    dual-stack Services show.
    """
    named = [(e.destination if layout is RulesLayout.V1_36 else e.as_written, e) for e in endpoints]
    if layout.reads_slices:
        named.sort(key=itemgetter(0))
    return tuple(EndpointChain(endpoint, text, chain(service, text)) for text, endpoint in named)


def reach(service: ServicePortSpec, proxy: ProxyConfig, chain: ChainName = iptables_chain) -> Reach:
    """Return the endpoints that `proxy` uses for `service`, with chains that `chain` names."""
    known = targets(service, service.endpoints, proxy.layout, chain)
    cluster: tuple[EndpointChain, ...] = ()
    if service.uses_cluster:
        fitting = _fitting(service, proxy)
        cluster = _usable(known, fitting) or tuple(t for t in known if t.endpoint.may_finish)
    if not service.uses_local:
        return Reach(cluster, (), cluster, bool(cluster))
    here = tuple(t for t in known if t.endpoint.node == proxy.node)
    local = _usable(here) or tuple(t for t in here if t.endpoint.may_finish)
    chains = {t.chain for t in (*cluster, *local)}
    every = tuple(t for t in known if t.chain in chains)
    return Reach(
        cluster,
        local,
        every,
        any(e.ready or e.may_finish for e in service.endpoints),
        drops_inside=service.internal_local and not local,
        drops_outside=service.external_local and service.is_external and not local,
    )


def _usable(
    known: Sequence[EndpointChain], fitting: Callable[[EndpointSpec], bool] | None = None
) -> tuple[EndpointChain, ...]:
    ready = tuple(t for t in known if t.endpoint.ready)
    return ready if fitting is None else tuple(t for t in ready if fitting(t.endpoint))


def _fitting(service: ServicePortSpec, proxy: ProxyConfig) -> Callable[[EndpointSpec], bool] | None:
    """Return the filter of topology hints: all ready endpoints have one, and one is for here."""
    ready = [e for e in service.endpoints if e.ready]
    if proxy.layout is RulesLayout.V1_36 and _all_and_here([e.nodes for e in ready], proxy.node):
        return lambda e: proxy.node in e.nodes
    asked = asks_for_zones(service, proxy.layout)
    if asked and _all_and_here([e.zones for e in ready], proxy.zone):
        return lambda e: proxy.zone in e.zones
    return None


def asks_for_zones(service: ServicePortSpec, layout: RulesLayout) -> bool:
    """Return whether hints for zones are used.

    Source: pkg/proxy/topology.go, ``canUseTopology``: up to 1.23 the feature gate is off, up to
    1.26 the annotation must be Auto, up to 1.30 anything but disabled; since 1.31 it is not needed
    (ServiceTrafficDistribution).
    """
    match layout:
        case RulesLayout.V1_24 | RulesLayout.V1_25 | RulesLayout.V1_26:
            return service.topology_mode in ("auto", "Auto")
        case RulesLayout.V1_27 | RulesLayout.V1_28 | RulesLayout.V1_30:
            return service.topology_mode not in (None, "", "disabled", "Disabled")
        case RulesLayout.V1_36:
            return True
        case _:
            return False


def _all_and_here(hints: Sequence[tuple[str, ...]], here: str | None) -> bool:
    return all(hints) and any(here in each for each in hints)
