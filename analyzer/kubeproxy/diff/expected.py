"""Changes to Services that nftables mode makes by design, reported once instead of for each.

Both were found in captures of the same objects in both modes.

A flow of an endpoint to its own Service that returns to it must get another source address.
iptables mode has a rule for that in the chain of every endpoint, and so has nftables mode of 1.30.
That of 1.36 has one set for all, with the endpoints of its own node. To a ClusterIP, flows of other
endpoints do not arrive here: they begin at their own node. To a NodePort, or another external
address, of this node they may; there they are masqueraded like all flows from outside, except under
a local policy, which exempts pods: such a flow then returns to its endpoint with its own address.

If a Service has no endpoints at all, iptables mode rejects flows to its external addresses in INPUT
and FORWARD, and so not those of the node itself; nftables mode also does so in OUTPUT.

Source: kubernetes, pkg/proxy/nftables/proxier.go, ``hairpinConnectionsSet``,
``filterOutputChain``; pkg/proxy/iptables/proxier.go, ``iptablesJumpChains``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analyzer.kubeproxy.diff.beside import NonServiceFlows, Topic
from analyzer.kubeproxy.diff.changes import (
    KEPT,
    MASQUERADED,
    NO_SERVICE,
    Change,
    MasqueradeChange,
    Otherwise,
    RouteIdentity,
)
from analyzer.kubeproxy.diff.side import DumpSide
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import Endpoint, FrontendKind, Source
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value
from analyzer.semantics.tree import AnyRule

_ALL: Final = Bounds(ALWAYS, ALWAYS)
_MASKS: Final[dict[bool, Otherwise]] = {
    True: ((MASQUERADED, _ALL),),
    False: ((KEPT, _ALL),),
}
_PASSED: Final[Otherwise] = ((NO_SERVICE, _ALL),)
_REFUSED: Final[tuple[Otherwise, ...]] = ((("reject", _ALL),), (("drop", _ALL),))
_EXTERNAL: Final = frozenset({FrontendKind.EXTERNAL_IP, FrontendKind.LOAD_BALANCER_IP})


@value(kw_only=True)
class _Key:
    """Differences with equal keys are reported together."""

    topic: Topic
    source: Source
    a: Otherwise
    b: Otherwise
    is_certain: bool


class Expected:
    """Takes such differences out of the changes of Services, and reports them together."""

    def __init__(self, a: DumpSide, b: DumpSide) -> None:
        self._a, self._b = a, b
        self._places: dict[_Key, dict[Endpoint, None]] = {}
        self._rules: dict[_Key, tuple[tuple[AnyRule, ...], tuple[AnyRule, ...]]] = {}
        self._modes = a.view.mode, b.view.mode

    def without(self, way: RouteIdentity, protocol: str, change: Change) -> Change:
        """Return a change without what differs in nftables mode by design."""
        if ProxyMode.NFTABLES not in self._modes:
            return change
        if way.source is Source.HAIRPIN and change.masquerade:
            kept = tuple([each for each in change.masquerade if not self._takes_hairpin(way, each)])
            return replace(change, masquerade=kept)
        from_node = way.source is Source.NODE and not change.endpoints
        if from_node and self._takes_refusal(way, protocol, change.otherwise):
            return replace(change, otherwise=None)
        return change

    def _takes_hairpin(self, way: RouteIdentity, change: MasqueradeChange) -> bool:
        keeping = self._a if not change.a else self._b
        if keeping.view.mode is not ProxyMode.NFTABLES:
            return False
        here = keeping.has(change.endpoint.address)
        if here is Ternary.TRUE:
            return False
        inside = way.frontend.kind is FrontendKind.CLUSTER_IP
        key = _Key(
            topic=Topic.HAIRPIN_ELSEWHERE if inside else Topic.HAIRPIN_THROUGH_NODE,
            source=Source.HAIRPIN,
            a=_MASKS[change.a],
            b=_MASKS[change.b],
            is_certain=here is Ternary.FALSE,
        )
        self._places.setdefault(key, {})[change.endpoint] = None
        return True

    def _takes_refusal(
        self, way: RouteIdentity, protocol: str, ends: tuple[Otherwise, Otherwise] | None
    ) -> bool:
        address, port = way.frontend.address, way.frontend.port
        if address is None or way.frontend.kind not in _EXTERNAL or ends is None:
            return False
        nft = self._modes.index(ProxyMode.NFTABLES)
        refuses = ends[nft] in _REFUSED and ends[1 - nft] == _PASSED
        if not refuses or self._modes[0] == self._modes[1]:
            return False
        key = _Key(
            topic=Topic.REFUSED_FROM_NODE,
            source=Source.NODE,
            a=ends[0],
            b=ends[1],
            is_certain=True,
        )
        if key not in self._rules:
            rules = [side.fate(side.packet(protocol, way)).rules for side in (self._a, self._b)]
            self._rules[key] = rules[0], rules[1]
        self._places.setdefault(key, {})[Endpoint(address, port)] = None
        return True

    def told(self, version: int) -> Iterator[NonServiceFlows]:
        """Yield what was taken out."""
        for key, places in self._places.items():
            rules_a, rules_b = self._rules.get(key, ((), ()))
            yield NonServiceFlows(
                topic=key.topic,
                version=version,
                sources=(key.source,),
                a=key.a,
                b=key.b,
                places=tuple(places),
                rules_a=rules_a,
                rules_b=rules_b,
                is_certain=key.is_certain,
                is_intended=key.is_certain,
            )
