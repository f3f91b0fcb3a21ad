from __future__ import annotations

from typing import Any

import pytest

from analyzer.model.nft import expressions as e
from analyzer.parsers.nft import statements
from analyzer.parsers.nft.verdict import from_text

VERDICTS: list[tuple[str, Any, e.Verdict]] = [
    ("accept", {"accept": None}, e.Accept()),
    ("drop", {"drop": None}, e.Drop()),
    ("continue", {"continue": None}, e.Continue()),
    ("return", {"return": None}, e.Return()),
    ("jump a-chain", {"jump": {"target": "a-chain"}}, e.Jump("a-chain")),
    ("goto a/b/c", {"goto": {"target": "a/b/c"}}, e.Goto("a/b/c")),
]


@pytest.mark.parametrize(("text", "given", "verdict"), VERDICTS)
def test_text_and_json_are_one_verdict(text: str, given: Any, verdict: e.Verdict) -> None:
    assert statements.from_text(text, "ip") == ((verdict,), None)
    assert statements.from_json([given], "ip") == (verdict,)
    assert statements.write(verdict) == text
    assert from_text(text) == verdict


@pytest.mark.parametrize("text", ["", "jump", "goto a b", 'jump "a"', "accept x", "jump @s", "log"])
def test_text_that_is_more_or_less_than_a_verdict_is_none(text: str) -> None:
    assert from_text(text) is None


@pytest.mark.parametrize("text", ["jump", "jump { a }", "goto @a"])
def test_a_verdict_without_a_chain_is_not_understood(text: str) -> None:
    assert statements.from_text(text, "ip")[0] == (e.Unknown(text),)


@pytest.mark.parametrize(
    "given",
    [
        {"accept": {}},
        {"drop": 1},
        {"jump": None},
        {"jump": {"target": 7}},
        {"goto": {"target": "a", "more": 1}},
        {"goto": "a"},
    ],
)
def test_odd_json_is_not_understood(given: Any) -> None:
    (found,) = statements.from_json([given], "ip")
    assert isinstance(found, e.Unknown)
