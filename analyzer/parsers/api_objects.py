"""API objects as kubectl prints them, decoded, and access to their fields.

Malformed fields are treated as absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from analyzer.errors import InputError
from analyzer.model.addresses import Address, address_from_text
from analyzer.parsers.objects.forms import documents
from analyzer.parsers.objects.text import WANTED, object_text

#: A decoded JSON object.
Object = dict[str, Any]

_MOST_SHOWN: Final = 200
#: Suffix of the kinds of lists, which is what items without a kind lack: ``PodList``.
_LIST: Final = "List"


def decode(files: Sequence[tuple[str, bytes]]) -> list[Object]:
    """Return the objects of all `files`, given as name and content, compressed or not.

    Raises:
        InputError: a file holds no API objects, or cannot be read.
        ParseError: a part of a file is malformed.
    """
    return [item for file, data in files for item in _items(data, file)]


def holds_objects(data: bytes) -> bool:
    """Return whether a file looks as if it contained API objects, without parsing all of it."""
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
    """Yield the objects of a document; for a list its items, which may be lists themselves."""
    # Not recursive, because lists may be nested to any depth.
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
            # kubectl get --raw and cluster-info dump omit the kind that the list's kind implies.
            if of_items and isinstance(item, dict):
                item.setdefault("kind", of_items)
        waiting += reversed(items)


def _no_objects(file: str) -> InputError:
    return InputError(f"{file}: not a list of API objects; {WANTED}")


def at(value: object, *path: str) -> Any:
    """Return the value at `path`, or None if a step is missing or null."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def elements(value: object, *path: str) -> list[Any]:
    """Return the list at `path`, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def text(value: object) -> str | None:
    """Return a string that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def addresses(texts: Iterable[object]) -> tuple[Address, ...]:
    """Return those of `texts` that are addresses, parsed."""
    found = (address_from_text(each) for each in texts if isinstance(each, str))
    return tuple(address for address in found if address is not None)


def is_ready(item: Object) -> bool:
    """Return whether a Node or Pod is not reported as not ready; some have no such condition."""
    told = [each for each in elements(item, "status", "conditions") if at(each, "type") == "Ready"]
    return all(at(each, "status") == "True" for each in told)
