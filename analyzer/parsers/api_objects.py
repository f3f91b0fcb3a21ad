"""API objects as ``kubectl get ... -o json`` prints them, decoded, and how to look into them.

Whatever is odd in an object is as if it were not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from analyzer.errors import InputError, ParseError
from analyzer.model.addresses import Address, address_from_text
from analyzer.model.diagnostics import Location
from analyzer.parsers.compression import decompress

#: What one JSON object holds.
Object = dict[str, Any]

_WANTED: Final = (
    "expected the output of `kubectl get services,endpointslices,nodes,pods -A -o json`"
)


def decode(files: Sequence[tuple[str, bytes]]) -> list[Object]:
    """Return the objects of all `files`, given as name and content, packed or not.

    Raises:
        InputError: a file is no list of API objects.
        ParseError: a file is no JSON.
    """
    return [item for file, data in files for item in _items(data, file)]


def holds_objects(data: bytes) -> bool:
    """Tell whether a file looks as if it held API objects, without reading it as JSON."""
    try:
        return b'"kind"' in decompress(data)
    except InputError:
        return True  # who reads it says what is wrong


def _items(data: bytes, file: str) -> list[Object]:
    try:
        text = decompress(data).decode("utf-8", "surrogateescape")
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1]
        raise ParseError(
            f"not JSON ({error.msg}); {_WANTED}",
            location=Location(file, error.lineno),
            line=line,
            span=(error.colno - 1, error.colno),
        ) from None
    except ValueError:  # an integer of thousands of digits
        raise InputError(f"{file}: a number in it is too long") from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply to be API objects") from None
    items = value.get("items") if isinstance(value, dict) and "items" in value else [value]
    if not isinstance(items, list) or not all(
        isinstance(item, dict) and isinstance(item.get("kind"), str) for item in items
    ):
        raise InputError(f"{file}: no list of API objects; {_WANTED}")
    return items


def at(value: object, *path: str) -> Any:
    """Return what stands at `path`, or None where a step is missing or null."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def elements(value: object, *path: str) -> list[Any]:
    """Return the list at `path`, an empty one where there is none."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def text(value: object) -> str | None:
    """Return a text that is not empty."""
    return value if isinstance(value, str) and value else None


def addresses(texts: Iterable[object]) -> tuple[Address, ...]:
    """Return the addresses that `texts` spell."""
    found = (address_from_text(each) for each in texts if isinstance(each, str))
    return tuple(address for address in found if address is not None)
