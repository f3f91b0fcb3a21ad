"""What is written reads back as the same values, as text and as JSON."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers import nft_json, nft_text
from analyzer.parsers.nft import expressions, rendering_json, statements
from analyzer.parsers.nft.rendering import render
from tests.support.nft.comparing import plain, unknown_in
from tests.support.strategies.nft_rules import EXPRESSIONS, STATEMENTS, lefts, rulesets


def test_each_kind_of_statement_and_expression_has_a_strategy() -> None:
    assert set(STATEMENTS) == set(get_args(s.Statement))
    assert set(EXPRESSIONS) == set(get_args(e.Expression)) - {e.Unknown}


@pytest.mark.parametrize("kind", [k for k in STATEMENTS if k is not e.Unknown])
@given(st.data())
def test_a_statement_survives_its_text_and_its_json(kind: type, data: st.DataObject) -> None:
    value = data.draw(STATEMENTS[kind])
    text = statements.write(value)
    assert statements.from_text(text, "inet") == ((value,), None)
    assert statements.from_json([rendering_json.statement(value)], "inet") == (value,)


@given(lefts)
def test_what_a_rule_looks_at_survives_its_text_and_its_json(value: Any) -> None:
    words = expressions.words_of(expressions.write(value), "inet")
    assert words.expression() == value
    assert words.done
    assert expressions.json_reader("inet")(rendering_json.expression(value)) == value


@given(rulesets())
def test_a_ruleset_survives_its_text(ruleset: NftRuleset) -> None:
    text = render(ruleset)
    assert plain(nft_text.parse(text, "made")) == plain(ruleset)


@given(rulesets())
def test_a_ruleset_survives_its_json(ruleset: NftRuleset) -> None:
    read = nft_json.parse(rendering_json.render_json(ruleset), "made")
    wanted = plain(ruleset)
    if not list(unknown_in(wanted)):
        assert plain(read) == wanted
    assert read.rules == ruleset.rules


@pytest.mark.parametrize(
    ("right", "shown"),
    [
        (80, "0x50 [invalid type]"),
        (e.AnonymousSet((e.Element(key=53), e.Element(key=80))), "{ 0x35 [invalid type], 0x50 }"),
        (e.Range(53, 80), "0x35 [invalid type]-0x50 [invalid type]"),
    ],
)
def test_a_port_whose_type_nft_forgot_is_a_number(right: e.Expression, shown: str) -> None:
    field = e.Ct("proto-dst", "original")
    text = f'ct original proto-dst != {shown} accept comment "0x50 [invalid type]"'
    match = s.Match("!=", field, right)
    assert statements.from_text(text, "ip") == (
        (match, e.Accept()),
        "0x50 [invalid type]",
    )


def test_so_it_is_in_json() -> None:
    read = expressions.json_reader("ip")
    assert read("0x50 [invalid type]") == 80
    assert read({"range": ["0x35 [invalid type]", "0x50 [invalid type]"]}) == e.Range(53, 80)
    assert read("0xg [invalid type]") == "0xg [invalid type]"


SADDR = {"payload": {"protocol": "ip", "field": "saddr"}}
LATER = {"elem": {"val": SADDR, "timeout": 300}}
RATE = {"limit": {"rate": 5, "burst": 5, "per": "second"}}


@pytest.mark.parametrize(
    ("text", "elem", "stmt"),
    [
        ("update @s { ip saddr limit rate 5/second }", SADDR, [RATE]),
        ("update @s { ip saddr counter }", SADDR, [{"counter": None}]),
        (
            "update @s { ip saddr timeout 5m counter packets 3 bytes 180 }",
            LATER,
            [{"counter": {"packets": 3, "bytes": 180}}],
        ),
        ("update @s { ip saddr timeout 5m limit rate 5/second }", LATER, [RATE]),
    ],
)
def test_what_an_element_is_to_count_stands_beside_it_in_json(
    text: str, elem: Any, stmt: Any
) -> None:
    body = {"op": "update", "elem": elem, "set": "@s", "stmt": stmt}
    assert statements.from_json([{"set": body}], "ip") == statements.from_text(text, "ip")[0]
    odd: Any
    for odd in ("x", [{"quota": {}}], [{"counter": {"packets": "x", "bytes": 1}}], [1], {}):
        (read,) = statements.from_json([{"set": {**body, "stmt": odd}}], "ip")
        assert isinstance(read, e.Unknown)
