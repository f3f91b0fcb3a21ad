"""Answers from API objects alone: the rules kube-proxy would write, on one node or all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from analyzer.errors import InputError, UsageError, suggestion
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.recognised import Input, input_of
from analyzer.kubeproxy.absent import Absent, absent_of
from analyzer.kubeproxy.predict.assumptions import AssumedSettings, GivenSettings, assumed
from analyzer.kubeproxy.predict.cluster import Prediction, predict, rules_of_node
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.kubeproxy.predict.settings import names_of_nodes
from analyzer.kubeproxy.rows.endpoints import EndpointRows
from analyzer.kubeproxy.untold import JudgedInPart
from analyzer.kubeproxy.view import ServicePort, View
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.value import replace, value
from analyzer.parsers.formats import read_ruleset
from analyzer.questions.evaluating import concerning, selected
from analyzer.reports.not_judged import not_at
from analyzer.reports.phrases import count, listed
from analyzer.reports.progress import progress
from analyzer.semantics.assumed import DEFAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.cluster.from_dumps import FromDumps
    from analyzer.inputs.nodes import NodeInput

_SEEDS: Final = 1 << 32
_MALFORMED: Final = "Not judged, since malformed"
_DIFFERING: Final = "Not judged, since the generated rules give other results than predicted"
_WANTED: Final = "take them with `kubectl get services,endpointslices,nodes,pods -A -o json`"


@value
class Shown:
    """What can be dead in a cluster, in the way `Input` has it for one node."""

    view: View
    cluster: Cluster
    pods: Callable[[], Mapping[str, Sequence[str]]]


@value(kw_only=True)
class Everywhere:
    """ServicePorts at every node of a cluster.

    Attributes:
        view: each ServicePort once, as most nodes have it.
        services: the selected ones, each at every node, in the order of `asked`.
        asked: the same, as most nodes have them.
        absent: the selected ones that no node's rules have.
        file: their source, for messages.
        grounds: how they were predicted, or the dumps that they were read from.
        but: the same, of which it does not matter what the dumps of some nodes show or lack: a
            dead node sends no flows.
    """

    view: View
    services: tuple[EveryNode, ...]
    asked: tuple[ServicePort, ...]
    file: str
    grounds: Prediction | FromDumps
    diagnostics: tuple[Diagnostic, ...]
    but: Callable[[Collection[str]], Everywhere]
    absent: Absent = Absent()

    @property
    def prediction(self) -> Prediction:
        """How they were predicted; None if they were read."""
        assert isinstance(self.grounds, Prediction)
        return self.grounds


def is_asked(options: SimpleNamespace) -> bool:
    """Return whether rules are to be predicted."""
    return bool(getattr(options, "from_objects", None))


def is_everywhere(options: SimpleNamespace) -> bool:
    """Return whether the question is about every node, and not a single one."""
    return is_asked(options) and bool(options.dumps or options.node is None)


def predicted_input(options: SimpleNamespace, objects: ApiObjects) -> Input:
    """Return the input from the rules predicted for ``--node``, as if read from a dump.

    Raises:
        AnalyzerError: there is no such node, or the objects do not determine its rules.
    """
    if options.node is None:
        raise UsageError(f"--from-objects: {options.verb} is for one node; add --node NAME")
    found = assumed_of(options, objects)
    names = names_of_nodes(objects.items)
    if options.node not in names:
        raise UsageError(
            f"--node {options.node}: the objects have no such node"
            + suggestion(options.node, names)
        )
    malformed: list[str] = []
    file = f"rules predicted of {options.node}"
    with progress("rules") as advance:
        texts = rules_of_node(objects.items, found.settings, options.node, malformed)
        skim = EndpointRows.skim
        dumps = [
            read_ruleset(text.encode(), file, None, None, advance, skim, most=options.max_input)
            for text in texts
        ]
        given = input_of(options, dumps, [], objects, advance)
    told = [_told(file, f"assumed: {', '.join(found.words)}", Severity.INFO)]
    told += _malformed(file, malformed)
    return replace(
        given,
        view=replace(
            given.view,
            diagnostics=(*told, *given.view.diagnostics),
            in_part=tuple(_left_out(malformed, _MALFORMED)),
        ),
    )


def predicted_node(options: SimpleNamespace) -> NodeInput:
    """Return the same in the form of `read_nodes`."""
    from analyzer.inputs.nodes import NodeInput, OfNode

    given = predicted_input(options, ApiObjects(options))
    return NodeInput(OfNode(options.node, options.node, ()), given, options)


def everywhere(options: SimpleNamespace, objects: ApiObjects) -> Everywhere:
    """Return the selected ServicePorts on every node.

    Raises:
        AnalyzerError: the objects do not determine them, or a dump does not fit.
        OSError: a dump cannot be read.
    """
    if options.assumed != DEFAULTS:
        raise UsageError("--assume: only with a dump, or with --node")
    for option in ("ipsets", "addresses", "routes"):
        if getattr(options, option):
            raise UsageError(f"--{option}: only with a dump, or with --node")
    found = assumed_of(options, objects)
    seed = _random() if options.seed is None else options.seed
    with progress("Services") as advance:
        services, prediction = predict(
            objects.items, objects.cluster, found.settings, seed, advance
        )
    prediction = replace(prediction, assumed=found.words)
    dumps = _dumps_of(options, prediction) if options.dumps else {}
    return _Predicted(options, services, prediction, dumps).but(frozenset())


class _Predicted:
    """ServicePorts that were predicted, or read from some nodes' dumps."""

    def __init__(
        self,
        options: SimpleNamespace,
        services: Sequence[EveryNode],
        prediction: Prediction,
        dumps: Mapping[str, View],
    ) -> None:
        self._options = options
        self._services = services
        self._prediction = prediction
        self._dumps = dumps

    def but(self, gone: Collection[str]) -> Everywhere:
        """Return these, where it does not matter what the dumps of these nodes show or lack.

        Raises:
            AnalyzerError: the objects do not determine the selected ones.
        """
        options, prediction = self._options, self._prediction
        file = ", ".join(options.from_objects)
        dumped = _Dumped(services=tuple(self._services))
        if self._dumps:
            dumped = _with_dumps(options, self._services, self._dumps, gone)
            prediction = replace(prediction, dumps=tuple(sorted(self._dumps)))
        diagnostics = (
            *_malformed(file, prediction.malformed),
            *_differing(file, prediction),
            *dumped.diagnostics,
        )
        wrong = set(prediction.left_out)
        services = tuple(each for each in dumped.services if each.service.name.text not in wrong)
        shown = tuple(each.service for each in services)
        view = View(
            services=shown,
            mode=prediction.settings.mode,
            node=None,
            diagnostics=diagnostics,
            cut=tuple(dict.fromkeys(cut for each in dumped.views for cut in each.cut)),
            untold=tuple(dict.fromkeys(part for each in dumped.views for part in each.untold)),
            left_out=tuple(dict.fromkeys(name for each in dumped.views for name in each.left_out)),
            unled=tuple(dict.fromkeys(name for each in dumped.views for name in each.unled)),
            in_part=(
                *_left_out(prediction.malformed, _MALFORMED),
                *_left_out(
                    (name for each in prediction.walked for name in each.differing), _DIFFERING
                ),
                *dumped.lacking,
            ),
        )
        if not shown:
            why = next(iter(prediction.malformed), "the objects have none with a ClusterIP")
            raise InputError(f"{file}: no Service to judge: {why}")
        absent = absent_of(view, (), (), tells_refusals=True, lists_endpoints=True)
        absent, asked = selected(options, view, absent, "these objects")
        if not asked:
            raise InputError(f"{file}: no Service to judge: no rule jumps to its chains")
        at = {id(each): every for each, every in zip(shown, services, strict=True)}
        return Everywhere(
            view=concerning(options, view, absent, asked),
            services=tuple(at[id(each)] for each in asked),
            asked=asked,
            absent=absent,
            file=file,
            grounds=prediction,
            diagnostics=diagnostics,
            but=self.but,
        )


def _random() -> int:
    from random import SystemRandom

    return SystemRandom().randrange(_SEEDS)


def assumed_of(options: SimpleNamespace, objects: ApiObjects) -> AssumedSettings:
    """Return the settings of kube-proxies, after checking that the objects suffice.

    Raises:
        AnalyzerError: they do not, or the options do not fit.
    """
    file = ", ".join(options.from_objects)
    for kinds, what in (
        ({"Service"}, "Services"),
        ({"EndpointSlice", "Endpoints"}, "EndpointSlices"),
        ({"Node"}, "Nodes"),
    ):
        if not any(item.get("kind") in kinds for item in objects.items):
            raise InputError(f"{file}: it contains no {what}; {_WANTED}")
    said = GivenSettings(
        version=options.kube_proxy,
        mode=options.mode,
        local_mode=options.detect_local_mode,
        cluster_cidrs=tuple(options.cluster_cidr),
    )
    try:
        return assumed(objects.items, said)
    except ValueError as error:
        hint = "" if options.kube_proxy else "; choose a version with --kube-proxy"
        raise UsageError(f"--kube-proxy: {error}{hint}") from None


def _left_out(told: Iterable[str], why: str) -> Iterator[JudgedInPart]:
    """Yield Services that are not judged, each as its name, alone or before what is wrong."""
    for name in dict.fromkeys(each.partition(":")[0] for each in told):
        yield JudgedInPart(name, why)


def _malformed(file: str, malformed: Sequence[str]) -> list[Diagnostic]:
    if not malformed:
        return []
    says = f"left out because malformed: {count(len(malformed), 'Service')}: {listed(malformed)}"
    return [_told(file, says, Severity.WARNING, partial=True)]


def _differing(file: str, prediction: Prediction) -> list[Diagnostic]:
    """Return a warning that names ServicePorts whose generated rules give another result."""
    found = [name for walked in prediction.walked for name in walked.differing]
    if not found:
        return []
    says = (
        f"the generated rules give other results than predicted for {listed(found)}: a bug in "
        "kubeodds, please report it; they are left out. With --node, all rules of one node are "
        "evaluated"
    )
    return [_told(file, says, Severity.WARNING, partial=True)]


def _told(file: str, says: str, severity: Severity, *, partial: bool = False) -> Diagnostic:
    return Diagnostic(
        severity=severity, code="prediction", message=says, file=file, partial=partial
    )


# --- dumps in place of predictions ----------------------------------------------


@value(kw_only=True)
class _Dumped:
    """ServicePorts with what dumps show of their nodes.

    Attributes:
        views: what the dumps that matter show.
        lacking: those that such a dump does not show, so that nothing is known of them there.
    """

    services: tuple[EveryNode, ...]
    views: tuple[View, ...] = ()
    lacking: tuple[JudgedInPart, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def _dumps_of(options: SimpleNamespace, prediction: Prediction) -> Mapping[str, View]:
    """Return by node what its dump shows.

    Raises:
        AnalyzerError: a dump is of no node of the objects, or shows no Services.
    """
    from analyzer.inputs.nodes import read_nodes

    views: dict[str, View] = {}
    for each in read_nodes(options):
        name, file = each.of.node, each.of.files[0]
        if name is None or name not in prediction.nodes:
            raise UsageError(
                f"{file}: which node of the objects is it from? Add --node NAME, or NAME,NAME,... "
                "in the order of the dumps"
            )
        if each.given.view.unseen:
            raise InputError(f"{file}: {each.given.view.unseen}")
        views[name] = each.given.view
    return views


def _with_dumps(
    options: SimpleNamespace,
    services: Sequence[EveryNode],
    views: Mapping[str, View],
    gone: Collection[str],
) -> _Dumped:
    dumped = {
        name: {_key(service): service for service in view.services} for name, view in views.items()
    }
    living = {name: view for name, view in views.items() if name not in gone}
    told = [each for view in living.values() for each in view.diagnostics]
    known = {_key(each.service): each for each in services}
    found, lacking = [], []
    for key in dict.fromkeys([*known, *(key for of in dumped.values() for key in of)]):
        at = known[key].at if key in known else ()
        kept = [replace(each, nodes=each.nodes.difference(dumped)) for each in at]
        kept = [each for each in kept if each.nodes]
        kept += [At(of[key], frozenset([name])) for name, of in dumped.items() if key in of]
        if kept:
            found.append(EveryNode(at=tuple(kept)))
        without = [name for name in living if key not in dumped[name]]
        if key in known and without:
            name = known[key].service.name.text
            lacking.append(JudgedInPart(name, not_at(without)))
            says = f"{name}: the dump of {listed(without)} has no rule for it"
            told.append(_told(", ".join(options.dumps), says, Severity.WARNING))
    return _Dumped(
        services=tuple(found),
        views=tuple(living.values()),
        lacking=tuple(lacking),
        diagnostics=tuple(dict.fromkeys(told)),
    )


def _key(service: ServicePort) -> tuple[object, ...]:
    return service.name.text, service.protocol, service.version
