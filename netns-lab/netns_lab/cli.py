"""``kubeodds lab``: the same rules on this machine's kernel."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from analyzer import arguments
from analyzer.argument_parser import Parser, several
from analyzer.bundle import opened
from analyzer.failure.agreement import judge
from analyzer.failure.models import Dead
from analyzer.inputs import Input, read_input
from analyzer.judging import dead_of
from analyzer.kubeproxy.select import narrow
from analyzer.kubeproxy.view import FrontendKind, Route, ServicePort
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.output import finish, say
from analyzer.parsers.measurement import parse_measurements
from analyzer.reports.answers import ClientsAnswer, LabAnswer
from analyzer.reports.progress import progress, up_to
from netns_lab.backends import BACKENDS, backend_of
from netns_lab.errors import LabError
from netns_lab.namespace import leave_host
from netns_lab.plan import why_not
from netns_lab.pod_devices import pod_device

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
        "kubeodds lab verify run.json",
        "kubeodds lab verify run.json -o json",
        "kubeodds lab verify run.json --output verdict.txt",
    ),
}
SOURCES: Final = ("pod", "node", "external")
_MOST_FLOWS: Final = 100_000_000


def main(words: Sequence[str]) -> int:
    """Run one verb of the lab and return the exit status.

    Raises:
        AnalyzerError: bad input, or a lab that cannot start.
    """
    options = parser().parse_args(words, SimpleNamespace())
    verb: Callable[[SimpleNamespace], int] = options.run
    return verb(options if options.verb == "verify" else opened(options, say))


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
    run.add_argument(
        "--from",
        dest="sources",
        metavar="{pod,node,external}",
        help="where the flows come from (default: pod)",
        **several(_source),
    )
    run.set_defaults(run=_run)
    clients = _verb(verbs, "clients", "run real programs (nc, dig) in a pod")
    clients.add_argument(
        "--runs", type=_flows, default=60, help="runs of each program (default: 60)"
    )
    clients.set_defaults(run=_clients, sources=["pod"])
    verify = verbs.add_parser(
        "verify",
        help="judge a saved measurement again, no root needed",
        examples=EXAMPLES["verify"],
    )
    verify.add_argument("measurement", metavar="FILE", help="of `lab run --format json`")
    arguments.add_output_options(verify, "lab verify")
    verify.set_defaults(run=_verify)
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
    arguments.add_input_options(parser)
    arguments.add_dead_options(parser)
    arguments.add_service_option(parser)
    parser.add_argument(
        "--backend",
        choices=list(BACKENDS),
        help="what loads the rules: iptables-legacy, iptables-nft, or nft itself a ruleset of nft "
        "(default: what wrote the dump)",
    )
    arguments.add_output_options(parser, f"lab {name}")
    return parser


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
    lab, routes, given, dead, skipped = set_up(options, options.flows)
    verdicts = []
    flows = len(routes) * options.flows
    with progress("new flows") as advance:
        for service, route in routes:
            verdicts.append(judge(lab.measure(service, route, up_to(flows, advance))))
    lab.backend.cross_check()
    lab.close()
    answer = LabAnswer(
        dead=_names(dead),
        verdicts=tuple(verdicts),
        diagnostics=(*given.view.diagnostics, *skipped),
    )
    return finish(options, "lab run", answer, answer.diagnostics, no=not answer.agrees)


def _clients(options: SimpleNamespace) -> int:
    lab, routes, given, dead, skipped = set_up(options, options.runs)
    clients = importlib.import_module("netns_lab.clients")
    trials = []
    with progress("runs") as advance:
        for service, route in routes:
            told = up_to(None, advance)
            trials += clients.trials(lab, service, route, options.runs, told)
    answer = ClientsAnswer(
        dead=_names(dead),
        node=given.view.node,
        trials=tuple(trials),
        diagnostics=(*given.view.diagnostics, *skipped),
    )
    agreement = importlib.import_module("analyzer.failure.agreement")
    no = not all(agreement.client_agrees(trial) for trial in trials)
    return finish(options, "lab clients", answer, answer.diagnostics, no=no)


def _verify(options: SimpleNamespace) -> int:
    data = Path(options.measurement).read_bytes()
    dead, measurements = parse_measurements(data, options.measurement)
    answer = LabAnswer(dead=dead, verdicts=tuple(judge(m) for m in measurements))
    options.strict = options.verbose = False
    return finish(options, "lab verify", answer, (), no=not answer.agrees)


#: Frontends that the lab's client can be sent to.
_REPLAYED = frozenset((FrontendKind.CLUSTER_IP, FrontendKind.HOST_PORT))
_Routes = list[tuple[ServicePort, Route]]
SetUp = tuple[Any, _Routes, Input, Dead, list[Diagnostic]]


def set_up(options: SimpleNamespace, flows: int) -> SetUp:
    """Leave the host's network, read what was asked, and build the lab."""
    leave_host()
    given = read_input(options)
    if given.parts:
        raise LabError("one IP version at a time: give the dump of iptables, or that of ip6tables")
    dead = dead_of(options, given)
    routes, skipped = _replayable(options, given)
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    experiment = importlib.import_module("netns_lab.experiment")
    question = experiment.Question(
        ruleset=given.ruleset,
        cluster=given.cluster,
        view=given.view,
        dead=dead,
        backend=options.backend or backend_of(given.ruleset),
        flows=flows,
        pod_device=pod_device(given.every_ruleset, given.assumed),
    )
    return experiment.Lab(question), routes, given, dead, skipped


def _replayable(options: SimpleNamespace, given: Input) -> tuple[_Routes, list[Diagnostic]]:
    """Return the routes to replay, and what there is to say of those that cannot be.

    Raises:
        LabError: none can be, or the one that was asked for cannot.
    """
    asked = [(each, why_not(*each)) for each in _routes(options, given)]
    routes = [each for each, reason in asked if reason is None]
    reasons = dict.fromkeys((service.name.text, reason) for (service, _), reason in asked)
    skipped = [
        Diagnostic(
            severity=Severity.WARNING,
            code="not-replayed",
            message=f"{name} is not replayed: {reason}",
            file=given.ruleset.file,
        )
        for name, reason in reasons
        if reason
    ]
    if not routes:
        said = skipped[0].message if skipped else "no ClusterIP or hostPort leads to endpoints"
        raise LabError(said)
    return routes, skipped


def _routes(options: SimpleNamespace, given: Input) -> Iterator[tuple[ServicePort, Route]]:
    for service in narrow(given.view, options.service):
        for route in service.routes:
            asked = route.source.value in (options.sources or ["pod"]) and route.network is None
            known = route.frontend.port is not None and route.shares
            if asked and known and route.frontend.kind in _REPLAYED:
                yield service, route


def _names(dead: Dead) -> str:
    named = [f"node {n}" for n in dead.nodes] + [f"zone {z}" for z in dead.zones]
    return ", ".join([*named, *(f"endpoint {e}" for e in dead.named)]) or "nothing"
