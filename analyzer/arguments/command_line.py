"""The command line: options of each verb. Nothing is read or printed here."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

from analyzer import __version__
from analyzer.arguments.examples import EXAMPLES
from analyzer.arguments.input import add_input_options, add_two_dumps
from analyzer.arguments.objects import VERBS, add_prediction_options, check_prediction_options
from analyzer.arguments.output import add_output_options
from analyzer.arguments.parser import (
    Parser,
    several,
)
from analyzer.errors import suggestion
from analyzer.reports.renderers import RENDERERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final


def parse(words: Sequence[str]) -> SimpleNamespace:
    """Return the verb and its options, from the words after the program's name.

    Only the requested verb declares its options, since that takes time. A dump, or an option, in
    place of a verb means `loss`: without anything dead that is an overview.
    """
    asked = words[0] if words else ""
    if asked == "help":
        words = [*words[1:], "--help"] if words[1:2] == ["cluster"] else [*words[1:2], "--help"]
        asked = words[0]
    if asked not in _VERBS and (os.path.exists(asked) or _is_option(asked)):  # noqa: PTH110  # is loaded
        words = ["loss", *words]
        asked = "loss"
    if asked == "cluster":
        from analyzer.arguments import cluster as cluster_arguments

        return cluster_arguments.parse(words[1:])
    if asked not in _VERBS or _VERBS[asked][1] is None:
        if asked and not asked.startswith("-") and asked not in _VERBS:
            if "/" in asked or "." in asked:  # as in the names of dumps
                every_verb().error(f"{asked}: no such file, and no verb of that name")
            every_verb().error(f"no verb {asked!r}{suggestion(asked, _VERBS)}")
        return every_verb().parse_args(words, SimpleNamespace())
    if asked == "whatif" and "--components" in words:
        from analyzer.arguments.whatif import components_parser

        parser = components_parser(add_output_options)
        found = SimpleNamespace()
        _, others = parser.parse_known_args(words[1:], found)
        if others:
            parser.error(
                f"{others[0]}: --components prints one table for all clusters; it takes no "
                "other options"
            )
        return found
    parser = parser_of(asked)
    given = parser.parse_args(words[1:], SimpleNamespace())
    if asked == "watch":
        from analyzer.arguments.watch import check_watch_options

        if wrong := check_watch_options(given):
            parser.error(wrong)
    if asked in VERBS and (wrong := check_prediction_options(given)):
        parser.error(wrong)
    return given


def _is_option(word: str) -> bool:
    return word.startswith("-") and word not in {"-h", "--help", "--version"}


def parser_of(verb: str) -> Parser:
    """Return the parser of a verb's options, or exit with help or an error."""
    says, add_options = _VERBS[verb]
    assert add_options is not None  # the lab's own parser declares them
    parser = Parser(prog=f"kubeodds {verb}", description=says, examples=EXAMPLES[verb])
    parser.set_defaults(verb=verb)
    if verb == "diff":
        add_two_dumps(parser)
    elif verb in RENDERERS and verb not in _WITHOUT_RULES:
        add_input_options(parser, "*" if verb in VERBS else "+", verb)
        if verb in VERBS:
            add_prediction_options(parser, verb)
    if verb in RENDERERS:
        add_output_options(parser, verb)
    add_options(parser)
    if parser.epilog is None and parser.takes_lists:
        parser.epilog = _LISTS
    return parser


def every_verb() -> Parser:
    """Return the list of verbs, or an error for an unknown one."""
    found = Parser(
        prog="kubeodds",
        description="The odds that a new connection through kube-proxy's rules reaches a live "
        "endpoint, from a dump of the rules.",
    )
    found.add_argument("--version", action="version", version=f"kubeodds {__version__}")
    verbs = found.add_subparsers(dest="verb", metavar="VERB", required=True, prog="kubeodds")
    for name, (says, _) in _VERBS.items():
        verbs.add_parser(name, help=says, add_help=False)
    return found


def add_dead_options(parser: ArgumentParser) -> None:
    """Add options that mark endpoints, nodes and zones as dead."""
    for option, metavar, says in (
        (
            "--dead",
            "IP[:PORT]",
            ("an endpoint that no longer answers; or a CIDR, or a pod's ns/name"),
        ),
        ("--dead-node", "NODE", "a node that is gone (needs --objects or --node-of)"),
        ("--dead-zone", "ZONE", "a zone that is gone (needs --objects)"),
    ):
        parser.add_argument(option, metavar=metavar, help=says, **several())


def add_all(parser: ArgumentParser, options: Mapping[str, Mapping[str, Any]]) -> None:
    """Add options by their names, which are separated by blanks."""
    for names, kinds in options.items():
        parser.add_argument(*names.split(), **kinds)


def _add_filtered(
    parser: ArgumentParser, epilog: str, options: Mapping[str, Mapping[str, Any]]
) -> None:
    """Add what says which Services are shown, and options of the verb's own."""
    parser.epilog = f"{epilog}\n{_LISTS}"
    add_filters(parser)
    add_all(parser, options)


def add_filters(parser: ArgumentParser) -> None:
    """Add options that select the Services to show."""
    add_service_option(parser)
    _add_namespace(parser)


def add_service_option(parser: ArgumentParser) -> None:
    """Add the option that names Services."""
    parser.add_argument(
        "--service",
        metavar="NAME",
        **several(),
        help="only these: [ns/]name[:port], IP[:PORT], kube*, or the name of a chain",
    )


def _add_namespace(parser: ArgumentParser) -> None:
    says = "only Services of these namespaces"
    parser.add_argument("-n", "--namespace", metavar="NAME", **several(), help=says)


def add_order(parser: ArgumentParser, loss: str) -> None:
    """Add the option that sorts Services; `loss` describes the default order."""
    parser.add_argument(
        "--sort",
        choices=["name", "endpoints", "loss"],
        help=f"by name, by number of endpoints, or by loss, which is {loss}; greatest first",
    )


def _services_options(parser: ArgumentParser) -> None:
    add_filters(parser)
    add_order(parser, "what losing its busiest endpoint costs")
    parser.add_argument(
        "--all", action="store_true", help="list every endpoint of Services that have many"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help=(
            "also report where rules of iptables mode differ from what kube-proxy writes, or from "
            "--objects; exit with 1 if they do"
        ),
    )


def _tree_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "service",
        metavar="SERVICE",
        type=lambda text: text.split(","),
        help="[ns/]name[:port], IP[:PORT], kube*, or the name of a chain",
    )
    parser.add_argument(
        "--from",
        dest="source",
        choices=["pod", "pod-elsewhere", "node", "external"],
        default="pod",
        help="where the new flow comes from (default: pod)",
    )
    _add_namespace(parser)
    parser.add_argument(
        "--all", action="store_true", help=("show every branch, even if there are many")
    )
    add_dead_options(parser)


def _trace_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.trace import OPTIONS

    add_all(parser, OPTIONS)
    add_dead_options(parser)


def _loss_options(parser: ArgumentParser) -> None:
    parser.set_defaults(conntrack=[], again=[])  # of a bundle
    add_dead_options(parser)
    add_filters(parser)
    add_order(parser, "the loss on its worst route")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--summary", action="store_true", help="one line for each ServicePort, affected or not"
    )
    shown.add_argument(
        "--all",
        action="store_true",
        help=("show all affected ServicePorts, each with all of its endpoints"),
    )
    from analyzer.arguments.loss import EPILOG, OPTIONS

    parser.epilog = f"{EPILOG} {_LISTS}"
    add_all(parser, OPTIONS)


def _whatif_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.whatif import EPILOG, OPTIONS

    _add_filtered(parser, EPILOG, OPTIONS)


def _timeline_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.timeline import EPILOG, OPTIONS, TIMES

    add_dead_options(parser)
    _add_filtered(parser, EPILOG, OPTIONS)
    times = parser.add_argument_group("durations")
    for option, kinds in TIMES.items():
        times.add_argument(option, **kinds)


def _client_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.client import EPILOG, OPTIONS

    add_dead_options(parser)
    _add_filtered(parser, EPILOG, OPTIONS)


def _explore_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.explore import EPILOG, OPTIONS

    add_input_options(parser)
    add_dead_options(parser)
    _add_filtered(parser, EPILOG, OPTIONS)


def _advise_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.advise import EPILOG, OPTIONS

    _add_filtered(parser, EPILOG, OPTIONS)


def _gate_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.gate import EPILOG, add_options

    add_options(parser)
    add_filters(parser)
    parser.epilog = EPILOG


def _repair_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.repair import EPILOG, OPTIONS

    add_dead_options(parser)
    _add_filtered(parser, EPILOG, OPTIONS)


def _suspects_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.flow import SUSPECTS, SUSPECTS_EPILOG

    _add_filtered(parser, SUSPECTS_EPILOG, SUSPECTS)


def _pinned_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.flow import PINNED, PINNED_EPILOG

    add_dead_options(parser)
    _add_filtered(parser, PINNED_EPILOG, PINNED)


def _watch_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.watch import add_watch_options

    add_watch_options(parser)


def _collect_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.collect import EPILOG, add_options

    parser.epilog = EPILOG
    add_options(parser)


def _anonymise_options(parser: ArgumentParser) -> None:
    from analyzer.arguments.anonymise import EPILOG, add_options

    parser.epilog = EPILOG
    add_options(parser)


def _completion_options(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell")


def _diff_options(parser: ArgumentParser) -> None:
    add_filters(parser)
    parser.add_argument(
        "--all",
        action="store_true",
        help=("list every ServicePort and endpoint, even if there are many"),
    )
    parser.add_argument(
        "--count-intended",
        action="store_true",
        help=(
            "exit with 1 also if the only differences are those that nftables mode makes by design"
        ),
    )


#: Verbs that read no rules.
_WITHOUT_RULES: Final = frozenset({"gate"})
_LISTS: Final = "Options that take several values are repeated, or the values are joined by commas."

#: What each verb is for, and what adds the options that only it has.
_VERBS: Final[dict[str, tuple[str, Callable[[ArgumentParser], None] | None]]] = {
    "services": ("every ServicePort with its exact shares", _services_options),
    "tree": ("the probability tree of a Service, rule by rule", _tree_options),
    "trace": ("where one packet can end, and the rules on its way", _trace_options),
    "loss": ("the share of new flows that is lost: on dead endpoints, or to rules", _loss_options),
    "whatif": ("what every node, zone and pair of nodes would cost", _whatif_options),
    "timeline": (
        "what an outage costs over time, with or without a control plane",
        _timeline_options,
    ),
    "advise": ("what each known measure would gain, before and after", _advise_options),
    "gate": (
        "the worst-case loss of manifests, before they are deployed",
        _gate_options,
    ),
    "client": ("how often clients fail, how long they wait, and why", _client_options),
    "diff": (
        ("what changes between two dumps, and for which flows; exit with 1 if anything does"),
        _diff_options,
    ),
    "explore": ("mark nodes dead in a terminal, and see what is lost", _explore_options),
    "collect": ("print a script that collects rules and state on a node", _collect_options),
    "suspects": ("which endpoints look dead in conntrack, by exact tests", _suspects_options),
    "pinned": (
        ("which flows are pinned to dead or stale endpoints, and how to free them"),
        _pinned_options,
    ),
    "repair": ("print a change that removes dead endpoints from a node's rules", _repair_options),
    "anonymise": ("rules, objects and bundles with names replaced, to share", _anonymise_options),
    "watch": ("check a node's rules regularly, for a monitoring system", _watch_options),
    "completion": ("print shell completion for this command line", _completion_options),
    "cluster": ("the dumps of all nodes, read once and analysed together", None),
    "lab": ("the same, measured on this machine's kernel", None),
}
