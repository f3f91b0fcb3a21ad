"""Text from a dump, made safe to print on a terminal."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    """Return `text` with each character that would act on a terminal replaced by a visible sign.

    Each character is replaced by a single one, so columns of the input still apply.
    """
    if text.isascii() and text.isprintable():
        return text  # without asking the slower expression
    # Control characters, and invisible ones that could reorder or hide what is shown.
    return re.sub("[^\x20-\x7e]", _sign, text)


def _sign(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if code < ord(" "):
        return chr(0x2400 + code)  # the control pictures, in ASCII's order
    if code == 0x7F:  # noqa: PLR2004  # DEL
        return "\u2421"
    import unicodedata

    # Categories C*: control, format (bidirectional overrides), surrogate, unassigned.
    # Zl and Zp break lines.
    if unicodedata.category(character)[0] == "C" or character in "\u2028\u2029":
        return "\ufffd"
    return character
