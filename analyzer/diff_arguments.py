"""What ``diff`` is told: two dumps, and what is known of either."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

from analyzer.argument_parser import address_of, several


def add_two_dumps(
    parser: ArgumentParser, add_what_is_known: Callable[[ArgumentParser], None]
) -> None:
    """Add what says which two dumps to compare; the options are of both, or of B."""
    parser.add_argument(
        "a", metavar="A", help="output of iptables-save or `nft list ruleset`; - for stdin"
    )
    parser.add_argument("b", metavar="B", help="the dump to hold against it")
    add_what_is_known(parser)
    parser.add_argument(
        "--node-b", metavar="NAME", help="the node whose dump B is, where it is another than A's"
    )
    parser.add_argument(
        "--node-ip-b",
        metavar="IP",
        **several(address_of),
        help="that node's addresses, where no objects say them",
    )
    parser.add_argument(
        "--with-b",
        dest="others_b",
        metavar="FILE",
        **several(),
        help="other rules of the node whose dump B is",
    )
