"""What ``anonymise`` is told on the command line."""

from __future__ import annotations

from argparse import ArgumentParser

from analyzer.arguments.parser import size_of
from analyzer.parsers.contents import MOST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

EPILOG: Final = (
    "Addresses keep their prefixes, ports and numbers stay, chains are hashed anew from the new "
    "names: every verb answers as before, under the new names. What is not understood is not "
    "carried along, and stderr says how much. Sizes, counters, times and how many there are of "
    "everything stay as they are."
)


def add_options(parser: ArgumentParser) -> None:
    """Add what is anonymised, and how."""
    parser.add_argument(
        "inputs",
        metavar="FILE",
        nargs="+",
        help="a dump, API objects, a bundle, or what ip -j, conntrack -L and ipset save print; - "
        "for stdin",
    )
    for option, metavar, says in (
        (
            "--salt-file",
            "FILE",
            "the secret that names are made with, which is made if it is not there; the same gives "
            "the same names (default: a new one, which is thrown away)",
        ),
        ("--map", "FILE", "also write what everything was called, readable by its owner only"),
        (
            "--output",
            "FILE",
            "write there, not to stdout; of several files, and of a bundle, a bundle: FILE.tar.gz",
        ),
    ):
        parser.add_argument(option, metavar=metavar, help=says)
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
        help="refuse an input of more bytes, packed or unpacked: K, M, G (default: 2G)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 if something was not understood"
    )
