"""A `Problem` out of workloads, nodes, and pods that run already.

Source: Kubernetes, pkg/scheduler/framework/plugins/interpodaffinity and podtopologyspread
(``nodeLabelsMatchSpreadConstraints``, ``matchNodeInclusionPolicies``); API reference, core/v1
PodAffinityTerm, TopologySpreadConstraint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from analyzer.advice.takers import tolerates
from analyzer.gate.labels import Labels, is_empty, meets_term, selects
from analyzer.gate.needs import (
    conflicts,
    host_ports,
    is_selected,
    requests,
    untolerated,
    why_not,
)
from analyzer.gate.nodes import HOSTNAME, ZONE, SchedulingNode
from analyzer.gate.problem import Group, Problem, Spread, Term, Wishes
from analyzer.gate.workloads import Workload
from analyzer.model.value import value
from analyzer.parsers.api_objects import at, elements, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeVar

    T = TypeVar("T")

_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
#: What every node has of, even where a description does not say it.
_COMMON: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
_METADATA_NAME: Final = "kubernetes.io/metadata.name"


@value(kw_only=True)
class Template:
    """Pods before they are held against others.

    Attributes:
        fixed: the nodes on which some run already, and how many.
        is_ready: whether they are endpoints of Services that select them; those are that are
            still to be placed.
    """

    name: str
    namespace: str
    labels: Labels
    spec: Mapping[str, Any]
    number: int | None
    workload: Workload | None = None
    fixed: Mapping[str, int] = {}  # never changed: values are not
    is_ready: bool = True


def template_of(workload: Workload) -> Template:
    """Return the pods of a workload."""
    return Template(
        name=workload.name,
        namespace=workload.namespace,
        labels=workload.labels,
        spec=workload.spec,
        number=workload.replicas,
        workload=workload,
    )


def problem_of(
    templates: Sequence[Template],
    nodes: Sequence[SchedulingNode],
    namespaces: Mapping[str, Labels],
    *,
    is_described: bool,
) -> Problem:
    """Return the problem that pods and nodes make.

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
        templates: Sequence[Template],
        nodes: Sequence[SchedulingNode],
        namespaces: Mapping[str, Labels],
        *,
        is_described: bool,
    ) -> None:
        self._templates = templates
        self._nodes = nodes
        self._namespaces = namespaces
        self._known = frozenset(key for node in nodes for key in node.room or ())
        self._is_described = is_described
        self._domains: dict[str, list[int]] = {}
        self._ports = [host_ports(each.spec) for each in templates]

    def problem(self) -> Problem:
        """Return it."""
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
        )

    def _told(self, number: int, make: Callable[..., T], *given: object) -> T:
        """Return what is made of a template; what is malformed in it is told with its place."""
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
        return self._terms(self._templates[number], "podAntiAffinity")

    def _group(self, number: int, anti: Sequence[tuple[Term, ...]]) -> Group:
        template = self._templates[number]
        spec = template.spec
        refused = {n.name: why for n in self._nodes if (why := why_not(spec, n))}
        wanted = {k: each for k, each in requests(spec).items() if self._is_judged(k)}
        spread = tuple(self._spread(number, template))
        affinity = self._terms(template, "podAffinity")
        for v, node in enumerate(self._nodes):
            lacks = [k for k, need in wanted.items() if self._lacks(node, k, need)]
            if node.name not in refused and lacks:
                refused[node.name] = f"without enough {lacks[0]} even when empty"
            if node.name not in refused and any(each.domains[v] < 0 for each in spread):
                refused[node.name] = "without a label of its topologySpreadConstraints"
            if node.name not in refused and any(each.domains[v] < 0 for each in affinity):
                refused[node.name] = "without a label of its podAffinity"
        nodes = tuple(v for v, node in enumerate(self._nodes) if node.name not in refused)
        stuck = ""
        fixed = {
            v: template.fixed[n.name] for v, n in enumerate(self._nodes) if n.name in template.fixed
        }
        count = template.number
        if count is None:
            count = len(nodes)
        if template.workload is not None and (told := text(spec.get("nodeName"))):
            # The kubelet takes it, whatever the scheduler would say.
            fixed = {v: count for v, n in enumerate(self._nodes) if n.name == told}
            stuck = "" if fixed else f"nodeName {told} is no node"
            count = 0 if fixed else count
        elif spec.get("schedulingGates"):
            stuck = "schedulingGates hold them"
        return Group(
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
            wishes=self._wishes(number, template),
            one_each=template.number is None,
            fixed=fixed,
            stuck=stuck,
        )

    def _lacks(self, node: SchedulingNode, resource: str, need: int) -> bool:
        if node.room is None or (resource not in node.room and resource in _COMMON):
            return False
        return node.room.get(resource, 0) < need

    # --- what pods say of others ------------------------------------------------

    def _terms(self, template: Template, kind: str) -> tuple[Term, ...]:
        found = []
        for term in elements(template.spec.get("affinity"), kind, _REQUIRED):
            key = text(at(term, "topologyKey"))
            if key is None:
                raise ValueError(f"{kind}: a term without a topologyKey")
            found.append(Term(self._domains_of(key), self.meant(template, term)))
        return tuple(found)

    def meant(self, template: Template, term: object) -> frozenset[int]:
        """Return the groups whose pods a term of (anti)affinity means."""
        within = self._within(template, term)
        return frozenset(
            number
            for number, other in enumerate(self._templates)
            if within(other.namespace)
            and selects(at(term, "labelSelector"), other.labels)
            and _alike(template, other, elements(term, "matchLabelKeys"))
            and not _any_alike(template, other, elements(term, "mismatchLabelKeys"))
        )

    def _within(self, template: Template, term: object) -> Callable[[str], bool]:
        """Return what tells whether a namespace is one that a term looks at."""
        named, selector = elements(term, "namespaces"), at(term, "namespaceSelector")
        if not named and selector is None:
            return lambda name: name == template.namespace

        def within(name: str) -> bool:
            labels = {_METADATA_NAME: name, **self._namespaces.get(name, {})}
            return name in named or selects(selector, labels)

        return within

    def _spread(self, number: int, template: Template) -> Iterator[Spread]:
        given = elements(template.spec, "topologySpreadConstraints")
        for each in given:
            if (how := at(each, "whenUnsatisfiable")) not in ("DoNotSchedule", "ScheduleAnyway"):
                raise ValueError(
                    f"topologySpreadConstraints: whenUnsatisfiable {how!r} is neither "
                    "DoNotSchedule nor ScheduleAnyway"
                )
        wanted = [each for each in given if each["whenUnsatisfiable"] == "DoNotSchedule"]
        keys = [text(at(each, "topologyKey")) or "" for each in wanted]
        every = [self._domains_of(key) for key in keys]
        for each, domains in zip(wanted, every, strict=True):
            most = at(each, "maxSkew")
            if type(most) is not int or most < 1:
                raise ValueError(f"topologySpreadConstraints: maxSkew {most!r} is no number from 1")
            least = at(each, "minDomains")
            if least is not None and (type(least) is not int or least < 1):
                raise ValueError(
                    f"topologySpreadConstraints: minDomains {least!r} is no number from 1"
                )
            groups = self._counted_groups(template, each)
            counted = tuple(
                v
                for v, node in enumerate(self._nodes)
                if all(of[v] >= 0 for of in every) and _counts(each, template.spec, node)
            )
            yield Spread(
                domains=domains,
                counted=counted,
                most=most,
                least_domains=1 if least is None else least,
                groups=groups,
                own=int(number in groups),
            )

    def _counted_groups(self, template: Template, constraint: object) -> frozenset[int]:
        """Return the groups whose pods a topologySpreadConstraint counts."""
        selector, keys = at(constraint, "labelSelector"), elements(constraint, "matchLabelKeys")
        if is_empty(selector) and not any(key in template.labels for key in keys):
            return (
                frozenset()
            )  # common.go, ``countPodsMatchSelector``: no pods, and not all of them
        return frozenset(
            n
            for n, other in enumerate(self._templates)
            if other.namespace == template.namespace
            and selects(selector, other.labels)
            and _alike(template, other, keys)
        )

    # --- what pods would rather have --------------------------------------------

    def _wishes(self, number: int, template: Template) -> Wishes:
        spec, affinity = template.spec, template.spec.get("affinity")
        rather = elements(affinity, "nodeAffinity", _PREFERRED)
        tolerations = elements(spec, "tolerations")
        beside = [
            (sign * _weight(each), Term(self._domains_of(key), self.meant(template, term)))
            for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1))
            for each in elements(affinity, kind, _PREFERRED)
            if (key := text(at(term := at(each, "podAffinityTerm"), "topologyKey")))
        ]
        return Wishes(
            nodes=tuple(
                sum(
                    _weight(each)
                    for each in rather
                    if meets_term(at(each, "preference"), node.name, node.labels)
                )
                for node in self._nodes
            ),
            taints=tuple(
                sum(
                    taint[2] == "PreferNoSchedule"
                    and not any(tolerates(each, taint) for each in tolerations)
                    for taint in node.taints
                )
                for node in self._nodes
            ),
            beside=tuple(beside),
            spread=tuple(self._soft_spread(number, template)),
        )

    def _soft_spread(
        self, number: int, template: Template
    ) -> Iterator[tuple[Sequence[int], int, frozenset[int]]]:
        given = elements(template.spec, "topologySpreadConstraints")
        if not given and template.number is not None and template.workload is not None:
            # Source: plugin.go, ``systemDefaultConstraints``.
            yield self._domains_of(HOSTNAME), 3, frozenset((number,))
            yield self._domains_of(ZONE), 5, frozenset((number,))
        for each in given:
            key, most = text(at(each, "topologyKey")), at(each, "maxSkew")
            if at(each, "whenUnsatisfiable") == "ScheduleAnyway" and key and type(most) is int:
                yield self._domains_of(key), most, self._counted_groups(template, each)

    # --- nodes ------------------------------------------------------------------

    def _domains_of(self, key: str) -> list[int]:
        if key not in self._domains:
            numbers: dict[str, int] = {}
            told = (node.labels.get(key) for node in self._nodes)
            self._domains[key] = [
                -1 if value is None else numbers.setdefault(value, len(numbers)) for value in told
            ]
        return self._domains[key]

    def _classes(
        self, groups: Sequence[Group], room: Sequence[Mapping[str, int]]
    ) -> tuple[int, ...]:
        """Number nodes by all that tells them apart; names are each node's own, if nobody asks."""
        numbers: dict[object, int] = {}
        keys = [(key, of) for key, of in self._domains.items() if not _is_each_its_own(of)]
        # With a key that some nodes share, and by their names where a few nodes' are the only ones.
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


def _weight(term: object) -> int:
    weight = at(term, "weight")
    if type(weight) is not int or not 1 <= weight <= 100:  # noqa: PLR2004  # as the API has it
        raise ValueError(f"weight {weight!r} is no number from 1 to 100")
    return weight


def _is_each_its_own(domains: Sequence[int]) -> bool:
    told = [each for each in domains if each >= 0]
    return len(told) == len(set(told)) == len(domains)


def _is_control_plane(node: SchedulingNode) -> bool:
    from analyzer.parsers.roles import roles_of

    return bool(roles_of([node.item]).control_plane)


def _counts(constraint: object, spec: Mapping[str, Any], node: SchedulingNode) -> bool:
    """Tell whether a node counts for a constraint, by its policies."""
    honours = at(constraint, "nodeAffinityPolicy") != "Ignore"
    if honours and not is_selected(spec, node):
        return False
    return at(constraint, "nodeTaintsPolicy") != "Honor" or untolerated(spec, node) is None


def _alike(one: Template, other: Template, keys: Iterable[str]) -> bool:
    """Tell whether pods have the values of one's labels; keys that it lacks do not count."""
    return all(one.labels[k] == other.labels.get(k) for k in keys if k in one.labels)


def _any_alike(one: Template, other: Template, keys: Iterable[str]) -> bool:
    return any(one.labels[k] == other.labels.get(k) for k in keys if k in one.labels)
