"""Sets that rules update are dynamic, whether nft says so or not.

JSON of nft up to 1.0.6 never has the flag ``dynamic``, and its text has it of sets, but not of maps
(seen with nft 1.0.6). Which sets rules update is found without parsing the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from analyzer.model.nft.ruleset import Set
from analyzer.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_UPDATED: Final = re.compile(r"\b(?:add|update|delete) @(\S+) \{")
#: Keys of the statements of JSON that update sets and maps.
_KEYS: Final = ("set", "map")


def updated_in_text(rules: str) -> list[str]:
    """Return the names of the sets that rules update, as nft lists rules."""
    # Of ten thousand chains nearly all refer to no set.
    return _UPDATED.findall(rules) if "@" in rules else []


def updated_in_json(statements: object) -> Iterator[str]:
    """Yield the names of the sets that the statements of a rule update, as in JSON.

    Source: nftables 1.0.6, src/json.c, ``stmt_print_json``: those of maps are printed as text.
    """
    for each in statements if isinstance(statements, list) else ():
        if isinstance(each, str):
            yield from updated_in_text(each)
        for key in _KEYS:
            body = each.get(key) if isinstance(each, Mapping) else None
            name = body.get(key) if isinstance(body, Mapping) else None
            if isinstance(name, str):
                yield name.removeprefix("@")


def as_dynamic(sets: Mapping[str, Set], updated: Iterable[str]) -> dict[str, Set]:
    """Return the sets of a table; those that rules update have the flag."""
    found = dict(sets)
    for name in dict.fromkeys(updated):
        held = found.get(name)
        if held is not None and "dynamic" not in held.flags:
            found[name] = replace(held, flags=("dynamic", *held.flags))
    return found
