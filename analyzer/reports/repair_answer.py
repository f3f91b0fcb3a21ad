"""The answer of ``repair``, with everything its reports need."""

from __future__ import annotations

from analyzer.model.value import value
from analyzer.reports.freshness import UNKNOWN, Freshness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.failure.models import Dead
    from analyzer.kubeproxy.view import View
    from analyzer.model.diagnostics import Diagnostic
    from analyzer.repair.patch import RulesPatch
    from analyzer.repair.witness import Repaired


@value(kw_only=True)
class RepairAnswer:
    """The answer of ``repair``: a change to one node's rules, and its effect.

    Attributes:
        prints: the selected part of the text: patch, undo or conntrack.
        patches: one for each IP version; without text where nothing is to be changed.
        services: those that lose flows to the dead, or may.
        pinned: commands that free the flows which conntrack keeps at dead endpoints.
        alone: names of the API's own Service, if none of its endpoints is left and it was not
            selected.
        unplaced: endpoints on unknown nodes: they stay in the draws.
        undo: the command that prints the undo.
    """

    file: str
    view: View
    dead: Dead
    prints: str
    patches: tuple[RulesPatch, ...]
    services: tuple[Repaired, ...]
    pinned: tuple[str, ...]
    alone: tuple[str, ...]
    unplaced: int
    undo: str
    diagnostics: tuple[Diagnostic, ...]
    freshness: Freshness = UNKNOWN

    @property
    def problems(self) -> tuple[str, ...]:
        """Rules that could not be copied."""
        return tuple(each for patch in self.patches for each in patch.problems)
