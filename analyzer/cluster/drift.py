"""Nodes whose rules differ from those of their cluster.

Theory of operation
===================

The reference for a node is the API objects, if there are any: `kubeproxy.predict` gives the rules
that kube-proxy writes at every node. For what objects do not determine (flags of kube-proxy, other
programs' rules, versions) the reference is what more than half of the nodes have. Without objects
that is the reference for everything; a ServicePort without such a majority, for example one with a
Local policy, is then not judged, and is named.

A content is compared with its reference once, however many nodes have both. If a node's rules do
not lead to Services at all, or are of another mode, each of its Services differs: that is one
finding, and its Services are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from analyzer.cluster.drift_kinds import DriftFinding, DriftKind
from analyzer.cluster.drift_nodes import drift_of_nodes
from analyzer.cluster.drift_services import ObjectFacts, behind, differences
from analyzer.cluster.reference import service_port_key
from analyzer.cluster.store import NodeRow
from analyzer.kubeproxy.predict.every_node import EveryNode
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.cluster.reference import ServicePortKey
    from analyzer.model.addresses import Address

#: Of nodes where these are found Services are not looked at: each would differ.
_CAUSES: Final = frozenset({DriftKind.NO_SERVICES, DriftKind.OTHER_MODE, DriftKind.MISSING_JUMP})
#: And for nodes with these, what happens to flows after DNAT.
_BEHIND: Final = frozenset({DriftKind.OTHER_MARK, DriftKind.OTHER_POLICY})


@value(kw_only=True)
class Drifted:
    """The differences found.

    Attributes:
        findings: by node, then by ServicePort.
        nodes: those that were compared.
        compared: ServicePorts at nodes that were compared with their reference.
        not_judged: names of ServicePorts without a reference.
        by_objects: whether objects are the reference.
    """

    findings: tuple[DriftFinding, ...]
    nodes: tuple[str, ...]
    compared: int
    not_judged: tuple[str, ...]
    by_objects: bool


def drift(
    nodes: Sequence[NodeRow],
    services: Sequence[EveryNode],
    wanted: Sequence[EveryNode] | None,
    told: ObjectFacts,
    is_nodes: Callable[[Address], bool],
    untold: Collection[str] = (),
) -> Drifted:
    """Return how nodes' rules differ; `wanted` is from the objects, None if there are none.

    `untold` are names of ServicePorts that objects have, and of which they do not say enough.
    """
    done = [each for each in nodes if each.is_done]
    of_nodes = [*drift_of_nodes(done)]
    left_out = {each.node for each in of_nodes if each.drift in _CAUSES}
    names = frozenset(each.node for each in done) - left_out
    # Rules that were not understood may or may not be different rules.
    odd = {(each.node, name) for each in done for name in (*each.left_out, *each.unled)}
    run = _Comparison(names, told, odd, is_nodes, untold)
    masked = {each.node for each in of_nodes if each.drift in _BEHIND}
    found = {service_port_key(each.service): each for each in services}
    expected = None if wanted is None else {service_port_key(each.service): each for each in wanted}
    of_nodes += run.families(found.values())
    findings = [*of_nodes, *run.all(found, expected, masked)]
    order = [*DriftKind]
    return Drifted(
        findings=tuple(
            sorted(findings, key=lambda f: (f.node, f.service, order.index(f.drift), f.what))
        ),
        nodes=tuple(sorted(each.node for each in done)),
        compared=run.compared,
        not_judged=tuple(dict.fromkeys(run.not_judged)),
        by_objects=wanted is not None,
    )


class _Comparison:
    """Holds ServicePorts of some nodes against what they should be."""

    def __init__(
        self,
        names: frozenset[str],
        told: ObjectFacts,
        odd: set[tuple[str, str]],
        is_nodes: Callable[[Address], bool],
        untold: Collection[str],
    ) -> None:
        self._names = names
        self._told = told
        self._odd = odd
        self._is_nodes = is_nodes
        self._untold = untold
        self._without: dict[int | None, frozenset[str]] = {}
        self.compared = 0
        self.not_judged: list[str] = []

    def families(self, services: Iterable[EveryNode]) -> Iterator[DriftFinding]:
        """Yield nodes that lack an IP version which most nodes have."""
        of_version: dict[int | None, set[str]] = {}
        for each in services:
            own = of_version.setdefault(each.service.version, set())
            for at in each.at:
                own |= at.nodes & self._names
        some = frozenset().union(*of_version.values())
        for node in sorted(self._names - some):
            yield DriftFinding(drift=DriftKind.NO_SERVICES, node=node, what="no rule for any")
        self._names &= some
        for version, own in of_version.items():
            self._without[version] = self._names - own
            if 2 * len(own) > len(self._names):
                for node in sorted(self._names - own):
                    yield DriftFinding(
                        drift=DriftKind.MISSING_FAMILY, node=node, what=f"IPv{version}"
                    )

    def all(
        self,
        found: Mapping[ServicePortKey, EveryNode],
        expected: Mapping[ServicePortKey, EveryNode] | None,
        masked: set[str],
    ) -> Iterator[DriftFinding]:
        """Yield the differences of all ServicePorts."""
        versions = {key[:2] for key in expected or () if key[2] is not None}
        for key in dict.fromkeys([*found, *(expected or ())]):
            if key[2] is None and key[:2] in versions:  # nothing is left to show its IP version
                self.not_judged.append(key[0])
                continue
            there = found.get(key)
            at = [] if there is None else [(a.service, a.nodes & self._names) for a in there.at]
            at = [(service, nodes) for service, nodes in at if nodes]
            usual = self._usual(at)
            if expected is not None:
                wanted = expected.get(key)
                should = [] if wanted is None else [(a.service, a.nodes) for a in wanted.at]
            else:
                # Dropped for lack of endpoints on the node: each node has its own.
                is_local = usual is not None and "drop" in dict(usual.refusals).values()
                if is_local or (usual is None and at and self._is_split(at)):
                    self.not_judged.append(key[0])
                    continue
                should = [] if usual is None else [(usual, self._names)]
            yield from self._of(key, at, should)
            if usual is not None:
                for service, nodes in at:
                    if service is not usual:
                        told = [*behind(service, usual, self._is_nodes)]
                        yield from self._at(key, told, nodes - masked)

    def _is_split(self, at: Sequence[tuple[ServicePort, frozenset[str]]]) -> bool:
        """Return whether more than half of the nodes have it, and no half alike."""
        return 2 * sum(len(nodes) for _, nodes in at) > len(self._names)

    def _usual(self, at: Sequence[tuple[ServicePort, frozenset[str]]]) -> ServicePort | None:
        """Return what more than half of the nodes have; None: nothing."""
        most = max(at, key=lambda each: len(each[1]), default=None)
        return most[0] if most is not None and 2 * len(most[1]) > len(self._names) else None

    def _of(
        self,
        key: ServicePortKey,
        at: Sequence[tuple[ServicePort, frozenset[str]]],
        should: Sequence[tuple[ServicePort, frozenset[str]]],
    ) -> Iterator[DriftFinding]:
        absent = self._without.get(key[2], frozenset())
        unasked = self._names - absent
        for service, nodes in at:
            rest = nodes
            for wanted, places in should:
                common = rest & places
                if not common:
                    continue
                rest -= common
                self.compared += len(common)
                yield from self._at(key, [*differences(service, wanted, self._told)], common)
            # The others are nodes that are not in the objects.
            if not should and key[0] not in self._untold:
                yield from self._at(key, [(DriftKind.EXTRA_SERVICE, "")], rest)
        there = frozenset().union(*(nodes for _, nodes in at)) if at else frozenset[str]()
        for _, places in should:
            yield from self._at(key, [(DriftKind.MISSING_SERVICE, "")], (places & unasked) - there)

    def _at(
        self, key: ServicePortKey, told: Sequence[tuple[DriftKind, str]], nodes: frozenset[str]
    ) -> Iterator[DriftFinding]:
        for node in sorted(nodes) if told else ():
            if (node, key[0]) in self._odd:
                self.not_judged.append(key[0])
                continue
            for what, says in told:
                yield DriftFinding(
                    drift=what, node=node, service=key[0], protocol=key[1], what=says
                )
