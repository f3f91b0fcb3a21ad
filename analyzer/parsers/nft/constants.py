"""Constants: numbers, addresses, names; one value for both the text and the JSON form."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from analyzer.model.addresses import Address, address_from_text, address_to_text
from analyzer.model.nft import names as nft_names
from analyzer.model.nft.expressions import (
    Constant,
    Expression,
    Prefix,
    Range,
    SetRef,
    Wildcard,
)
from analyzer.parsers.nft.extension import NotUnderstood
from analyzer.parsers.nft.words import INVALID_TYPE, number, quoted

_ADDRESS: Final = re.compile(r"[0-9a-fA-F:.]+")
_HARDWARE: Final = re.compile(r"(?:[0-9a-f]{2}:)+[0-9a-f]{2}")
_PREFIX: Final = re.compile(r"([0-9a-fA-F:.]+)/(\d{1,3})")
#: Words that are written without quotes; all other strings need quotes.
_PLAIN: Final = frozenset(
    (
        *nft_names.PROTOCOLS,
        *nft_names.CT_STATES,
        *nft_names.CT_STATUSES,
        *nft_names.CT_DIRECTIONS,
        *nft_names.ADDRESS_TYPES,
        *nft_names.TCP_FLAGS,
        *nft_names.NF_PROTOCOLS,
        *nft_names.ICMP_TYPES,
        *nft_names.ICMPV6_TYPES,
    )
)
_MEMORY: Final = 1 << 15


@lru_cache(maxsize=_MEMORY)
def address(text: str) -> Address | None:
    """Return the address that `text` spells; None for anything else."""
    return None if _ADDRESS.fullmatch(text) is None else address_from_text(text)


@lru_cache(maxsize=_MEMORY)
def from_word(word: str) -> Expression:
    """Return the constant that an unquoted word represents.

    Raises:
        NotUnderstood: it is not one.
    """
    if not word:
        raise NotUnderstood(word)
    plain = number(word)
    if plain is not None:
        return plain
    if word in {"exists", "missing"}:
        return word == "exists"
    if word == "*":
        return Wildcard()
    found = address(word)
    if found is not None:
        return found
    prefix = _PREFIX.fullmatch(word)
    if prefix is not None:
        return _prefix(address(prefix[1]), int(prefix[2]))
    first, dash, last = word.partition("-")
    if dash:
        ends = _end(first), _end(last)
        if ends[0] is not None and ends[1] is not None:
            return Range(ends[0], ends[1])
    if word[0] == "@" and word[1:]:
        return SetRef(word[1:])
    if not (word[0].isalnum() or word[0] == "_"):
        raise NotUnderstood(word)
    return word


def _end(word: str) -> Constant | None:
    plain = number(word)
    if plain is not None:
        return plain
    return address(word) or (word if _HARDWARE.fullmatch(word) else None)


def _prefix(base: Address | None, length: int) -> Prefix:
    if base is None or length > base.max_prefixlen:
        raise NotUnderstood("expected an address and the length of its prefix")
    return Prefix(base, length)


def from_string(text: str) -> Expression:
    """Return the constant that a JSON string represents."""
    if text[:1] == "@" and text[1:]:
        return SetRef(text[1:])
    if text == "*":
        return Wildcard()
    if text.endswith(INVALID_TYPE):
        plain = number(text.removesuffix(INVALID_TYPE))
        return text if plain is None else plain
    return address(text) or text


def write(given: Constant) -> str:
    """Return the constant as nft prints it, strings in quotes unless they are well-known."""
    match given:
        case bool():
            return "exists" if given else "missing"
        case int():
            return str(given)
        case str():
            return given if given in _PLAIN else quoted(given)
        case _:
            return address_to_text(given)
