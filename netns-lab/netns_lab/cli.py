"""``kubeodds lab``: replay of a dump's rules on this machine's kernel."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, Final

from analyzer.errors import InputError, UsageError
from analyzer.failure.agreement import FALSE_ALARM_RATE, clients_agree, judge_all, rate_of_each
from analyzer.failure.binomial import flows_needed
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.bundle import opened
from analyzer.inputs.files import refuse_to_read_twice
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.view import Route, ServicePort, Source, each_network
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.flow_trace import FlowTrace
from analyzer.model.measurement import ClientTrial, Measurement
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.output import INTERRUPTED, finish, say
from analyzer.questions.repairing import repair_of
from analyzer.reports.lab_answers import ClientsAnswer, LabAnswer, LabRepairAnswer, LeftOut
from analyzer.reports.progress import progress, up_to
from analyzer.reports.renderers import RENDERERS
from netns_lab.arguments import FLOWS, MOST_OF_A_ROUTE, SOURCES, parser
from netns_lab.asked import SetUp, left_out_of, names, notes, place_of, routes_of, said, set_up
from netns_lab.errors import LabError, NotMeasuredError
from netns_lab.hints import with_hints
from netns_lab.interrupting import interruptible
from netns_lab.namespace import leave_host
from netns_lab.schedule import is_asked

#: Leading bytes of a document in which its kind is stated.
_START: Final = 200
_SAVED: Final = re.compile(rb'"kubeodds/(?:lab|lab-phases|lab-pcap|lab-repair|clients)/')


def main(words: Sequence[str]) -> int:
    """Run one verb of the lab and return the exit status.

    Raises:
        AnalyzerError: bad input, or a lab that cannot start.
    """
    words, command = _parted(words)
    options = parser().parse_args(words, SimpleNamespace())
    refuse_to_read_twice(options)
    options.command = command
    is_opened = options.verb in {"run", "clients", "repair", "shell"}
    return _VERBS[options.verb](opened(options, say) if is_opened else options)


def _parted(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words of `lab shell` before ``--``, and the command after it."""
    if words[:1] != ["shell"] or "--" not in words:
        return words, ()
    at = list(words).index("--")
    return words[:at], words[at + 1 :]


def _run(options: SimpleNamespace) -> int:
    if options.pcap is not None:
        if is_asked(options):
            raise UsageError("--pcap: a capture has its own time: leave out --for")
        if options.flows is not None:
            raise UsageError("--pcap: a capture has its own flows: leave out --flows")
        of_capture: int = importlib.import_module("netns_lab.pcap_run").run(options)
        return of_capture
    if options.timing is not None:
        raise UsageError("--timing: needs --pcap FILE")
    if is_asked(options):
        if options.flows is not None:
            raise UsageError("--for: sends flows at a steady --rate: leave out --flows")
        leave_host()
        status: int = importlib.import_module("netns_lab.phased").run(options)
        return status
    each_has = options.flows or FLOWS
    made = set_up(options, each_has, sends_behind=True)
    labs, given, dead, deaths, left_out = made[:5]
    found: list[Measurement] = []
    traces: list[FlowTrace] = []
    untraced: list[Diagnostic] = []
    unmeasured: list[LeftOut] = []
    flows, stop = len(made.routes) * each_has, Event()
    with interruptible(stop.set), progress("new flows") as advance:
        for lab, routes in labs:
            asked = [(*each, each_has) for each in routes]
            found += _measured(lab, asked, up_to(flows, advance), unmeasured, stop)
            _cross_check(lab, routes)
            if not stop.is_set():
                traces += _traces(options, lab, given, routes, untraced)
            lab.close()
    left_out += _checked(unmeasured, found, stop)
    answer = LabAnswer(
        dead=names(dead, deaths),
        verdicts=judge_all(found),
        traces=tuple(traces),
        routes=len(made.routes) - len(unmeasured),
        left_out=tuple(left_out),
        rate=FALSE_ALARM_RATE,
        diagnostics=(
            *(*given.view.diagnostics, *notes(made), *said(left_out, given)),
            *dict.fromkeys(untraced),
        ),
    )
    answer = with_hints(answer, given)
    status = finish(options, "lab run", answer, answer.diagnostics, no=not answer.agrees)
    return INTERRUPTED if stop.is_set() else status


def _traces(
    options: SimpleNamespace,
    lab: Any,
    given: Input,
    routes: Sequence[tuple[ServicePort, Route]],
    untraced: list[Diagnostic],
) -> list[FlowTrace]:
    """Return the trace of one flow of each route, if ``--trace`` is given.

    Routes of which none is traced are added to `untraced`.
    """
    if not options.trace:
        return []
    tracing = importlib.import_module("netns_lab.traced")
    found = []
    for service, route in routes:
        if (why := tracing.why_not_traced(lab, service, route)) is not None:
            untraced.append(partial_warning("not-traced", why, given.ruleset.file))
            continue
        try:
            found.append(tracing.traced(lab, given, service, route))
        except NotMeasuredError:  # which the route itself was not, either
            continue
    return found


def _repair(options: SimpleNamespace) -> int:
    """Measure the routes that `repair_of` repairs: before, with the repair, and after a sync."""
    made_up = set_up(options, options.flows)
    if len(made_up.labs) > 1:
        raise LabError("one IP version at a time: pass the dump of iptables, or that of ip6tables")
    labs, given, dead, deaths, left_out = made_up[:5]
    ((lab, routes),) = labs
    made = repair_of(options, given, dead, ApiObjects(options))
    asked = {
        place_of(each.before.service, route)
        for each in made.services
        for loss, _ in each.routes
        for route in each_network([loss.route])
    }
    then = {place_of(*each): each for each in routes_of(options, made.after)}
    pairs = []
    for service, route in routes:
        place = place_of(service, route)
        after = then.get(place) or then.get((*place[:-1], None))
        if place not in asked or after is None:
            continue
        if service.affinity is not None and route.astray:
            reason = "flows of one client with session affinity are not independent"
            left_out.append(left_out_of(service, route, reason))
        else:
            pairs.append(((service, route), after))
    if not pairs:
        raise LabError("no route to what is dead can be replayed from there")
    repairing = importlib.import_module("netns_lab.repairing")
    proof = repairing.Proof(lab, given, made, options.flows)
    with progress("new flows") as advance:
        told = up_to(3 * len(pairs) * options.flows, advance)
        found = tuple(proof.run(pairs, told))
    lab.close()
    answer = LabRepairAnswer(
        dead=names(dead, deaths),
        node=given.view.node,
        routes=found,
        checks=tuple(proof.checks),
        left_out=tuple(left_out),
        rate=FALSE_ALARM_RATE,
        diagnostics=(*given.view.diagnostics, *notes(made_up), *said(left_out, given)),
    )
    return finish(options, "lab repair", answer, answer.diagnostics, no=not answer.agrees)


def _clients(options: SimpleNamespace) -> int:
    made = set_up(options, options.runs)
    labs, given, dead, deaths, left_out = made[:5]
    clients = importlib.import_module("netns_lab.clients")
    program = _program(options, given)
    trials = []
    with progress("runs") as advance:
        for lab, service, route in ((lab, *each) for lab, routes in labs for each in routes):
            told = up_to(None, advance)
            client = None if program is None else program.client(service)
            trials += clients.trials(lab, service, route, options.runs, told, own=client)
    answer = ClientsAnswer(
        dead=names(dead, deaths),
        node=given.view.node,
        trials=tuple(trials),
        left_out=tuple(left_out),
        rate=FALSE_ALARM_RATE,
        diagnostics=(
            *given.view.diagnostics,
            *notes(made),
            *said(left_out, given),
            *_unpredicted(trials, given),
        ),
    )
    no = clients_agree(trials) is False
    return finish(options, "lab clients", answer, answer.diagnostics, no=no)


def _unpredicted(trials: Sequence[ClientTrial], given: Input) -> list[Diagnostic]:
    """Return a warning for each frontend for which nothing was predicted."""
    told = "is not judged: how this program behaves is not known; pass --like"
    return [
        partial_warning("not-judged", f"{trial.target} {told}", given.ruleset.file)
        for trial in trials
        if trial.succeeds is None
    ]


def _program(options: SimpleNamespace, given: Input) -> Any:
    """Return the user's program, if one was given; it gets the cluster's resolv.conf.

    Raises:
        UsageError: it cannot be run, or options for it were given without it.
    """
    if options.client is None:
        for name in ("like", "timeout", "tries"):
            if getattr(options, name):
                raise UsageError(f"--{name}: needs --client COMMAND")
        return None
    programs = importlib.import_module("netns_lab.programs")
    naming = importlib.import_module("netns_lab.naming")
    program = programs.ClientProgram(
        options.client,
        given.view,
        like=options.like or (),
        timeout=options.timeout,
        tries=options.tries,
    )
    naming.use_resolv_conf(naming.resolv_conf(given.view) or "# no cluster DNS in this dump\n")
    return program


def _verify(options: SimpleNamespace) -> int:
    """Measure every route with as many flows as the resolution takes, and judge all together."""
    if (saved := _saved(options.dumps)) is not None:
        if options.format == "junit":
            raise InputError("a saved measurement is judged as text or json; see lab judge --help")
        options.measurement = saved
        return _judge(options)
    options = opened(options, say)
    options.sources = options.sources or SOURCES
    made = set_up(options, MOST_OF_A_ROUTE, sends_behind=True)
    labs, given, dead, deaths, left_out = made[:5]
    # Each share is a hypothesis, and so are the flows that pass and those that rules end.
    every = sum(_measurements(r) * (len(r.shares) + 2) for _, r in made.routes)
    rate = rate_of_each(every)
    flows = {id(r): _flows_of(r, options.resolution, rate) for _, r in made.routes}
    found: list[Measurement] = []
    unmeasured: list[LeftOut] = []
    stop = Event()
    with interruptible(stop.set), progress("new flows") as advance:
        for lab, routes in labs:
            asked = [(s, r, flows[id(r)] * _measurements(r)) for s, r in routes]
            told = up_to(sum(flows.values()), advance)
            found += _measured(lab, asked, told, unmeasured, stop, in_part=False)
            _cross_check(lab, routes)
            lab.close()
    every_route = len(made.routes) + len(left_out)
    left_out += _checked(unmeasured, found, stop)
    answer = LabAnswer(
        dead=names(dead, deaths),
        verdicts=judge_all(found),
        routes=len(made.routes) - len(unmeasured),
        left_out=tuple(left_out),
        resolution=options.resolution,
        rate=FALSE_ALARM_RATE,
        diagnostics=(
            *given.view.diagnostics,
            *notes(made),
            *_unmeasured(made, left_out, every_route),
        ),
    )
    answer = with_hints(answer, given)
    status = finish(options, "lab verify", answer, answer.diagnostics, no=not answer.agrees)
    return INTERRUPTED if stop.is_set() else status


def _cross_check(lab: Any, routes: Sequence[tuple[ServicePort, Route]]) -> None:
    """Ask other witnesses once for all routes of a lab."""
    importlib.import_module("netns_lab.tracked").cross_check(lab, routes)
    lab.backend.cross_check()


def _measured(
    lab: Any,
    wanted: Sequence[tuple[ServicePort, Route, int]],
    told: Any,
    unmeasured: list[LeftOut],
    stop: Event,
    *,
    in_part: bool = True,
) -> list[Measurement]:
    """Return the measurements of routes; those not measured are added to `unmeasured`."""
    in_turn = importlib.import_module("netns_lab.in_turn").in_turn
    every = in_turn(lab, wanted, told, stop.is_set, in_part=in_part)
    found: list[Measurement] = []
    for (service, route, _), result in zip(wanted, every, strict=True):
        found += result.measurements
        if result.why_not is not None:
            unmeasured.append(left_out_of(service, route, result.why_not))
    return found


def _checked(unmeasured: list[LeftOut], found: Sequence[Measurement], stop: Event) -> list[LeftOut]:
    """Return the routes that could not be measured.

    Raises:
        LabError: no route could.
        KeyboardInterrupt: none was before `stop` was set.
    """
    if stop.is_set() and not found:
        raise KeyboardInterrupt
    if unmeasured and not found:
        raise LabError(unmeasured[0].reason)
    return unmeasured


def _unmeasured(made: SetUp, left_out: Sequence[LeftOut], every: int) -> list[Diagnostic]:
    """Return a warning if not every route was measured; the answer names them, and why."""
    if not left_out:
        return []
    says = f"{len(left_out):,} of {every:,} routes were not measured"
    return [partial_warning("not-measured", says, made.given.ruleset.file)]


def _measurements(route: Route) -> int:
    """Return how many measurements a route takes: one, or for hairpin routes one per endpoint."""
    return max(1, len(route.shares)) if route.source is Source.HAIRPIN else 1


def _flows_of(route: Route, resolution: float, rate: float) -> int:
    """Return how many flows detect any share of a route that is off by `resolution`.

    The exact share nearest to a half decides, as it takes the most flows.
    """
    shares = [s.share for s in route.shares if s.share.is_exact]
    nearest = min(shares, key=lambda share: abs(float(share.lower) - 0.5), default=None)
    if nearest is None:
        return flows_needed(Bounds(ALWAYS, ALWAYS), resolution, rate, MOST_OF_A_ROUTE)
    return flows_needed(nearest, resolution, rate, MOST_OF_A_ROUTE)


def _saved(paths: Sequence[str]) -> str | None:
    """Return the path of a saved measurement, if that was given in place of a dump."""
    if len(paths) != 1 or not Path(paths[0]).is_file():
        return None
    with Path(paths[0]).open("rb") as file:
        start = file.read(_START)
    return paths[0] if _SAVED.search(start) else None


def _shell(options: SimpleNamespace) -> int:
    leave_host()
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    status: int = importlib.import_module("netns_lab.shell").shell(options)
    return status


def _judge(options: SimpleNamespace) -> int:
    data = Path(options.measurement).read_bytes()
    saved = importlib.import_module("netns_lab.saved")
    verb, answer, agrees = saved.judged(data, options.measurement)
    if options.format not in RENDERERS[verb]:
        formats = ", ".join(RENDERERS[verb])
        raise UsageError(
            f"--format {options.format}: {options.measurement} is of `{verb}`, which is shown as "
            f"{formats}"
        )
    options.strict = options.verbose = False
    return finish(options, verb, answer, (), no=agrees is False)


_VERBS: Final[dict[str, Callable[[SimpleNamespace], int]]] = {
    "run": _run,
    "clients": _clients,
    "verify": _verify,
    "repair": _repair,
    "shell": _shell,
    "judge": _judge,
}
