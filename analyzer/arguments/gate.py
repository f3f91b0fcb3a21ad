"""The options and the help of ``gate``."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError

from analyzer.arguments.input import add_reading_options
from analyzer.arguments.objects import add_proxy_options
from analyzer.arguments.parser import several
from analyzer.arguments.whatif import OPTIONS as WHATIF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_PLACEMENTS: Final = ("worst", "expected")
#: Options that are those of whatif, with the same meaning.
_SHARED: Final = ("--only", "--max-loss", "--min-survives")

EPILOG: Final = (
    "The worst placement is the worst one that the constraints allow, whatever order the pods are "
    "scheduled in and whichever feasible node each one gets; the expected one follows the "
    "scheduler's default scores. Losses are those that whatif reports for that placement. Exit 1: "
    "a threshold is broken or not proven to hold, or pods stay Pending. Repeat options that take "
    "several values, or join the values with commas."
)


def _nodes(text: str) -> list[str]:
    """Return the files or groups that a value of ``--nodes`` names.

    Raises:
        ArgumentTypeError: there is nothing between two commas.
    """
    # Of a name that is too long pathlib makes an error.
    words = [text] if os.path.exists(text) else text.split(",")  # noqa: PTH110  # see above
    if words[1:] and not all(words):
        raise ArgumentTypeError(f"{text!r} has an empty part, between two commas or at an end")
    return words


def add_options(parser: ArgumentParser) -> None:
    """Add options for the manifests, the nodes, and the thresholds."""
    parser.add_argument(
        "manifests",
        metavar="MANIFEST",
        nargs="+",
        help="YAML or JSON, already rendered by helm or kustomize: files, folders, or - for stdin",
    )
    parser.add_argument(
        "--nodes",
        metavar="FILE|NODES",
        required=True,
        type=_nodes,
        action="extend",
        help=(
            "output of kubectl get nodes -o json (of nodes,pods,namespaces -A to include running "
            "pods), or a description: 3xzone=a,3xzone=b+cpu=4+memory=16Gi,1xcontrol-plane"
        ),
    )
    for name in _SHARED:
        parser.add_argument(name, **WHATIF[name])
    parser.add_argument(
        "--depth",
        metavar="K",
        type=WHATIF["--depth"]["type"],
        default=1,
        help="also judge the loss of any K nodes together (default: 1)",
    )
    parser.add_argument(
        "--control-plane",
        metavar="NODE",
        **several(),
        help="the control plane's nodes (default: those with its role label)",
    )
    parser.add_argument(
        "--objects-of",
        choices=_PLACEMENTS,
        help="print the objects of that placement as a v1 List, for kubeodds whatif --from-objects",
    )
    parser.add_argument("--all", action="store_true", help="show every failing Service in full")
    add_proxy_options(parser.add_argument_group("predicted rules"))
    add_reading_options(parser, "exit with 3 if not every Service was judged")
