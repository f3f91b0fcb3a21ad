"""What ``watch`` is told, and what its help says."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, ArgumentTypeError

from analyzer.arguments import command_line
from analyzer.arguments.assumed import add_assumed_options
from analyzer.arguments.input import add_places
from analyzer.arguments.objects import add_proxy_options
from analyzer.arguments.parser import (
    percentage,
    several,
    size_of,
    time_of,
)
from analyzer.parsers.formats import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from types import SimpleNamespace
    from typing import Any, Final

EPILOG: Final = (
    "Rules, objects and --dead-file are judged again where they have changed; else only the time "
    "is told. SIGHUP has all read anew, SIGTERM and SIGINT end it. With --once the exit status is "
    "0 if rules were judged, 1 if --max-loss is given and broken, or something was not judged, 2 "
    "if nothing could be. With --npd it is 0 for OK, 1 for a problem, 2 for unknown: what was not "
    "judged is never OK. Nothing is loaded, changed or sent anywhere. See docs/watch.md."
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
    """Add all of them."""
    parser.epilog = EPILOG
    _add_input(parser)
    command_line.add_dead_options(parser)
    parser.add_argument(
        "--dead-file",
        metavar="FILE",
        help="who is dead, a value of --dead in each line, or node NAME, or zone NAME; read again "
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
        "--no-drift", action="store_true", help="do not hold the rules against the objects"
    )
    parser.add_argument(
        "--allow-drift",
        action="store_true",
        help="tell of differences to the objects, and let them be no fault",
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
        help="a dump that somebody writes anew: output of iptables-save or `nft list ruleset`",
    )
    parser.add_argument(
        "--command",
        metavar="COMMAND",
        type=_words,
        action="append",
        default=[],
        help="what prints the rules, run without a shell each time, for example iptables-save; "
        "repeated for several programs of one node",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=time_of,
        default="10s",
        help="end a command that takes longer (default: 10s)",
    )
    parser.add_argument(
        "--max-input",
        metavar="SIZE",
        type=size_of,
        default=_MOST_BYTES,
        help="refuse more bytes of a file or command: K, M, G (default: 256M)",
    )
    parser.add_argument(
        "--max-age",
        metavar="TIME",
        type=time_of,
        help="take files of rules and objects that are older for ones that nobody writes any more: "
        "the look has failed",
    )
    parser.add_argument(
        "--objects",
        metavar="FILE",
        **several(),
        help="kubectl get services,endpointslices,nodes,pods -A -o json; read again when that "
        "changes",
    )
    add_places(
        parser, "the node whose rules these are (default: this machine, if the objects have it)"
    )
    parser.add_argument(
        "--input-format",
        choices=sorted(FORMATS),
        help="how to read the rules (default: by their text)",
    )
    add_assumed_options(parser)
    parser.set_defaults(others=[], table=None, ipsets=None, strict=False, from_objects=[])


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from None
    if not words or not words[0]:
        raise ArgumentTypeError("a command has a name")
    return words


def _share(text: str) -> Fraction:
    found = percentage(text)
    if not found:
        raise ArgumentTypeError(f"{text!r} is no time at all")
    return found


def _every(text: str) -> Fraction:
    found = time_of(text)
    if found < _LEAST_EVERY:
        raise ArgumentTypeError(f"{text!r} is less than a second")
    return found


def check_watch_options(options: SimpleNamespace) -> str:
    """Return what is wrong with them together; nothing where all is well."""
    if options.print is not None:
        return ""
    if not options.rules and not options.command:
        return "one of the arguments --rules --command is required"
    if options.npd and options.into is not None:
        return "--into: it goes with metrics, and --npd prints a line"
    for name in ("rules", "objects"):
        if "-" in getattr(options, name):
            return f"--{name} -: standard input can be read once only; give a file, or --command"
    if options.dead_file == "-":
        return "--dead-file -: standard input can be read once only; give a file"
    if options.no_drift and options.allow_drift:
        return "--allow-drift: with --no-drift there is none to allow"
    if options.npd:
        options.once = True
    return ""


_OUTPUT: Final[dict[str, dict[str, Any]]] = {
    "--every": {
        "metavar": "TIME",
        "type": _every,
        "default": "30s",
        "help": "from one look to the next (default: 30s)",
    },
    "--max-cpu": {
        "metavar": "PERCENT",
        "type": _share,
        "default": "10%",
        "help": "wait longer where looks take more than this share of one CPU (default: 10%%)",
    },
    "--once": {"action": "store_true", "help": "look once and end, as a timer has it"},
    "--npd": {
        "action": "store_true",
        "help": "look once, and print a line for the node-problem-detector",
    },
    "--into": {
        "metavar": "FILE",
        "help": "write metrics there, for the textfile collector of the node exporter; whole or "
        "not at all (default: stdout)",
    },
    "--print": {
        "choices": tuple(FILES),
        "help": "print a file that goes with it, and end: rules for alerts, a dashboard of "
        "Grafana, a DaemonSet, a service and a timer of systemd, the configuration of a plugin of "
        "the node-problem-detector",
    },
    "--per-service": {
        "choices": ("all", "affected", "no"),
        "default": "all",
        "help": "which ServicePorts have metrics of their own (default: all)",
    },
}
