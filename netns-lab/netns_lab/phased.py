"""``kubeodds lab run --for``: new flows and open connections while things change."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from analyzer.errors import UsageError
from analyzer.failure.agreement import FALSE_ALARM_RATE, judge, rate_of_each
from analyzer.failure.binomial import interval
from analyzer.failure.models import Dead
from analyzer.inputs.recognised import Input, read_input
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.diagnostics import Diagnostic, Severity, partial_warning
from analyzer.model.value import replace
from analyzer.output import INTERRUPTED, finish
from analyzer.questions.evaluating import dead_of
from analyzer.reports.lab_answers import LeftOut
from analyzer.reports.lab_phases_answer import FollowedRoute, LabPhasesAnswer, Phase, lost_of
from analyzer.reports.phrases import count
from analyzer.reports.progress import progress, up_to
from analyzer.reports.renderers import RENDERERS
from netns_lab.arguments import MOST_CONNECTIONS
from netns_lab.asked import left_out_of, other_nodes, place_of, replayable, routes_to, said
from netns_lab.backends import backend_of
from netns_lab.beyond import OtherNode
from netns_lab.errors import LabError
from netns_lab.hints import with_hints
from netns_lab.namespace import leave_host
from netns_lab.pod_devices import pod_device
from netns_lab.schedule import Schedule, files_of, schedule
from netns_lab.sources import CLIENT_PORTS, sending_of, version_of

_Place = tuple[ServicePort, Route]
#: Most client addresses of each kind of source; further routes share them.
_CLIENTS: Final = 32


def run(options: SimpleNamespace) -> int:
    """Run a schedule, print the result, and return the exit status.

    Raises:
        AnalyzerError: bad input, or a lab that cannot start.
    """
    if options.format not in RENDERERS["lab run --for"]:
        formats = ", ".join(RENDERERS["lab run --for"])
        raise UsageError(f"--format {options.format}: a run with --for is shown as {formats}")
    leave_host()
    given = read_input(options)
    further = {
        file: read_input(SimpleNamespace(**{**vars(options), "dumps": [file]}))
        for file in dict.fromkeys(file for file, _ in files_of(options))
    }
    planned = schedule(options, given, list(further.values()))
    places, left_out = _followed(options, given)
    flows = _flows_of_each(options, len(places))
    static = SimpleNamespace(**{**vars(options), "dead": [], "dead_node": []})
    dead = dead_of(static, given)
    nodes, told = other_nodes(options, given, dead)
    for each in (*planned.first, *(e.death for e in planned.events if e.death is not None)):
        if each.node is not None and each.node == given.view.node:
            raise LabError(f"{each.what} is the node that the rules are from: it cannot die here")
    sides, untold = _sides(options, given, further, places, (dead, nodes, planned), flows)
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    phases: Any = importlib.import_module("netns_lab.phases")
    numbers = _connections_of_each(options, [run for side in sides for run in side.runs])
    course = phases.Course(sides, planned, _connector(sides, numbers), options.rate)
    with progress("new flows") as advance:
        kept = course.go(up_to(flows * len(places), advance))
    if not any(span.first < span.last for each in course.runs for span in each.spans):
        raise KeyboardInterrupt
    answer = replace(
        _answer(options, course, kept, planned, further, numbers),
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
            *dict.fromkeys(note for side in sides for note in side.lab.notes),
            *said(left_out, given),
            *untold,
            *_unfollowed(options, course.runs, numbers, given),
            *_unchecked(course, given),
        ),
    )
    for side in sides:
        side.lab.close()
    answer = with_hints(answer, given)
    status = finish(options, "lab run --for", answer, answer.diagnostics, no=not answer.agrees)
    return INTERRUPTED if course.is_interrupted else status


def _unchecked(course: Any, given: Input) -> list[Diagnostic]:
    if not course.unchecked:
        return []
    says = f"interrupted before the rules were read back: {count(course.unchecked, 'change')}"
    return [partial_warning("rules-not-checked", says, given.ruleset.file)]


# --- routes ------------------------------------------------------------------------


def _followed(options: SimpleNamespace, given: Input) -> tuple[list[_Place], list[LeftOut]]:
    """Return the routes to follow, and those left out.

    Raises:
        LabError: no route can be followed.
    """
    routes, left_out = replayable(options, given)
    usable = []
    for service, route in routes:
        if route.source is Source.HAIRPIN:
            why = "an endpoint that dies sends no flows"
            left_out.append(left_out_of(service, route, why))
        else:
            usable.append((service, route))
    if not usable:
        raise LabError(left_out[0].reason)
    return usable, left_out


def _flows_of_each(options: SimpleNamespace, routes: int) -> int:
    """Return the most flows that a route has.

    Raises:
        UsageError: there are too few for all routes, or too many for the ports of a client.
    """
    flows = int(options.rate * options.seconds)
    if not routes <= flows <= len(CLIENT_PORTS):
        of = f" on {count(routes, 'route')}" if routes > 1 else ""
        raise UsageError(
            f"{options.rate:g} flows a second for {options.seconds:g}s are {flows:,}{of}: expected "
            f"{routes:,} to {len(CLIENT_PORTS):,}; change --rate or --for"
        )
    return -(-flows // routes)


def _same_route(given: Input, place: _Place) -> _Place | None:
    """Return the same route in another dump; None if it has no such route."""
    wanted = place_of(*place)
    for each in given.view.services:
        for service, route in routes_to(each, place[1].source, given):
            if place_of(service, route) == wanted and (route.shares or route.astray):
                return service, route
    return None


def _by_dump(
    first: _Place, later: Mapping[str, _Place | None]
) -> Mapping[str | None, _Place | None]:
    """Return a route in the first dump, under None, and in each dump that replaces it, by file."""
    found: dict[str | None, _Place | None] = {None: first}
    found.update(later.items())
    return found


def _untold(file: str, service: ServicePort) -> Diagnostic:
    says = f"it does not show what happens to flows to {service.name.text}: not judged"
    return partial_warning("not-predicted", says, file)


# --- labs --------------------------------------------------------------------------


def _sides(
    options: SimpleNamespace,
    given: Input,
    further: Mapping[str, Input],
    places: Sequence[_Place],
    fates: tuple[Dead, tuple[OtherNode, ...], Schedule],
    flows: int,
) -> tuple[list[Any], list[Diagnostic]]:
    """Build the labs, one for each dump of an IP version, each with its routes.

    Return them with a warning for each replacing dump that lacks one of the routes.
    """
    planned = fates[2]
    phases: Any = None
    sides, untold = [], []
    for part in given.parts or (given,):
        own = [p for p in places if not given.parts or version_of(*p) in part.versions]
        if not own:
            continue
        # If dumps of both IP versions were given, each is replaced by one of its own version.
        theirs = {
            file: each
            for file, each in further.items()
            if not given.parts or {*each.versions} & {*part.versions}
        }
        later = [{file: _same_route(each, p) for file, each in theirs.items()} for p in own]
        for place, found in zip(own, later, strict=True):
            untold += [_untold(file, place[0]) for file, other in found.items() if other is None]
        every = [*own, *(p for found in later for p in found.values() if p is not None)]
        lab = _lab(options, given, part, every, fates, len(own))
        for death in (*planned.first, *(e.death for e in planned.events if e.death is not None)):
            lab.dying.check(death)
        phases = phases or importlib.import_module("netns_lab.phases")
        followed = importlib.import_module("netns_lab.followed")
        recorders: dict[Any, Any] = {}
        runs = tuple(
            followed.Followed(lab, _by_dump(place, found), flows, recorders, at)
            for at, (place, found) in enumerate(zip(own, later, strict=True))
        )
        followed.check_room(runs)
        rulesets = {None: part.ruleset} | {file: each.ruleset for file, each in theirs.items()}
        sides.append(phases.RunningLab(lab, runs, rulesets, recorders))
    return sides, list(dict.fromkeys(untold))


def _lab(
    options: SimpleNamespace,
    given: Input,
    part: Input,
    places: Sequence[_Place],
    fates: tuple[Dead, tuple[OtherNode, ...], Schedule],
    routes: int,
) -> Any:
    experiment = importlib.import_module("netns_lab.experiment")
    known = {id(each) for each in part.view.services}
    more = {id(service): service for service, _ in places if id(service) not in known}
    view = replace(part.view, services=(*part.view.services, *more.values()))
    question = experiment.LabSetup(
        ruleset=part.ruleset,
        cluster=given.cluster,
        view=view,
        dead=fates[0],
        backend=options.backend or backend_of(part.ruleset),
        # One more than flows need, so that an address is left for connections.
        flows=len(CLIENT_PORTS) + 1,
        clients=min(_CLIENTS, routes) + 1,
        routes=tuple(places),
        pod_device=pod_device(given.every_ruleset, given.assumed),
        others=part.rulesets[1:],
        nodes=fates[1],
        lenient=options.lenient,
    )
    return experiment.Lab(question)


# --- connections -------------------------------------------------------------------


def _connections_of_each(options: SimpleNamespace, runs: Sequence[Any]) -> list[int]:
    """Return how many connections stay open on each route: equally many, up to a total."""
    of_tcp = sum(each.service.protocol == "tcp" for each in runs)
    each_has = min(options.connections, max(1, MOST_CONNECTIONS // max(1, of_tcp)))
    numbers: list[int] = []
    for each in runs:
        left = MOST_CONNECTIONS - sum(numbers)
        numbers.append(min(each_has, left) if each.service.protocol == "tcp" else 0)
    return numbers


def _unfollowed(
    options: SimpleNamespace, runs: Sequence[Any], numbers: Sequence[int], given: Input
) -> list[Diagnostic]:
    """Warn if fewer connections are followed than requested."""
    of_tcp = [n for run, n in zip(runs, numbers, strict=True) if run.service.protocol == "tcp"]
    fewer = [n for n in of_tcp if n < options.connections]
    if not fewer:
        return []
    says = (
        f"connections stay open on {sum(map(bool, of_tcp)):,} of {count(len(of_tcp), 'TCP route')}"
        f", {max(of_tcp)} each: at most {MOST_CONNECTIONS} in all"
    )
    return [
        Diagnostic(
            severity=Severity.WARNING,
            code="fewer-connections",
            message=says,
            file=given.ruleset.file,
        )
    ]


def _connector(
    sides: Sequence[Any], numbers: Sequence[int]
) -> Callable[[Callable[[], float]], Any]:
    """Return the function that opens the connections, given the clock."""
    connections = importlib.import_module("netns_lab.connections")

    def connect(clock: Callable[[], float]) -> Any:
        targets, listeners, at = [], [], 0
        for side in sides:
            places: dict[Any, Any] = {}
            for run in side.runs:
                if numbers[at]:
                    client = _client(side.lab, run, places)
                    targets.append(
                        connections.RouteConnections(
                            route=at, client=client, to=run.to, number=numbers[at]
                        )
                    )
                    listeners += side.lab.listeners(run.service)
                at += 1
        return connections.Connections(targets, list(dict.fromkeys(listeners)), clock)

    return connect


def _client(lab: Any, run: Any, places: dict[Any, Any]) -> Any:
    """Return where the connections of a route come from; `places` are those set up so far."""
    connections = importlib.import_module("netns_lab.connections")
    source = run.route.source
    if source is Source.NODE:
        return lab.topology.node, None
    sending = sending_of(run.service, run.route, version_of(run.service, run.route))
    address = lab.topology.plan.clients[sending][-1]
    if address not in places:
        places[address] = connections.client_of(lab.topology, source, address)
    return places[address]


# --- what came of it ---------------------------------------------------------------


def _answer(
    options: SimpleNamespace,
    course: Any,
    kept: Any,
    planned: Schedule,
    further: Mapping[str, Input],
    numbers: Sequence[int],
) -> LabPhasesAnswer:
    expecting = importlib.import_module("netns_lab.expecting")
    times = importlib.import_module("netns_lab.buckets")
    measured = [(at, *each) for at, run in enumerate(course.runs) for each in run.measurements()]
    rate = rate_of_each(len(measured))
    phases = [
        Phase(
            route=at,
            begins=span.begins,
            ends=span.ends,
            at_event=span.at_event,
            dead=", ".join(span.names) or "nothing",
            rules=span.rules,
            verdict=judge(each, rate, fates=not span.at_event),
            lost_predicted=None if span.route is None else span.lost,
            interval=interval(lost_of(each), each.flows),
        )
        for at, span, each in measured
    ]
    # After an interruption, the last events have not happened.
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
        routes=tuple(_route(*each) for each in zip(course.runs, numbers, strict=True)),
        events=tuple(course.events),
        phases=tuple(phases),
        buckets=times.buckets(course.runs, options.seconds),
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
        ended=course.ended,
        interrupted=course.ended if course.is_interrupted else None,
    )


def _route(run: Any, connections: int) -> FollowedRoute:
    route = run.route
    return FollowedRoute(
        service=run.service.name.text,
        protocol=run.service.protocol,
        frontend=f"{route.frontend.kind.value} {route.frontend}",
        source=route.source.value,
        connections=connections,
    )
