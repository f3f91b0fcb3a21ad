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

A dump that ends too early, or that has lost rules, shows what the node has, and not what it lacks:
of such a node only rules that should not be there are differences, and it has no vote on what most
nodes have. hostPorts are not compared: each node has those of its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from analyzer.cluster.drift_kinds import SHOWN_BY_RULES, DriftFinding, DriftKind
from analyzer.cluster.drift_nodes import cut_versions, drift_of_nodes, lacks_tables
from analyzer.cluster.drift_services import (
    ObjectFacts,
    behind,
    differ_behind,
    differences,
    is_open_behind,
)
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
        cut: nodes of which rules that are missing are not judged, since their dumps are incomplete.
        cut_services: names of ServicePorts for which that matters.
    """

    findings: tuple[DriftFinding, ...]
    nodes: tuple[str, ...]
    compared: int
    not_judged: tuple[str, ...]
    by_objects: bool
    cut: tuple[str, ...] = ()
    cut_services: tuple[str, ...] = ()


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
    cut = {each.node: versions for each in done if (versions := cut_versions(each))}
    unshown = {each.node for each in done if each.unseen}
    names = frozenset(each.node for each in done) - left_out - (unshown & cut.keys())
    # Rules that were not understood may or may not be different rules.
    odd = {(each.node, name) for each in done for name in (*each.left_out, *each.unled)}
    run = _Comparison(names, told, odd, is_nodes, untold, cut)
    masked = {each.node for each in of_nodes if each.drift in _BEHIND}
    own = [each for each in services if not each.service.is_host_port]
    found = {service_port_key(each.service): each for each in own}
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
        cut=tuple(sorted({*cut, *(each.node for each in done if lacks_tables(each))})),
        cut_services=tuple(dict.fromkeys(run.cut_services)),
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
        cut: Mapping[str, frozenset[int]],
    ) -> None:
        self._names = names
        self._told = told
        self._odd = odd
        self._is_nodes = is_nodes
        self._untold = untold
        self._cut = cut
        self._without: dict[int | None, frozenset[str]] = {}
        self.compared = 0
        self.not_judged: list[str] = []
        self.cut_services: list[str] = []

    def families(self, services: Iterable[EveryNode]) -> Iterator[DriftFinding]:
        """Yield nodes that lack an IP version which most nodes have."""
        of_version: dict[int | None, set[str]] = {}
        for each in services:
            own = of_version.setdefault(each.service.version, set())
            for at in each.at:
                own |= at.nodes & self._names
        some = frozenset().union(*of_version.values())
        for node in sorted(self._names - some - self._cut.keys()):
            yield DriftFinding(drift=DriftKind.NO_SERVICES, node=node, what="no rule for any")
        self._names &= some
        for version, own in of_version.items():
            self._without[version] = self._names - own
            if 2 * len(own) > len(self._names):
                for node in sorted(self._names - own - self._cut.keys()):
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
        keys = dict.fromkeys([*found, *(expected or ())])
        versions = {key[:2] for key in keys if key[2] is not None}
        for key in keys:
            there = found.get(key)
            at = [] if there is None else [(a.service, a.nodes & self._names) for a in there.at]
            at = [(service, nodes) for service, nodes in at if nodes]
            if key[2] is None and key[:2] in versions:  # nothing is left to show its IP version
                is_cut = at and all(nodes <= self._cut.keys() for _, nodes in at)
                (self.cut_services if is_cut else self.not_judged).append(key[0])
                continue
            usual = self._usual(key, at)
            if expected is not None:
                wanted = expected.get(key)
                should = [] if wanted is None else [(a.service, a.nodes) for a in wanted.at]
            else:
                # Dropped for lack of endpoints on the node: each node has its own.
                is_local = usual is not None and "drop" in dict(usual.refusals).values()
                if is_local or (usual is None and at and self._is_split(key, at)):
                    self.not_judged.append(key[0])
                    continue
                should = [] if usual is None else [(usual, self._names)]
            yield from self._of(key, at, should)
            if usual is not None:
                for service, nodes in at:
                    if service is not usual:
                        is_own = self._owned_by(nodes)
                        told = [*behind(service, usual, is_own)]
                        yield from self._at(key, told, nodes - masked)
                        if not told and nodes - masked and is_open_behind(service, usual, is_own):
                            self.not_judged.append(key[0])
            elif differ_behind([each for each in at if each[1] - masked], self._owned_by):
                self.not_judged.append(key[0])

    def _owned_by(self, nodes: frozenset[str]) -> Callable[[Address], bool]:
        """Return whether an address is one of these nodes'."""
        owners = {*nodes, None}
        return lambda address: self._is_nodes(address) and self._told.place(address) in owners

    def _cut_for(self, key: ServicePortKey) -> frozenset[str]:
        """Return the nodes whose dumps may have lost rules of a ServicePort."""
        version = key[2]
        return frozenset(n for n, cut in self._cut.items() if version is None or version in cut)

    def _is_split(
        self, key: ServicePortKey, at: Sequence[tuple[ServicePort, frozenset[str]]]
    ) -> bool:
        """Return whether more than half of the nodes have it, and no half alike."""
        whole = self._names - self._cut_for(key)
        return not whole or 2 * sum(len(nodes & whole) for _, nodes in at) > len(whole)

    def _usual(
        self, key: ServicePortKey, at: Sequence[tuple[ServicePort, frozenset[str]]]
    ) -> ServicePort | None:
        """Return what more than half of the nodes have; None: nothing."""
        whole = self._names - self._cut_for(key)
        most = max(at, key=lambda each: len(each[1] & whole), default=None)
        return most[0] if most is not None and 2 * len(most[1] & whole) > len(whole) else None

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
                found = [*differences(service, wanted, self._told, common)]
                self.compared += len(common - self._undecided(key, found))
                yield from self._at(key, found, common)
            # The others are nodes that are not in the objects.
            if not should and key[0] not in self._untold:
                yield from self._at(key, [(DriftKind.EXTRA_SERVICE, "")], rest)
        there = frozenset().union(*(nodes for _, nodes in at)) if at else frozenset[str]()
        for _, places in should:
            yield from self._at(key, [(DriftKind.MISSING_SERVICE, "")], (places & unasked) - there)

    def _undecided(
        self, key: ServicePortKey, told: Sequence[tuple[DriftKind, str]]
    ) -> frozenset[str]:
        """Return the nodes at which not all of these differences are certain to be there."""
        is_certain = all(kind in SHOWN_BY_RULES for kind, _ in told)
        return frozenset() if is_certain else self._cut_for(key)

    def _at(
        self, key: ServicePortKey, told: Sequence[tuple[DriftKind, str]], nodes: frozenset[str]
    ) -> Iterator[DriftFinding]:
        undecided = self._undecided(key, told)
        for node in sorted(nodes) if told else ():
            if (node, key[0]) in self._odd:
                self.not_judged.append(key[0])
                continue
            for what, says in told:
                if node in undecided and what not in SHOWN_BY_RULES:
                    self.cut_services.append(key[0])
                    continue
                yield DriftFinding(
                    drift=what,
                    node=node,
                    service=key[0],
                    protocol=key[1],
                    what=says,
                    version=key[2],
                )
