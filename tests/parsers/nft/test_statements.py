from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest

from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.parsers.nft import statements
from analyzer.parsers.nft.statements import from_json, from_text, is_of_iptables, translated

DADDR, MARK = e.Payload("ip", "daddr"), e.Meta("mark")


def test_statements_stand_one_behind_the_other() -> None:
    found, comment = from_text("ip daddr 10.0.0.1 counter packets 1 bytes 60 drop", "ip")
    match = s.Match("==", DADDR, IPv4Address("10.0.0.1"))
    assert found == (match, s.Counter(1, 60), e.Drop())
    assert comment is None


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("ip daddr vmap @m", s.Vmap(DADDR, e.SetRef("m"))),
        ("meta mark set 1", s.MetaSet("mark", 1)),
        ("ct mark set meta mark", s.CtSet("mark", MARK)),
        ("meta mark set meta mark | 1", s.MetaSet("mark", e.Binary("|", MARK, 1))),
        ("ip daddr set 10.0.0.1", s.Mangle(DADDR, IPv4Address("10.0.0.1"))),
        ("masquerade", s.Masquerade()),
        ("notrack", s.Notrack()),
    ],
)
def test_what_stands_behind_an_expression_tells_the_statement(
    text: str, statement: s.Statement
) -> None:
    assert from_text(text, "ip") == ((statement,), None)
    assert from_text(statements.write(statement), "ip") == ((statement,), None)


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ('drop comment "why not"', "why not"),
        ('drop comment ""', ""),
        ('drop comment "comment"', "comment"),
        ("drop", None),
    ],
)
def test_a_comment_is_no_statement(text: str, comment: str | None) -> None:
    assert from_text(text, "ip") == ((e.Drop(),), comment)


def test_a_comment_of_an_element_is_not_that_of_the_rule() -> None:
    found, comment = from_text('ip daddr { 10.0.0.1 comment "x" } drop', "ip")
    assert comment is None
    assert found[-1] == e.Drop()


def test_from_what_is_not_understood_on_all_is_unknown() -> None:
    found, comment = from_text('counter synproxy mss 1460 drop comment "x"', "ip")
    assert found == (s.Counter(), e.Unknown("synproxy mss 1460 drop"))
    assert comment == "x"


@pytest.mark.parametrize("text", ['drop "x', 'log prefix "a comment "b"'])
def test_a_quote_that_is_never_closed_makes_the_whole_rule_unknown(text: str) -> None:
    assert from_text(text, "ip") == ((e.Unknown(text),), None)


def test_json_that_is_not_understood_hides_no_other_statement() -> None:
    odd: Any = {"synproxy": {"mss": 1460}}
    first, second, third = from_json([{"counter": None}, odd, {"drop": None}], "ip")
    assert (first, third) == (s.Counter(), e.Drop())
    assert second == e.Unknown('{"synproxy": {"mss": 1460}}')


def test_a_string_of_json_is_text_that_has_no_json() -> None:
    assert from_json(["notrack"], "ip") == (s.Notrack(),)
    assert from_json(["notrack drop"], "ip") == (e.Unknown('"notrack drop"'),)


@pytest.mark.parametrize("given", [None, {}, "drop", 7])
def test_statements_of_json_are_an_array(given: Any) -> None:
    (found,) = from_json(given, "ip")
    assert isinstance(found, e.Unknown)


@pytest.mark.parametrize(
    ("family", "table", "own"),
    [
        ("ip", "nat", True),
        ("ip6", "filter", True),
        ("bridge", "broute", True),
        ("inet", "filter", False),
        ("ip", "kube-proxy", False),
    ],
)
def test_tables_of_iptables_nft_are_told_by_their_names(family: str, table: str, own: bool) -> None:
    assert is_of_iptables(family, table) is own


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("tcp dport 80 drop", []),
        # Behind a blank stands what nft could not print.
        (" drop", ["match"]),
        ("  drop", ["match", "match"]),
        ("tcp dport 80  drop", ["match"]),
        ("tcp dport 80 ", ["target"]),
        ("tcp dport 80  ", ["match", "target"]),
        ('drop comment "a  b"', []),
    ],
)
def test_a_blank_too_many_is_an_extension_without_a_translation(
    text: str, marks: list[str]
) -> None:
    shown = translated(text)
    assert [word[1:] for word in shown.split() if word[0] == "\0"] == marks
    found, _ = from_text(shown, "ip")
    assert [each.kind for each in found if isinstance(each, s.Xt)] == marks
