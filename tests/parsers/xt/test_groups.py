"""A row means what the reader of whole rules says, however much of it earlier rows have told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.errors import ParseError
from analyzer.model.iptables.rules import Rule
from analyzer.parsers.xt.groups import groups_of, known, learn
from analyzer.parsers.xt.rule import parse_rule, render_rule
from tests.support.effort import examples
from tests.support.strategies.iptables_rules import HERE, rules

CHAINS = ("KUBE-SEP-A", "A -j B", "DROP")
BASE = ("-s", "-d", "-p", "-m", "-j", "-i", "-o", "-g", "-c")
FIXTURES = Path(__file__).parents[3] / "fixtures"
WORDS = st.sampled_from(
    [
        *("-s", "-d", "-p", "-m", "-j", "!", "-g", "-i", "-c", "--jump", "--source"),
        *("10.0.0.1/32", "10.0.0.0/8", "nowhere", "tcp", "udp", "comment", "statistic", "mark"),
        *("--comment", "--mode", "random", "--probability", "0.5", "--dport", "80", "--mark"),
        *("0x1/0x1", "--tcp-flags", "--syn", "--src-type", "addrtype", "LOCAL", "made-up", "--opt"),
        *("KUBE-SEP-A", "DROP", "ACCEPT", "DNAT", "--to-destination", "10.0.0.9:80", "MARK"),
        *("--set-xmark", "0x4000/0x4000", '"a b"', '""', '"-j"', '"', "LOG", "--log-prefix"),
    ]
)


def both(words: str) -> list[object]:
    """Return what a row means, and what it means to the reader of whole rules."""
    found: list[object] = []
    for line in (f"-A X {words}", f"--append X {words}"):
        try:
            rule = parse_rule(line, HERE, CHAINS)
        except ParseError as error:
            found.append(str(error).partition("\n")[0])
        else:
            found.append((rule.matches, rule.target, rule.counters, rule.location))
    return found


def check(words: str) -> None:
    for _ in range(2):  # the second time it may be known
        one, other = both(words)
        if isinstance(one, str) and isinstance(other, str):
            one, other = (each.partition(": ")[2] for each in (one, other))
        assert one == other


@examples(400, 20_000)
@given(st.lists(WORDS, max_size=12).map(" ".join))
@example("-m comment --comment -s 10.0.0.1/32 -j DROP")
@example("-m mark --mark ! -s 10.0.0.1/32 -j DROP")
@example('-m comment --comment "a b" -j LOG --log-prefix "x -j DROP"')
@example("-m comment --comment a  -j  DROP")
@example("-p tcp -m tcp ! -d 10.0.0.1/32 -j KUBE-SEP-A")
@example("-s -j -j DROP")
@example("-j -j !")
@example("-g KUBE-SEP-A -j DROP")
@example('-m comment --comment "a" -m comment --comment "b" -g KUBE-SEP-A')
@example('-m comment --comment "a" --comment "b" -j DROP')
@example("-i eth0 -o ! eth1 -j DROP")
@example('-m comment --comment "" -i "a b" -j DROP')
def test_words_in_any_order_mean_the_same(words: str) -> None:
    check(words)


@examples(100, 4_000)
@given(st.lists(rules, min_size=1, max_size=4))
def test_whole_rules_mean_the_same_one_after_another(given: list[Rule]) -> None:
    for rule in given:
        check(render_rule("X", rule).removeprefix("-A X "))


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("noise/*.txt"))[::3], ids=lambda p: p.name)
def test_rows_of_whole_dumps_mean_the_same(path: Path) -> None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = [line.split(" ", 2)[2] for line in lines if re.match("-A .* -[jg] ", line)]
    for row in rows[:400]:
        check(row)


@pytest.mark.parametrize(
    ("row", "many"),
    [
        ("-s 10.0.0.1/32 -j KUBE-MARK-MASQ", 2),
        ("-p tcp -m tcp -j DNAT --to-destination 10.0.0.1:80", 3),
        ('! -s 10.0.0.0/8 -p tcp -m comment --comment "a b" -m tcp --dport 80 -j A', 5),
        ("-m statistic --mode random --probability 0.5 -j A", 2),
        ('-i cali+ -m comment --comment "a b" -m comment --comment "c d" -g A', 4),
        ("! -o lo -m comment --comment a -j MARK --set-xmark 0x1/0x1", 3),
    ],
)
def test_rows_of_kube_proxy_are_plain(row: str, many: int) -> None:
    found = groups_of(row, BASE)
    assert found is not None
    assert len(found) == many


@pytest.mark.parametrize(
    "row",
    [
        "-s 10.0.0.1/32",
        "-c 1 2 -j A",
        "-s ! 10.0.0.1/32 -j A",
        "-m mark --mark ! -s 10.0.0.1/32 -j A",
        "-m tcp ! -s 10.0.0.1/32 -j A",
        "-j A -m tcp",
        '-m string --string "a" -j A',
        '-m comment --comment "a"b -j A',
        '-m comment --comment "a\\" -j A',
        "stray -j A",
        "!",
    ],
)
def test_other_rows_are_left_to_the_reader_of_whole_rules(row: str) -> None:
    assert groups_of(row, BASE) is None


def test_nothing_is_learned_where_an_extension_took_more_words() -> None:
    taken = parse_rule("--append X -m made-up --opt -s 10.0.0.1/32 -j A", HERE, CHAINS)
    found = groups_of("-m never-seen --opt -s 10.0.0.1/32 -j A", BASE)
    assert found is not None
    learn(found, taken.matches[:1])
    assert known(found[0]) is None
