"""``kubeodds lab``: the same rules on this machine's kernel."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from analyzer.bundle import opened
from analyzer.errors import InputError, UsageError
from analyzer.failure.agreement import FALSE_ALARM_RATE, flows_needed, judge
from analyzer.failure.models import Dead
from analyzer.inputs import Input, read_input
from analyzer.judging import dead_of
from analyzer.kubeproxy.select import narrow
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.endings import Ending, EndKind
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.model.value import replace
from analyzer.output import finish, say
from analyzer.parsers.measurement import parse_measurements
from analyzer.reports.answers import ClientsAnswer, LabAnswer, LeftOut
from analyzer.reports.progress import progress, up_to
from netns_lab.arguments import MOST_OF_A_ROUTE, SOURCES, parser
from netns_lab.backends import backend_of
from netns_lab.errors import LabError
from netns_lab.namespace import leave_host
from netns_lab.pod_devices import pod_device
from netns_lab.reasons import passes_by, why_not
from netns_lab.sources import version_of


def main(words: Sequence[str]) -> int:
    """Run one verb of the lab and return the exit status.

    Raises:
        AnalyzerError: bad input, or a lab that cannot start.
    """
    words, command = _parted(words)
    options = parser().parse_args(words, SimpleNamespace())
    options.command = command
    is_opened = options.verb in {"run", "clients", "shell"}
    return _VERBS[options.verb](opened(options, say) if is_opened else options)


def _parted(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words of `lab shell` before ``--``, and the command behind it."""
    if words[:1] != ["shell"] or "--" not in words:
        return words, ()
    at = list(words).index("--")
    return words[:at], words[at + 1 :]


def _run(options: SimpleNamespace) -> int:
    labs, given, dead, left_out = made = set_up(options, options.flows)
    verdicts = []
    flows = len(made.routes) * options.flows
    with progress("new flows") as advance:
        for lab, routes in labs:
            for service, route in routes:
                told = up_to(flows, advance)
                verdicts += [judge(each) for each in lab.measure(service, route, told)]
            lab.backend.cross_check()
            lab.close()
    answer = LabAnswer(
        dead=_names(dead),
        verdicts=tuple(verdicts),
        routes=len(made.routes),
        left_out=tuple(left_out),
        diagnostics=(*given.view.diagnostics, *_said(left_out, given)),
    )
    return finish(options, "lab run", answer, answer.diagnostics, no=not answer.agrees)


def _clients(options: SimpleNamespace) -> int:
    labs, given, dead, left_out = set_up(options, options.runs)
    clients = importlib.import_module("netns_lab.clients")
    program = _program(options, given)
    trials = []
    with progress("runs") as advance:
        for lab, service, route in ((lab, *each) for lab, routes in labs for each in routes):
            told = up_to(None, advance)
            client = None if program is None else program.client(service)
            trials += clients.trials(lab, service, route, options.runs, told, own=client)
    answer = ClientsAnswer(
        dead=_names(dead),
        node=given.view.node,
        trials=tuple(trials),
        diagnostics=(*given.view.diagnostics, *_said(left_out, given)),
    )
    agreement = importlib.import_module("analyzer.failure.agreement")
    no = any(agreement.client_agrees(trial) is False for trial in trials)
    return finish(options, "lab clients", answer, answer.diagnostics, no=no)


def _program(options: SimpleNamespace, given: Input) -> Any:
    """Return the user's program, if one was given, whose resolv.conf is the cluster's.

    Raises:
        UsageError: it cannot be run, or options are for one that was not given.
    """
    if options.client is None:
        for name in ("like", "timeout", "tries"):
            if getattr(options, name):
                raise UsageError(f"--{name}: of which program? Give --client COMMAND")
        return None
    programs = importlib.import_module("netns_lab.programs")
    naming = importlib.import_module("netns_lab.naming")
    program = programs.Program(
        options.client,
        given.view,
        like=options.like or (),
        timeout=options.timeout,
        tries=options.tries,
    )
    naming.use_resolv_conf(naming.resolv_conf(given.view) or "# no cluster DNS in this dump\n")
    return program


def _verify(options: SimpleNamespace) -> int:
    """Measure every route with as many flows as the resolution takes, and judge them together."""
    if (saved := _saved(options.dumps)) is not None:
        if options.format == "junit":
            raise InputError("a saved measurement is judged as text or json; see lab judge --help")
        options.measurement = saved
        return _judge(options)
    options = opened(options, say)
    options.sources = options.sources or SOURCES
    labs, given, dead, left_out = made = set_up(options, MOST_OF_A_ROUTE)
    # Each share is a hypothesis of the whole, and so are what passes and what rules end.
    every = sum(_measurements(r) * (len(r.shares) + 2) for _, r in made.routes)
    rate = FALSE_ALARM_RATE / max(every, 1)
    flows = {id(r): _flows_of(r, options.resolution, rate) for _, r in made.routes}
    found = []
    with progress("new flows") as advance:
        for lab, routes in labs:
            for service, route in routes:
                told = up_to(sum(flows.values()), advance)
                wanted = flows[id(route)] * _measurements(route)
                found += lab.measure(service, route, told, wanted)
            lab.backend.cross_check()
            lab.close()
    answer = LabAnswer(
        dead=_names(dead),
        verdicts=tuple(judge(each, FALSE_ALARM_RATE / len(found)) for each in found),
        routes=len(made.routes),
        left_out=tuple(left_out),
        resolution=options.resolution,
        rate=FALSE_ALARM_RATE,
        diagnostics=given.view.diagnostics,
    )
    return finish(options, "lab verify", answer, answer.diagnostics, no=not answer.agrees)


def _measurements(route: Route) -> int:
    """Return how many measurements a route takes: one, or one of each endpoint that sends."""
    return max(1, len(route.shares)) if route.source is Source.HAIRPIN else 1


def _flows_of(route: Route, resolution: float, rate: float) -> int:
    """Return how many flows notice any share of a route that is off by `resolution`.

    The share nearest to a half takes most. Of one that is not known well none would do.
    """
    shares = [s.share for s in route.shares if s.share.is_exact]
    nearest = min(shares, key=lambda share: abs(float(share.lower) - 0.5), default=None)
    if nearest is None:
        return flows_needed(Bounds(ALWAYS, ALWAYS), resolution, rate, MOST_OF_A_ROUTE)
    return flows_needed(nearest, resolution, rate, MOST_OF_A_ROUTE)


def _saved(paths: Sequence[str]) -> str | None:
    """Return the path of a saved measurement, if it is one that is given in place of a dump."""
    if len(paths) != 1 or not Path(paths[0]).is_file():
        return None
    with Path(paths[0]).open("rb") as file:
        start = file.read(_START)
    return paths[0] if b'"kubeodds/lab/' in start else None


def _shell(options: SimpleNamespace) -> int:
    leave_host()
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    status: int = importlib.import_module("netns_lab.shell").shell(options)
    return status


def _judge(options: SimpleNamespace) -> int:
    data = Path(options.measurement).read_bytes()
    dead, measurements = parse_measurements(data, options.measurement)
    answer = LabAnswer(dead=dead, verdicts=tuple(judge(m) for m in measurements))
    options.strict = options.verbose = False
    return finish(options, "lab judge", answer, (), no=not answer.agrees)


_Routes = list[tuple[ServicePort, Route]]


class SetUp(NamedTuple):
    """What is measured: labs, each with its routes, and what was given."""

    labs: list[tuple[Any, _Routes]]
    given: Input
    dead: Dead
    left_out: list[LeftOut]

    @property
    def routes(self) -> _Routes:
        """Those of all labs."""
        return [each for _, routes in self.labs for each in routes]


#: Bytes in which a document says what it is.
_START: Final = 200


def set_up(options: SimpleNamespace, flows: int) -> SetUp:
    """Leave the host's network, read what was asked, and build the labs: one for each IP version.

    The rules of one IP version know nothing of the other's, unless one ruleset of nft has both.
    """
    leave_host()
    given = read_input(options)
    dead = dead_of(options, given)
    routes, left_out = _replayable(options, given)
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    experiment = importlib.import_module("netns_lab.experiment")
    labs: list[tuple[Any, _Routes]] = []
    for part in given.parts or (given,):
        own = [(s, r) for s, r in routes if not given.parts or version_of(s, r) in part.versions]
        if not own:
            continue
        question = experiment.Question(
            ruleset=part.ruleset,
            cluster=given.cluster,
            view=part.view,
            dead=dead,
            backend=options.backend or backend_of(part.ruleset),
            flows=flows,
            # A program may ask others on its way, the cluster's DNS before all.
            routes=() if getattr(options, "client", None) else tuple(own),
            pod_device=pod_device(given.every_ruleset, given.assumed),
        )
        labs.append((experiment.Lab(question), own))
    return SetUp(labs, given, dead, left_out)


def _replayable(options: SimpleNamespace, given: Input) -> tuple[_Routes, list[LeftOut]]:
    """Return the routes to replay, and those that cannot be.

    Raises:
        LabError: none can be, or the one that was asked for cannot.
    """
    asked = [
        (service, route, why_not(service, route)) for service, route in _routes(options, given)
    ]
    routes = [(service, route) for service, route, reason in asked if reason is None]
    left_out = [
        LeftOut(
            service=service.name.text,
            protocol=service.protocol,
            frontend=f"{route.frontend.kind.value} {route.frontend}",
            source=route.source.value,
            reason=reason,
        )
        for service, route, reason in asked
        if reason is not None
    ]
    if not routes:
        said = next(iter(_said(left_out, given)), None)
        raise LabError(said.message if said else "no frontend has flows from there")
    return routes, left_out


def _said(left_out: Iterable[LeftOut], given: Input) -> list[Diagnostic]:
    """Return a warning for each ServicePort and reason."""
    return [
        Diagnostic(
            severity=Severity.WARNING,
            code="not-replayed",
            message=f"{name} is not replayed: {reason}",
            file=given.ruleset.file,
        )
        for name, reason in dict.fromkeys((each.service, each.reason) for each in left_out)
    ]


def _routes(options: SimpleNamespace, given: Input) -> Iterator[tuple[ServicePort, Route]]:
    for service in narrow(given.view, options.service):
        refusals = dict(service.refusals)
        for source in Source:
            if source.value not in (options.sources or ["pod"]):
                continue
            for route in service.every_route(source):
                how = refusals.get(route.frontend)
                nowhere = not route.shares and not route.astray
                if how is not None and nowhere and not passes_by(route):
                    refused = Ending(kind=EndKind.REFUSED, how=how)
                    yield service, replace(route, astray=((refused, Bounds(ALWAYS, ALWAYS)),))
                else:
                    yield service, route


def _names(dead: Dead) -> str:
    named = [f"node {n}" for n in dead.nodes] + [f"zone {z}" for z in dead.zones]
    return ", ".join([*named, *(f"endpoint {e}" for e in dead.named)]) or "nothing"


_VERBS: Final[dict[str, Callable[[SimpleNamespace], int]]] = {
    "run": _run,
    "clients": _clients,
    "verify": _verify,
    "shell": _shell,
    "judge": _judge,
}
