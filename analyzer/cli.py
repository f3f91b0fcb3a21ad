"""The command line: the only file that opens files, prints and exits."""

from __future__ import annotations

import argparse
import importlib
import ipaddress
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from analyzer import __version__
from analyzer.errors import AnalyzerError, InputError, ParseError, UsageError, suggestion
from analyzer.failure.loss import losses
from analyzer.failure.models import Dead, dead
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.select import select
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.packet import Address
from analyzer.model.rules import Ruleset
from analyzer.model.text import printable
from analyzer.model.value import value
from analyzer.parsers.formats import FORMATS, read_ruleset
from analyzer.parsers.kubernetes import parse_objects
from analyzer.reports.answers import LossAnswer, ServicesAnswer, TreeAnswer
from analyzer.reports.document import Document
from analyzer.reports.plain import render_plain
from analyzer.reports.renderers import RENDERERS

DONE: Final = 0
NO: Final = 1
BAD_INPUT: Final = 2
PARTLY: Final = 3
INTERRUPTED: Final = 130


@value(kw_only=True)
class Input:
    """What was read for a verb, and what there is to say about it."""

    ruleset: Ruleset
    cluster: Cluster
    recogniser: Recogniser
    view: View


def run() -> None:
    """Run the command line and exit; what the installed command calls."""
    # A pipe that is closed early, as by `head`, ends a filter in silence.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one verb and return the exit status."""
    try:
        if arguments[:1] == ["lab"]:
            return _lab(arguments[1:])
        options = _parser().parse_args(arguments)
        verb: Callable[[argparse.Namespace], int] = options.run
        return verb(options)
    except AnalyzerError as error:
        complain(error)
        return BAD_INPUT
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _stderr(f"kubeodds: {where}{error.strerror or error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        _stderr("kubeodds: interrupted")
        return INTERRUPTED


def complain(error: AnalyzerError) -> None:
    """Print an error as compilers do, with its place where it has one."""
    if isinstance(error, ParseError):
        for line in str(error).split("\n"):
            _stderr(line)
    else:
        _stderr(f"kubeodds: {error}")


def _stderr(text: str) -> None:
    print(printable(text), file=sys.stderr)  # noqa: T201


# --- options ---------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kubeodds",
        description="The odds that a new connection through kube-proxy's rules reaches a live "
        "endpoint, from a dump of the rules.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kubeodds {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    _services_options(_verb(verbs, "services", "every ServicePort with its exact shares"))
    _tree_options(_verb(verbs, "tree", "the probability tree of a Service, rule by rule"))
    _loss_options(_verb(verbs, "loss", "the share of new flows that lands on dead endpoints"))
    verbs.add_parser("lab", help="the same, measured on this machine's kernel", add_help=False)
    return parser


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser],  # no public name
    name: str,
    says: str,
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=says, description=says, allow_abbrev=False)
    add_input_options(parser)
    parser.add_argument("--format", choices=sorted(RENDERERS[name]), default="text")
    parser.add_argument("--output", metavar="FILE", help="write there, not to stdout")
    parser.add_argument("--no-color", action="store_true", help="no colours on a terminal")
    return parser


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which dump to read and what is known besides."""
    parser.add_argument("dump", metavar="DUMP", help="output of iptables-save; - for stdin")
    parser.add_argument(
        "--input-format",
        choices=sorted(FORMATS),
        help="how to read DUMP (default: by its text)",
    )
    parser.add_argument(
        "--table", metavar="NAME", help="the table, where DUMP is of `iptables -S`: nat, filter"
    )
    parser.add_argument(
        "--objects",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="kubectl get services,endpointslices,nodes,pods -A -o json",
    )
    parser.add_argument("--node", metavar="NAME", help="the node whose dump it is")
    parser.add_argument(
        "--node-ip",
        metavar="IP",
        nargs="+",
        action="extend",
        default=[],
        type=ipaddress.ip_address,
        help="that node's addresses, where no objects say them",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 if the dump was read only in part"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="also say what is merely worth knowing"
    )


def add_dead_options(parser: argparse.ArgumentParser) -> None:
    """Add what says who is dead."""
    for option, metavar, says in (
        ("--dead", "IP[:PORT]", "an endpoint that answers no more"),
        ("--dead-node", "NODE", "a node that is gone (needs --objects)"),
        ("--dead-zone", "ZONE", "a zone that is gone (needs --objects)"),
    ):
        parser.add_argument(
            option, metavar=metavar, nargs="+", action="extend", default=[], help=says
        )


def _services_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--service", metavar="NAME", help="only this one")
    parser.set_defaults(run=_services)


def _tree_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service", metavar="SERVICE", help="ns/name:port, a part of it, or IP")
    parser.add_argument(
        "--from",
        dest="source",
        choices=["pod", "node", "external"],
        default="pod",
        help="where the new flow comes from (default: pod)",
    )
    add_dead_options(parser)
    parser.set_defaults(run=_tree)


def _loss_options(parser: argparse.ArgumentParser) -> None:
    add_dead_options(parser)
    parser.add_argument("--service", metavar="NAME", help="only this one")
    parser.add_argument(
        "--max-loss",
        metavar="PERCENT",
        type=_percentage,
        help="exit with 1 if a ServicePort may lose more, as 10%%",
    )
    parser.set_defaults(run=_loss)


def _percentage(text: str) -> Fraction:
    try:
        value = Fraction(text.removesuffix("%").strip())
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage, as 10%") from None
    if not 0 <= value <= 100:  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0% and 100%")
    return value / 100


# --- reading ---------------------------------------------------------------


def read_input(options: argparse.Namespace) -> Input:
    """Read what the options name, and print what there is to say about it.

    Raises:
        AnalyzerError: the input is none, or does not fit what was asked.
        OSError: a file cannot be read.
    """
    file = "<stdin>" if options.dump == "-" else options.dump
    ruleset = read_ruleset(_bytes(options.dump), file, options.input_format, options.table)
    cluster = parse_objects((name, _bytes(name)) for name in options.objects)
    recogniser = Recogniser(
        ruleset,
        cluster,
        node=options.node,
        node_addresses=_node_addresses(options, cluster),
    )
    return Input(ruleset=ruleset, cluster=cluster, recogniser=recogniser, view=recogniser.view())


def _bytes(name: str) -> bytes:
    return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()


def _node_addresses(options: argparse.Namespace, cluster: Cluster) -> tuple[Address, ...]:
    given = tuple(options.node_ip)
    if options.node is None or not cluster.nodes:
        return given
    node = cluster.nodes.get(options.node)
    if node is None:
        raise UsageError(
            f"--node {options.node}: the objects have no such node"
            + suggestion(options.node, cluster.nodes)
        )
    return given or node.addresses


def finish(
    options: argparse.Namespace,
    verb: str,
    answer: object,
    diagnostics: Sequence[Diagnostic],
    *,
    no: bool,
) -> int:
    """Show the answer, say what there is to say, and settle the exit status."""
    for each in diagnostics:
        if each.severity is not Severity.INFO or options.verbose:
            _stderr(_diagnostic(each))
    rendered = RENDERERS[verb][options.format](answer)
    _show(rendered, options)
    if options.strict and any(each.partial for each in diagnostics):
        return PARTLY
    return NO if no else DONE


def _diagnostic(each: Diagnostic) -> str:
    place = "".join(f":{at}" for at in (each.line, each.column) if at is not None)
    return f"{each.file}{place}: {each.severity.value}: {each.message}"


def _show(rendered: Document | str, options: argparse.Namespace) -> None:
    """Write a report where the options say: fitted and coloured only for a terminal."""
    if isinstance(rendered, Document):
        rendered = _text(rendered, options)
    if options.output is None:
        sys.stdout.write(rendered)
        sys.stdout.flush()
    else:
        Path(options.output).write_text(rendered, encoding="utf-8", errors="backslashreplace")


def _text(document: Document, options: argparse.Namespace) -> str:
    if options.output is not None or not sys.stdout.isatty():
        return render_plain(document)
    try:
        terminal = importlib.import_module("analyzer.reports.terminal")
    except ImportError:  # rich is not installed: a zipapp on a node
        return render_plain(document)
    colour = not (options.no_color or os.environ.get("NO_COLOR"))
    width = shutil.get_terminal_size().columns
    shown: str = terminal.render_terminal(document, width=width, colour=colour)
    return shown


# --- verbs -----------------------------------------------------------------


def _services(options: argparse.Namespace) -> int:
    given = read_input(options)
    services = given.view.services
    if options.service is not None:
        services = select(given.view, options.service)
    answer = ServicesAnswer(
        ruleset=given.ruleset,
        cluster=given.cluster,
        view=given.view,
        services=services,
        diagnostics=given.view.diagnostics,
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=False)


def _tree(options: argparse.Namespace) -> int:
    given = read_input(options)
    died = dead_of(options, given)
    trees = tuple(
        (service, route, given.recogniser.tree(service, route))
        for service in select(given.view, options.service)
        for route in service.routes
        if route.source.value == options.source
    )
    if not trees:
        raise UsageError(
            f"{options.service}: it has no endpoints at this node, so there is no tree; "
            "`kubeodds services` says how its frontends answer"
        )
    answer = TreeAnswer(
        cluster=given.cluster,
        view=given.view,
        dead=died,
        trees=trees,
        diagnostics=given.view.diagnostics,
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=False)


def _loss(options: argparse.Namespace) -> int:
    given = read_input(options)
    died = dead_of(options, given)
    found = losses(given.view, died.endpoints)
    if options.service is not None:
        wanted = select(given.view, options.service)
        found = tuple(loss for loss in found if loss.service in wanted)
    diagnostics = list(given.view.diagnostics)
    if options.node is not None and options.node in died.nodes:
        diagnostics.append(
            Diagnostic(
                severity=Severity.WARNING,
                code="node-is-dead",
                message=f"{options.node} is the node whose rules these are: dead, it sends "
                "no flows; the numbers are what its rules would do",
                file=given.ruleset.file,
            )
        )
    answer = LossAnswer(
        cluster=given.cluster,
        view=given.view,
        dead=died,
        losses=found,
        diagnostics=tuple(diagnostics),
    )
    broken = options.max_loss is not None and any(
        loss.worst.upper.as_fraction() > options.max_loss for loss in found
    )
    return finish(options, options.verb, answer, diagnostics, no=broken)


def dead_of(options: argparse.Namespace, given: Input) -> Dead:
    """Return what the options say is dead.

    Raises:
        UsageError: a name that does not occur.
    """
    return dead(
        given.view,
        given.cluster,
        endpoints=options.dead,
        nodes=options.dead_node,
        zones=options.dead_zone,
    )


def _lab(arguments: Sequence[str]) -> int:
    try:
        lab = importlib.import_module("netns_lab.cli")
    except ImportError as error:
        raise InputError(
            f"the lab is not installed ({error}); pip install 'kubeodds[lab]'"
        ) from None
    status: int = lab.main(arguments)
    return status
