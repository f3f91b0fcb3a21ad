"""Input named by options, parsed, and recognised as Services."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from analyzer.errors import ParseError, UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.dumps import told_apart
from analyzer.inputs.node_files import node_addresses, routes_of, told_by_routes
from analyzer.inputs.reading import read_all
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.rows.endpoints import EndpointRows
from analyzer.kubeproxy.view import FrontendKind, View
from analyzer.model.addresses import VERSIONS, Address
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import replace, value
from analyzer.reports.progress import Advance, progress
from analyzer.semantics.assumed import DEFAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:  # only loaded when needed
    from datetime import datetime
    from types import SimpleNamespace

    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.diff.side import DumpSide
    from analyzer.kubeproxy.nftables import NftRecogniser
    from analyzer.kubeproxy.routes.trace import KnownAddresses
    from analyzer.kubeproxy.view import Route, ServicePort
    from analyzer.model.diagnostics import Diagnostic
    from analyzer.model.intervals import Intervals
    from analyzer.model.services import ApiServicePort
    from analyzer.semantics.base_chains import Rules
    from analyzer.semantics.devices import PodPlaces
    from analyzer.semantics.tree import Tree


@value(kw_only=True)
class Input:
    """What was read for a verb.

    Attributes:
        rulesets: all of the node's, that of the dump first.
        services: the API's ServicePorts of the dump's IP version; empty without objects.
        other_services: the same for the other version, if the dump is of one only.
        own: the node's addresses; empty if they are not known.
        pods: the addresses of each pod of the objects, by its name.
        taken: when the objects were taken, or shortly before; None if not known.
        lists_endpoints: whether the objects list any endpoints, so that `services` has them.
        assumed: what is assumed beyond the rules, by name.
        parts: if dumps of both IP versions are read, the input of each.
    """

    rulesets: tuple[Rules, ...]
    cluster: Cluster
    recogniser: Recogniser | NftRecogniser | Recognisers
    view: View
    services: Callable[[], tuple[ApiServicePort, ...]]
    other_services: Callable[[], tuple[ApiServicePort, ...]]
    own: tuple[Address, ...]
    pods: Callable[[], Mapping[str, Sequence[str]]]
    taken: Callable[[], datetime | None]
    lists_endpoints: bool = True
    assumed: Mapping[str, str] = DEFAULTS
    parts: tuple[Input, ...] = ()

    @property
    def ruleset(self) -> Rules:
        """The dump to analyse."""
        return self.rulesets[0]

    @property
    def every_ruleset(self) -> tuple[Rules, ...]:
        """All rules of the node, of all IP versions."""
        found = {id(each): each for part in self.parts or (self,) for each in part.rulesets}
        return tuple(found.values())

    @property
    def versions(self) -> tuple[int, ...]:
        """The IP versions of the rules, 4 or 6 or both."""
        if self.parts:
            return tuple(sorted({version for part in self.parts for version in part.versions}))
        return _versions(self.ruleset)

    def absent(self) -> Absent:
        """Return the ServicePorts that are in the objects but not in the dump."""
        from analyzer.kubeproxy.absent import Absent, absent

        if self.parts:
            every = [part.absent() for part in self.parts]
            return Absent(
                lacking=tuple(each for part in every for each in part.lacking),
                unled=tuple(each for part in every for each in part.unled),
            )
        return absent(
            self.ruleset,
            self.view,
            self.services(),
            self.other_services(),
            lists_endpoints=self.lists_endpoints,
        )

    def side(self, version: int) -> DumpSide:
        """Return this input as one side of a comparison, for one IP version."""
        from analyzer.kubeproxy.diff.side import DumpSide

        if isinstance(self.recogniser, Recognisers):
            return next(part for part in self.parts if version in part.versions).side(version)
        return DumpSide(
            self.rulesets,
            self.view,
            self.cluster,
            version=version,
            sources=self.recogniser.source_address,
            own=tuple(address for address in self.own if address.version == version),
            node_port_address=self.recogniser.node_port_address(version),
            assumed=self.assumed,
            places=partial(self.recogniser.places, version),
            bridges=partial(self.recogniser.bridges, version),
        )


def read_two(options: SimpleNamespace) -> tuple[Input, Input]:
    """Read the two dumps that the options name, and recognise the Services of both.

    Raises:
        AnalyzerError: one of them is none, or does not fit the options.
        OSError: a file cannot be read.
    """
    from types import SimpleNamespace

    given = vars(options)
    of_a = SimpleNamespace(**{**given, "dumps": _one_or_several(options.a)})
    of_b = SimpleNamespace(
        **{**given, "dumps": _one_or_several(options.b), "others": options.others_b}
    )
    if options.node_b is not None or options.node_ip_b:
        of_b.node, of_b.node_ip = options.node_b, options.node_ip_b
        of_b.addresses, of_b.routes = None, []  # which are A's
    objects = ApiObjects(options)
    return read_input(of_a, objects), read_input(of_b, objects)


def _one_or_several(dumps: str | list[str]) -> list[str]:
    """Return the dumps of one side: of a bundle, those in it."""
    return [dumps] if isinstance(dumps, str) else dumps


def read_input(options: SimpleNamespace, objects: ApiObjects | None = None) -> Input:
    """Read the input and recognise the Services; `objects`, if they have been read already.

    Raises:
        AnalyzerError: the input is none, or does not fit the options.
        OSError: a file cannot be read.
    """
    with progress("rules") as advance:
        _refuse_several_nodes(options)
        dumps, others = read_all(options, advance, EndpointRows.skim)
        known = ApiObjects(options) if objects is None else objects
        return input_of(options, dumps, others, known, advance)


def input_of(
    options: SimpleNamespace,
    dumps: Sequence[Rules],
    others: Sequence[Rules],
    known: ApiObjects,
    advance: Advance | None,
) -> Input:
    """Return the input from the dumps of one node; `others` are those of ``--with``.

    Raises:
        AnalyzerError: they do not fit together, or do not fit the options.
    """
    own = node_addresses(options, known.cluster)
    options = told_by_routes(options, known.cluster, own)
    parts = [
        _input(options, rulesets, known, own, advance) for rulesets in told_apart(dumps, others)
    ]
    return parts[0] if len(parts) == 1 else _combined(parts)


def _input(
    options: SimpleNamespace,
    rulesets: tuple[Rules, ...],
    known: ApiObjects,
    own: tuple[Address, ...],
    advance: Advance | None,
) -> Input:
    recogniser = _recogniser(options, rulesets, known, own, advance)
    versions = _versions(rulesets[0])
    return Input(
        rulesets=rulesets,
        cluster=known.cluster,
        recogniser=recogniser,
        view=recogniser.view(),
        services=lambda: _services(versions, known),
        other_services=lambda: _services([v for v in (4, 6) if v not in versions], known),
        own=own,
        pods=known.pods,
        lists_endpoints=known.lists_endpoints,
        taken=known.taken,
        assumed=options.assumed,
    )


def _combined(parts: Sequence[Input]) -> Input:
    """Return the combined input from dumps of both IP versions.

    One that shows no Services is ignored, except for its diagnostics.
    """
    views = [part.view for part in parts]
    parts = [part for part in parts if not part.view.unseen] or list(parts[:1])
    first = parts[0]
    diagnostics = tuple(dict.fromkeys(each for view in views for each in view.diagnostics))
    if len(parts) == 1:
        return replace(first, view=replace(first.view, diagnostics=diagnostics))
    views = [part.view for part in parts]
    return Input(
        rulesets=first.rulesets,
        cluster=first.cluster,
        recogniser=Recognisers(parts),
        view=replace(
            first.view,
            services=tuple(service for view in views for service in view.services),
            pod_sources=tuple(address for view in views for address in view.pod_sources),
            diagnostics=diagnostics,
            cut=tuple(version for each in views for version in each.cut),
            untold=tuple(dict.fromkeys(table for each in views for table in each.untold)),
            left_out=tuple(name for view in views for name in view.left_out),
            unled=tuple(name for view in views for name in view.unled),
        ),
        services=lambda: tuple(each for part in parts for each in part.services()),
        other_services=tuple,
        own=first.own,
        pods=first.pods,
        lists_endpoints=first.lists_endpoints,
        taken=first.taken,
        parts=tuple(parts),
    )


class Recognisers:
    """The recognisers of dumps of both IP versions, each for its own Services."""

    def __init__(self, parts: Sequence[Input]) -> None:
        self._parts = parts
        self._asked: list[Recogniser | NftRecogniser | Recognisers] = []

    def tree(self, service: ServicePort, route: Route) -> Tree:
        """Return the probability tree of a new flow on a route."""
        for part in self._parts:
            if any(each is service for each in part.view.services):
                self._asked.append(part.recogniser)
                return part.recogniser.tree(service, route)
        raise AssertionError(service.name.text)

    def assumed(self) -> tuple[Diagnostic, ...]:
        """Return what trees are based on besides the dumps."""
        return tuple(dict.fromkeys(each for one in self._asked for each in one.assumed()))


def _versions(ruleset: Rules) -> tuple[int, ...]:
    return (VERSIONS[ruleset.family],) if isinstance(ruleset, Ruleset) else (4, 6)


def _services(versions: Iterable[int], objects: ApiObjects) -> tuple[ApiServicePort, ...]:
    return tuple(each for version in versions for each in objects.services(version))


def _recogniser(
    options: SimpleNamespace,
    rulesets: Sequence[Rules],
    objects: ApiObjects,
    own: tuple[Address, ...],
    advance: Advance | None,
) -> Recogniser | NftRecogniser:
    ruleset, *others = rulesets
    names = None
    if options.objects:
        from analyzer.kubeproxy.dispatch.object_names import ObjectNames

        names = ObjectNames(lambda: _services(_versions(ruleset), objects))
    make: Callable[..., Recogniser | NftRecogniser]
    if isinstance(ruleset, Ruleset):
        make = partial(Recogniser, ruleset)
    else:
        from analyzer.kubeproxy.nftables import NftRecogniser

        make = partial(NftRecogniser, ruleset)
    return make(
        objects.cluster,
        node=options.node,
        node_addresses=own,
        advance=advance,
        object_names=names,
        others=others,
        assumed=options.assumed,
        routes=partial(routes_of, options),
    )


def told_by_services(
    options: SimpleNamespace,
    rulesets: Sequence[Rules],
    objects: ApiObjects,
    own: tuple[Address, ...],
) -> KnownAddresses:
    """Return what Services in the rules say about addresses.

    They are read when that is asked, and not before.
    """
    from analyzer.kubeproxy.routes.trace import KnownAddresses

    def recogniser() -> Recogniser | NftRecogniser:
        return _recogniser(options, rulesets, objects, own, None)

    def is_outside(address: Address) -> bool:
        try:
            return recogniser().is_outside(address)
        except ParseError:  # of another rule, which hides which addresses are pods'
            return False

    def is_cluster_ip(address: Address) -> bool:
        try:
            view = recogniser().view()
        except ParseError:
            return False
        if any(each.code == "no-comment" for each in view.diagnostics):
            return False  # the kind of the frontend is a guess
        frontends = [route.frontend for each in view.services for route in each.routes]
        return {f.kind for f in frontends if f.address == address} == {FrontendKind.CLUSTER_IP}

    def places(version: int) -> PodPlaces:
        from analyzer.kubeproxy.routes.pod_places import pod_places

        return pod_places(version, objects.cluster, options.node, own)

    def bridges(version: int) -> Intervals | None:
        try:
            return recogniser().bridges(version)
        except ParseError:
            return None

    return KnownAddresses(is_outside, is_cluster_ip, places, bridges)


def read_dumps(
    options: SimpleNamespace, advance: Advance | None
) -> tuple[tuple[Rules, ...], ApiObjects]:
    """Read the dumps in the order given, and the objects.

    Raises:
        AnalyzerError: the input is none, or does not fit the options.
        OSError: a file cannot be read.
    """
    _refuse_several_nodes(options)
    dumps, others = read_all(options, advance)
    return (*dumps, *others), ApiObjects(options)


def _refuse_several_nodes(options: SimpleNamespace) -> None:
    """Raise a UsageError if ``--node`` names several, as only ``loss`` knows them."""
    if options.node is not None and "," in options.node:
        instead = "only loss takes several"
        if hasattr(options, "node_b"):
            instead = "--node is A's, and --node-b is B's"
        raise UsageError(f"--node {options.node}: one node's dumps at a time; {instead}")
