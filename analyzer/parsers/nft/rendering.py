"""The canonical text of a ruleset: nft loads it, and it parses to the same values.

nft does not accept three things that only our own reader does: unknown parts are rendered as they
were read, an xtables extension as ``xt match "x"``, and one that left only a blank as that blank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.model.nft.ruleset import Chain, Flowtable, NamedObject, NftRuleset, Rule, Set, Table
from analyzer.model.nft.statements import Limit, Quota
from analyzer.parsers.nft import statements
from analyzer.parsers.nft.expressions import write as write_expression
from analyzer.parsers.nft.expressions import write_group
from analyzer.parsers.nft.words import quoted


def render(ruleset: NftRuleset) -> str:
    """Return the tables as nft prints them.

    Raises:
        ValueError: a string in them contains a quote, which nft cannot write.
    """
    lines: list[str] = []
    for table in ruleset.tables.values():
        lines.append(f"table {table.family} {table.name} {{")
        lines += [f"\t{line}" for line in _table(table)]
        if table.complete:
            lines.append("}")
    return "\n".join(lines) + "\n"


def render_rule(rule: Rule) -> str:
    """Return one rule as nft prints it.

    Raises:
        ValueError: a string in it contains a quote.
    """
    words = [statements.write(each) for each in rule.statements]
    if rule.comment is not None:
        words.append(f"comment {quoted(rule.comment)}")
    return " ".join(words)


def _table(table: Table) -> Iterator[str]:
    if table.comment is not None:
        yield f"comment {quoted(table.comment)}"
    if table.flags:
        yield f"flags {','.join(table.flags)}"
    for held in table.objects.values():
        yield from _block(f"{held.kind} {held.name}", _object(held))
    for each in table.sets.values():
        kind = "set" if each.value is None else "map"
        yield from _block(f"{kind} {each.name}", _set(each))
    for flowtable in table.flowtables.values():
        yield from _block(f"flowtable {flowtable.name}", _flowtable(flowtable))
    for chain in table.chains.values():
        yield from _block(f"chain {chain.name}", _chain(chain))


def _block(head: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"\t{line}" for line in lines)
    yield "}"
    yield ""


def _comment(given: str | None) -> Iterator[str]:
    if given is not None:
        yield f"comment {quoted(given)}"


def _object(given: NamedObject) -> Iterator[str]:
    yield from _comment(given.comment)
    held: dict[str, Any] = dict(given.properties)
    match given.kind:
        case _ if "text" in held:  # of an object that is not understood
            yield from (str(text) for _, text in given.properties)
        case "counter":
            yield f"packets {held['packets']} bytes {held['bytes']}"
        case "limit":
            yield statements.write(Limit(**held)).removeprefix("limit ")
        case "quota":
            quota = Quota(amount=held["bytes"], used=held["used"], over=held["over"])
            yield statements.write(quota).removeprefix("quota ")
        case "ct helper":
            yield f"type {quoted(held['type'])} protocol {held['protocol']}"
            yield f"l3proto {held['l3proto']}"
        case _:
            yield from (str(text) for _, text in given.properties)


def _set(given: Set) -> Iterator[str]:
    if given.typeof is not None:
        key, data = (" . ".join(map(write_expression, part)) for part in given.typeof)
        yield f"typeof {key}{f' : {data}' if given.value is not None else ''}"
    else:
        data = "" if given.value is None else f" : {' . '.join(given.value)}"
        yield f"type {' . '.join(given.key)}{data}"
    if given.policy is not None:
        yield f"policy {given.policy}"
    if given.size is not None:
        yield f"size {given.size}"
    if given.flags:
        yield f"flags {','.join(given.flags)}"
    if given.auto_merge:
        yield "auto-merge"
    yield from map(statements.write, given.statements)
    if given.timeout is not None:
        yield f"timeout {given.timeout}s"
    if given.gc_interval is not None:
        yield f"gc-interval {given.gc_interval}s"
    yield from _comment(given.comment)
    if given.elements:
        yield f"elements = {write_group(tuple(given.elements))}"


def _devices(given: tuple[str, ...]) -> str:
    return f"devices = {{ {', '.join(map(quoted, given))} }}"


def _flowtable(given: Flowtable) -> Iterator[str]:
    if given.hook is not None:
        yield f"hook {given.hook} priority {given.priority}"
    if given.devices:
        yield _devices(given.devices)


def _chain(given: Chain) -> Iterator[str]:
    yield from _comment(given.comment)
    if given.hook is not None:
        devices = f" {_devices(given.devices)}" if given.devices else ""
        head = f"type {given.type} hook {given.hook}{devices} priority {given.priority};"
        yield f"{head} policy {given.policy};"
    yield from map(render_rule, given.rules)
