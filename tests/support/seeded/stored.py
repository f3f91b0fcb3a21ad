"""Questions as text, so that the smallest one that notices a fault can be kept and read.

A file holds what notices the faults of one suite::

    ==== goto as jump
    to 10.2.3.4
    made_here no

    *raw
    :PREROUTING ACCEPT [0:0]
    ...

Words that say what is asked come first, then an empty line, then rules as iptables-save or nft
print them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from analyzer.model.addresses import Address
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.iptables.rules import Table as IptablesTable
from analyzer.model.nft.ruleset import NftRuleset, Table
from analyzer.parsers import iptables_save, nft_text
from analyzer.parsers.nft.rendering import render
from tests.support.naive.nft import Flow
from tests.support.nft.nodes import Question

_HEAD: Final = "==== "
#: Between the rules of nft and those of iptables beside them.
_BESIDE: Final = "---- iptables\n"
_YES: Final = {True: "yes", False: "no"}
_FILE: Final = "stored"

#: What is asked, and the rules.
Words = dict[str, str]


def read_file(path: Path) -> dict[str, str]:
    """The stored questions of a file by the names of the faults; none where there is no file."""
    if not path.exists():
        return {}
    _, *parts = path.read_text(encoding="utf-8").split(f"\n{_HEAD}")
    found = {}
    for part in parts:
        name, _, text = part.partition("\n")
        found[name] = text.strip("\n") + "\n"
    return found


def write_file(path: Path, stored: Mapping[str, str]) -> None:
    """Write stored questions, sorted by the names of the faults."""
    text = [f"{_HEAD}{name}\n{stored[name]}" for name in sorted(stored)]
    head = f"The smallest question that notices each fault of tests.support.seeded, {path.stem}.\n"
    path.write_text("\n".join([head, *text]), encoding="utf-8")


def _joined(words: Mapping[str, str], rules: str) -> str:
    said = "".join(f"{key} {value}".rstrip() + "\n" for key, value in words.items())
    return f"{said}\n{rules}"


def _parted(text: str) -> tuple[Words, str]:
    said, _, rules = text.partition("\n\n")
    rows = [line.partition(" ") for line in said.splitlines()]
    return {key: value for key, _, value in rows}, rules


def _iptables(tables: dict[str, IptablesTable]) -> str:
    return iptables_save.render(
        Ruleset(tables=tables, family="ip", input_format="iptables-save", file=_FILE)
    )


def _nft(tables: dict[tuple[str, str], Table]) -> str:
    return render(NftRuleset(tables=tables, input_format="nft", file=_FILE))


def _addresses(text: str) -> frozenset[Address]:
    return frozenset(map(ip_address, text.split()))


# --- one table of iptables


def write_table(given: IptablesTable) -> str:
    return _joined({"table": given.name}, _iptables({given.name: given}))


def read_table(text: str) -> IptablesTable:
    words, rules = _parted(text)
    return iptables_save.parse(rules, _FILE).tables[words["table"]]


# --- all tables of iptables


def write_way(given: tuple[Ruleset, Address, bool]) -> str:
    ruleset, destination, made_here = given
    words = {"to": str(destination), "made_here": _YES[made_here]}
    return _joined(words, iptables_save.render(ruleset))


def read_way(text: str) -> tuple[Ruleset, Address, bool]:
    words, rules = _parted(text)
    ruleset = iptables_save.parse(rules, _FILE)
    return ruleset, ip_address(words["to"]), words["made_here"] == _YES[True]


# --- one table of nft


def write_flow(flow: Flow) -> Words:
    """All of a flow that is not as flows usually are."""
    said: Words = {}
    for each in fields(flow):
        value = getattr(flow, each.name)
        if each.name in {"seen", "done", "dnat", "snat", "answers", "zones"}:
            continue  # as `track` makes them
        if isinstance(value, bool):
            said[each.name] = _YES[value]
        elif isinstance(value, frozenset):
            said[each.name] = " ".join(sorted(map(str, value)))
        else:
            said[each.name] = str(value)
    return {**said, "tracked": _YES[flow.seen is not None]}


def read_flow(words: Mapping[str, str]) -> Flow:
    given: dict[str, Any] = {
        "own": _addresses(words["own"]),
        "lists": frozenset(words["lists"].split()),
        "source": ip_address(words["source"]),
        "destination": ip_address(words["destination"]),
    }
    for name in ("source_port", "destination_port", "mark", "flow_mark", "counter"):
        given[name] = int(words[name])
    for name in ("under_limits", "untracked"):
        given[name] = words[name] == _YES[True]
    for name in ("family", "protocol", "iif", "oif"):
        given[name] = words[name]
    flow = Flow(**given)
    if words["tracked"] == _YES[True]:
        flow.track()
    return flow


def write_nft_table(given: tuple[Table, Flow]) -> str:
    table, flow = given
    return _joined(write_flow(flow), _nft({(table.family, table.name): table}))


def read_nft_table(text: str) -> tuple[Table, Flow]:
    words, rules = _parted(text)
    (table,) = nft_text.parse(rules, _FILE).tables.values()
    return table, read_flow(words)


def write_forgetful(given: tuple[tuple[Table, Flow], frozenset[str]]) -> str:
    (table, flow), forgotten = given
    words = {**write_flow(flow), "forgotten": " ".join(sorted(forgotten))}
    return _joined(words, _nft({(table.family, table.name): table}))


def read_forgetful(text: str) -> tuple[tuple[Table, Flow], frozenset[str]]:
    words, _ = _parted(text)
    return read_nft_table(text), frozenset(words["forgotten"].split())


# --- nodes with several tables


def write_node(given: Question) -> str:
    words = {
        **write_flow(given.flow),
        "made_here": _YES[given.made_here],
        "turns": " ".join(map(str, given.turns)),
    }
    rules = _nft(dict(given.nft.tables))
    if given.iptables is not None:
        rules += _BESIDE + iptables_save.render(given.iptables)
    return _joined(words, rules)


def read_node(text: str) -> Question:
    words, rules = _parted(text)
    of_nft, beside, of_iptables = rules.partition(_BESIDE)
    return Question(
        nft=nft_text.parse(of_nft, _FILE),
        iptables=iptables_save.parse(of_iptables, _FILE) if beside else None,
        flow=read_flow(words),
        made_here=words["made_here"] == _YES[True],
        turns=tuple(map(int, words["turns"].split())),
    )
