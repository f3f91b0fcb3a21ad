"""A `Problem` built from workloads, nodes, and pods that run already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from analyzer.gate.labels import Labels
from analyzer.gate.needs import conflicts, host_ports, requests, why_not
from analyzer.gate.nodes import HOSTNAME, SchedulingNode
from analyzer.gate.problem import PodGroup, Problem, Scale, Term
from analyzer.gate.relations import PodRelations
from analyzer.gate.spreads import spreads
from analyzer.gate.templates import PodTemplate
from analyzer.gate.wishes import wishes_of
from analyzer.parsers.api_objects import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeVar

    from analyzer.gate.workloads import Workload

    T = TypeVar("T")

#: Resources that every node has, even if a description does not mention them.
_COMMON: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


def problem_of(
    templates: Sequence[PodTemplate],
    nodes: Sequence[SchedulingNode],
    namespaces: Mapping[str, Labels],
    *,
    is_described: bool,
) -> Problem:
    """Return the problem of placing these pods on these nodes.

    `namespaces` are labels by name; `is_described`: nodes say nothing of resources beyond what
    every node has.

    Raises:
        ParseError: a workload is malformed.
        ValueError: a pod that runs already is; the message names it.
    """
    return _Compiler(templates, nodes, namespaces, is_described=is_described).problem()


class _Compiler:
    """Holds templates against nodes and against each other."""

    def __init__(
        self,
        templates: Sequence[PodTemplate],
        nodes: Sequence[SchedulingNode],
        namespaces: Mapping[str, Labels],
        *,
        is_described: bool,
    ) -> None:
        self._templates = templates
        self._nodes = nodes
        self._relations = PodRelations(templates, nodes, namespaces)
        self._known = frozenset(key for node in nodes for key in node.room or ())
        self._is_described = is_described
        self._ports = [host_ports(each.spec) for each in templates]

    def problem(self) -> Problem:
        """Return the problem."""
        anti = [self._told(n, self._anti) for n in range(len(self._templates))]
        groups = [self._told(n, self._group, anti) for n in range(len(self._templates))]
        room = tuple(
            {k: each for k, each in (node.room or {}).items() if self._is_judged(k)}
            for node in self._nodes
        )
        return Problem(
            nodes=tuple(self._nodes),
            groups=tuple(groups),
            room=room,
            classes=self._classes(groups, room),
            scales=tuple(self._scales()),
        )

    def _scales(self) -> Iterator[Scale]:
        seen: dict[int, tuple[Workload, dict[int, int | None]]] = {}
        for g, template in enumerate(self._templates):
            workload = template.workload
            if workload is not None and workload.scaler is not None:
                seen.setdefault(id(workload), (workload, {}))[1][g] = template.place
        for workload, groups in seen.values():
            least = workload.replicas or 0
            if workload.most > least:
                yield Scale(workload=workload, least=least, most=workload.most, groups=groups)

    def _told(self, number: int, make: Callable[..., T], *given: object) -> T:
        """Return the result of `make` for a template; errors in it get the template's location."""
        template = self._templates[number]
        try:
            return make(number, *given)
        except ValueError as error:
            if template.workload is None:
                raise ValueError(f"{template.name}: {error}") from None
            template.workload.manifest.fail(str(error))

    def _is_judged(self, resource: str) -> bool:
        return resource in _COMMON or resource in self._known or not self._is_described

    def _anti(self, number: int) -> tuple[Term, ...]:
        return self._relations.terms(self._templates[number], "podAntiAffinity")

    def _group(self, number: int, anti: Sequence[tuple[Term, ...]]) -> PodGroup:
        template = self._templates[number]
        spec = template.spec
        refused = {n.name: why for n in self._nodes if (why := why_not(spec, n))}
        wanted = {k: each for k, each in requests(spec).items() if self._is_judged(k)}
        spread = tuple(spreads(self._relations, number, template))
        affinity = self._relations.terms(template, "podAffinity")
        for v, node in enumerate(self._nodes):
            lacks = [k for k, need in wanted.items() if self._lacks(node, k, need)]
            if node.name not in refused and lacks:
                refused[node.name] = f"too small for its {lacks[0]} request"
            if node.name not in refused and any(each.domains[v] < 0 for each in spread):
                refused[node.name] = "without a label of its topologySpreadConstraints"
            if node.name not in refused and any(each.domains[v] < 0 for each in affinity):
                refused[node.name] = "without a label of its podAffinity"
        nodes = tuple(v for v, node in enumerate(self._nodes) if node.name not in refused)
        stuck = None
        fixed = {
            v: template.fixed[n.name] for v, n in enumerate(self._nodes) if n.name in template.fixed
        }
        count = template.number
        if count is None:
            count = len(nodes)
        if template.workload is not None and (told := text(spec.get("nodeName"))):
            # The kubelet takes it, whatever the scheduler would say.
            fixed = {v: count for v, n in enumerate(self._nodes) if n.name == told}
            stuck = None if fixed else f"nodeName {told}: no such node"
            count = 0 if fixed else count
        elif spec.get("schedulingGates"):
            stuck = "held back by schedulingGates"
        return PodGroup(
            name=template.name,
            workload=template.workload,
            number=count,
            nodes=nodes,
            refused=refused,
            requests=wanted,
            conflicting=frozenset(
                h for h, ports in enumerate(self._ports) if conflicts(self._ports[number], ports)
            ),
            affinity=affinity,
            anti=anti[number],
            kept_from=tuple(
                Term(term.domains, frozenset((h,)))
                for h, terms in enumerate(anti)
                for term in terms
                if number in term.groups
            ),
            affine=frozenset.intersection(*(t.groups for t in affinity)) if affinity else None,
            spread=spread,
            wishes=wishes_of(self._relations, number, template),
            one_each=template.number is None,
            fixed=fixed,
            stuck=stuck,
        )

    def _lacks(self, node: SchedulingNode, resource: str, need: int) -> bool:
        if node.room is None or (resource not in node.room and resource in _COMMON):
            return False
        return node.room.get(resource, 0) < need

    def _classes(
        self, groups: Sequence[PodGroup], room: Sequence[Mapping[str, int]]
    ) -> tuple[int, ...]:
        """Number nodes by everything that distinguishes them; names do only if they are used."""
        numbers: dict[object, int] = {}
        keys = [
            (key, of) for key, of in self._relations.domains.items() if not _is_each_its_own(of)
        ]
        # By keys whose values nodes share, and by the groups that may be placed on each node.
        found = []
        for v, node in enumerate(self._nodes):
            kind = (
                node.labels.get("topology.kubernetes.io/zone"),
                _is_control_plane(node),
                tuple((key, of[v]) for key, of in keys),
                tuple(v in group.nodes for group in groups),
                tuple(group.fixed.get(v, 0) for group in groups),
                tuple(v in each.counted for group in groups for each in group.spread),
                tuple(sorted(room[v].items())),
                HOSTNAME in node.labels,
            )
            found.append(numbers.setdefault(kind, len(numbers)))
        return tuple(found)


def _is_each_its_own(domains: Sequence[int]) -> bool:
    told = [each for each in domains if each >= 0]
    return len(told) == len(set(told)) == len(domains)


def _is_control_plane(node: SchedulingNode) -> bool:
    from analyzer.parsers.roles import roles_of

    return bool(roles_of([node.item]).control_plane)
