"""API objects as JSON: one document, or several one after another, one per line or not.

``kubectl get -o json`` prints one, ``jq -c '.items[]'`` one per line, and several commands
redirected into one file concatenate theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from analyzer.errors import InputError, ParseError
from analyzer.model.diagnostics import Location
from analyzer.parsers.objects.text import WANTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_BEGINS: Final = re.compile(r"[ \t\r\n]*[{\[]")
_NO_BLANK: Final = re.compile(r"[^ \t\r\n]")
_LOGS: Final = "==== START logs"


def sniff(text: str) -> bool:
    """Return whether the text begins like JSON."""
    return _BEGINS.match(text) is not None


def parse(text: str, file: str) -> Iterator[object]:
    """Yield the documents.

    Raises:
        InputError: one of them is nested too deeply, or has a number that is too long.
        ParseError: a part is not JSON.
    """
    decoder = json.JSONDecoder()
    begins = _NO_BLANK.search(text)
    while begins is not None:
        try:
            value, end = decoder.raw_decode(text, begins.start())
        except json.JSONDecodeError as error:
            raise _refused(text, file, error) from None
        except ValueError:  # an integer of thousands of digits
            raise InputError(f"{file}: a number in it is too long") from None
        except RecursionError:
            raise InputError(f"{file}: nested too deeply to be API objects") from None
        yield value
        begins = _NO_BLANK.search(text, end)


def _refused(text: str, file: str, error: json.JSONDecodeError) -> ParseError:
    why = f"not JSON ({error.msg}); {WANTED}"
    if text.startswith(_LOGS, error.pos):
        why = (
            "container logs between the objects; pass the folder written by `kubectl "
            "cluster-info dump -A --output-directory DIR`"
        )
    return ParseError(
        why,
        location=Location(file, error.lineno),
        line=text.split("\n")[error.lineno - 1],
        span=(error.colno - 1, error.colno),
    )
