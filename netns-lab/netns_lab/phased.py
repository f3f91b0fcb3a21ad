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
from analyzer.kubeproxy.view import Source
from analyzer.model.diagnostics import Diagnostic, Severity, partial_warning
from analyzer.model.value import replace
from analyzer.output import INTERRUPTED, finish
from analyzer.questions.evaluating import dead_of
from analyzer.reports.lab_answers import LeftOut
from analyzer.reports.lab_phases_answer import FollowedRoute, LabPhasesAnswer, Phase, lost_of
from analyzer.reports.phrases import count
from analyzer.reports.progress import progress, up_to
from analyzer.reports.renderers import RENDERERS
from analyzer.semantics.base_chains import Rules
from netns_lab.arguments import MOST_CONNECTIONS
from netns_lab.asked import other_nodes, replayable, said, with_senders
from netns_lab.backends import backend_of
from netns_lab.beyond import OtherNode
from netns_lab.errors import LabError
from netns_lab.followed_routes import Place, RouteByDump, by_sender, places_in, untold
from netns_lab.hints import with_hints
from netns_lab.namespace import leave_host
from netns_lab.node_ports import own_first
from netns_lab.pod_devices import pod_device
from netns_lab.reasons import DEAD
from netns_lab.schedule import Schedule, files_of, schedule
from netns_lab.sources import CLIENT_PORTS, sending_of, version_of

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
    places, left_out = replayable(options, given)
    static = SimpleNamespace(**{**vars(options), "dead": [], "dead_node": []})
    dead = dead_of(static, given)
    nodes, told = other_nodes(options, given, dead)
    for each in (*planned.first, *(e.death for e in planned.events if e.death is not None)):
        if each.node is not None and each.node == given.view.node:
            raise LabError(f"{each.what} is the node that the rules are from: it cannot die here")
    sides, told_of_routes = _sides(
        options, given, further, places, (dead, nodes, planned), left_out
    )
    flows = options.rate * options.seconds
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    phases: Any = importlib.import_module("netns_lab.phases")
    numbers = _connections_of_each(options, [run for side in sides for run in side.runs])
    course = phases.Course(sides, planned, _connector(sides, numbers), options.rate)
    with progress("new flows") as advance:
        kept = course.go(up_to(int(flows), advance))
    if not any(span.first < span.last for each in course.runs for span in each.spans):
        if not course.is_interrupted:
            raise LabError(f"{DEAD}, and all of them are dead")
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
            *told_of_routes,
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


# --- labs --------------------------------------------------------------------------


def _sides(
    options: SimpleNamespace,
    given: Input,
    further: Mapping[str, Input],
    places: Sequence[Place],
    fates: tuple[Dead, tuple[OtherNode, ...], Schedule],
    left_out: list[LeftOut],
) -> tuple[list[Any], list[Diagnostic]]:
    """Build the labs, one for each dump of an IP version, each with its routes.

    Return them with warnings: of replacing dumps that lack one of the routes, and of endpoints that
    send no flows. Routes without senders are added to `left_out`.

    Raises:
        LabError: no route is left.
    """
    planned = fates[2]
    labs, told = [], []
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
        found = [places_in(theirs, place) for place in own]
        told += [each for some in found for each in untold(some)]
        every = [p for some in found for p in some.values() if p is not None]
        lab = _lab(options, given, part, every, fates, len(own))
        for death in (*planned.first, *(e.death for e in planned.events if e.death is not None)):
            lab.dying.check(death)
        ((_, kept),), mute, silent = with_senders([(lab, own)], given)
        left_out += mute
        told += silent
        of_senders = {id(route) for _, route in kept}
        sent = [
            each
            for place, some in zip(own, found, strict=True)
            if id(place[1]) in of_senders
            for each in by_sender(lab, some)
        ]
        labs.append((lab, sent, {None: part.ruleset} | {f: e.ruleset for f, e in theirs.items()}))
    number = sum(len(sent) for _, sent, _ in labs)
    if not number:
        raise LabError(left_out[-1].reason)
    flows = _flows_of_each(options, number)
    return [_side(*each, flows) for each in labs], list(dict.fromkeys(told))


def _side(
    lab: Any, sent: Sequence[RouteByDump], rulesets: Mapping[str | None, Rules], flows: int
) -> Any:
    phases = importlib.import_module("netns_lab.phases")
    followed = importlib.import_module("netns_lab.followed")
    recorders: dict[Any, Any] = {}
    runs = tuple(followed.Followed(lab, each, flows, recorders, at) for at, each in enumerate(sent))
    followed.check_room(runs)
    return phases.RunningLab(lab, runs, rulesets, recorders)


def _lab(
    options: SimpleNamespace,
    given: Input,
    part: Input,
    places: Sequence[Place],
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
        own=own_first(given),
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
    of_tcp = sum(map(_connects, runs))
    each_has = min(options.connections, max(1, MOST_CONNECTIONS // max(1, of_tcp)))
    numbers: list[int] = []
    for each in runs:
        left = MOST_CONNECTIONS - sum(numbers)
        numbers.append(min(each_has, left) if _connects(each) else 0)
    return numbers


def _connects(run: Any) -> bool:
    """Return whether connections stay open on a route: an endpoint is deaf to answers."""
    return run.service.protocol == "tcp" and run.sender is None


def _unfollowed(
    options: SimpleNamespace, runs: Sequence[Any], numbers: Sequence[int], given: Input
) -> list[Diagnostic]:
    """Warn if fewer connections are followed than requested."""
    of_tcp = [n for run, n in zip(runs, numbers, strict=True) if _connects(run)]
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
        places[address] = connections.client_of(lab, source, address)
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
        sender=None if run.sender is None else str(run.sender),
        connections=connections,
    )
