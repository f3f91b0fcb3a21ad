"""Detection of a dump's format. Each row: how to recognise it, and its parser."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping

from analyzer.errors import InputError
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import value
from analyzer.parsers import iptables_save
from analyzer.parsers.contents import MOST_BYTES, contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Final

    from analyzer.model.nft.ruleset import NftRuleset
    from analyzer.parsers.rows import Skim

_LONGEST_MAGIC: Final = 6
#: First bytes of iptables-save dumps, which no compressed file has.
_BEGINNINGS: Final = frozenset({b"#", b"*"})

#: Called with how much was done since the last call, and how much there is in all.
Advance = Callable[[int, int | None], None]


@value
class Format:
    """One input format.

    `sniff` gets the text; `parse` the text, the name of its file, the table of rules that do not
    say it themselves, a callback for progress, and one that skims rows.
    """

    sniff: Callable[[str], bool]
    parse: Callable[[str, str, str | None, Advance | None, Skim | None], Ruleset | NftRuleset]


#: Characters that are looked at to tell how a text begins.
_HEAD: Final = 4096


def _later(module: str, begins: str = "") -> Format:
    """Return a format whose module is loaded on first use, since most dumps do not need it.

    All texts of the format begin with `begins`, but for blanks.
    """

    def loaded() -> Any:
        __import__(module)  # importlib takes as long to load as two modules of ours
        return sys.modules[module]

    def sniff(text: str) -> bool:
        head = text[:_HEAD].lstrip()  # all of a large text would be copied
        found: bool = (not head or head.startswith(begins)) and loaded().sniff(text)
        return found

    def parse(text: str, file: str, *given: Any) -> Ruleset | NftRuleset:
        found: Ruleset | NftRuleset = loaded().parse(text, file, *given)
        return found

    return Format(sniff, parse)


#: In the order in which they are tried; that of JSON is told by how it begins.
FORMATS: Final[Mapping[str, Format]] = {
    "nft-json": _later("analyzer.parsers.nft_json", "{"),
    "iptables-save": Format(iptables_save.sniff, iptables_save.parse),
    "nft": _later("analyzer.parsers.nft_text"),
    "iptables-list": _later("analyzer.parsers.listing"),
}


#: A byte order mark at the beginning of a file.
_MARK: Final = "\ufeff"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


def read_ruleset(
    data: bytes | BinaryIO,
    file: str,
    input_format: str | None = None,
    table: str | None = None,
    advance: Advance | None = None,
    skim: Skim | None = None,
    *,
    most: int = MOST_BYTES,
) -> Ruleset | NftRuleset:
    """Return the rules of one dump, compressed or not; `advance` is called with lines read.

    `skim` may take rows whose words are all that is needed; the rules are the same. At most `most`
    bytes are read or unpacked.

    Raises:
        InputError: it is a dump in no known format, and the message says what it seems to be; or
            it is too large.
        OSError: the file cannot be read.
        ParseError: a line of it is malformed.
    """
    try:
        text = _text(io.BytesIO(data) if isinstance(data, bytes) else data, most)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if input_format is not None:
        return FORMATS[input_format].parse(text, file, table, advance, skim)
    for reader in FORMATS.values():
        if reader.sniff(text):
            return reader.parse(text, file, table, advance, skim)
    raise InputError(f"{file}: {_recognised_but_refused(text)}")


def _text(file: BinaryIO, most: int) -> str:
    """Return the text of a file.

    Bytes that are not UTF-8 occur only in comments; surrogates preserve them. Windows shells
    redirect into UTF-16, and Windows editors put a byte order mark before UTF-8.
    """
    data = contents(file, most)
    if not data:
        raise InputError("the file is empty")
    if bytes(data[:1]) not in _BEGINNINGS:
        from analyzer.parsers.compression import decompress, is_compressed

        if is_compressed(bytes(data[:_LONGEST_MAGIC])):
            data = decompress(bytes(data), most)
    if bytes(data[:2]) in _UTF_16:
        text = str(data, "utf-16", "replace")
    else:
        text = str(data, "utf-8", "surrogateescape")
    del data  # as large as the text
    if text.startswith(_MARK):
        text = text[1:]
    if not text or text.isspace():
        raise InputError("the file contains only blanks")
    if "\0" in text:
        raise InputError("a binary file, not a dump of rules")
    return text


def _recognised_but_refused(text: str) -> str:
    head = text.lstrip()[:_HEAD]
    if "iptables-legacy tables present" in head:
        return "no iptables-nft rules; run `iptables-legacy-save` on the node instead"
    return (
        "not a dump of rules; run `iptables-save` on the node, or `nft list ruleset` if "
        "kube-proxy runs in nftables mode, and pass its output"
    )
