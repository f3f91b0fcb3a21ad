"""Rows are searched where they stand, whoever holds them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.rows import texts as row_texts
from analyzer.kubeproxy.rows.texts import found, rows_of, says
from analyzer.model.iptables.rules import Table
from analyzer.model.value import replace
from analyzer.parsers.iptables_save import parse

HEAD = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m mark --mark 0x7 -j ACCEPT\nCOMMIT\n"
ROWS = (
    "-A a -o cali1 -g b",
    "[1:2] -A a -o cali2 -m comment --comment x -g b",
    '-A a -m comment --comment "x -o cali3 -g b" -g b',
    '-A a -o cali4 -m comment --comment "y -o cali5 -g b" -g b',
    "-A b -p tcp -o cali6 -g a",
    "-A b -o cali7 -j a",
    "-A b -i cali8 -g a",
)


def table(rows: Sequence[str], *, sliced: bool) -> Table:
    """Return a table whose rows are read, or of whose chain `b` the rules were made."""
    text = HEAD + "*filter\n:a - [0:0]\n:b - [0:0]\n" + "".join(f"{row}\n" for row in rows)
    read = parse(f"{text}COMMIT\n{HEAD}", "dump").tables["filter"]
    if sliced:
        return read
    made = replace(read.chains["b"], rules=tuple(read.chains["b"].rules))
    return replace(read, chains={"a": read.chains["a"], "b": made})


@pytest.mark.parametrize("sliced", [True, False])
def test_only_rows_of_the_table_are_searched(sliced: bool) -> None:
    held = table(ROWS, sliced=sliced)
    assert sorted(rows_of(held).splitlines()) == sorted(ROWS)
    assert says(held, "cali6")
    assert says(held, "nothing", re.compile("cal.6"))
    assert not says(held, "--mark", re.compile("COMMIT"), ":a")
    assert sorted(each[1] for each in found(held, r"-i (\S+)", "-i ")) == ["cali8"]
    read = row_texts.read_rows_of(held).splitlines()
    assert sorted([*read, *(each.raw for each in row_texts.other_rules(held))]) == sorted(ROWS)


@given(st.lists(st.sampled_from(ROWS)), st.booleans(), st.sampled_from("io"))
def test_rows_that_go_on_by_device_are_those_that_ask_for_it_first(
    rows: list[str], sliced: bool, option: str
) -> None:
    held = table(rows, sliced=sliced)
    plain = re.compile(rf"(?:\[\d+:\d+\] )?-A (\S+) -{option} (\S+) .*-g (\S+)")
    wanted = [each.groups() for row in rows if (each := plain.fullmatch(row))]
    assert sorted(row_texts.sent_by_device(held, option)) == sorted(wanted)
