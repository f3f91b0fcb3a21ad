"""Which format is it? Each row: how to tell, and what reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from analyzer.errors import InputError
from analyzer.model.rules import Ruleset
from analyzer.model.value import value
from analyzer.parsers import iptables_save
from analyzer.parsers.compression import decompress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Told how much was done since the last call, and how much there is in all.
Advance = Callable[[int, int | None], None]


@value
class Format:
    """One input format.

    `sniff` sees the text; `parse` the text, the name of its file, and the table of rules that do
    not say it themselves.
    """

    sniff: Callable[[str], bool]
    parse: Callable[[str, str, str | None, Advance | None], Ruleset]


FORMATS: Final[Mapping[str, Format]] = {
    "iptables-save": Format(iptables_save.sniff, iptables_save.parse),
}


def read_ruleset(
    data: bytes,
    file: str,
    input_format: str | None = None,
    table: str | None = None,
    advance: Advance | None = None,
) -> Ruleset:
    """Return the rules of one dump, compressed or not; `advance` is told of lines that are read.

    Raises:
        InputError: it is no dump that any format reads; the message says what it seems to be.
        ParseError: a line of it is malformed.
    """
    if not data:
        raise InputError(f"{file}: the file is empty")
    try:
        data = decompress(data)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if not data or data.isspace():
        raise InputError(f"{file}: the file holds nothing but blanks")
    if b"\0" in data:
        raise InputError(f"{file}: a binary file, not a dump of rules")
    # Bytes that are no UTF-8 stand in comments only; surrogates carry them through unharmed.
    text = data.decode("utf-8", "surrogateescape")
    del data  # as large as the text
    if input_format is not None:
        return FORMATS[input_format].parse(text, file, table, advance)
    for reader in FORMATS.values():
        if reader.sniff(text):
            return reader.parse(text, file, table, advance)
    raise InputError(f"{file}: {_recognised_but_refused(text)}")


def _recognised_but_refused(text: str) -> str:
    head = text.lstrip()[:4096]
    if head.startswith("Chain ") or "\nChain " in head:
        return (
            "a listing of `iptables -L`, which leaves out what is needed; "
            "run `iptables-save` on the node instead"
        )
    if head.startswith(("table ", '{"nftables"', '{ "nftables"')):
        return (
            "a ruleset of `nft list ruleset`, which this version does not read; "
            "for kube-proxy in iptables mode run `iptables-save` on the node"
        )
    return "no dump of rules; run `iptables-save` on the node and give its output"
