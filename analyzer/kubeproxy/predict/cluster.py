"""A whole cluster, predicted: ServicePorts of both IP versions at every node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analyzer.kubeproxy.generate.objects import service_ports
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.predict.every_node import EveryNode, every_node
from analyzer.kubeproxy.predict.sampled import Sampled, sampled
from analyzer.kubeproxy.predict.settings import ClusterSettings, names_of_nodes, proxies
from analyzer.kubeproxy.predict.walked import rules
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.model.cluster import Cluster
from analyzer.model.value import replace, value
from analyzer.parsers.api_objects import Object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_FAMILIES: Final = (4, 6)


@value(kw_only=True)
class Prediction:
    """What kube-proxies of a cluster are predicted to write, and what that rests on.

    Attributes:
        nodes: all of the cluster.
        assumed: in words, what was not given.
        walked: the comparison with evaluated rules, by IP version.
        malformed: Services that are left out, with the reason.
        dumps: the nodes whose dumps were given instead of a prediction.
    """

    settings: ClusterSettings
    nodes: tuple[str, ...]
    assumed: tuple[str, ...]
    walked: tuple[Sampled, ...] = ()
    malformed: tuple[str, ...] = ()
    dumps: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it says of each node what its rules are: always, as far as objects say so."""
        return True

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of Services without a result, or without a complete one."""
        named = [each.partition(":")[0] for each in self.malformed]
        return tuple(dict.fromkeys([*named, *(n for w in self.walked for n in w.differing)]))


def specifications(
    objects: Sequence[Object],
    settings: ClusterSettings,
    family: int,
    malformed: list[str] | None = None,
) -> list[ServicePortSpec]:
    """Return the ServicePorts of one family, as kube-proxies of that version use them."""
    found = service_ports(objects, settings.version.layout, family, malformed)
    if settings.version.has_node_hints:
        return list(found)
    return [
        replace(each, endpoints=tuple(replace(e, nodes=()) for e in each.endpoints))
        if any(e.nodes for e in each.endpoints)
        else each
        for each in found
    ]


def predict(
    objects: Sequence[Object],
    cluster: Cluster,
    settings: ClusterSettings,
    seed: int,
    advance: Callable[[int, int | None], None] | None = None,
) -> tuple[tuple[EveryNode, ...], Prediction]:
    """Return the ServicePorts at every node of the objects, and what was checked of them."""
    found: list[EveryNode] = []
    malformed: list[str] = []
    walked = []
    for family in _FAMILIES:
        services = specifications(objects, settings, family, malformed)
        if services:
            known = proxies(objects, settings, family)
            own = every_node(services, known, settings.mode, cluster, advance)
            walked.append(sampled(own, services, known, settings.mode, cluster, seed))
            found += own
    prediction = Prediction(
        settings=settings,
        nodes=tuple(names_of_nodes(objects)),
        assumed=(),
        walked=tuple(walked),
        malformed=tuple(dict.fromkeys(malformed)),
    )
    return tuple(found), prediction


def rules_of_node(
    objects: Sequence[Object], settings: ClusterSettings, node: str, malformed: list[str]
) -> list[str]:
    """Return the dumps of one node: for iptables one for each IP version that has Services."""
    of_family = {
        family: specifications(objects, settings, family, malformed) for family in _FAMILIES
    }
    given = [family for family, services in of_family.items() if services] or [_FAMILIES[0]]
    texts = [
        rules(of_family[family], proxies(objects, settings, family)[node], settings.mode)
        for family in given
    ]
    if settings.mode is ProxyMode.NFTABLES and len(texts) > 1:
        from analyzer.kubeproxy.generate.render import render_nft

        both = [each for family in given for each in of_family[family]]
        return [render_nft(both, *[proxies(objects, settings, f)[node] for f in given])]
    return texts
