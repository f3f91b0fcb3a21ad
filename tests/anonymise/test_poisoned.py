"""Whatever word stands in the place of whatever other: it is not carried along.

A secret is put in the place of one word of a file, of each in turn in the deep check; what is
written then has no trace of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.anonymise.files import Anonymiser, File, kind_of
from analyzer.anonymise.naming import Naming
from analyzer.errors import AnalyzerError
from tests.support.captures import FIXTURES, ROOT
from tests.support.effort import PROFILE, examples
from tests.support.noise import NOISE

SALT = b"s" * 16
#: A word, a name of a Service, an address, a network; and two that look like words of netfilter.
SECRETS = ("acmesecret", "acme/secret:port", "203.0.113.77", "203.0.112.0/23", "ACMESECRET")
TRACES = re.compile(r"acme|203\.0\.11[23]", re.IGNORECASE)
NFT = FIXTURES / "1.30.3-nftables" / "two-node" / "nft-list-ruleset.json"
FILES = (
    NOISE / "calico.txt",
    NOISE / "docker.txt",
    FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt",
    ROOT / "fixtures" / "nft" / "statements",
)
_WORD = re.compile(r'"[^"]*"|[^\s"{};,]+')


def written(text: str, name: str = "file") -> str:
    """Return what is written of a file; nothing where it is refused."""
    naming = Naming(SALT)
    try:
        file = File(name, kind_of(name, text.encode()), text.encode())
        made = Anonymiser(naming, [file], 1 << 30)
        return made.objects() or made.text(file)
    except AnalyzerError:
        return ""


def texts() -> Iterator[str]:
    for path in FILES:
        if path.is_dir():
            yield from (each.read_text() for each in sorted(path.glob("nft-list*.txt")))
        else:
            yield path.read_text()


TEXTS = [*texts()]
PLACES = [
    (number, found.span()) for number, text in enumerate(TEXTS) for found in _WORD.finditer(text)
]


def check(place: tuple[int, tuple[int, int]], secret: str) -> bool:
    number, (start, end) = place
    text = TEXTS[number]
    quotes = text[start] == '"'
    word = f'"{secret}"' if quotes else secret
    made = written(f"{text[:start]}{word}{text[end:]}")
    assert not TRACES.search(made), text[start - 30 : end + 30]
    return bool(made)


@given(st.sampled_from(PLACES), st.sampled_from(SECRETS))
@examples(50, 4000)
def test_no_word_of_rules_is_carried_along(place: tuple[int, tuple[int, int]], secret: str) -> None:
    check(place, secret)


def test_most_of_them_are_written_all_the_same() -> None:
    """So that the others do not pass for want of anything."""
    tried = [check(PLACES[at], SECRETS[0]) for at in range(0, len(PLACES), len(PLACES) // 20)]
    assert sum(tried) > len(tried) / 2


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the paths to all texts of a document, and to all names of fields."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in pairs:
        if isinstance(each, (dict, list)):
            yield from leaves(each, (*path, key))
        else:
            yield (*path, key)


DOCUMENT = json.loads(NFT.read_text())
LEAVES = [*leaves(DOCUMENT)]


@given(st.sampled_from(LEAVES), st.sampled_from(SECRETS), st.booleans())
@examples(50, 4000)
def test_no_text_of_json_is_carried_along(
    path: tuple[Any, ...], secret: str, as_name: bool
) -> None:
    document = json.loads(NFT.read_text())
    *way, last = path
    held = document
    for step in way:
        held = held[step]
    if as_name and isinstance(held, dict):
        held[secret] = held[last]
    else:
        held[last] = secret
    assert not TRACES.search(written(json.dumps(document)))


@pytest.mark.skipif(PROFILE != "soak", reason="takes long")
@pytest.mark.parametrize("secret", SECRETS)
def test_every_word_in_turn(secret: str) -> None:
    for place in PLACES:
        check(place, secret)
