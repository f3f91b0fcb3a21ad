"""Which bits of a mark may change between DNAT and the chains that masquerade.

kube-proxy marks a flow in nat's PREROUTING or OUTPUT and masquerades what is marked in nat's
POSTROUTING. In between the packet meets other tables, and a rule of somebody else may clear the
mark or set it. Which bits such rules can touch at all follows from the rules alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.hooks import TABLES
from analyzer.model.rules import Rule, Ruleset, Table
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.survey import plain_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Targets whose rows need not be understood: they leave the mark alone.
_HARMLESS: Final = frozenset({"ACCEPT", "DROP", "LOG", "NFLOG", "REJECT", "RETURN", "TRACE"})


def bits_that_may_change(ruleset: Ruleset) -> int:
    """Return the bits of the mark that rules between DNAT and masquerading may change."""
    bits = 0
    for name, hook in _between():
        table = ruleset.tables.get(name)
        if table is not None and hook in table.chains:
            bits |= _bits_of(table, hook)
    return bits


def _between() -> Iterator[tuple[str, str]]:
    """Give the base chains between DNAT and POSTROUTING's nat, for all ways of a packet."""
    out, last = TABLES["OUTPUT"], TABLES["POSTROUTING"]
    yield from ((table, "OUTPUT") for table in out[out.index("nat") + 1 :])
    yield from ((table, "FORWARD") for table in TABLES["FORWARD"])
    yield from ((table, "POSTROUTING") for table in last[: last.index("nat")])


def _bits_of(table: Table, hook: str) -> int:
    bits = 0
    seen, rest = {hook}, [hook]
    while rest:
        for target in _targets(table, rest.pop()):
            if not isinstance(target, str):
                bits |= _changed(target)
            elif target not in table.chains:
                bits = _all_bits()  # what it does the dump does not say
            elif target not in seen:
                seen.add(target)
                rest.append(target)
    return bits


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


def _all_bits() -> int:
    from analyzer.model.packet import ALL_BITS

    return ALL_BITS


def _changed(rule: Rule) -> int:
    from analyzer.model.targets import (
        ChangeSet,
        CopyConnmark,
        Queue,
        SetMark,
        TargetUnknown,
        Tproxy,
    )

    match rule.target:
        case SetMark(value, mask):
            return value | mask
        case CopyConnmark("restore", packet_mask, flow_mask):
            return packet_mask | flow_mask
        case ChangeSet(map_mark=True) | Queue() | Tproxy() | TargetUnknown():
            return _all_bits()
        case _:
            return 0
