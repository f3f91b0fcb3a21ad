"""Two rulesets compared without where they stand in their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from analyzer.model.nft import expressions as e
from analyzer.model.nft.ruleset import NftRuleset, Set
from analyzer.model.value import replace


def plain(ruleset: NftRuleset, of_set: Callable[[Set], Set] = lambda held: held) -> Any:
    """All values of a ruleset but file, lines and raw text; `of_set` may take more away."""
    return {
        place: {
            "table": (table.flags, table.comment, table.complete),
            "chains": {
                name: (
                    chain.type,
                    chain.hook,
                    chain.priority,
                    chain.policy,
                    chain.devices,
                    chain.comment,
                    [(rule.statements, rule.comment) for rule in chain.rules],
                )
                for name, chain in table.chains.items()
            },
            "sets": {
                name: replace(of_set(held), elements=tuple(held.elements))
                for name, held in table.sets.items()
            },
            "objects": dict(table.objects),
            "flowtables": dict(table.flowtables),
        }
        for place, table in ruleset.tables.items()
    }


def what_json_tells(ruleset: NftRuleset) -> Any:
    """As `plain`, without what nft 1.0.6 leaves out of its JSON, and nothing else.

    Left out: comments of tables and chains; what flags a table has, in whose place its name is
    printed; a base chain's device; of a set the flag dynamic,
    auto-merge and typeof; milliseconds. Objects that neither reader understands are text, in
    two languages; so is what is unknown in a rule, and in text it takes what follows along.
    """
    found = plain(
        ruleset,
        lambda held: replace(
            held,
            typeof=None,
            auto_merge=False,
            flags=tuple(flag for flag in held.flags if flag != "dynamic"),
        ),
    )
    for table in found.values():
        table["table"] = bool(table["table"][0])
        table["chains"] = {
            name: (*chain[:4], [_known(*rule) for rule in chain[6]])
            for name, chain in table["chains"].items()
        }
        table["objects"] = {
            place: held if not _is_text(held.properties) else None
            for place, held in table["objects"].items()
        }
    return found


def _is_text(properties: Any) -> bool:
    return any(name == "text" for name, _ in properties)


def _known(statements: tuple[Any, ...], comment: str | None) -> Any:
    for at, each in enumerate(statements):
        if isinstance(each, e.Unknown):
            return statements[:at], "unknown"
    return statements, comment


def unknown_in(given: object) -> Iterator[e.Unknown]:
    """Give all that is unknown in values, however deep."""
    if isinstance(given, e.Unknown):
        yield given
    elif isinstance(given, dict):
        for each in given.values():
            yield from unknown_in(each)
    elif isinstance(given, tuple | list):
        for each in given:
            yield from unknown_in(each)
    elif hasattr(given, "__value_fields__"):
        for name in given.__value_fields__:
            yield from unknown_in(getattr(given, name))
