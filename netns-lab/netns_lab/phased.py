"""``kubeodds lab run --for``: what new flows and open connections meet while things happen."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from analyzer.errors import UsageError
from analyzer.failure.agreement import FALSE_ALARM_RATE, interval, judge
from analyzer.inputs.recognised import Input, read_input
from analyzer.kubeproxy.view import FrontendKind, Route, ServicePort, Source
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.value import replace
from analyzer.output import DONE, INTERRUPTED, PARTLY, finish
from analyzer.questions.judging import dead_of
from analyzer.reports.answers import LeftOut
from analyzer.reports.lab_phases_answer import LabPhasesAnswer, Phase, lost_of
from analyzer.reports.phrases import count
from analyzer.reports.progress import progress, up_to
from analyzer.reports.renderers import RENDERERS
from netns_lab.asked import left_out_of, other_nodes, place_of, replayable, said
from netns_lab.backends import backend_of
from netns_lab.beyond import OtherNode
from netns_lab.errors import LabError
from netns_lab.namespace import leave_host
from netns_lab.pod_devices import pod_device
from netns_lab.schedule import files_of, schedule
from netns_lab.sources import CLIENT_PORTS, sending_of, version_of

_ONE_ROUTE: Final = "a run with --for follows one route at a time"
_Place = tuple[ServicePort, Route]


def run(options: SimpleNamespace) -> int:
    """Let a schedule happen, show what came of it, and return the exit status.

    Raises:
        AnalyzerError: bad input, or a lab that cannot start.
    """
    if options.format not in RENDERERS["lab run --for"]:
        formats = ", ".join(RENDERERS["lab run --for"])
        raise UsageError(f"--format {options.format}: a run with --for is shown as {formats}")
    leave_host()
    given = read_input(options)
    if given.parts:
        raise LabError("one IP version at a time: pass the dump of iptables, or that of ip6tables")
    further = {
        file: read_input(SimpleNamespace(**{**vars(options), "dumps": [file]}))
        for file in dict.fromkeys(file for file, _ in files_of(options))
    }
    planned = schedule(options, given, list(further.values()))
    (service, route), left_out = _one(options, given)
    later = {file: _same_route(each, (service, route)) for file, each in further.items()}
    flows = int(options.rate * options.seconds)
    if not 1 <= flows <= len(CLIENT_PORTS):
        raise UsageError(
            f"{options.rate:g} flows a second for {options.seconds:g}s are {flows:,}: expected "
            f"1 to {len(CLIENT_PORTS):,}; change --rate or --for"
        )
    static = SimpleNamespace(**{**vars(options), "dead": [], "dead_node": []})
    dead = dead_of(static, given)
    nodes, told = other_nodes(options, given, dead)
    places = [(service, route), *filter(None, later.values())]
    lab = _lab(options, given, dead, places, nodes)
    for each in (*planned.first, *(e.death for e in planned.events if e.death is not None)):
        if each.node is not None and each.node == given.view.node:
            raise LabError(f"{each.what} is the node that the rules are from: it cannot die here")
        lab.dying.check(each)
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    phases: Any = importlib.import_module("netns_lab.phases")
    runner = phases.Phased(lab, service, route, flows)
    rulings = {"": phases.Rulings(str(given.ruleset.file), given.ruleset, route)} | {
        file: phases.Rulings(file, each.ruleset, found[1] if (found := later[file]) else None)
        for file, each in further.items()
    }
    course = phases.Course(
        lab,
        runner,
        planned,
        rulings,
        _connector(options, lab, (service, route), runner),
        options.rate,
    )
    with progress("new flows") as advance:
        kept = course.go(up_to(flows, advance))
    if not any(span.first < span.last for span in course.spans):
        raise KeyboardInterrupt
    answer = _answer(options, course, runner, kept, planned, further)
    answer = replace(
        answer,
        dead=", ".join(
            [
                *(f"zone {zone}" for zone in dead.zones),
                *(f"{d.what} ({d.kind})" for d in planned.first),
            ]
        )
        or "nothing",
        left_out=tuple(left_out),
        diagnostics=(
            *given.view.diagnostics,
            *told,
            *lab.notes,
            *said(left_out, given),
            *(_untold(file, service) for file, found in later.items() if found is None),
            *_unchecked(course, given),
        ),
    )
    lab.close()
    status = finish(options, "lab run --for", answer, answer.diagnostics, no=not answer.agrees)
    if course.is_interrupted:
        return INTERRUPTED
    # Of what was judged in part nobody is to think that all of it was found good.
    return PARTLY if status == DONE and not answer.is_whole else status


def _unchecked(course: Any, given: Input) -> list[Diagnostic]:
    if not course.unchecked:
        return []
    says = f"interrupted before the rules were read back: {count(course.unchecked, 'change')}"
    return [partial_warning("rules-not-checked", says, given.ruleset.file)]


def _one(options: SimpleNamespace, given: Input) -> tuple[_Place, list[LeftOut]]:
    """Return the route to follow, that to a ClusterIP before all, and what is left out."""
    routes, left_out = replayable(options, given)
    usable = []
    for service, route in routes:
        why = None
        if service.affinity is not None:
            why = "flows of one client with session affinity are not independent"
        elif route.source is Source.HAIRPIN:
            why = "an endpoint that dies sends no flows"
        if why is None:
            usable.append((service, route))
        else:
            left_out.append(left_out_of(service, route, why))
    if not usable:
        raise LabError(left_out[0].reason)
    services = {id(service): service for service, _ in usable}
    if len(services) > 1:
        several = ", ".join(sorted(each.name.text for each in services.values())[:5])
        raise UsageError(f"{_ONE_ROUTE}; name one with --service: {several}")
    first = next(
        (each for each in usable if each[1].frontend.kind is FrontendKind.CLUSTER_IP), usable[0]
    )
    left_out += [left_out_of(*each, _ONE_ROUTE) for each in usable if each is not first]
    return first, left_out


def _same_route(given: Input, place: _Place) -> _Place | None:
    """Return the same route as another dump has it; None: it has none."""
    wanted = place_of(*place)
    for service in given.view.services:
        for route in service.every_route(place[1].source):
            if place_of(service, route) == wanted and (route.shares or route.astray):
                return service, route
    return None


def _untold(file: str, service: ServicePort) -> Diagnostic:
    says = f"it does not show what happens to flows to {service.name.text}: not judged"
    return partial_warning("not-predicted", says, file)


def _lab(
    options: SimpleNamespace,
    given: Input,
    dead: Any,
    places: Sequence[_Place],
    nodes: tuple[OtherNode, ...],
) -> Any:
    experiment = importlib.import_module("netns_lab.experiment")
    known = {id(each) for each in given.view.services}
    more = tuple(service for service, _ in places if id(service) not in known)
    view = replace(given.view, services=(*given.view.services, *more))
    question = experiment.Question(
        ruleset=given.ruleset,
        cluster=given.cluster,
        view=view,
        dead=dead,
        backend=options.backend or backend_of(given.ruleset),
        # So many that there is an address for connections besides.
        flows=len(CLIENT_PORTS) + 1,
        routes=tuple(places),
        pod_device=pod_device(given.every_ruleset, given.assumed),
        others=given.rulesets[1:],
        nodes=nodes,
        lenient=options.lenient,
    )
    return experiment.Lab(question)


def _connector(
    options: SimpleNamespace, lab: Any, place: _Place, runner: Any
) -> Callable[[Callable[[], float]], tuple[Any, int]]:
    """Return what makes the connections that are kept open, once the clock is there."""
    connections = importlib.import_module("netns_lab.connections")
    service, route = place
    version = version_of(service, route)
    number = options.connections if service.protocol == "tcp" else 0

    def connect(clock: Callable[[], float]) -> tuple[Any, int]:
        plan = lab.topology.plan
        if route.source is Source.NODE:
            of = lab.topology.node, None
        else:
            clients = plan.clients[sending_of(service, route, version)]
            of = connections.client_of(lab.topology, route.source, clients[-1])
        listeners = lab.listeners(service) if number else ()
        return connections.Connections(of, runner.to, listeners, clock), number

    return connect


def _answer(
    options: SimpleNamespace,
    course: Any,
    runner: Any,
    kept: Any,
    planned: Any,
    further: dict[str, Input],
) -> LabPhasesAnswer:
    expecting = importlib.import_module("netns_lab.expecting")
    times = importlib.import_module("netns_lab.buckets")
    measured = course.measurements()
    rate = FALSE_ALARM_RATE / max(1, len(measured))
    phases = []
    for span, each in measured:
        answered = sum(e.answered for e in each.endpoints)
        phases.append(
            Phase(
                begins=span.begins,
                ends=span.ends,
                at_event=span.at_event,
                dead=", ".join(span.names) or "nothing",
                rules=span.rules,
                verdict=judge(each, rate, fates=not span.at_event),
                lost_predicted=None if span.route is None else span.lost,
                interval=interval(lost_of(each), each.flows) if answered or each.flows else None,
            )
        )
    # Of a run that was interrupted the last have not happened.
    happened = list(zip(planned.events, course.events, strict=False))
    losing = any(
        share.lost or route.unresolved
        for each in further.values()
        for service in each.view.services
        for route in service.routes
        for share in route.shares
    )
    return LabPhasesAnswer(
        dead="",
        seconds=options.seconds,
        rate=options.rate,
        events=tuple(course.events),
        phases=tuple(phases),
        buckets=times.buckets(runner, course.marks, options.seconds),
        connections=tuple(
            expecting.connection_of(
                each,
                happened,
                course.ended,
                kept.pauses,
                is_told=not losing,
                slowest=planned.slowest,
            )
            for each in kept.all
        ),
        false_alarm_rate=FALSE_ALARM_RATE,
        interrupted=course.ended if course.is_interrupted else None,
    )
