"""Options that name the dumps to read, and what is known besides."""

from __future__ import annotations

from argparse import ArgumentParser

from analyzer.arguments.assumed import add_assumed_options
from analyzer.arguments.parser import Joined, address_of, network_of_node, several, size_of
from analyzer.parsers.contents import MOST_BYTES
from analyzer.parsers.formats import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What the verbs say that take the dumps of several nodes too.
_OF_SEVERAL_NODES: Final = {
    "loss": "; those of several nodes may be given, too",
    "client": "; with --balancer, those of several nodes may be given, too",
}


def add_input_options(parser: ArgumentParser, number: str = "+", verb: str = "") -> None:
    """Add options for the dumps to read, `number` as in argparse, and further input."""
    parser.add_argument(
        "dumps",
        metavar="DUMP",
        nargs=number,
        help=(
            "output of iptables-save, `nft list ruleset` or `iptables -nvL`, or a bundle: of "
            "`kubeodds collect`, sosreport and others; - for stdin; several dumps of one node "
            f"are distinguished by content{_OF_SEVERAL_NODES.get(verb, '')}"
        ),
    )
    _add_what_is_known(
        parser, "the node that the dump is from; for several dumps, their nodes in the same order"
    )


def add_two_dumps(parser: ArgumentParser) -> None:
    """Add the two dumps to compare; the options apply to both, or to B."""
    parser.add_argument(
        "a", metavar="A", help="output of iptables-save or `nft list ruleset`; - for stdin"
    )
    parser.add_argument("b", metavar="B", help="the dump to compare with A")
    _add_what_is_known(
        parser, "the node that A is from; also the node of B, unless --node-b names another"
    )
    parser.add_argument(
        "--node-b", metavar="NAME", help="the node that B is from, if it is not A's"
    )
    parser.add_argument(
        "--node-ip-b",
        metavar="IP",
        **several(address_of),
        help="that node's addresses, if the objects do not list them",
    )
    parser.add_argument(
        "--with-b",
        dest="others_b",
        metavar="FILE",
        **several(),
        help="other rules of the node that B is from",
    )


def _add_what_is_known(parser: ArgumentParser, node: str) -> None:
    """Add what says how to read a dump, and what is known besides; `node` describes ``--node``."""
    parser.add_argument(
        "--input-format",
        choices=sorted(FORMATS),
        help="format of each DUMP (default: detected)",
    )
    parser.add_argument(
        "--with",
        dest="others",
        metavar="FILE",
        **several(),
        help="other rules of the same node, for example those of iptables-legacy next to nft's",
    )
    parser.add_argument(
        "--table", metavar="NAME", help="the table, if DUMP is output of `iptables -S`: nat, filter"
    )
    parser.add_argument(
        "--objects",
        metavar="FILE",
        **several(),
        help="kubectl get services,endpointslices,nodes,pods -A -o json; files or folders",
    )
    add_places(parser, node)
    add_node_files(parser)
    add_assumed_options(parser)
    add_reading_options(parser, "exit with 3 if the dump was read only in part")


def add_places(parser: ArgumentParser, node: str) -> None:
    """Add options for the nodes of pods and of the rules; `node` describes ``--node``."""
    parser.add_argument(
        "--node-of",
        metavar="CIDR=NODE",
        **several(network_of_node),
        help="which node's pods have addresses in a network, if the objects do not say so",
    )
    parser.add_argument("--node", metavar="NAME", action=Joined, help=node)
    parser.add_argument(
        "--node-ip",
        metavar="IP",
        **several(address_of),
        help="that node's addresses, if the objects do not list them",
    )


def add_node_files(parser: ArgumentParser) -> None:
    """Add what the node's own commands print besides its rules."""
    parser.add_argument(
        "--ipsets",
        metavar="FILE",
        help="output of `ipset save` on the node, for rules with -m set",
    )
    parser.add_argument(
        "--addresses",
        metavar="FILE",
        help="output of `ip -j address` on the node: all its addresses",
    )
    parser.add_argument(
        "--routes",
        metavar="FILE",
        **several(),
        help="output of `ip -j route` and `ip -j -6 route` on the node: devices of pods",
    )


def add_reading_options(parser: ArgumentParser, strict: str) -> None:
    """Add options for limits and warnings; `strict` describes that option."""
    parser.add_argument(
        "--max-input",
        metavar="SIZE",
        type=size_of,
        default=MOST_BYTES,
        help="refuse larger inputs, compressed or not: K, M, G (default: 2G)",
    )
    parser.add_argument("--strict", action="store_true", help=strict)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="also print informative messages"
    )
