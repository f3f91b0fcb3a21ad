"""``dnat``, ``snat``, ``masquerade`` and ``redirect``.

Source: nft(8), "NAT STATEMENTS"; src/statement.c, ``nat_stmt_print``; src/json.c,
``nat_stmt_json``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from analyzer.model.addresses import Address, address_to_text
from analyzer.model.nft.expressions import Expression, Range
from analyzer.model.nft.statements import Dnat, Masquerade, Redirect, Snat
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import (
    JsonReader,
    known_only,
    mapping,
    optional_string,
    strings,
)
from analyzer.parsers.nft.words import Words

_Nat: TypeAlias = "Dnat | Snat | Masquerade | Redirect"
_TO: Final[Mapping[str, type[Dnat | Snat]]] = {"dnat": Dnat, "snat": Snat}
_HERE: Final[Mapping[str, type[Masquerade | Redirect]]] = {
    "masquerade": Masquerade,
    "redirect": Redirect,
}
_FLAGS: Final = frozenset({"random", "fully-random", "persistent"})
_NAMES: Final = frozenset({"addr", "port", "family", "flags", "type_flags"})
#: One or two addresses and the colon before a port; IPv6 addresses in brackets.
_IPV4: Final = re.compile(r"(\d+\.[\d.]+(?:-[\d.]+)?):(.*)")
_IPV6: Final = re.compile(r"\[([^\]]+)\](?:-\[([^\]]+)\])?(?::(.*))?")
_IPV6_VERSION: Final = 6


def _read_json(kind: str, body: object, read: JsonReader) -> _Nat:
    given = {} if body is None else mapping(body)
    known_only(given, _NAMES)
    flags = tuple(flag for flag in strings(given.get("flags")) if flag != "netmap")
    port = read(given["port"]) if "port" in given else None
    if kind in _HERE:
        if "addr" in given:
            raise NotUnderstood(given)
        return _HERE[kind](port=port, flags=_known(flags))
    types = strings(given.get("type_flags"))
    return _TO[kind](
        address=read(given["addr"]) if "addr" in given else None,
        port=port,
        family=optional_string(given.get("family")),
        flags=_known(flags),
        prefix="prefix" in types,
    )


def _known(flags: tuple[str, ...]) -> tuple[str, ...]:
    if not _FLAGS.issuperset(flags):
        raise NotUnderstood(flags)
    return flags


def _read_text(words: Words) -> _Nat:
    kind = words.take()
    found: dict[str, Any] = {}
    if kind in _TO:
        if words.peek() in {"ip", "ip6"}:
            found["family"] = words.take()
        _kinds(words, found)
        words.expect("to")
        read_address(words, found)
    elif words.accept("to"):
        _port(words, found)
        if "port" not in found:
            raise NotUnderstood(words.peek())
    if words.peek() in _FLAGS:
        found["flags"] = _known(words.flags())
    return _TO[kind](**found) if kind in _TO else _HERE[kind](**found)


def _kinds(words: Words, found: dict[str, Any]) -> None:
    """Read what some versions print about the map that follows."""
    if words.accept("prefix"):
        found["prefix"] = True
    elif words.accept("addr"):
        words.expect(".")
        words.expect("port")
    words.accept("interval")


def read_address(words: Words, found: dict[str, Any]) -> None:
    """Read ``address:port`` into `found`; either may be missing."""
    word = words.peek()
    if word[:1] != ":" or word[1:2] == ":":
        ipv6 = _IPV6.fullmatch(word)
        if ipv6 is not None:
            first, last, port = ipv6.groups()
            address = first if last is None else f"{first}-{last}"
            words.replace(address, *([] if port is None else [f":{port}"]))
        else:
            ipv4 = _IPV4.fullmatch(word)
            if ipv4 is not None:
                words.replace(ipv4[1], f":{ipv4[2]}")
        found["address"] = words.expression()
    _port(words, found)


def _port(words: Words, found: dict[str, Any]) -> None:
    word = words.peek()
    if word[:1] != ":":
        return
    words.replace(*([word[1:]] if word[1:] else []))
    found["port"] = words.expression()


def _write(given: _Nat, write: Write) -> str:
    flags = f" {','.join(given.flags)}" if given.flags else ""
    port = _port_text(given.port, write)
    match given:
        case Masquerade() | Redirect():
            to = f" to {port}" if port else ""
            return f"{type(given).__name__.lower()}{to}{flags}"
        case Dnat() | Snat():
            family = f" {given.family}" if given.family else ""
            prefix = " prefix" if given.prefix else ""
            address = _address_text(given.address, write, with_port=bool(port))
            name = type(given).__name__.lower()
            return f"{name}{family}{prefix} to {address}{port}{flags}"


def _port_text(given: Expression | None, write: Write) -> str:
    if given is None:
        return ""
    # A blank keeps the colon out of an expression's first word.
    return f":{write(given)}" if isinstance(given, int | Range) else f" : {write(given)}"


def _address_text(given: Expression | None, write: Write, *, with_port: bool) -> str:
    match given:
        case None:
            return ""
        case Range(first, last) if with_port and _is_ipv6(first) and _is_ipv6(last):
            return f"[{write(first)}]-[{write(last)}]"
        case _ if _is_ipv6(given) and with_port:
            return f"[{write(given)}]"
        case Range() | str() | int():
            return write(given)
        case _ if isinstance(given, Address):
            return address_to_text(given)
        case _:
            # The colon would otherwise belong to the last word: `@map:80`.
            return f"{write(given)} " if with_port else write(given)


def _is_ipv6(given: Expression) -> bool:
    return isinstance(given, Address) and given.version == _IPV6_VERSION


NAT: Final = Extension(
    keys=(*_TO, *_HERE),
    words=(*_TO, *_HERE),
    types=(Dnat, Snat, Masquerade, Redirect),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
