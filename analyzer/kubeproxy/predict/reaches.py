"""To which endpoints each node sends a ServicePort's flows, computed once for all nodes.

The same as `generate.reach` for one node; a property compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analyzer.kubeproxy.generate.config import ProxyConfig, RulesLayout
from analyzer.kubeproxy.generate.reach import asks_for_zones
from analyzer.kubeproxy.generate.specs import EndpointSpec, ServicePortSpec
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Endpoints: TypeAlias = tuple[EndpointSpec, ...]


@value
class UsedEndpoints:
    """The endpoints that one node uses, in the order of its rules.

    Attributes:
        cluster: under the policy Cluster; the same tuple object for all nodes that use the same.
        local: under the policy Local, those of the node.
    """

    cluster: Endpoints
    local: Endpoints


_NONE: Endpoints = ()


class Reaches:
    """The endpoints of one ServicePort, by node."""

    def __init__(self, service: ServicePortSpec, layout: RulesLayout) -> None:
        known = service.endpoints
        if layout.reads_slices:
            known = tuple(sorted(known, key=_spelling(layout)))
        ready = tuple(e for e in known if e.ready)
        has_policies = layout.minor >= RulesLayout.V1_24.minor
        falls_back = layout.minor >= RulesLayout.V1_26.minor
        finishing = tuple(e for e in known if e.may_finish) if falls_back else _NONE
        #: In 1.22 and 1.23: an internal Local policy keeps all flows on the node.
        self._keeps_here = _keeps_here(service, layout)
        #: Whether some node of the cluster has a usable endpoint.
        self.any_at_all = bool(ready or finishing)
        #: Whether rules have chains of endpoints that are not ready, which shapes do not cover.
        self.is_odd = layout is RulesLayout.V1_22 and len(ready) < len(known)
        self._uses_cluster = not has_policies or service.uses_cluster
        by_nodes = layout is RulesLayout.V1_36 and bool(ready) and all(e.nodes for e in ready)
        by_zones = asks_for_zones(service, layout) and bool(ready) and all(e.zones for e in ready)
        self._by_node: dict[str, Endpoints] = (
            _by_hint(ready, [e.nodes for e in ready]) if by_nodes else {}
        )
        self._by_zone: dict[str, Endpoints] = (
            _by_hint(ready, [e.zones for e in ready]) if by_zones else {}
        )
        self._cluster = (ready or finishing) if self._uses_cluster else _NONE
        uses_local = service.uses_local if has_policies else service.external_local
        self._local: dict[str | None, Endpoints] = {}
        if (uses_local and (has_policies or service.is_external)) or self._keeps_here:
            for each in (*(known if self.is_odd else ready), *finishing):
                mine = self._local.get(each.node, _NONE)
                # A terminating endpoint is a fallback only.
                if each.ready or self.is_odd or not mine or not mine[0].ready:
                    self._local[each.node] = (*mine, each)

    @property
    def is_same_everywhere(self) -> bool:
        """Whether all nodes use the same endpoints."""
        return not (self._local or self._by_node or self._by_zone)

    @property
    def nodes(self) -> Sequence[str]:
        """The nodes that may have lists of their own, as they have endpoints or hints."""
        return [name for name in dict.fromkeys([*self._local, *self._by_node]) if name is not None]

    @property
    def asks_zones(self) -> bool:
        """Whether nodes in different zones may differ."""
        return bool(self._by_zone)

    def at(self, proxy: ProxyConfig) -> UsedEndpoints:
        """Return the endpoints that a node uses."""
        cluster = self._cluster
        if self._keeps_here:
            cluster = self._local.get(proxy.node, _NONE)
        elif self._uses_cluster:
            hinted = self._by_node.get(proxy.node) or (
                self._by_zone.get(proxy.zone) if proxy.zone is not None else None
            )
            cluster = hinted or cluster
        return UsedEndpoints(cluster, self._local.get(proxy.node, _NONE))


def _keeps_here(service: ServicePortSpec, layout: RulesLayout) -> bool:
    era = layout in (RulesLayout.V1_22, RulesLayout.V1_23)
    return era and service.internal_local and not service.external_local


def _spelling(layout: RulesLayout) -> Callable[[EndpointSpec], str]:
    """Return a function that spells an endpoint as it is hashed into the names of chains."""
    if layout is RulesLayout.V1_36:
        return lambda endpoint: endpoint.destination
    return lambda endpoint: endpoint.as_written


def _by_hint(
    endpoints: Sequence[EndpointSpec], hints: Sequence[tuple[str, ...]]
) -> dict[str, tuple[EndpointSpec, ...]]:
    found: dict[str, list[EndpointSpec]] = {}
    for endpoint, places in zip(endpoints, hints, strict=True):
        for place in dict.fromkeys(places):
            found.setdefault(place, []).append(endpoint)
    return {place: tuple(each) for place, each in found.items()}
