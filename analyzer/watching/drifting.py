"""Repeated comparison of a node's rules with the objects: only changes are compared again.

Theory of operation
===================

What a ServicePort should be changes with the objects alone, and what it is has a digest. As long as
both stay, so do its differences, and those of the last look count. One ServicePort of each IP
version is always compared, so that `cluster.drift` sees which versions the node has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.cluster.drift import drift
from analyzer.cluster.facts import as_text, facts_of
from analyzer.cluster.store import DONE, NodeRow
from analyzer.errors import AnalyzerError
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.model.value import value
from analyzer.questions.cluster_drift import told_of, wanted_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import TypeAlias

    from analyzer.cluster.drift_kinds import DriftFinding
    from analyzer.inputs.api_objects import ApiObjects
    from analyzer.inputs.recognised import Input
    from analyzer.kubeproxy.grouping import NameAndProtocol
    from analyzer.kubeproxy.view import ServicePort

    #: What kube-proxy would write, by name, and the names for which that is not known.
    ExpectedServices: TypeAlias = tuple[
        Mapping[NameAndProtocol, Sequence[EveryNode]], tuple[str, ...]
    ]
    #: The same of all nodes, by mode; text is why it is not known. Several nodes may share it.
    Predictions: TypeAlias = dict[ProxyMode, tuple[Sequence[EveryNode], tuple[str, ...]] | str]


@value(kw_only=True)
class Drift:
    """What differs: on the node itself, and for each ServicePort with a difference.

    Attributes:
        not_judged: names of ServicePorts of which that is not known.
    """

    of_node: tuple[DriftFinding, ...]
    of_services: Mapping[NameAndProtocol, tuple[DriftFinding, ...]]
    not_judged: tuple[str, ...]

    def findings(self) -> tuple[DriftFinding, ...]:
        """Return all differences."""
        of_services = [each for found in self.of_services.values() for each in found]
        return (*self.of_node, *of_services)


@value(kw_only=True)
class _Known:
    """Of one ServicePort at the last look: what it was, its differences, and if these are known."""

    token: tuple[str, ...]
    findings: tuple[DriftFinding, ...]
    is_judged: bool


class Drifting:
    """Compares a node's rules with those that kube-proxy would write for the objects."""

    def __init__(
        self, options: SimpleNamespace, objects: ApiObjects, predictions: Predictions | None = None
    ) -> None:
        self._predictions: Predictions = {} if predictions is None else predictions
        self._options = options
        self._objects = objects
        self._told = told_of(objects)
        self._own = {a for each in objects.cluster.nodes.values() for a in each.addresses}
        #: By the mode of the rules that were found; text is why it is not known.
        self._wanted: dict[ProxyMode, ExpectedServices | str] = {}
        self._known: Mapping[NameAndProtocol, _Known] = {}
        self._mode: ProxyMode | None = None

    def of(
        self, given: Input, digests: Mapping[NameAndProtocol, Mapping[int | None, str]]
    ) -> Drift | str:
        """Return how rules differ, or why that is unknown; `digests` are those of ServicePorts."""
        if self._options.no_drift:
            return "--no-drift"
        if not self._objects.items:
            return "there are no --objects"
        if self._options.node is None:
            return "--node says which node the rules are from"
        mode = given.view.mode
        if mode not in self._wanted:
            self._wanted[mode] = self._predicted(mode)
        wanted = self._wanted[mode]
        if isinstance(wanted, str):
            return wanted
        if mode is not self._mode:
            self._known, self._mode = {}, mode
        return self._compared(given, digests, *wanted)

    def _predicted(
        self, mode: ProxyMode
    ) -> tuple[Mapping[NameAndProtocol, Sequence[EveryNode]], tuple[str, ...]] | str:
        """Return what kube-proxy would write at the node, and what of it is not known."""
        node = self._options.node
        if mode not in self._predictions:
            own = type(self._options)(**{**vars(self._options), "against": "objects"})
            try:
                found, _, open_ = wanted_of(own, self._objects, [mode.value])
                self._predictions[mode] = found or (), open_
            except AnalyzerError as error:
                self._predictions[mode] = " ".join(str(error).split())
        predicted = self._predictions[mode]
        if isinstance(predicted, str):
            return predicted
        wanted, left_out = predicted
        here: dict[NameAndProtocol, list[EveryNode]] = {}
        for each in wanted:
            service = each.at_node(node)
            if service is not None:
                here.setdefault(_name(service), []).append(_here(service, node))
        return (here, left_out) if here else f"the objects have no node {node} with Services"

    def _compared(
        self,
        given: Input,
        digests: Mapping[NameAndProtocol, Mapping[int | None, str]],
        wanted: Mapping[NameAndProtocol, Sequence[EveryNode]],
        left_out: tuple[str, ...],
    ) -> Drift:
        view, node = given.view, self._options.node
        # Of an IP version without a dump nothing is compared.
        versions = {*given.versions, None}
        odd = frozenset([*view.left_out, *view.unled])
        tokens = {
            name: (
                *(f"{of} {each}" for of, each in digests.get(name, {}).items()),
                str(name[0] in odd),
            )
            for name in dict.fromkeys([*digests, *wanted])
        }
        asked = {
            name
            for name, token in tokens.items()
            if name not in self._known or self._known[name].token != token
        }
        some = {e.version: _name(e) for e in reversed(view.services) if not e.is_host_port}
        asked.update(some.values())
        row = NodeRow(
            node=node,
            source="",
            state=DONE,
            mode=view.mode.value,
            unseen=view.unseen,
            cut=view.cut,
            left_out=view.left_out,
            unled=view.unled,
            facts=as_text(facts_of(given.every_ruleset)),
        )
        seen = drift(
            [row],
            [_here(each, node) for each in view.services if _name(each) in asked],
            [e for name in asked for e in wanted.get(name, ()) if e.service.version in versions],
            self._told,
            self._own.__contains__,
            left_out,
        )
        findings: dict[NameAndProtocol, list[DriftFinding]] = {}
        for each in seen.findings:
            findings.setdefault((each.service, each.protocol), []).append(each)
        unknown = frozenset([*seen.not_judged, *seen.cut_services, *left_out])
        known = {
            name: _Known(
                token=token,
                findings=tuple(findings.get(name, ())),
                is_judged=name[0] not in unknown,
            )
            if name in asked
            else self._known[name]
            for name, token in tokens.items()
        }
        self._known = known
        open_ = [name for (name, _), each in known.items() if not each.is_judged]
        return Drift(
            of_node=tuple(findings.get(("", ""), ())),
            of_services={name: e.findings for name, e in known.items() if e.findings},
            not_judged=tuple(dict.fromkeys([*left_out, *open_])),
        )


def _name(service: ServicePort) -> NameAndProtocol:
    return service.name.text, service.protocol


def _here(service: ServicePort, node: str) -> EveryNode:
    return EveryNode(at=(At(service, frozenset([node])),))
