"""Predictions compared with an evaluation of all rules of a few Services at a few nodes.

Theory of operation: how a prediction can be wrong is not known beforehand, so Services and nodes
are drawn at random; the seed is printed, and another run may use another one. Rules of all Services
drawn, together, are generated for each node and read as a dump of it would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.predict.every_node import EveryNode
from analyzer.kubeproxy.predict.walked import walked
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import ServicePort, Source
from analyzer.model.cluster import Cluster
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Number of nodes, and of Services at each of them.
_NODES: Final = 3
_SERVICES: Final = 10
#: Number of other nodes that an evaluation knows besides those of the endpoints.
_OTHERS: Final = 3


@value(kw_only=True)
class Sampled:
    """The comparison of predictions with evaluated rules.

    Attributes:
        nodes: their names.
        services: how many ServicePorts were evaluated, at all of these nodes together.
        differing: those with another result than predicted, which no result may rest on.
    """

    nodes: tuple[str, ...]
    services: int
    seed: int
    differing: tuple[str, ...] = ()


def sampled(
    found: Sequence[EveryNode],
    services: Sequence[ServicePortSpec],
    proxies: Mapping[str, ProxyConfig],
    mode: ProxyMode,
    cluster: Cluster,
    seed: int,
) -> Sampled:
    """Evaluate a few of `services` at a few nodes; `found` is what was predicted of each."""
    from random import Random

    draw = Random(seed)  # noqa: S311  # no secret
    names = draw.sample(sorted(proxies), min(_NODES, len(proxies)))
    walked_at = 0
    differing: dict[str, None] = {}
    for name in sorted(names):
        places = draw.sample(range(len(services)), min(_SERVICES, len(services)))
        given = [services[at] for at in places]
        view = walked(given, proxies[name], mode, _smaller(cluster, name, given))
        seen = {(s.name.text, s.protocol): s for s in view.services}
        for at, spec in zip(places, given, strict=True):
            mine = found[at].at_node(name)
            walked_at += 1
            if mine is None or not is_same(mine, seen.get((spec.name, spec.protocol))):
                differing[spec.name] = None
    return Sampled(
        nodes=tuple(sorted(names)), services=walked_at, seed=seed, differing=tuple(differing)
    )


def is_same(predicted: ServicePort, read: ServicePort | None) -> bool:
    """Return whether an evaluation gives what was predicted, except for hairpins and masquerade."""
    if read is None:
        return not predicted.routes and not predicted.frontends
    return (
        frozenset(_routes(predicted)) == frozenset(_routes(read))
        and frozenset(predicted.refusals) == frozenset(read.refusals)
        and frozenset(predicted.frontends) == frozenset(read.frontends)
        and not read.unfilled
    )


def _routes(service: ServicePort) -> Iterator[object]:
    for route in service.routes:
        if route.source is not Source.HAIRPIN:
            endpoints, shares = route.draws()
            # The order in which an evaluation finds endpoints of equal shares does not matter.
            drawn = frozenset(zip(endpoints, shares, strict=True))
            # Which networks an evaluation distinguishes also depends on the rest of a dump.
            yield route.frontend, drawn, route.unresolved
            if route.network is None:
                yield route.frontend, route.source, drawn, route.unresolved


def _smaller(cluster: Cluster, name: str, services: Iterable[ServicePortSpec]) -> Cluster:
    """Return a cluster without most of the nodes that rules do not distinguish.

    An evaluation uses the network of each. Source ranges may distinguish any of them.
    """
    given = list(services)
    if any(each.load_balancer_source_ranges for each in given):
        return cluster
    kept = {name, *(e.node for each in given for e in each.endpoints if e.node)}
    others = [each for each in cluster.nodes if each not in kept]
    kept.update(others[:_OTHERS])
    return replace(cluster, nodes={k: node for k, node in cluster.nodes.items() if k in kept})
