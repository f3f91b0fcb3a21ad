from __future__ import annotations

import pytest

from analyzer.errors import InputError
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.parsers.careful import CarefulReader
from analyzer.parsers.listed_rows import ListedRows

WHOLE = """*nat
:PREROUTING ACCEPT [0:0]
:A - [0:0]
-A PREROUTING -j A
-A A -j ACCEPT
COMMIT
"""


def read(text: str, table: str | None = None) -> Ruleset:
    return CarefulReader("dump", table).read(text)


def only(text: str) -> Table:
    (table,) = read(text).tables.values()
    return table


def rows(text: str, chain: str = "A") -> list[str]:
    found = only(text).chains[chain].rules
    assert isinstance(found, ListedRows)
    return found.lines


def complete(table: Table) -> set[str]:
    """The chains that have lost no rule."""
    return {
        n for n, c in table.chains.items() if isinstance(c.rules, ListedRows) and c.rules.complete
    }


def codes(text: str) -> list[str]:
    return [each.code for each in read(text).diagnostics]


def test_a_dump_that_nobody_touched_gives_no_diagnostic() -> None:
    assert codes(WHOLE) == []
    assert complete(only(WHOLE)) == {"PREROUTING", "A"}
    assert read(WHOLE).rules == 2


@pytest.mark.parametrize("mark", ["+", "> ", "   ", "\t", "+ > "])
def test_what_a_diff_or_a_quotation_puts_before_each_line_is_taken_away(mark: str) -> None:
    marked = "".join(f"{mark}{line}" for line in WHOLE.splitlines(keepends=True))
    assert rows(marked) == rows(WHOLE)
    assert complete(only(marked)) == {"PREROUTING", "A"}


def test_a_line_that_a_diff_removes_is_left_out_and_told() -> None:
    text = WHOLE.replace("-A A -j ACCEPT", "--A A -j DROP\n+-A A -j ACCEPT")
    assert rows(text) == ["-A A -j ACCEPT"]
    assert codes(text) == ["diff"]


def test_prompts_and_prose_are_left_out_and_counted() -> None:
    text = f"root@node:~# iptables-save\n{WHOLE}root@node:~#\n"
    (told,) = read(text).diagnostics
    assert (told.code, told.line) == ("noise", 1)
    assert told.message.endswith("(and 1 more)")


def test_a_rule_over_several_lines_is_one() -> None:
    text = WHOLE.replace("-A A -j ACCEPT", "-A A -p tcp \\\n  -j ACCEPT")
    assert rows(text) == ["-A A -p tcp   -j ACCEPT"]


def test_several_rules_on_one_line_are_told_apart() -> None:
    text = WHOLE.replace("-A A -j ACCEPT", "-A A -j DROP -A A -j ACCEPT")
    assert rows(text) == ["-A A -j DROP", "-A A -j ACCEPT"]


def test_a_comment_that_reads_like_a_rule_is_none() -> None:
    text = WHOLE.replace("-A A -j", '-A A -m comment --comment "x -A A -j DROP" -j')
    assert rows(text) == ['-A A -m comment --comment "x -A A -j DROP" -j ACCEPT']


@pytest.mark.parametrize(
    ("inserted", "order"),
    [
        ("-I A -j X", ["X", "1", "2"]),
        ("-I A 1 -j X", ["X", "1", "2"]),
        ("-I A 2 -j X", ["1", "X", "2"]),
        ("-I A 3 -j X", ["1", "2", "X"]),
        ("--insert A 2 -j X", ["1", "X", "2"]),
        ("-A A -j X", ["1", "2", "X"]),
    ],
)
def test_an_inserted_rule_goes_where_it_says(inserted: str, order: list[str]) -> None:
    text = WHOLE.replace("-A A -j ACCEPT", f"-A A -j 1\n-A A -j 2\n{inserted}")
    assert [row.split()[-1] for row in rows(text)] == order


def test_a_chain_that_is_deleted_is_gone_unless_it_has_rules() -> None:
    assert list(only(WHOLE.replace("COMMIT", ":B - [0:0]\n-X B\nCOMMIT")).chains) == [
        "PREROUTING",
        "A",
    ]
    assert "A" in only(WHOLE.replace("COMMIT", "-X A\nCOMMIT")).chains


def test_of_a_table_without_commit_the_last_chain_met_may_have_lost_rules() -> None:
    text = WHOLE.removesuffix("COMMIT\n")
    assert codes(text) == ["no-commit"]
    assert complete(only(text)) == {"PREROUTING"}
    assert not only(text).complete


def test_chains_declared_behind_the_last_one_met_may_have_lost_rules_too() -> None:
    text = WHOLE.removesuffix("COMMIT\n").replace(":A -", ":A - [0:0]\n:B -")
    assert complete(only(text)) == {"PREROUTING"}


def test_a_last_line_without_its_end_is_left_out() -> None:
    text = WHOLE.removesuffix("ACCEPT\nCOMMIT\n")
    assert codes(text) == ["cut-off", "no-commit"]
    assert complete(only(text)) == {"PREROUTING"}
    assert rows(text) == []


def test_rules_under_no_table_are_a_fragment_of_which_any_chain_may_lack_rules() -> None:
    found = read("-A A -j DROP\n-A B -j ACCEPT\n")
    assert [each.code for each in found.diagnostics] == ["fragment", "guessed-table"]
    assert complete(found.tables["filter"]) == set()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("-P PREROUTING ACCEPT\n-P OUTPUT ACCEPT\n-P POSTROUTING ACCEPT\n", "nat"),
        ("-P INPUT DROP\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n", "filter"),
        ("-P PREROUTING ACCEPT\n-P OUTPUT ACCEPT\n", "raw"),
    ],
)
def test_a_listing_is_whole_where_it_names_all_base_chains_of_a_table(text: str, name: str) -> None:
    table = only(text + "-N A\n-A A -j RETURN\n")
    assert (table.name, table.complete) == (name, True)
    assert complete(table) == {*table.chains}


def test_a_listing_of_one_chain_says_nothing_of_the_others() -> None:
    assert not only("-P FORWARD ACCEPT\n-A FORWARD -j DROP\n").complete


def test_two_listings_in_one_file_are_two_tables() -> None:
    first = "-P INPUT DROP\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n-A INPUT -j ACCEPT\n"
    second = "-P PREROUTING ACCEPT\n-P OUTPUT ACCEPT\n-P POSTROUTING ACCEPT\n"
    assert list(read(first + second).tables) == ["filter", "nat"]


def test_the_chains_of_another_table_behind_rules_show_that_its_head_is_missing() -> None:
    """From within one table into the next one: neither is whole."""
    nat, gap = WHOLE.partition("-A A")[0], ":INPUT ACCEPT [0:0]\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n"
    found = read(f"{nat}{gap}")
    assert [each.code for each in found.diagnostics][:1] == ["no-commit"]
    assert not found.tables["nat"].complete
    # A chain may be declared anywhere.
    assert read(WHOLE.replace("-A A", ":B - [0:0]\n-A A")).tables["nat"].complete


def test_the_same_table_again_is_noted_and_another_one_left_out() -> None:
    assert codes(WHOLE * 2) == ["pasted-twice"]
    other = WHOLE.replace("-j ACCEPT", "-j DROP")
    assert codes(WHOLE + other) == ["two-dumps"]
    assert rows(WHOLE + other) == ["-A A -j ACCEPT"]


def test_a_table_of_the_other_ip_version_is_left_out() -> None:
    head = "# Generated by {} v1.8.9 on Mon\n"
    four, six = head.format("iptables-save"), head.format("ip6tables-save")
    found = read(f"{four}{WHOLE}{six}{WHOLE.replace('*nat', '*mangle')}")
    assert list(found.tables) == ["nat"]
    assert [each.code for each in found.diagnostics] == ["other-family"]


def test_rules_of_a_chain_that_is_not_declared_are_read_and_told() -> None:
    text = WHOLE.replace(":A - [0:0]\n", "")
    assert codes(text) == ["undeclared-chain"]
    assert rows(text) == ["-A A -j ACCEPT"]


def test_progress_is_told_line_by_line() -> None:
    told: list[tuple[int, int | None]] = []
    CarefulReader("dump", None, lambda done, total: told.append((done, total))).read(WHOLE)
    assert told == [(1, 7)] * 7


@pytest.mark.parametrize("text", ["", "\n", "# a comment\n", "Chain INPUT (policy ACCEPT)\n"])
def test_what_holds_no_rule_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no rule and no chain"):
        read(text)
