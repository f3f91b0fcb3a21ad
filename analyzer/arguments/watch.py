"""The options and the help of ``watch``."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, ArgumentTypeError

from analyzer.arguments import command_line
from analyzer.arguments.assumed import add_assumed_options
from analyzer.arguments.input import add_node_files, add_places
from analyzer.arguments.objects import add_proxy_options
from analyzer.arguments.parser import (
    percentage,
    several,
    size_of,
    time_of,
    written_file,
)
from analyzer.parsers.formats import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from types import SimpleNamespace
    from typing import Any, Final

EPILOG: Final = (
    "Rules, objects and --dead-file are judged again only when they change. SIGHUP makes it read "
    "everything again; SIGTERM and SIGINT end the program. With --once the exit status is 0 if "
    "the rules were judged, 1 if --max-loss is given and broken or not everything was judged, 2 "
    "if nothing could be judged. With --npd it is 0 for OK, 1 for a problem, 2 for unknown: what "
    "was not judged is never OK. Nothing is loaded, changed or sent anywhere. See docs/watch.md."
)
#: Of one dump: 100,000 Services have a tenth of it.
_MOST_BYTES: Final = 1 << 28
_LEAST_EVERY: Final = 1
#: Files of ``--print``, in the package's folder data/watch.
FILES: Final = {
    "alerts": "alerts.yaml",
    "dashboard": "dashboard.json",
    "daemonset": "daemonset.yaml",
    "service": "kubeodds-watch.service",
    "timer": "kubeodds-watch.timer",
    "npd": "npd.json",
}


def add_watch_options(parser: ArgumentParser) -> None:
    """Add the options of ``watch``."""
    parser.epilog = EPILOG
    _add_input(parser)
    command_line.add_dead_options(parser)
    parser.add_argument(
        "--dead-file",
        metavar="FILE",
        help="what is dead, one per line: a value of --dead, node NAME, or zone NAME; read again "
        "when it changes",
    )
    command_line.add_filters(parser)
    parser.add_argument(
        "--max-loss",
        metavar="PERCENT",
        type=percentage,
        help="what a ServicePort may lose (for example 10%%; default: nothing)",
    )
    parser.add_argument(
        "--no-drift", action="store_true", help="do not compare the rules with the objects"
    )
    parser.add_argument(
        "--allow-drift",
        action="store_true",
        help="report differences from the objects, but not as a problem",
    )
    add_proxy_options(parser)
    shown = parser.add_argument_group("when, and where to")
    for option, kinds in _OUTPUT.items():
        shown.add_argument(option, **kinds)


def _add_input(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rules",
        metavar="FILE",
        **several(),
        help="a dump that another program rewrites: output of iptables-save or `nft list ruleset`",
    )
    parser.add_argument(
        "--command",
        metavar="COMMAND",
        type=_words,
        action="append",
        default=[],
        help="command that prints the rules, run each time without a shell, for example "
        "iptables-save; repeat it for several programs of one node",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=time_of,
        default="10s",
        help="stop a command that runs longer (default: 10s)",
    )
    parser.add_argument(
        "--max-input",
        metavar="SIZE",
        type=size_of,
        default=_MOST_BYTES,
        help="refuse larger files and outputs of commands: K, M, G (default: 256M)",
    )
    parser.add_argument(
        "--max-age",
        metavar="TIME",
        type=time_of,
        help="treat rules and objects in files older than this as stale: such a check has failed",
    )
    parser.add_argument(
        "--objects",
        metavar="FILE",
        **several(),
        help="kubectl get services,endpointslices,nodes,pods -A -o json; read again when the file "
        "changes",
    )
    add_places(
        parser, "the node that the rules are from (default: this machine, if the objects have it)"
    )
    parser.add_argument(
        "--input-format",
        choices=sorted(FORMATS),
        help="format of the rules (default: detected)",
    )
    add_node_files(parser)
    add_assumed_options(parser)
    parser.set_defaults(others=[], table=None, strict=False, from_objects=[])


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from None
    if not words or not words[0]:
        raise ArgumentTypeError("the command is empty")
    return words


def _share(text: str) -> Fraction:
    found = percentage(text)
    if not found:
        raise ArgumentTypeError(f"{text!r} leaves no time for any check")
    return found


def _every(text: str) -> Fraction:
    found = time_of(text)
    if found < _LEAST_EVERY:
        raise ArgumentTypeError(f"{text!r} is less than a second")
    return found


def check_watch_options(options: SimpleNamespace) -> str:
    """Return what is wrong with their combination; empty if nothing is."""
    if options.print is not None:
        return ""
    if not options.rules and not options.command:
        return "one of the arguments --rules --command is required"
    if options.npd and options.into is not None:
        return "--into: only metrics go there; --npd prints one line to stdout"
    for name in ("rules", "objects"):
        if "-" in getattr(options, name):
            return f"--{name} -: standard input can be read once only; give a file, or --command"
    if options.dead_file == "-":
        return "--dead-file -: standard input can be read once only; give a file"
    if options.no_drift and options.allow_drift:
        return "--allow-drift: has no effect with --no-drift; give one of them"
    if options.npd:
        options.once = True
    return ""


_OUTPUT: Final[dict[str, dict[str, Any]]] = {
    "--every": {
        "metavar": "TIME",
        "type": _every,
        "default": "30s",
        "help": "time between two checks (default: 30s)",
    },
    "--max-cpu": {
        "metavar": "PERCENT",
        "type": _share,
        "default": "10%",
        "help": "wait longer if checks use more than this share of one CPU (default: 10%%)",
    },
    "--once": {"action": "store_true", "help": "check once and exit, for use with a timer"},
    "--npd": {
        "action": "store_true",
        "help": "check once and print one line for the node-problem-detector",
    },
    "--into": {
        "metavar": "FILE",
        "type": written_file,
        "help": "write metrics to this file, replaced as a whole, for the node exporter's textfile "
        "collector (default: stdout)",
    },
    "--print": {
        "choices": tuple(FILES),
        "help": "print a file for use with it, and exit: alerting rules, a Grafana dashboard, a "
        "DaemonSet, a systemd service or timer, the configuration of a plugin of the "
        "node-problem-detector",
    },
    "--per-service": {
        "choices": ("all", "affected", "no"),
        "default": "all",
        "help": "which ServicePorts have metrics of their own (default: all)",
    },
}
