"""The devices named in a node's rules, which reveal its network plugin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analyzer.kubeproxy.rows.texts import found, rows_of, says, sent_by_device
from analyzer.model.devices import as_pattern
from analyzer.model.hooks import AT_DEVICES
from analyzer.model.iptables.rules import LazyRules, Rule, Ruleset, Table
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    _Known: TypeAlias = dict[str, frozenset[str] | None]

    from analyzer.model.nft.ruleset import Chain, NftRuleset

#: In rows of iptables-save: the device of -i or -o.
_IN_ROWS: Final = r' (?:-[io]|--(?:in|out)-interface) "?([^\s"]+)'
_DEVICES_OF: Final = " -i ", " -o ", "-interface "
_IN: Final = " -i ", " --in-interface "
#: Rows that match on packets that leave by loopback.
_TO_LOOPBACK: Final = r' (?:-o|--out-interface) "?(?:lo|lo?\+)(?=[\s"])'
_TO_LIKE: Final = " -o l", ' -o "l', " --out-interface "
#: The same of nft, as text or JSON; in sets and maps anything may be such a device.
_LOOPBACK_OUT: Final = r"\boif(?:name)?\b.*?(?:\blo?\b|@|vmap|map)"
#: In rules of nft, as text or JSON: everything that may be a device.
_NAMES: Final = r"[^\s\"'{},]+"
#: In rules of nft and types of sets that match on devices.
_WORDS: Final = ("iif", "oif")
#: The parts of a row that are neither its matches nor its target.
_BARE: Final = r' -m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+)|^\[\d+:\d+\] '
_STOPS: Final = r"-A \S+ -j (?:DROP|REJECT(?: --reject-with \S+)?)"
_DEVICES: Final = frozenset({"ifname", "iface_index", "unknown"})
#: Most chains that are followed, of which each sends names with one prefix on to the next.
_DEEPEST: Final = 8


def asked_devices(rulesets: Iterable[Rules]) -> frozenset[str]:
    """Return the devices that rules match on, patterns of iptables; others may be among them."""
    return frozenset(name for each in rulesets for name in _named(each))


def asks_loopback(rulesets: Iterable[Rules]) -> bool:
    """Return whether a rule may match on packets that leave by loopback, and not on all."""
    return any(
        any(any(found(table, _TO_LOOPBACK, *_TO_LIKE)) for table in each.tables.values())
        if isinstance(each, Ruleset)
        else any(
            re.search(_LOOPBACK_OUT, rule.raw) for c in _saying(each, "oif") for rule in c.rules
        )
        for each in rulesets
    )


def asks_where_from(rulesets: Iterable[Rules]) -> bool:
    """Return whether a rule may match on the device on a client's side.

    Flows come in by it, and answers leave by it, which nat does not see.
    """
    return any(
        any(says(t, *(_IN if t.name == "nat" else _DEVICES_OF)) for t in each.tables.values())
        if isinstance(each, Ruleset)
        else any(True for _ in _saying(each, "iif", "oif")) or any(True for _ in _at_devices(each))
        for each in rulesets
    )


def _saying(ruleset: NftRuleset, *words: str) -> Iterator[Chain]:
    from analyzer.kubeproxy.matched.nft import saying  # not needed without nft

    return saying(ruleset, *words)


def dispatched(rulesets: Iterable[Rules], *, leaving: bool) -> dict[str, frozenset[str]]:
    """Return the devices by which chains send packets on one by one, and drop all others.

    By input device, or with `leaving` by output device. The keys are the names of the devices all
    of whose packets reach such a chain; ``+`` if packets of every device do.
    """
    option = "o" if leaving else "i"
    told: dict[str, frozenset[str]] = {}
    for each in rulesets:
        for pattern, names in (
            _dispatched_of_nft(each, leaving=leaving)
            if not isinstance(each, Ruleset)
            else (sent for table in each.tables.values() for sent in _sent_on(table, option))
        ):
            told[pattern] = told.get(pattern, frozenset()) | names
    return told


def _dispatched_of_nft(
    ruleset: NftRuleset, *, leaving: bool
) -> Iterator[tuple[str, frozenset[str]]]:
    from analyzer.kubeproxy.matched import dispatched_nft  # not needed without nft

    return dispatched_nft.dispatched(ruleset, leaving=leaving)


def _sent_on(table: Table, option: str) -> Iterator[tuple[str, frozenset[str]]]:
    sends = rf"-A \S+ -{option} (\S+) -g (\S+)"
    asking = list(sent_by_device(table, option))
    chains: dict[str, list[tuple[str, str]]] = {}
    for chain in dict.fromkeys(chain for chain, _, _ in asking):
        rows = [re.sub(_BARE, "", rule) for rule in _rows_in(table, chain)]
        sent = [re.fullmatch(sends, row) for row in rows[:-1]]
        if rows and re.fullmatch(_STOPS, rows[-1]) and None not in sent:
            chains[chain] = [(each[1].strip('"'), each[2]) for each in sent if each is not None]
    # Packets reach these by a prefix of the name: what they drop says nothing about other names.
    inner = {to for _, name, to in asking if name.strip('"').endswith("+")}
    known: _Known = {}
    for chain in chains:
        names = None if chain in inner else _names(chain, chains, known)
        for pattern in _come_to(table, chain, option) if names else ():
            yield pattern, names or frozenset()


def _come_to(table: Table, chain: str, option: str, depth: int = 0) -> frozenset[str]:
    """Return names of devices whose packets a rule sends to a chain unconditionally.

    An earlier rule may have taken some of them: then they do not reach this chain.
    """
    if chain in table.chains and table.chains[chain].policy is not None:
        return frozenset({"+"})
    found: set[str] = set()
    for row in _rows_to(table, chain):
        match re.sub(_BARE, "", row).split():
            case ["-A", _, asked, device, _, _] if asked == f"-{option}":
                found.add(device.strip('"'))
            case ["-A", caller, _, _] if depth < _DEEPEST:
                found |= _come_to(table, caller, option, depth + 1)
            case _:  # not unconditionally
                pass
    return frozenset(found)


def _rows_to(table: Table, chain: str) -> Iterator[str]:
    """Yield the rows that send packets to a chain."""
    rows = rows_of(table) + "\n"
    for target in (f" -j {chain}\n", f" -g {chain}\n"):
        end = rows.find(target)
        while end >= 0:
            start = rows.rfind("\n", 0, end) + 1
            yield rows[start : end + len(target) - 1]
            end = rows.find(target, end + 1)


def _rows_in(table: Table, chain: str) -> Sequence[str]:
    return _text(table.chains[chain].rules) if chain in table.chains else ()


def _names(
    chain: str, chains: Mapping[str, Sequence[tuple[str, str]]], known: _Known, depth: int = 0
) -> frozenset[str] | None:
    """Return all devices that a chain sends packets on by; None: any other name is possible.

    `chains` are those that drop all others, with the devices and the chains they send them to.
    """
    if chain not in known:
        known[chain] = None  # nothing is known of a chain that leads back to itself
        names: set[str] = set()
        for name, to in chains[chain]:
            is_one = not name.endswith("+")
            followed = to in chains and depth < _DEEPEST
            found = {name} if is_one else _names(to, chains, known, depth + 1) if followed else None
            if found is None:
                return None
            names |= {each for each in found if is_one or each.startswith(name[:-1])}
        known[chain] = frozenset(names)
    return known[chain]


def _text(rules: Sequence[Rule]) -> Sequence[str]:
    return (rules.texts() or ()) if isinstance(rules, LazyRules) else [rule.raw for rule in rules]


def _named(ruleset: Rules) -> Iterator[str]:
    if isinstance(ruleset, Ruleset):
        for table in ruleset.tables.values():
            yield from {each[1] for each in found(table, _IN_ROWS, *_DEVICES_OF)}
    else:
        yield from _of_nft(ruleset)


def _at_devices(ruleset: NftRuleset) -> Iterator[tuple[str, ...]]:
    """Yield the names of the devices of each chain at devices; none if the dump has none."""
    for table in ruleset.tables.values():
        hooks = AT_DEVICES.get(table.family, {})
        for chain in table.chains.values() if hooks else ():
            if chain.hook in hooks:
                yield chain.devices


def _of_nft(ruleset: NftRuleset) -> Iterator[str]:
    for devices in _at_devices(ruleset):
        yield from map(as_pattern, devices)
    for chain in _saying(ruleset, *_WORDS):
        for rule in chain.rules:
            if any(word in rule.raw for word in _WORDS):
                yield from map(as_pattern, re.findall(_NAMES, rule.raw))
    for table in ruleset.tables.values():
        for held in table.sets.values():
            if _DEVICES & set(held.key):
                yield from map(as_pattern, re.findall(_NAMES, repr(tuple(held.elements))))
