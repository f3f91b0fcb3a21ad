"""Decoding files of API objects from any shell, and recognising kubectl's error messages."""

from __future__ import annotations

import re

from analyzer.errors import InputError
from analyzer.parsers.compression import decompress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: The end of a message about a file that is something else.
WANTED: Final = "expected the output of `kubectl get services,endpointslices,nodes,pods -A -o json`"

#: The end of a message when kubectl printed nothing.
GO_ON: Final = "is the API down? Use --node-of CIDR=NODE instead"
_MARK: Final = "\ufeff"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
#: Lines before the objects: warnings and the log of client-go, from ``2>&1``, and the command
#: itself after a prompt.
_BEFORE: Final = (
    r"[ \t\r\n]*(?:(?:Warning: [^\n]*|[IWEF][01]\d{3} \d\d:\d\d:\d\d\.\d+ [^\n]*"
    r"|(?:[^\s{\"][^\n{\"]{0,99})?[$#%>] ?(?:sudo )?(?:kubectl|oc|k) [^\n]*)(?:\n[ \t\r\n]*|$))+"
)
#: Beginnings of what kubectl prints instead of objects.
_FAILED: Final = (
    "The connection to the server",
    "Unable to connect to the server",
    "Error from server",
    "error: ",
    "No resources found",
)


def object_text(data: bytes) -> str:
    """Return the text of a file, compressed or not, with blanks for what precedes the objects.

    So lines and columns are those of the file.

    Raises:
        InputError: it is empty, damaged or not text, or kubectl failed; the message does not name
            the file.
    """
    text = _decoded(decompress(data))
    before = re.match(_BEFORE, text)
    if before is not None:
        text = re.sub(r"[^\n]", " ", before[0]) + text[before.end() :]
    if not text or text.isspace():
        raise InputError(f"kubectl printed nothing: {GO_ON}")
    if "\0" in text:
        raise InputError(f"a binary file; {WANTED}")
    begins = re.match(r"\s*([^\n]{0,200})", text)
    if begins is not None and begins[1].startswith(_FAILED):
        raise InputError(f"kubectl printed no objects, but this: {begins[1].strip()}; {GO_ON}")
    return text


def _decoded(data: bytes) -> str:
    """Return the text; Windows shells redirect into UTF-16, a few without a byte order mark.

    Source: RFC 4627, section 3: the first two characters of JSON are ASCII.
    """
    try:
        if data[:2] in _UTF_16:
            return str(data, "utf-16")
        if data[1:2] == b"\0" != data[:1]:
            return str(data, "utf-16-le")
        if data[:1] == b"\0" != data[1:2]:
            return str(data, "utf-16-be")
    except UnicodeDecodeError as error:
        raise InputError(f"truncated or damaged: not UTF-16 from byte {error.start}") from None
    return str(data, "utf-8", "surrogateescape").removeprefix(_MARK)
