"""What rules of iptables may change between DNAT and the chains that masquerade.

kube-proxy marks a flow in nat's PREROUTING or OUTPUT and masquerades what is marked in nat's
POSTROUTING. In between the packet meets other tables, and a rule of somebody else may clear the
mark or set it. What such rules can touch at all follows from the rules alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy.between import ANYTHING, NOTHING, Between
from analyzer.model.hooks import TABLES
from analyzer.model.rules import Rule, Ruleset, Table
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.survey import plain_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Targets whose rows need not be understood: they leave the mark alone.
_HARMLESS: Final = frozenset({"ACCEPT", "DROP", "LOG", "NFLOG", "REJECT", "RETURN", "TRACE"})


def changed_by(ruleset: Ruleset) -> Between:
    """Return what rules between DNAT and masquerading may change."""
    found = NOTHING
    for name, hook in _between():
        table = ruleset.tables.get(name)
        if table is not None and hook in table.chains:
            found |= _changed_from(table, hook)
        elif table is not None and not table.complete:
            return ANYTHING
    return found


def _between() -> Iterator[tuple[str, str]]:
    """Give the base chains between DNAT and POSTROUTING's nat, for all ways of a packet."""
    out, last = TABLES["OUTPUT"], TABLES["POSTROUTING"]
    yield from ((table, "OUTPUT") for table in out[out.index("nat") + 1 :])
    yield from ((table, "FORWARD") for table in TABLES["FORWARD"])
    yield from ((table, "POSTROUTING") for table in last[: last.index("nat")])


def _changed_from(table: Table, hook: str) -> Between:
    found = NOTHING
    seen, rest = {hook}, [hook]
    while rest:
        for target in _targets(table, rest.pop()):
            if not isinstance(target, str):
                found |= _changed(target)
            elif target not in table.chains:
                return ANYTHING  # what it does the dump does not say
            elif target not in seen:
                seen.add(target)
                rest.append(target)
    return found


def _targets(table: Table, name: str) -> Iterator[str | Rule]:
    """Give the chains that rules of a chain lead to, and its rules that may do something else."""
    rules = table.chains[name].rules
    if not isinstance(rules, RuleRows) or not rules.complete:
        yield from map(_led_to, rules)
        return
    for at, line in enumerate(rules.lines):
        target = plain_target(line)
        if target in table.chains:
            yield str(target)
        elif target not in _HARMLESS:
            yield _led_to(rules.understand(rules.number(at), line))


def _led_to(rule: Rule) -> str | Rule:
    from analyzer.model.targets import Goto, Jump

    return rule.target.chain if isinstance(rule.target, Jump | Goto) else rule


def _changed(rule: Rule) -> Between:
    from analyzer.model.targets import (
        ChangeSet,
        CopyConnmark,
        Queue,
        SetConnmark,
        SetMark,
        TargetUnknown,
        Tproxy,
    )

    match rule.target:
        case SetMark(value, mask):
            return Between(mark=value | mask)
        case SetConnmark(value, mask):
            return Between(flow_mark=value | mask)
        case CopyConnmark("restore", packet_mask, flow_mask):
            return Between(mark=packet_mask | flow_mask)
        case CopyConnmark(_, packet_mask, flow_mask):
            return Between(flow_mark=packet_mask | flow_mask)
        case ChangeSet(map_mark=True):
            return Between(mark=ANYTHING.mark)
        case Queue() | Tproxy() | TargetUnknown():
            return ANYTHING
        case _:
            return NOTHING
