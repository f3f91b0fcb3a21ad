"""Options that choose how and where an answer is shown."""

from __future__ import annotations

from argparse import ArgumentParser

from analyzer.arguments.parser import written_file
from analyzer.reports.renderers import RENDERERS


def add_output_options(parser: ArgumentParser, verb: str) -> None:
    """Add what says how and where the answer is shown."""
    parser.add_argument("-o", "--format", choices=sorted(RENDERERS[verb]), default="text")
    parser.add_argument(
        "--output", metavar="FILE", type=written_file, help="write here instead of to stdout"
    )
    parser.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="colours, and a table as wide as the terminal (default: auto, on a terminal only; "
        "NO_COLOR, FORCE_COLOR and TERM=dumb are respected)",
    )
    parser.add_argument(
        "--no-color", dest="color", action="store_const", const="never", help="--color never"
    )
