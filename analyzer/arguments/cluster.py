"""The options of ``cluster`` and its subcommands."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from types import SimpleNamespace

from analyzer.arguments import command_line
from analyzer.arguments.assumed import add_assumed_options
from analyzer.arguments.loss import OPTIONS as LOSS
from analyzer.arguments.objects import add_proxy_options
from analyzer.arguments.output import add_output_options
from analyzer.arguments.parser import (
    Parser,
    duration_of,
    network_of_node,
    several,
    size_of,
    written_file,
)
from analyzer.arguments.whatif import EPILOG as WHATIF_EPILOG
from analyzer.arguments.whatif import OPTIONS as WHATIF
from analyzer.parsers.contents import MOST_BYTES
from analyzer.parsers.formats import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final

#: Lines with which the help of each verb ends; tests run them.
EXAMPLES: Final = {
    "build": (
        "kubeodds cluster build dumps/ --objects objects.json --into cluster",
        "kubeodds cluster build 'dumps/*.txt' --name-from '([^/]+).txt' --into cluster",
        "kubeodds cluster build dumps.tar --objects objects.json --into cluster --workers 2",
    ),
    "loss": (
        "kubeodds cluster loss cluster --dead-node master",
        "kubeodds cluster loss cluster --dead-node master --service kube* --summary",
        "kubeodds cluster loss cluster --dead 10.244.0.7 --max-loss 60% -o tsv",
    ),
    "whatif": (
        "kubeodds cluster whatif cluster",
        "kubeodds cluster whatif cluster --only node --sort mean --top 5",
        "kubeodds cluster whatif cluster --min-survives 1 -o junit",
    ),
    "drift": (
        "kubeodds cluster drift cluster",
        "kubeodds cluster drift cluster --against majority --all",
        "kubeodds cluster drift cluster --only stale-endpoint,foreign-endpoint -o tsv",
    ),
    "timeline": (
        "kubeodds cluster timeline dumps/ --objects objects.json",
        "kubeodds cluster timeline dumps/ --objects objects.json "
        "--dead-node master@2026-11-20T09:00:00Z..2026-11-20T09:10:00Z",
        "kubeodds cluster timeline 'dumps/*.txt' --time-from '[0-9]+T[0-9]+' --node worker1 -o tsv",
    ),
    "sql": (
        "kubeodds cluster sql cluster 'SELECT node, mode, rules FROM nodes ORDER BY rules DESC'",
        "kubeodds cluster sql cluster 'SELECT name, count(*) FROM node_routes GROUP BY name'",
        "kubeodds cluster sql cluster 'SELECT * FROM route_endpoints WHERE lower > 0.5' -o tsv",
    ),
}
#: Answers that have the form of another verb's.
_REPORTS: Final = {"loss": "loss-cluster", "whatif": "whatif"}
#: The default of --worker-memory.
_MEMORY: Final = 2 << 30
_MOST_WORKERS: Final = 1024


def parse(words: Sequence[str]) -> SimpleNamespace:
    """Return the verb, for example ``cluster build``, and its options, from the words after it."""
    given: SimpleNamespace = parser().parse_args(words, SimpleNamespace())
    given.verb = f"cluster {given.verb}"
    return given


def parser() -> Parser:
    """Return the parser of the verbs of ``cluster``."""
    found = Parser(
        prog="kubeodds cluster",
        description="Read the dumps of all nodes of a cluster once, and analyse them together.",
    )
    verbs = found.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (says, add_options) in _VERBS.items():
        own: Parser = verbs.add_parser(name, help=says, description=says, examples=EXAMPLES[name])
        add_options(own)
        add_output_options(own, _REPORTS.get(name, f"cluster {name}"))
        own.add_argument(
            "--strict",
            action="store_true",
            help="exit with 3 if a node was not read, or only in part",
        )
        own.add_argument(
            "-v", "--verbose", action="store_true", help="also print informative messages"
        )
    return found


def _build(parser: ArgumentParser) -> None:
    parser.add_argument(
        "dumps",
        metavar="DUMP",
        nargs="+",
        help="files, folders, patterns or archives with the dumps of nodes, of one node or of many",
    )
    parser.add_argument(
        "--into",
        metavar="DIR",
        type=written_file,
        required=True,
        help="folder for the tables; an unfinished build in it is resumed",
    )
    parser.add_argument(
        "--objects",
        metavar="FILE",
        **several(),
        help="kubectl get services,endpointslices,nodes,pods -A -o json; files or folders; DIR "
        "keeps them",
    )
    parser.add_argument(
        "--node-of",
        metavar="CIDR=NODE",
        **several(network_of_node),
        help="which node's pods have addresses in a network, if the objects do not say so",
    )
    parser.add_argument(
        "--name-from",
        metavar="REGEX",
        help="finds a node's name in the path of its dump: its one group, or the whole match",
    )
    parser.add_argument(
        "--engine",
        metavar="ENGINE",
        default="processes",
        help="processes of this machine (the default), serial, or the address of a Dask scheduler "
        "(tcp://HOST:8786), whose workers see the same files",
    )
    parser.add_argument(
        "--workers", metavar="N", type=_workers, help="processes (default: one for each core)"
    )
    parser.add_argument(
        "--worker-memory",
        metavar="SIZE",
        type=size_of,
        default=_MEMORY,
        help="memory limit of each process: K, M, G (default: 2G)",
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="read each dump on its own, without reusing an earlier one: the same result, slower",
    )
    parser.add_argument(
        "--input-format",
        choices=sorted(FORMATS),
        help="format of each DUMP (default: detected)",
    )
    parser.add_argument("--all", action="store_true", help="name every node, not just failed ones")
    add_assumed_options(parser)
    parser.add_argument(
        "--max-input",
        metavar="SIZE",
        type=size_of,
        default=MOST_BYTES,
        help="refuse larger dumps, compressed or not: K, M, G (default: 2G)",
    )
    parser.set_defaults(table=None)


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < len(str(_MOST_WORKERS)) + 1):
        raise ArgumentTypeError(f"{text!r} is not a positive integer")
    if not 1 <= int(text) <= _MOST_WORKERS:
        raise ArgumentTypeError(f"{text!r} is not between 1 and {_MOST_WORKERS:,}")
    return int(text)


def _add_folder(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="what `kubeodds cluster build` made")


def _add_objects(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--objects",
        metavar="FILE",
        **several(),
        help="API objects to use instead of those of the build",
    )
    parser.add_argument(
        "--node-of", metavar="CIDR=NODE", **several(network_of_node), help="as for `cluster build`"
    )
    parser.set_defaults(max_input=MOST_BYTES, dumps=[], from_objects=[])


def _loss(parser: ArgumentParser) -> None:
    _add_folder(parser)
    _add_objects(parser)
    command_line.add_dead_options(parser)
    command_line.add_filters(parser)
    command_line.add_order(parser, "the loss on its worst route at its worst node")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--summary", action="store_true", help="one line for each ServicePort, affected or not"
    )
    shown.add_argument("--all", action="store_true", help="show all affected ServicePorts")
    command_line.add_all(parser, {name: of for name, of in LOSS.items() if "--quiet" not in name})


def _whatif(parser: ArgumentParser) -> None:
    _add_folder(parser)
    _add_objects(parser)
    command_line.add_filters(parser)
    command_line.add_all(
        parser, {name: of for name, of in WHATIF.items() if name != "--components"}
    )
    parser.epilog = WHATIF_EPILOG
    parser.set_defaults(components=False, node=None)


def _drift(parser: ArgumentParser) -> None:
    _add_folder(parser)
    _add_objects(parser)
    command_line.add_filters(parser)
    parser.add_argument(
        "--against",
        choices=["objects", "majority"],
        help=(
            "what nodes are compared with: what kube-proxy would write for the objects, or what "
            "most nodes have (default: objects, if there are any)"
        ),
    )
    parser.add_argument(
        "--only", metavar="CODE", **several(_code), help="only differences of these kinds"
    )
    parser.add_argument("--all", action="store_true", help="list every one")
    add_proxy_options(parser)
    parser.epilog = (
        "Exit status 1 if there is a difference. Differences caused by flags of kube-proxy or by "
        "other programs' rules are judged by what most nodes have in either case."
    )


def _timeline(parser: ArgumentParser) -> None:
    parser.add_argument(
        "dumps",
        metavar="DUMP",
        nargs="+",
        help=(
            "files, folders, patterns or archives with dumps of one node or of many, from "
            "several times"
        ),
    )
    parser.add_argument(
        "--objects",
        metavar="FILE",
        **several(),
        help="kubectl get services,endpointslices,nodes,pods -A -o json; each file is the objects "
        "at one time",
    )
    parser.add_argument(
        "--node-of", metavar="CIDR=NODE", **several(network_of_node), help="as for `cluster build`"
    )
    parser.add_argument("--node", metavar="NAME", help="all dumps are of this node")
    parser.add_argument(
        "--name-from",
        metavar="REGEX",
        help="finds a node's name in the path of a dump: its one group, or the whole match",
    )
    parser.add_argument(
        "--time-from",
        metavar="REGEX",
        help=(
            "finds the time in the path of a dump or of objects: its group, or the whole match "
            "(default: the time in a bundle or above the rules, otherwise when the file was "
            "written)"
        ),
    )
    for option, metavar, says in (
        (
            "--dead",
            "IP[:PORT]",
            ("an endpoint that no longer answered; or a CIDR, or a pod's ns/name"),
        ),
        ("--dead-node", "NODE", "a node that was gone"),
        ("--dead-zone", "ZONE", "a zone that was gone"),
    ):
        parser.add_argument(
            option,
            metavar=f"{metavar}[@FROM..TO]",
            **several(_window),
            help=f"{says}; all the time, or from FROM to TO (for example 2026-11-20T09:00:00Z)",
        )
    parser.add_argument(
        "--dead-by-objects",
        action="store_true",
        help="count endpoints as dead that the objects at that time do not list as ready",
    )
    parser.add_argument(
        "--max-lost",
        metavar="TIME",
        type=duration_of,
        help=(
            "exit with 1 if a ServicePort may have lost more than this time's worth of new "
            "flows, or not everything was read"
        ),
    )
    command_line.add_filters(parser)
    parser.add_argument("--all", action="store_true", help="list every one")
    parser.add_argument(
        "--input-format", choices=sorted(FORMATS), help="format of each DUMP (default: detected)"
    )
    add_assumed_options(parser)
    add_proxy_options(parser)
    parser.add_argument(
        "--max-input",
        metavar="SIZE",
        type=size_of,
        default=MOST_BYTES,
        help="as for `cluster build`",
    )
    parser.epilog = (
        "It needs no folder of `cluster build`, which has each node only once. A change happened "
        "at some time between two dumps, so times are bounds. DuckDB is not needed."
    )
    parser.set_defaults(
        table=None,
        others=[],
        ipsets=None,
        addresses=None,
        routes=[],
        node_ip=[],
        from_objects=[],
        no_drift=False,
        against="objects",
    )


def _window(text: str) -> tuple[str, Fraction | None, Fraction | None]:
    from analyzer.parsers.clock_times import window_from_text

    found = window_from_text(text)
    if found is None:
        raise ArgumentTypeError(
            f"{text!r} is not NAME@FROM..TO, for example a@2026-11-20T09:00:00Z..2026-11-20T09:10Z"
        )
    return found


def _code(text: str) -> str:
    from analyzer.cluster.drift_kinds import DriftKind

    if text not in {each.value for each in DriftKind}:
        raise ArgumentTypeError(
            f"{text!r} is not one of {', '.join(each.value for each in DriftKind)}"
        )
    return text


def _sql(parser: ArgumentParser) -> None:
    _add_folder(parser)
    parser.add_argument("sql", metavar="SELECT", help="a query in DuckDB's SQL")


_VERBS: Final[dict[str, tuple[str, Callable[[ArgumentParser], None]]]] = {
    "build": (
        "read the dumps of all nodes into tables; resume an unfinished build",
        _build,
    ),
    "loss": ("what each Service loses, as seen from every living node", _loss),
    "whatif": ("what every node, zone and pair would cost, as seen from every node", _whatif),
    "drift": ("which nodes' rules differ from those of the cluster; exit with 1 if any do", _drift),
    "timeline": (
        ("how nodes' rules changed over time, which sync changed what, and the loss"),
        _timeline,
    ),
    "sql": ("query the tables with SQL", _sql),
}
