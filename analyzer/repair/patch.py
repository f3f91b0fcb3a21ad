"""The parts of a repair of one node's rules."""

from __future__ import annotations

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Prefix of the names of our own chains in iptables: KUBE-SVC-X becomes KODDS-SVC-X.
PREFIX: Final = "KODDS-"
#: Our own table of nft.
TABLE: Final = "kubeodds"


@value(kw_only=True)
class RulesPatch:
    """A change to one table set, ready for the program that applies it atomically.

    Attributes:
        family: ``ip`` or ``ip6``.
        program: what reads `apply` and `undo` from standard input.
        apply: commands in that program's language; empty where nothing is to be changed.
        undo: those that take all of it away again.
        problems: what of the rules could not be copied, and why; these rules stay as they are.
    """

    family: str
    program: str
    apply: str
    undo: str
    problems: tuple[str, ...] = ()


class NotCopied(Exception):  # noqa: N818  # it is no fault: the rules in question stay as they are
    """Rules that cannot be copied; the message says why."""
