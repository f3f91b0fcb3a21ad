"""Detection of the form of API objects. Each row: how to recognise it, and its parser."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping

from analyzer.model.value import value
from analyzer.parsers.objects import json_documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final


@value
class Form:
    """One form of API objects.

    `sniff` gets the text; `parse` the text and the name of its file, and returns documents: objects
    or lists of them.
    """

    sniff: Callable[[str], bool]
    parse: Callable[[str, str], Iterable[object]]


def _later(module: str) -> Form:
    """Return a form whose module is loaded on first use, since most objects are JSON."""

    def loaded() -> Any:
        __import__(module)
        return sys.modules[module]

    return Form(lambda text: loaded().sniff(text), lambda text, file: loaded().parse(text, file))


FORMS: Final[Mapping[str, Form]] = {
    "json": Form(json_documents.sniff, json_documents.parse),
    "table": _later("analyzer.parsers.objects.tables"),
    "yaml": _later("analyzer.parsers.objects.yaml_documents"),
}


def documents(text: str, file: str) -> Iterable[object]:
    """Return the documents of a text, in the first form that it seems to have.

    Raises:
        InputError: it cannot be read.
        ParseError: a part of it is malformed, or it has none of the forms.
    """
    form = next((each for each in FORMS.values() if each.sniff(text)), FORMS["json"])
    return form.parse(text, file)
