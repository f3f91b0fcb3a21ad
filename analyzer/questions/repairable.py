"""Why no repair can be made of a dump."""

from __future__ import annotations

from analyzer.inputs.dumps import has_services
from analyzer.model.iptables.rules import Ruleset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.semantics.base_chains import Rules

#: A format that leaves out part of what rules match on.
_LISTING: Final = "iptables-list"


def why_not(ruleset: Rules) -> str:
    """Return why no change can be made of such rules, and what to give instead; or nothing."""
    if isinstance(ruleset, Ruleset):
        from analyzer.repair.applied import has_repair

        repaired_already = has_repair(ruleset)
        if ruleset.input_format == _LISTING:
            return (
                "a listing leaves out part of what rules match on, so it cannot be repaired; use "
                "iptables-save"
            )
    else:
        from analyzer.repair.nft import has_repair as has_table

        repaired_already = has_table(ruleset)
        if not has_services(ruleset):
            return "nft prints rules of iptables-nft only in part; use iptables-nft-save"
    if repaired_already:
        return (
            "these rules already contain a repair: undo it (--print undo), and take the dump again"
        )
    return ""
