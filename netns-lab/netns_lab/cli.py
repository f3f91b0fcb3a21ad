"""``kubeodds lab``: the same rules on this machine's kernel."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from analyzer import arguments
from analyzer.api_objects import ApiObjects
from analyzer.argument_parser import Parser, several
from analyzer.bundle import opened
from analyzer.errors import InputError
from analyzer.failure.agreement import FALSE_ALARM_RATE, flows_needed, judge
from analyzer.input_arguments import add_input_options
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.output import finish, say
from analyzer.output_arguments import add_output_options
from analyzer.parsers.measurement import parse_measurements
from analyzer.repairing import repair_of
from analyzer.reports.answers import ClientsAnswer, LabAnswer, LabRepairAnswer
from analyzer.reports.progress import progress, up_to
from netns_lab.asked import left_out_of, names, routes_of, said, set_up
from netns_lab.backends import BACKENDS
from netns_lab.errors import LabError

#: Lines with which the help of each verb ends; tests run them.
EXAMPLES: Final = {
    "run": (
        "kubeodds lab run dump.txt --objects objects.json --node worker1 --dead-node master",
        "kubeodds lab run dump.txt --dead 10.244.0.3 --service kube-dns:dns --flows 1000",
        "kubeodds lab run dump.txt --dead 10.244.0.7 --service app -o json --output run.json",
    ),
    "clients": (
        "kubeodds lab clients dump.txt --dead 10.244.0.7 --service app",
        "kubeodds lab clients dump.txt --dead 10.244.0.3 --service kube-dns:dns --runs 20",
        "kubeodds lab clients dump.txt --dead 10.244.0.7 --service app -o json",
    ),
    "verify": (
        "kubeodds lab verify dump.txt --objects objects.json --node worker1",
        "kubeodds lab verify dump.txt --service kube-dns:dns --resolution 10%",
        "kubeodds lab verify dump.txt --service app -o junit --output lab.xml",
    ),
    "repair": (
        "kubeodds lab repair dump.txt --objects objects.json --node worker1 --dead-node master",
        "kubeodds lab repair dump.txt --dead 10.244.0.7 --service app --flows 1000",
        "kubeodds lab repair dump.txt --dead 10.244.0.7 --service app -o json",
    ),
    "judge": (
        "kubeodds lab judge run.json",
        "kubeodds lab judge run.json -o json",
        "kubeodds lab judge run.json --output verdict.txt",
    ),
}
SOURCES: Final = tuple(source.value for source in Source)
#: Bytes in which a document says what it is.
_START: Final = 200
_MOST_FLOWS: Final = 100_000_000
#: Percentage points, as a share: what `lab verify` notices, and the least that can be asked for.
_RESOLUTION: Final = 0.05
_FINEST: Final = 0.001
#: Flows of one route that notice the least of these.
_MOST_OF_A_ROUTE: Final = 20_000_000


def main(words: Sequence[str]) -> int:
    """Run one verb of the lab and return the exit status.

    Raises:
        AnalyzerError: bad input, or a lab that cannot start.
    """
    options = parser().parse_args(words, SimpleNamespace())
    verb: Callable[[SimpleNamespace], int] = options.run
    return verb(opened(options, say) if options.verb in {"run", "clients", "repair"} else options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the verbs of the lab."""
    found = Parser(
        prog="kubeodds lab",
        description="Replay new flows through a dump's rules in network namespaces of this "
        "machine, and hold the counts against the prediction. The host's own network is left "
        "before anything else is done.",
    )
    verbs = found.add_subparsers(dest="verb", metavar="VERB", required=True)
    run = _verb(verbs, "run", "replay new flows, count where each lands")
    run.add_argument(
        "--flows", type=_flows, default=10_000, help="new flows for each route (default: 10000)"
    )
    _add_sources(run, "pod")
    run.set_defaults(run=_run)
    clients = _verb(verbs, "clients", "run real programs (nc, dig) in a pod")
    clients.add_argument(
        "--runs", type=_flows, default=60, help="runs of each program (default: 60)"
    )
    clients.set_defaults(run=_clients, sources=["pod"])
    verify = _verb(verbs, "verify", "measure every route of every Service and judge them all")
    verify.add_argument(
        "--resolution",
        type=_resolution,
        default=_RESOLUTION,
        metavar="PERCENT",
        help="notice shares that are off by so much; flows are as many as that takes "
        "(default: 5%%)",
    )
    _add_sources(verify, "all of them")
    verify.set_defaults(run=_verify)
    repairs = _verb(
        verbs, "repair", "apply what `kubeodds repair` prints, and measure what it does"
    )
    repairs.add_argument(
        "--flows",
        type=_flows,
        default=10_000,
        help="new flows for each route, before the repair, with it, and after a sync on top "
        "(default: 10000)",
    )
    _add_sources(repairs, "pod")
    repairs.set_defaults(run=_repair, namespace=[])
    again = verbs.add_parser(
        "judge",
        help="judge a saved measurement again, no root needed",
        examples=EXAMPLES["judge"],
    )
    again.add_argument("measurement", metavar="FILE", help="of `lab run` or `lab verify`, as JSON")
    add_output_options(again, "lab judge")
    again.set_defaults(run=_judge)
    return found


def _verb(
    verbs: argparse._SubParsersAction[Parser],  # no public name
    name: str,
    says: str,
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(
        name,
        help=says,
        description=says,
        examples=EXAMPLES[name],
    )
    add_input_options(parser)
    arguments.add_dead_options(parser)
    arguments.add_service_option(parser)
    parser.add_argument(
        "--backend",
        choices=list(BACKENDS),
        help="what loads the rules: iptables-legacy, iptables-nft, or nft itself a ruleset of nft "
        "(default: what wrote the dump)",
    )
    add_output_options(parser, f"lab {name}")
    return parser


def _add_sources(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--from",
        dest="sources",
        metavar=f"{{{','.join(SOURCES)}}}",
        help=f"where the flows come from (default: {default})",
        **several(_source),
    )


def _resolution(text: str) -> float:
    """Return a share, of a percentage."""
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = 0.0
    if not _FINEST <= value <= 1:
        raise argparse.ArgumentTypeError(
            f"expected a percentage from {100 * _FINEST:g}% to 100%, for example 5%"
        )
    return value


def _source(text: str) -> str:
    if text not in SOURCES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(SOURCES)}")
    return text


def _flows(text: str) -> int:
    try:
        value = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        value = 0
    if not 1 <= value <= _MOST_FLOWS:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {_MOST_FLOWS:,}")
    return value


def _run(options: SimpleNamespace) -> int:
    lab, routes, given, dead, left_out = set_up(options, options.flows)
    verdicts = []
    flows = len(routes) * options.flows
    with progress("new flows") as advance:
        for service, route in routes:
            told = up_to(flows, advance)
            verdicts += [judge(each) for each in lab.measure(service, route, told)]
    lab.backend.cross_check()
    lab.close()
    answer = LabAnswer(
        dead=names(dead),
        verdicts=tuple(verdicts),
        routes=len(routes),
        left_out=tuple(left_out),
        diagnostics=(*given.view.diagnostics, *said(left_out, given)),
    )
    return finish(options, "lab run", answer, answer.diagnostics, no=not answer.agrees)


def _repair(options: SimpleNamespace) -> int:
    """Prove the repair: which routes, `repair_of` says, and what they do, the kernel."""
    lab, routes, given, dead, left_out = set_up(options, options.flows)
    made = repair_of(options, given, dead, ApiObjects(options))
    asked = {_place(s.before.service, loss.route) for s in made.services for loss, _ in s.routes}
    then = {_place(*each): each for each in routes_of(options, made.after)}
    pairs = []
    for service, route in routes:
        place = _place(service, route)
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
        dead=names(dead),
        node=given.view.node,
        routes=found,
        checks=tuple(proof.checks),
        left_out=tuple(left_out),
        diagnostics=(*given.view.diagnostics, *said(left_out, given)),
    )
    return finish(options, "lab repair", answer, answer.diagnostics, no=not answer.agrees)


def _place(service: ServicePort, route: Route) -> tuple[Any, ...]:
    name = service.name.text, service.protocol, service.version
    return *name, route.frontend, route.source, route.network


def _clients(options: SimpleNamespace) -> int:
    lab, routes, given, dead, left_out = set_up(options, options.runs)
    clients = importlib.import_module("netns_lab.clients")
    trials = []
    with progress("runs") as advance:
        for service, route in routes:
            told = up_to(None, advance)
            trials += clients.trials(lab, service, route, options.runs, told)
    answer = ClientsAnswer(
        dead=names(dead),
        node=given.view.node,
        trials=tuple(trials),
        diagnostics=(*given.view.diagnostics, *said(left_out, given)),
    )
    agreement = importlib.import_module("analyzer.failure.agreement")
    no = not all(agreement.client_agrees(trial) for trial in trials)
    return finish(options, "lab clients", answer, answer.diagnostics, no=no)


def _verify(options: SimpleNamespace) -> int:
    """Measure every route with as many flows as the resolution takes, and judge them together."""
    if (saved := _saved(options.dumps)) is not None:
        if options.format == "junit":
            raise InputError("a saved measurement is judged as text or json; see lab judge --help")
        options.measurement = saved
        return _judge(options)
    options = opened(options, say)
    options.sources = options.sources or SOURCES
    lab, routes, given, dead, left_out = set_up(options, _MOST_OF_A_ROUTE)
    # Each share is a hypothesis of the whole, and so are what passes and what rules end.
    every = sum(_measurements(r) * (len(r.shares) + 2) for _, r in routes)
    rate = FALSE_ALARM_RATE / max(every, 1)
    flows = [_flows_of(route, options.resolution, rate) for _, route in routes]
    found = []
    with progress("new flows") as advance:
        for (service, route), each in zip(routes, flows, strict=True):
            told = up_to(sum(flows), advance)
            found += lab.measure(service, route, told, each * _measurements(route))
    lab.backend.cross_check()
    lab.close()
    answer = LabAnswer(
        dead=names(dead),
        verdicts=tuple(judge(each, FALSE_ALARM_RATE / len(found)) for each in found),
        routes=len(routes),
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
        return flows_needed(Bounds(ALWAYS, ALWAYS), resolution, rate, _MOST_OF_A_ROUTE)
    return flows_needed(nearest, resolution, rate, _MOST_OF_A_ROUTE)


def _saved(paths: Sequence[str]) -> str | None:
    """Return the path of a saved measurement, if it is one that is given in place of a dump."""
    if len(paths) != 1 or not Path(paths[0]).is_file():
        return None
    with Path(paths[0]).open("rb") as file:
        start = file.read(_START)
    return paths[0] if b'"kubeodds/lab/' in start else None


def _judge(options: SimpleNamespace) -> int:
    data = Path(options.measurement).read_bytes()
    dead, measurements = parse_measurements(data, options.measurement)
    answer = LabAnswer(dead=dead, verdicts=tuple(judge(m) for m in measurements))
    options.strict = options.verbose = False
    return finish(options, "lab judge", answer, (), no=not answer.agrees)
