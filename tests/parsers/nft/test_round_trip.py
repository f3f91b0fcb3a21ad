"""What is written reads back as the same values, as text and as JSON."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model import nft_expressions as e
from analyzer.model import nft_statements as s
from analyzer.model.nft import NftRuleset
from analyzer.parsers import nft_json, nft_text
from analyzer.parsers.nft import expressions, statements
from analyzer.parsers.nft.rendering import render
from tests.parsers.nft import json_of
from tests.parsers.nft.comparing import plain, unknown_in
from tests.parsers.nft.strategies import EXPRESSIONS, STATEMENTS, lefts, rulesets


def test_each_kind_of_statement_and_expression_has_a_strategy() -> None:
    assert set(STATEMENTS) == set(get_args(s.Statement))
    assert set(EXPRESSIONS) == set(get_args(e.Expression)) - {e.Unknown}


@pytest.mark.parametrize("kind", [k for k in STATEMENTS if k is not e.Unknown])
@given(st.data())
def test_a_statement_survives_its_text_and_its_json(kind: type, data: st.DataObject) -> None:
    value = data.draw(STATEMENTS[kind])
    text = statements.write(value)
    assert statements.from_text(text, "inet") == ((value,), None)
    assert statements.from_json([json_of.statement(value)], "inet") == (value,)


@given(lefts)
def test_what_a_rule_looks_at_survives_its_text_and_its_json(value: Any) -> None:
    words = expressions.words_of(expressions.write(value), "inet")
    assert words.expression() == value
    assert words.done
    assert expressions.json_reader("inet")(json_of.expression(value)) == value


@given(rulesets())
def test_a_ruleset_survives_its_text(ruleset: NftRuleset) -> None:
    text = render(ruleset)
    assert plain(nft_text.parse(text, "made")) == plain(ruleset)


@given(rulesets())
def test_a_ruleset_survives_its_json(ruleset: NftRuleset) -> None:
    read = nft_json.parse(json_of.json_of(ruleset), "made")
    wanted = plain(ruleset)
    if not list(unknown_in(wanted)):
        assert plain(read) == wanted
    assert read.rules == ruleset.rules
