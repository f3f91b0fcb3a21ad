"""The contents of the ipsets that a node's rules match on, as far as they are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.kubeproxy.rows.texts import found, says
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.ipsets import NodeIpsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: A set that packets are added to, or deleted from.
_CHANGED: Final = r" --(?:add|del)-set (\S+)", " --add-set ", " --del-set "
_MOST_NAMED: Final = 3
_ADDRESSES: Final = frozenset({"ipv4_addr", "ipv6_addr"})


def node_ipsets(rulesets: Sequence[Rules]) -> NodeIpsets:
    """Return the ipsets of a node with these rules."""
    sets = next((r.ipsets for r in rulesets if isinstance(r, Ruleset) and r.ipsets), {})
    return NodeIpsets(sets, lambda: frozenset(_changed(rulesets)))


def _changed(rulesets: Iterable[Rules]) -> Iterator[str]:
    return (each[1] for table in _tables(rulesets) for each in found(table, *_CHANGED))


def _tables(rulesets: Iterable[Rules]) -> Iterator[Table]:
    return (t for each in rulesets if isinstance(each, Ruleset) for t in each.tables.values())


def asks_sets(rulesets: Iterable[Rules]) -> bool:
    """Return whether a rule matches on an ipset."""
    return any(says(table, "--match-set") for table in _tables(rulesets))


def asks_pairs(rulesets: Iterable[Rules]) -> bool:
    """Return whether a set of nft has pairs of addresses, for example for hairpin flows."""
    return any(
        sum(part in _ADDRESSES for part in held.key) > 1
        for ruleset in rulesets
        if not isinstance(ruleset, Ruleset)
        for table in ruleset.tables.values()
        for held in table.sets.values()
    )


def not_told(sets: Iterable[str], file: str) -> list[Diagnostic]:
    """Return a warning about sets that rules match on and whose members are not known."""
    names = sorted(sets)
    if not names:
        return []
    more = f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else ""
    what = "set" if len(names) == 1 else "sets"
    message = (
        f"contents of {what} {', '.join(names[:_MOST_NAMED])}{more} (-m set) not known: answers "
        "that depend on them are bounds; pass --ipsets FILE with the output of `ipset save`"
    )
    return [partial_warning("unknown-ipset", message, file)]
