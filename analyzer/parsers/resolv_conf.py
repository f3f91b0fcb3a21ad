"""Reading a resolv.conf.

Source: resolv.conf(5). The last of several `search` and `domain` lines counts; options add up.
"""

from __future__ import annotations

from analyzer.errors import InputError, ParseError
from analyzer.model.addresses import Address, address_from_text
from analyzer.model.diagnostics import Location
from analyzer.model.resolv_conf import ResolvConf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Further name servers are not queried. Source: glibc, resolv.h, MAXNS; musl, lookup.h, MAXNS.
_MOST_SERVERS: Final = 3
_MOST_DIGITS: Final = 9
_NUMBERS: Final = ("ndots", "timeout", "attempts")


def resolv_conf_from_bytes(content: bytes, file: str) -> ResolvConf:
    """Return the content of a resolv.conf.

    Raises:
        ParseError: a name server is no address, or an option's number is none.
        InputError: there is no name server.
    """
    servers: list[Address] = []
    search: tuple[str, ...] = ()
    numbers: dict[str, int] = {}
    others: list[str] = []
    rotates = False
    lines = content.decode("utf-8", "surrogateescape").splitlines()
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0].startswith(("#", ";")):
            continue
        place = _Place(file, number, line)
        match words[0]:
            case "nameserver":
                servers.append(_server(words, place))
            case "search" | "domain":
                search = tuple(each.rstrip(".") or "." for each in words[1:])
            case "options":
                for word in words[1:]:
                    name, colon, text = word.partition(":")
                    if name in _NUMBERS and colon:
                        numbers[name] = _number(text, word, place)
                    elif word == "rotate":
                        rotates = True
                    else:
                        others.append(word)
            case _:
                others.append(words[0])
    if not servers:
        raise InputError(f"{file}: no line `nameserver ADDRESS`; pass the resolv.conf of a pod")
    return ResolvConf(
        nameservers=tuple(servers[:_MOST_SERVERS]),
        search=search,
        rotate=rotates,
        others=tuple(dict.fromkeys(others)),
        **numbers,
    )


class _Place:
    """A line, for errors about one of its words."""

    def __init__(self, file: str, number: int, line: str) -> None:
        self._file, self._number, self._line = file, number, line

    def error(self, message: str, word: str) -> ParseError:
        start = max(0, self._line.find(word))
        return ParseError(
            message,
            location=Location(self._file, self._number),
            line=self._line,
            span=(start, start + len(word)),
        )


def _server(words: list[str], place: _Place) -> Address:
    text = words[1] if words[1:] else ""
    found = address_from_text(text.partition("%")[0])
    if found is None:
        raise place.error("expected the address of a name server", text or words[0])
    return found


def _number(text: str, word: str, place: _Place) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise place.error(f"expected a number after {word.partition(':')[0]}:", word)
    return int(text)
