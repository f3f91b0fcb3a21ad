"""Which devices the rules of a node name, by which its network plugin shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from analyzer.kubeproxy.asked_bits import rows_of
from analyzer.model.rules import LazyRules, Rule, Ruleset, Table
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.nft import Chain, NftRuleset

#: In rows of iptables-save: the device of -i or -o.
_IN_ROWS: Final = re.compile(r' (?:-[io]|--(?:in|out)-interface) "?([^\s"]+)')
#: In rules of nft, as text or JSON: all that may be a device.
_NAMES: Final = re.compile(r"[^\s\"'{},]+")
#: Of rules of nft and types of sets that have to do with devices.
_WORDS: Final = ("iif", "oif")
#: What stands in a row besides its matches and its target.
_BARE: Final = re.compile(r' -m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+)|^\[\d+:\d+\] ')
_STOPS: Final = re.compile(r"-A \S+ -j (?:DROP|REJECT(?: --reject-with \S+)?)")
_DEVICES: Final = frozenset({"ifname", "iface_index", "unknown"})


def asked_devices(rulesets: Iterable[Rules]) -> frozenset[str]:
    """Return the devices that rules match on, patterns of iptables; others may be among them."""
    return frozenset(name for each in rulesets for name in _named(each))


def asks_where_from(rulesets: Iterable[Rules]) -> bool:
    """Tell whether a rule may match on the device that a packet comes in by."""
    return any(
        any(re.search(r" (?:-i|--in-interface) ", rows_of(table)) for table in each.tables.values())
        if isinstance(each, Ruleset)
        else any(True for _ in _saying(each, "iif"))
        for each in rulesets
    )


def _saying(ruleset: NftRuleset, *words: str) -> Iterator[Chain]:
    from analyzer.kubeproxy.asked_nft import saying  # not for nodes without nft

    return saying(ruleset, *words)


def dispatched(rulesets: Iterable[Rules], *, leaving: bool) -> frozenset[str]:
    """Return the devices by which chains send packets on one by one, and drop all others.

    Those by which they come in, or with `leaving` leave.
    """
    option = "o" if leaving else "i"
    tables = (t for each in rulesets if isinstance(each, Ruleset) for t in each.tables.values())
    return frozenset(name for table in tables for name in _sent_on(table, option))


def _sent_on(table: Table, option: str) -> Iterator[str]:
    sends = re.compile(rf"-A \S+ -{option} (\S+) -g \S+")
    asking = re.findall(rf"(?m)^(?:\[\d+:\d+\] )?-A (\S+) -{option} \S+ .*-g \S+$", rows_of(table))
    for chain in dict.fromkeys(asking):
        held = table.chains[chain].rules if chain in table.chains else ()
        rows = [_BARE.sub("", rule) for rule in _text(held)]
        found = [sends.fullmatch(row) for row in rows[:-1]]
        if rows and _STOPS.fullmatch(rows[-1]) and None not in found:
            names = [each[1].strip('"') for each in found if each is not None]
            yield from (name for name in names if not name.endswith("+"))


def _text(rules: Sequence[Rule]) -> Sequence[str]:
    return (rules.texts() or ()) if isinstance(rules, LazyRules) else [rule.raw for rule in rules]


def _named(ruleset: Rules) -> Iterator[str]:
    if isinstance(ruleset, Ruleset):
        for table in ruleset.tables.values():
            yield from set(_IN_ROWS.findall(rows_of(table)))
    else:
        yield from _of_nft(ruleset)


def _of_nft(ruleset: NftRuleset) -> Iterator[str]:
    for chain in _saying(ruleset, *_WORDS):
        for rule in chain.rules:
            if any(word in rule.raw for word in _WORDS):
                yield from map(_as_pattern, _NAMES.findall(rule.raw))
    for table in ruleset.tables.values():
        for held in table.sets.values():
            if _DEVICES & set(held.key):
                yield from map(_as_pattern, _NAMES.findall(repr(tuple(held.elements))))


def _as_pattern(name: str) -> str:
    return f"{name[:-1]}+" if name.endswith("*") else name
