"""Whatever the input, nothing but the two errors of this package comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import InputError, ParseError
from analyzer.model.nft.expressions import Unknown
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers import nft_json, nft_text
from analyzer.parsers.nft import statements
from analyzer.parsers.nft.survey import survey
from tests.support.nft.comparing import plain, unknown_in

FIXTURES = Path(__file__).parents[3] / "fixtures/nft"
TEXTS = [
    (FIXTURES / case / "nft-list-ruleset.txt").read_text(encoding="utf-8")
    for case in ("statements", "1.36.2-nftables/seed-dns", "1.30.3-nftables/seed-dns")
]
JSONS = [
    (FIXTURES / case / "nft-list-ruleset.json").read_text(encoding="utf-8")
    for case in ("statements", "1.36.2-nftables/seed-dns")
]
PIECES = st.sampled_from(
    [
        *['"', "{", "}", ";", "#", "\n", "\\\n", " ", "  ", "\t", "\r\n", ",", ":", "(", ")", "@"],
        *[" map ", " vmap ", " . ", "table ip x {", "chain c {", "0x", "-", "/", "!", "\u2028"],
        *[" comment ", " set ", " jump ", "elements = {", "priority", "[", "]", "null", "1e9"],
        *["*", "9" * 30],
    ]
)
#: Those that leave braces and quotes as they are, so that the readers of rules meet them.
HARMLESS = st.sampled_from(
    [
        *[" ", "  ", ",", ":", "(", ")", "@", "*", " map ", " vmap ", " . ", "0x", "-", "/", "!"],
        *["|", " comment ", " set ", " jump ", " counter ", " limit ", " to ", "numgen ", "ct "],
        *["1:2", "["],
    ]
)


@st.composite
def edited(draw: st.DrawFn, texts: list[str]) -> str:
    text = draw(st.sampled_from(texts))
    start = draw(st.integers(0, max(0, len(text) - 1)))
    text = text[start : start + 3000] if draw(st.booleans()) else text
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        end = at + draw(st.integers(0, 40))
        text = text[:at] + draw(PIECES) + text[end:]
    return text


def understand_all(ruleset: NftRuleset) -> None:
    """Look at everything, as nothing is understood before."""
    list(survey(ruleset))
    plain(ruleset)
    assert ruleset.rules == sum(
        len(list(chain.rules))
        for table in ruleset.tables.values()
        for chain in table.chains.values()
    )


def _check(error: InputError | ParseError, text: str) -> None:
    if isinstance(error, ParseError):
        assert text.split("\n")[error.location.line - 1] == error.line
        assert 0 <= error.span[0] < max(1, len(error.line))
    else:
        assert str(error).startswith("f: ")


def _check_start(error: Exception) -> None:
    assert str(error).startswith("f:")


@given(st.sampled_from(TEXTS), st.data())
def test_edited_rules_are_understood_in_part(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 5))):
        number = data.draw(st.integers(0, len(lines) - 1))
        line = lines[number]
        at = data.draw(st.integers(0, len(line)))
        end = at + data.draw(st.integers(0, 10))
        if not any(mark in line[at:end] for mark in '{}"'):
            lines[number] = line[:at] + data.draw(HARMLESS) + line[end:]
    try:
        understand_all(nft_text.parse("\n".join(lines), "f"))
    except ParseError as error:
        _check(error, "\n".join(lines))


@given(edited(TEXTS))
def test_edited_text_gives_a_ruleset_or_says_what_is_wrong(text: str) -> None:
    try:
        understand_all(nft_text.parse(text, "f"))
    except (InputError, ParseError) as error:
        _check(error, text)


@given(edited(JSONS))
def test_edited_json_gives_a_ruleset_or_says_what_is_wrong(text: str) -> None:
    try:
        understand_all(nft_json.parse(text, "f"))
    except (InputError, ParseError) as error:
        _check_start(error)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(0, 1) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *["match", "map", "set", "elem", "val", "key", "data", "left", "right", "op"],
                    *["meta", "dnat", "addr", "jump", "target", "concat", "range", "prefix", "ct"],
                    *["mode", "mod", "&", "counter", "limit", "reject", "vmap", "mangle"],
                    *["payload", "numgen"],
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.lists(json_values, max_size=3), json_values, json_values)
def test_json_of_any_shape_is_unknown_and_no_more(
    statements: list[object], elements: object, kind: object
) -> None:
    place = {"family": "ip", "table": "t"}
    given_objects = [
        {"table": {"family": "ip", "name": "t"}},
        {"chain": place | {"name": "c"}},
        {"set": place | {"name": "s", "type": kind, "elem": elements}},
        {"rule": place | {"chain": "c", "expr": statements}},
    ]
    try:
        ruleset = nft_json.parse(json.dumps({"nftables": given_objects}), "f")
    except InputError:
        return
    understand_all(ruleset)
    rule = ruleset.tables["ip", "t"].chains["c"].rules[0]
    assert len(rule.statements) == len(statements)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table ip t {\n}\n}\n", "f:3:1: no brace is open here\n    }\n    ^"),
        ('table ip t {\n comment "x\n}\n', "f:2:10: this quote is never closed"),
        ("hello {\n}\n", "f:1:7: expected a table before this brace"),
        ("", "f: it contains no nft table"),
        ("ip daddr 1.2.3.4 drop\n", "f: it contains no nft table"),
    ],
)
def test_malformed_text_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises((InputError, ParseError)) as caught:
        nft_text.parse(text, "f")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"nftables": [}', "f:1:15: not JSON: Expecting value"),
        ("[1]", "f: it contains no ruleset of `nft -j list ruleset`"),
        ('{"nftables": []}', "f: it contains no nft table"),
        ('{"nftables": [{"rule": {"family": "ip", "table": "t"}}]}', "f: object 1 of the ruleset"),
        ("[" * 100_000, "f: not JSON as nft prints it"),
        ('{"nftables": ' + "9" * 5000 + "}", "f: not JSON as nft prints it"),
    ],
)
def test_malformed_json_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises((InputError, ParseError)) as caught:
        nft_json.parse(text, "f")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "inner",
    [
        *["(" * 5000, "jhash " * 5000, "{" * 5000, "ip saddr . " * 5000],
        "meta mark set ip saddr" + " map @x" * 5000,
        "meta mark set meta mark" + " | 1" * 5000,
        "meta mark 1" + " | 1" * 5000,
    ],
)
def test_endless_nesting_is_unknown(inner: str) -> None:
    ruleset = nft_text.parse(f"table ip t {{\n\tchain c {{\n\t\t{inner}\n\t}}\n}}\n", "f")
    understand_all(ruleset)
    assert list(unknown_in(plain(ruleset))) or not ruleset.tables["ip", "t"].complete


def test_endless_operators_of_json_are_unknown() -> None:
    right = {"|": [1] * 5000}
    rule = {"family": "ip", "table": "t", "chain": "c", "expr": [right]}
    rule["expr"] = [{"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": right}}]
    place = {"family": "ip", "table": "t", "name": "c"}
    objects = [{"table": {"family": "ip", "name": "t"}}, {"chain": place}, {"rule": rule}]
    ruleset = nft_json.parse(json.dumps({"nftables": objects}), "f")
    assert len(list(unknown_in(plain(ruleset)))) == 1


def test_a_cut_off_text_is_read_as_far_as_it_goes() -> None:
    whole = TEXTS[1]
    text = whole[: whole.index("chain cluster-ips-check")]
    ruleset = nft_text.parse(text, "f")
    assert [d.code for d in ruleset.diagnostics] == ["cut-off"]
    table = ruleset.tables["ip", "kube-proxy"]
    assert not table.complete
    assert len(table.sets["service-ips"].elements) == 3
    assert len(table.chains["masquerading"].rules) == 2


def test_of_a_long_line_only_what_stands_around_the_fault_is_shown() -> None:
    long = '{"nftables": [' + '{"metainfo": {}}, ' * 1_000
    for text, column, parse in ((long, len(long) - 1, nft_json.parse), (long, 14, nft_text.parse)):
        with pytest.raises(ParseError) as caught:
            parse(text, "f")
        said, line, marker = str(caught.value).split("\n")
        assert said.startswith(f"f:1:{caught.value.column}: ")
        assert abs(caught.value.column - column) < 20
        assert len(line) < 200
        at = marker.index("^")
        assert line[4:at] in long
        assert (long + " ")[caught.value.column - 1] == (line + " ")[at]


@pytest.mark.parametrize("odd", ["10.0.0.1 .  . tcp", " . ", "1 . ", "10.0.0.1 . . 80"])
def test_a_concatenation_without_one_of_its_parts_is_not_understood(odd: str) -> None:
    text = f"ip daddr . tcp dport {{ {odd} }} accept"
    (statement, *_), _ = statements.from_text(text, "ip")
    assert isinstance(statement, Unknown) or "Unknown" in repr(statement)


@pytest.mark.parametrize("head", ["type", "type ", "type nat", "type nat hook", "policy", "po"])
def test_a_text_may_end_within_the_head_of_a_chain(head: str) -> None:
    ruleset = nft_text.parse("table ip t {\n\tchain c {\n\t\t" + head, "f")
    table = ruleset.tables["ip", "t"]
    assert not table.complete
    assert [*table.chains] == ["c"]
    assert "cut-off" in [d.code for d in ruleset.diagnostics]
