"""API objects as kubectl prints them, decoded, and access to their fields.

Whatever is odd in an object is as if it were not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from analyzer.errors import InputError
from analyzer.model.addresses import Address, address_from_text
from analyzer.parsers.objects.forms import documents
from analyzer.parsers.objects.text import WANTED, object_text

#: What one JSON object holds.
Object = dict[str, Any]

_MOST_SHOWN: Final = 200
#: What names a kind of list, and says what its items are where they do not: ``PodList``.
_LIST: Final = "List"


def decode(files: Sequence[tuple[str, bytes]]) -> list[Object]:
    """Return the objects of all `files`, given as name and content, packed or not.

    Raises:
        InputError: a file holds no API objects, or cannot be read.
        ParseError: a part of a file is malformed.
    """
    return [item for file, data in files for item in _items(data, file)]


def holds_objects(data: bytes) -> bool:
    """Tell whether a file looks as if it held API objects, without reading it whole."""
    try:
        return re.search(r"(?:\"kind\"|^kind[ \t]*:)", object_text(data), re.MULTILINE) is not None
    except InputError:
        return True  # who reads it says what is wrong


def _items(data: bytes, file: str) -> Iterator[Object]:
    try:
        text = object_text(data)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    for document in documents(text, file):
        yield from listed(document, file)


def listed(document: object, file: str) -> Iterator[Object]:
    """Give the objects of a document; of a list its items, which may be lists themselves."""
    # Not one call inside the other: lists may be nested as deeply as the form allows.
    waiting = [document]
    while waiting:
        value = waiting.pop()
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(value, dict) or (kind is not None and not isinstance(kind, str)):
            raise _no_objects(file)
        if kind == "Status" and value.get("status") == "Failure":
            said = value.get("message")
            raise InputError(f"{file}: the API answered with a failure: {str(said)[:_MOST_SHOWN]}")
        if kind == "Table":
            raise InputError(f"{file}: a Table, as the API prints it for kubectl; {WANTED}")
        is_list = "items" in value and (kind is None or kind.endswith(_LIST))
        if not is_list:
            if kind is None:
                raise _no_objects(file)
            yield value
            continue
        items = value["items"]
        if items is None and kind is not None:  # what Go writes of a list without items
            continue
        if not isinstance(items, list):
            raise _no_objects(file)
        of_items = kind.removesuffix(_LIST) if kind else ""
        for item in items:
            # kubectl get --raw and cluster-info dump leave out what the list's kind says.
            if of_items and isinstance(item, dict):
                item.setdefault("kind", of_items)
        waiting += reversed(items)


def _no_objects(file: str) -> InputError:
    return InputError(f"{file}: not a list of API objects; {WANTED}")


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


def is_ready(item: Object) -> bool:
    """Tell whether a Node or a Pod does not say that it is not ready; some say nothing of it."""
    told = [each for each in elements(item, "status", "conditions") if at(each, "type") == "Ready"]
    return all(at(each, "status") == "True" for each in told)
