"""Rows that are filled in have the rules that parsing each of them gives."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.errors import ParseError
from analyzer.kubeproxy.generate import iptables_save, services
from analyzer.model.diagnostics import Location
from analyzer.model.iptables.rules import Rule, Ruleset
from analyzer.parsers.xt.row_shapes import RowShapes
from analyzer.parsers.xt.rule import parse_rule, render_rule
from tests.support.captures import FIXTURES
from tests.support.reading import read_ruleset
from tests.support.strategies.iptables_rules import HERE, rules

Parse = Callable[[str, Location, Container[str]], Rule]

CHAINS: Final = frozenset({"KUBE-A", "KUBE-B", "DNAT", "10.0.0.1:80"})
#: Words that rows are put together from, right or wrong.
WORDS: Final = (
    *(
        "-s",
        "-d",
        "!",
        "-m",
        "-p",
        "-j",
        "-g",
        "-A",
        "-4",
        "-c",
        "1",
        "tcp",
        "comment",
        "--comment",
    ),
    *("-m comment --comment", "-p tcp -m tcp --dport", "--dport", "-j DNAT --to-destination"),
    *("-m recent --rcheck --rsource --name", "-m statistic --mode random --probability", "--name"),
    *(
        "-j LOG --log-prefix",
        "-m multiport --dports",
        "-m string --algo bm --string",
        "--set-xmark",
    ),
    *("-j MARK --set-xmark", "0x1/0x1", "-m mark --mark", "ACCEPT", "-m addrtype --dst-type LOCAL"),
)
#: Words in places where rows of a shape differ.
VARYING: Final = (
    *("10.0.0.1/32", "10.0.0.9/8", "10.0.0.1", "fd00::1/128", "10.0.0.256", "0.0.0.0/0", "80"),
    *("080", "0", "65536", "80:90", "KUBE-A", "KUBE-B", "KUBE-C", "DNAT", "RETURN", "-j", "!", "x"),
    *("10.0.0.1:80", "10.0.0.1-10.0.0.2:80", "[fd00::1]:80", ":80", "0.5", "1.1", ".5", "0.50000"),
    *(
        '"a b"',
        '"x"',
        '""',
        '"a \\" b"',
        '" -j KUBE-A"',
        "a-b",
        "hole-0",
        "\u00e9",
        '"a\tb"',
        "a\tb",
    ),
)


_NOISE: Final = FIXTURES.parent / "noise"


def rules_of(rulesets: Iterable[Ruleset]) -> Iterator[Sequence[Rule]]:
    for ruleset in rulesets:
        for table in ruleset.tables.values():
            yield from (chain.rules for chain in table.chains.values())


def parsed(parse: Parse, line: str) -> Rule | str:
    try:
        return parse(line, HERE, CHAINS)
    except ParseError as error:
        return str(error)


def rows_alike() -> st.SearchStrategy[list[str]]:
    """Return rows with the same words in most places."""
    parts = st.lists(st.sampled_from([*WORDS, None]), max_size=9)
    varying = st.lists(st.sampled_from(VARYING), min_size=9, max_size=9)
    heads = st.sampled_from(["-A KUBE-A", "-A KUBE-B", "[1:22] -A KUBE-A", "-I X 1", "-A  X", "-A"])
    blanks = st.sampled_from([" ", " ", " ", "  "])

    def row(of: list[str | None], words: list[str], head: str, blank: str) -> str:
        told = [word if part is None else part for part, word in zip(of, words, strict=False)]
        return blank.join([head, *told])

    return parts.flatmap(
        lambda of: st.lists(
            st.builds(row, st.just(of), varying, heads, blanks), min_size=3, max_size=6
        )
    )


@given(rows_alike())
@example(["-A KUBE-A -j LOG --log-prefix KUBE-A -j KUBE-A"] * 3)
@example([f"-A KUBE-A -m comment --comment {word} x -j KUBE-A" for word in ("a", "b", "-j")])
@example([f"-A KUBE-A --dport {word} -j KUBE-A" for word in ("80", "81", "080", "90:91")])
@example(["-A KUBE-A -m comment --comment -s 10.0.0.1/32 -j KUBE-A"] * 3)
@example(["-A KUBE-A -m mark --mark ! -s 10.0.0.1/32 -j KUBE-A"] * 3)
@example(["-A KUBE-A -m made-up --opt -s 10.0.0.1/32 -j KUBE-A"] * 3)
@example(["-A KUBE-A -g KUBE-B -j KUBE-A"] * 3)
def test_rows_alike_have_the_rules_that_parsing_gives(lines: list[str]) -> None:
    shapes = RowShapes()
    for line in lines:
        assert parsed(shapes.parse, line) == parsed(parse_rule, line)


@given(st.lists(rules, min_size=1, max_size=4))
def test_any_rule_that_iptables_prints_is_the_same_from_its_shape(drawn: list[Rule]) -> None:
    shapes = RowShapes()
    for _ in range(3):
        for rule in drawn:
            line = render_rule("X", rule)
            assert parsed(shapes.parse, line) == parsed(parse_rule, line)


def test_a_large_dump_has_the_rules_of_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sorted([*FIXTURES.glob("*/*/ip*tables-*-save*.txt*"), *_NOISE.glob("*.txt")])
    small = [read_ruleset(path.read_bytes(), path.name) for path in paths]
    told = [tuple(rules) for rules in rules_of(small)]
    monkeypatch.setattr("analyzer.parsers.rows._FEW", 0)
    large = [read_ruleset(path.read_bytes(), path.name) for path in paths]
    made: list[RowShapes] = []

    class Counted(RowShapes):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr("analyzer.parsers.xt.row_shapes.RowShapes", Counted)
    assert [tuple(rules) for rules in rules_of(large)] == told
    assert sum(map(len, told)) > 5000
    assert made


def test_few_rows_of_kube_proxy_are_parsed() -> None:
    text = iptables_save(list(services(40, endpoints=(1, 2, 3))))
    chains = {line[1:].split(" ")[0] for line in text.split("\n") if line.startswith(":")}
    lines = [line for line in text.split("\n") if line.startswith("-A ")]
    one_by_one: list[str] = []

    def counted(line: str, location: Location, chains: Container[str]) -> Rule:
        one_by_one.append(line)
        return parse_rule(line, location, chains)

    shapes = RowShapes()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("analyzer.parsers.xt.row_shapes.parse_rule", counted)
        found = [shapes.parse(line, HERE, chains) for line in lines]
    assert found == [parse_rule(line, HERE, chains) for line in lines]
    assert len(lines) > 200
    assert len(one_by_one) < 40
