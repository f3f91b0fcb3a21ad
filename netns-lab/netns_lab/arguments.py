"""Options of the `kubeodds lab` verbs."""

from __future__ import annotations

import argparse
from typing import Final

from analyzer.arguments import command_line
from analyzer.arguments.client import OPTIONS as CLIENT_OPTIONS
from analyzer.arguments.input import add_input_options
from analyzer.arguments.output import add_output_options
from analyzer.arguments.parser import Parser, several
from analyzer.kubeproxy.view import Source
from analyzer.parsers.durations import duration_from_text, rate_from_text
from netns_lab.backends import BACKENDS
from netns_lab.deaths import GRAMMAR
from netns_lab.schedule import LONGEST

#: Examples in the help of each verb; tests run them.
EXAMPLES: Final = {
    "run": (
        "kubeodds lab run dump.txt --objects objects.json --node worker1 --dead-node master",
        "kubeodds lab run dump.txt --dead 10.244.0.3 --service kube-dns:dns --flows 1000",
        "kubeodds lab run dump.txt --dead 10.244.0.7 --service app -o json --output run.json",
        "kubeodds lab run dump.txt --dead 10.244.0.7:reject,10.244.1.9:slow=20 --service app",
        "kubeodds lab run dump.txt --objects objects.json --node worker1 --service app --for 2s "
        "--kill master@1s",
        "kubeodds lab run dump.txt --objects objects.json --node worker1 --dead-node master "
        "--pcap flows.pcap",
    ),
    "clients": (
        "kubeodds lab clients dump.txt --dead 10.244.0.7 --service app",
        "kubeodds lab clients dump.txt --dead 10.244.0.3 --service kube-dns:dns --runs 20",
        "kubeodds lab clients dump.txt --dead 10.244.0.7 --service app -o json",
        "kubeodds lab clients dump.txt --dead 10.244.0.7 --service app --runs 20 "
        "--client 'curl -sm 1 {vip}:{port}' --like tcp --timeout 1s",
    ),
    "verify": (
        "kubeodds lab verify dump.txt --objects objects.json --node worker1",
        "kubeodds lab verify dump.txt --service kube-dns:dns --resolution 10%",
        "kubeodds lab verify dump.txt --service app -o junit --output lab.xml",
    ),
    "shell": (
        "kubeodds lab shell dump.txt --objects objects.json --node worker1 --dead-node master",
        "kubeodds lab shell dump.txt --dead 10.244.0.7 -- nc -zv -w 1 10.96.0.1 443",
        "kubeodds lab shell dump.txt --in node -- iptables-save -t nat",
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
#: Exit statuses of the verbs that measure; a test compares them with docs/reference.md.
STATUSES: Final = (
    ("0", "all that was judged agrees; what was not judged is named"),
    ("1", "something disagrees with the prediction"),
    ("2", "bad input, bad usage, or a lab that cannot start or has nothing to replay"),
    ("3", "--strict, and something was not judged, or was read only in part"),
    ("130", "interrupted; lab run and lab verify print what they measured by then"),
)
#: Exit statuses of `lab judge`, which reads a measurement and leaves nothing out.
_OF_JUDGE: Final = tuple(each for each in STATUSES if each[0] in "012")
#: Exit statuses of `lab shell`.
_OF_SHELL: Final = (
    ("N", "that of the shell or of the command behind --"),
    ("2", "bad input, bad usage, or a lab that cannot start"),
)
SOURCES: Final = tuple(source.value for source in Source)
_MOST_FLOWS: Final = 100_000_000
#: New flows for each route, unless a schedule or a capture says otherwise.
FLOWS: Final = 10_000
#: Shares, not percentages: the default resolution of `lab verify`, and the finest it accepts.
_RESOLUTION: Final = 0.05
_FINEST: Final = 0.001
#: Defaults: new flows per second, and connections that are kept open.
_RATE: Final = 200.0
_CONNECTIONS: Final = 8
MOST_CONNECTIONS: Final = 200
#: Flows of one route that the finest resolution takes.
MOST_OF_A_ROUTE: Final = 20_000_000


def parser() -> argparse.ArgumentParser:
    """Return the parser of `kubeodds lab` and its verbs."""
    found = Parser(
        prog="kubeodds lab",
        description=(
            "Replay new flows through a dump's rules in network namespaces of this machine, and "
            "compare the counts with the prediction. The program leaves the host's own network "
            "before it does anything else."
        ),
    )
    verbs = found.add_subparsers(dest="verb", metavar="VERB", required=True)
    run = _verb(verbs, "run", "replay new flows, count where each arrives")
    run.add_argument("--flows", type=_flows, help=f"new flows for each route (default: {FLOWS})")
    run.add_argument(
        "--trace",
        action="store_true",
        help=(
            "send one more flow of each route, and compare the rules that the kernel says it "
            "matched with `kubeodds trace`"
        ),
    )
    _add_schedule(run)
    _add_capture(run)
    _add_sources(run, "pod; of a capture, all of them")
    clients = _verb(verbs, "clients", "run real programs (nc, dig) in a pod")
    clients.add_argument(
        "--runs", type=_flows, default=60, help="runs of each program (default: 60)"
    )
    clients.add_argument(
        "--client",
        metavar="COMMAND",
        help=(
            "run this instead of nc and dig: {vip} and {port} stand for the frontend, {name} for "
            "the Service's name in the cluster's DNS, which knows the dump's Services; it "
            "succeeds if its exit status is 0, and must end within 60 s, or the time that --like "
            "waits plus 60 s"
        ),
    )
    clients.add_argument(
        "--like",
        **{**CLIENT_OPTIONS["--client"], "help": (
            "what COMMAND does, in sequence, by names of clients that `kubeodds client` knows, "
            "for example glibc,tcp (default: nothing is predicted)"
        )},
    )  # fmt: skip
    for name in ("--timeout", "--tries"):
        clients.add_argument(name, **CLIENT_OPTIONS[name])
    clients.set_defaults(sources=["pod"])
    verify = _verb(verbs, "verify", "measure every route of every Service and judge them all")
    verify.add_argument(
        "--resolution",
        type=_resolution,
        default=_RESOLUTION,
        metavar="PERCENT",
        help=(
            "detect shares that are off by this much; it sends as many flows as that takes "
            "(default: 5%%)"
        ),
    )
    _add_sources(verify, "all of them")
    repairs = _verb(
        verbs, "repair", "apply what `kubeodds repair` prints, and measure what it does"
    )
    repairs.add_argument(
        "--flows",
        type=_flows,
        default=FLOWS,
        help="new flows for each route, before the repair, with it, and after a sync on top "
        f"(default: {FLOWS})",
    )
    _add_sources(repairs, "pod")
    repairs.set_defaults(namespace=[])
    hands_on = verbs.add_parser(
        "shell",
        help="a shell in the lab, or a command after --",
        description=(
            "Build the lab and open a shell in one of its places: endpoints answer with their "
            "names. A command after -- is run instead, and kubeodds exits with its status."
        ),
        examples=EXAMPLES["shell"],
        statuses=_OF_SHELL,
    )
    _add_lab_options(hands_on)
    hands_on.add_argument(
        "--in",
        dest="place",
        metavar="PLACE",
        default="client",
        help=(
            "client (a pod that is not an endpoint), node (where the rules are), pods (this "
            "node's endpoints), another node, outside, world, or a pod by its address or its "
            "name (default: client)"
        ),
    )
    again = verbs.add_parser(
        "judge",
        help="judge a saved measurement again, no root needed",
        examples=EXAMPLES["judge"],
        statuses=_OF_JUDGE,
    )
    again.add_argument(
        "measurement", metavar="FILE", help="of `lab run`, `verify`, `clients` or `repair`, as JSON"
    )
    add_output_options(again, "lab judge")
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
        statuses=STATUSES,
    )
    _add_lab_options(parser)
    command_line.add_service_option(parser)
    add_output_options(parser, f"lab {name}")
    return parser


def _add_lab_options(parser: argparse.ArgumentParser) -> None:
    add_input_options(parser)
    command_line.add_dead_options(parser)
    for action in parser._actions:  # noqa: SLF001  # argparse has no way to change a help
        if action.dest in ("dead", "dead_node"):
            action.metavar = f"{action.metavar}[:KIND]"
            action.help = (
                f"{action.help}; KIND says how: {GRAMMAR}"
                if action.dest == "dead"
                else (f"{action.help}; KIND as for --dead")
            )
    for action in parser._actions:  # noqa: SLF001  # argparse has no way to add a name
        if action.dest == "others":
            action.option_strings = [*action.option_strings, "--other-rules"]
            parser._option_string_actions["--other-rules"] = action  # noqa: SLF001  # as above
    parser.add_argument(
        "--rules",
        metavar="NODE=DUMP",
        **several(),
        help="another node's own dump: packets to and from its pods traverse these rules too",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="leave out rules that cannot be loaded, and name each (default: refuse the dump)",
    )
    parser.add_argument(
        "--backend",
        choices=list(BACKENDS),
        help=(
            "what loads the rules: iptables-legacy, iptables-nft, or, for nft rulesets, nft "
            "itself (default: what wrote the dump)"
        ),
    )


def _add_schedule(parser: argparse.ArgumentParser) -> None:
    during = parser.add_argument_group(
        "what happens during a run", "new flows at a steady rate, instead of --flows"
    )
    during.add_argument(
        "--for",
        dest="seconds",
        metavar="TIME",
        type=_seconds,
        help="send new flows for this long, for example 30s, and follow open connections",
    )
    during.add_argument(
        "--kill",
        metavar="WHAT[:KIND]@TIME",
        **several(),
        help="a node or an endpoint dies this long after the start, for example master@5s",
    )
    during.add_argument(
        "--revive", metavar="WHAT@TIME", **several(), help="what died is alive again"
    )
    during.add_argument(
        "--replace-rules",
        dest="replace",
        metavar="FILE@TIME",
        **several(),
        help="load another dump of the node in place of the present rules",
    )
    during.add_argument(
        "--resync",
        metavar="@TIME",
        **several(),
        help="write kube-proxy's rules again, as its full sync does",
    )
    during.add_argument(
        "--rate",
        type=_rate,
        default=_RATE,
        metavar="N",
        help=f"new flows a second, in turn on each route (default: {_RATE:g})",
    )
    during.add_argument(
        "--connections",
        type=_connections,
        default=_CONNECTIONS,
        metavar="N",
        help=(
            "TCP connections to keep open on each route, sending a byte at a time "
            f"(default: {_CONNECTIONS}; at most {MOST_CONNECTIONS} in all)"
        ),
    )


def _add_capture(parser: argparse.ArgumentParser) -> None:
    capture = parser.add_argument_group("flows of a capture", "instead of --flows")
    capture.add_argument(
        "--pcap",
        metavar="FILE",
        help=(
            "replay the flows to Services in a capture taken elsewhere, pcap or pcapng: each "
            "from the lab address that stands for its client, and from its own port"
        ),
    )
    capture.add_argument(
        "--timing",
        choices=("kept", "flat"),
        help=(
            "kept: flows leave at the captured intervals; flat: one right after another "
            "(default: flat)"
        ),
    )


def _seconds(text: str) -> float:
    found = duration_from_text(text)
    if found is None or not 1 <= found <= LONGEST:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time from 1s to {LONGEST:g}s, for example 30s"
        )
    return float(found)


def _rate(text: str) -> float:
    found = rate_from_text(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of flows per second")
    return float(found)


def _connections(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > MOST_CONNECTIONS:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {MOST_CONNECTIONS}")
    return int(text)


def _add_sources(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--from",
        dest="sources",
        metavar=f"{{{','.join(SOURCES)}}}",
        help=f"where the flows come from (default: {default})",
        **several(_source),
    )


def _resolution(text: str) -> float:
    """Return a percentage as a share."""
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
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(SOURCES)}")
    return text


def _flows(text: str) -> int:
    try:
        value = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        value = 0
    if not 1 <= value <= _MOST_FLOWS:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {_MOST_FLOWS:,}")
    return value
