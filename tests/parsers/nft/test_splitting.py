from __future__ import annotations

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.errors import ParseError
from analyzer.parsers.nft import splitting
from analyzer.parsers.nft.splitting import BracedBlock, RawTable, Split, split, statements
from tests.support.effort import examples

PRINTED = """table ip kube-proxy { # handle 1
\tcomment "rules for kube-proxy"

\tset nodes { # handle 2
\t\ttype ipv4_addr
\t}

\tchain services { # handle 3
\t\tip daddr 10.96.0.1 drop # handle 4
\t}
}
"""
#: The blocks of the above, whatever its layout.
BLOCKS = [("set", "nodes", ["type ipv4_addr"]), ("chain", "services", ["ip daddr 10.96.0.1 drop"])]


def blocks(table: RawTable) -> list[tuple[str, str, list[str]]]:
    return [
        (b.kind, b.name, [text.strip() for _, text in statements(b.body)]) for b in table.blocks
    ]


def lines_of(table: RawTable) -> list[int]:
    """The line of each statement."""
    return [b.line + number for b in table.blocks for number, _ in statements(b.body)]


def only(text: str) -> RawTable:
    (table,) = split(text, "dump").tables
    return table


def test_a_table_has_blocks_at_their_lines() -> None:
    table = only(PRINTED)
    assert (table.family, table.name, table.line, table.complete) == ("ip", "kube-proxy", 1, True)
    assert [(block.name, block.line) for block in table.blocks] == [("nodes", 4), ("services", 8)]
    assert blocks(table) == BLOCKS
    assert table.attributes == ((2, 'comment "rules for kube-proxy"'),)


@pytest.mark.parametrize(
    "text",
    [
        PRINTED.replace(" { #", " {#"),
        PRINTED.replace("\t", "    "),
        PRINTED.replace(" # handle 4", ";").replace("\n\t}", " }"),
        PRINTED.replace("\n", "\r\n"),
        PRINTED.replace("daddr 10", "daddr \\\n 10"),
        f"# nft list ruleset\n\n{PRINTED}# end\n",
    ],
)
def test_whatever_its_layout_a_table_has_the_same_blocks(text: str) -> None:
    table = only(text)
    found = [
        (kind, name, [" ".join(t.split()) for t in body]) for kind, name, body in blocks(table)
    ]
    assert found == BLOCKS
    assert table.complete


def test_a_family_that_is_left_out_is_ip() -> None:
    assert only("table nat { chain c { accept; } }").family == "ip"


def test_braces_and_signs_within_quotes_are_text() -> None:
    text = 'table ip t {\n\tchain c {\n\t\tdrop comment "} ; # {"\n\t\taccept\n\t}\n}\n'
    ((kind, name, body),) = blocks(only(text))
    assert (kind, name, body) == ("chain", "c", ['drop comment "} ; # {"', "accept"])


def test_a_quote_may_span_what_looks_like_blocks() -> None:
    table = only('table ip t {\n\tcomment "x\n\tchain c {\n\t\tdrop\n\t}\n}\n# "\n')
    assert (table.blocks, table.complete) == ((), False)


def test_a_table_that_is_cut_off_keeps_what_there_is() -> None:
    table = only(PRINTED.removesuffix("}\n"))
    assert not table.complete
    assert blocks(table) == BLOCKS
    within = only(PRINTED.removesuffix("\t}\n}\n"))
    assert not within.complete
    assert blocks(within) == BLOCKS


def test_lines_outside_of_tables_are_noise() -> None:
    found = split(f"$ nft list ruleset\n{PRINTED}done\n", "dump")
    assert found.noise == (1, 13)
    assert len(found.tables) == 1


def test_nothing_holds_no_table() -> None:
    assert split("", "dump") == split("# a comment\n\n", "dump") == Split((), ())


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("table ip t {\n}\n}\n", "no brace is open here", 3),
        ('table ip t {\ncomment "x\n}\n', "this quote is never closed", 2),
        ("chain c {\n}\n", "expected a table before this brace", 1),
    ],
)
def test_braces_and_quotes_that_do_not_fit_are_told_where(
    text: str, message: str, line: int
) -> None:
    with pytest.raises(ParseError) as caught:
        split(text, "dump")
    assert (caught.value.message, caught.value.location.line) == (message, line)
    assert caught.value.line == text.split("\n")[line - 1]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("\n\t\taccept\n\t\tdrop\n", [(1, "accept"), (2, "drop")]),
        ("accept; drop", [(0, "accept"), (0, " drop")]),
        ("\n\t\tip saddr {\n\t\t\t10.0.0.1 } drop\n", [(1, "ip saddr { \t\t\t10.0.0.1 } drop")]),
        ("\n\t\taccept # why not\n\t\t# nothing\n", [(1, "accept")]),
        ("\n\t\taccept # handle 7\n", [(1, "accept")]),
        ("\n\t\ttcp dport \\\n80 drop\n", [(1, "tcp dport  80 drop")]),
        # The blank at its end may stand for what nft could not print.
        ("\n\t\ttcp dport 80 \n", [(1, "tcp dport 80 ")]),
        ("\n    accept\n    drop\n", [(1, "accept"), (2, "drop")]),
        ("\n\n", []),
    ],
)
def test_a_body_is_statements_at_their_lines(body: str, found: list[tuple[int, str]]) -> None:
    assert statements(body) == found


names = st.text("abc-", min_size=1, max_size=4)
lines = st.lists(st.sampled_from(["accept", "ip daddr { 10.0.0.1, 10.0.0.2 } drop", "counter"]))


@examples(40, 1_000)
@given(st.lists(st.tuples(names, lines), max_size=3))
def test_one_by_one_and_at_once_the_blocks_are_the_same(
    chains: list[tuple[str, list[str]]],
) -> None:
    body = "".join(
        f"\tchain {name} {{\n{''.join(f'{chr(9)}{chr(9)}{row}{chr(10)}' for row in rows)}\t}}\n"
        for name, rows in chains
    )
    text = f"table inet t {{\n{body}}}\n"
    careful = split(f"{text}noise", "dump")
    assert careful.noise
    assert careful.tables[0].complete
    at_once = split(text, "dump").tables[0]
    assert (
        blocks(careful.tables[0]) == blocks(at_once) == [("chain", n, rows) for n, rows in chains]
    )
    assert lines_of(careful.tables[0]) == lines_of(at_once)


def test_a_block_of_no_known_kind_keeps_its_head() -> None:
    (block,) = only("table ip t {\n\twidget w {\n\t\tx\n\t}\n}\n").blocks
    assert block == BracedBlock("", "widget w", 2, "\n\t\tx\n\t")


@pytest.mark.parametrize(
    "body",
    [
        "\n        accept; \n         drop\n    ",
        "\n         drop\n    ",
        "\n     drop\n  ",
    ],
)
def test_blanks_beyond_the_indent_of_a_block_stay(body: str) -> None:
    assert statements(body)[-1][1] == " drop"


_ODD: Final = (
    "tcp dport 80 accept",
    'comment "a { b"',
    "# says { nothing",
    "type ipv4_addr",
    "elements = { 10.0.0.1,\n\t\t\t     10.0.0.2 }",
    "elements = { 10.0.0.1,\n\t\t\t     10.0.0.2 }; size 5",
    "tcp dport { 80,\n\t\t  443 } accept",
    "tcp dport { 80,\n443 } ip saddr { 10.0.0.1, 10.0.0.2 } drop",
    'log prefix "x\n{ y" accept',
    "ip saddr { 10.0.0.1 } drop",
    "flags interval; auto-merge",
    "{}",
)


@examples(60, 3_000)
@given(st.lists(st.sampled_from(_ODD), max_size=5), st.sampled_from(["\t\t", "  ", ""]))
@example(["elements = { 10.0.0.1,\n\t\t\t     10.0.0.2 }; size 5", "type ipv4_addr"], "\t\t")
def test_elements_on_many_lines_are_split_as_if_every_character_were_read(
    lines: list[str], indent: str
) -> None:
    body = "\n" + "".join(f"{indent}{line}\n" for line in lines)
    careful = splitting._without_indent(body, list(splitting._split_carefully(body)))  # noqa: SLF001  # the slow way
    found = statements(body)
    assert [(at, text.strip()) for at, text in found] == [(at, t.strip()) for at, t in careful]
