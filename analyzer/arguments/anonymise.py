"""The options and the help of ``anonymise``."""

from __future__ import annotations

from argparse import ArgumentParser

from analyzer.arguments.parser import size_of, written_file
from analyzer.parsers.contents import MOST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

EPILOG: Final = (
    "Addresses keep their prefixes, ports and numbers stay, chains are hashed again from the new "
    "names: every verb gives the same results, under the new names. Anything that is not "
    "understood is left out, and stderr says how much. Sizes, counters, times and the number of "
    "everything do not change."
)


def add_options(parser: ArgumentParser) -> None:
    """Add what is anonymised, and how."""
    parser.add_argument(
        "inputs",
        metavar="FILE",
        nargs="+",
        help=(
            "a dump, API objects, a bundle, or output of ip -j, conntrack -L or ipset save; - "
            "for stdin"
        ),
    )
    for option, metavar, says in (
        (
            "--salt-file",
            "FILE",
            "the secret that new names are derived from, created if the file does not exist; "
            "the same secret gives the same names (default: a new one, which is thrown away)",
        ),
        ("--map", "FILE", "also write the original names here, readable only by its owner"),
        (
            "--output",
            "FILE",
            "write here instead of to stdout; several files, or a bundle, become a bundle: "
            "FILE.tar.gz",
        ),
    ):
        parser.add_argument(option, metavar=metavar, type=written_file, help=says)
    parser.add_argument(
        "--every-name",
        action="store_true",
        help="also rename default/kubernetes, kube-system/kube-dns and the namespaces of every "
        "cluster, by which verbs know the API server and DNS",
    )
    parser.add_argument(
        "--max-input",
        metavar="SIZE",
        type=size_of,
        default=MOST_BYTES,
        help="refuse larger inputs, compressed or not: K, M, G (default: 2G)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 if something was not understood"
    )
