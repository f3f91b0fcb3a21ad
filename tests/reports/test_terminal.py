from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.text import printable
from analyzer.reports.document import Column, Document, Line, Span, Style, TextTable
from analyzer.reports.renderers import RENDERERS, renderer
from tests.support.answers import RICH, Answers
from tests.support.dumps import cluster_ip, dump, two_endpoints

pytest.importorskip("rich")

from rich.cells import cell_len

from analyzer.reports.terminal import render_terminal

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
#: A repair is read by iptables-restore or nft, and is no document.
VERBS = sorted(RENDERERS.keys() - {"repair"})
#: Begin lines that are there to be copied, and stay whole.
COMMANDS = ("conntrack -D",)
widths = pytest.mark.parametrize("width", [80, 140])


def shown(verb: str, *, width: int, colour: bool, text: str = RICH) -> str:
    document = renderer(verb, "text")(Answers(text).of(verb))
    assert isinstance(document, Document)
    return render_terminal(document, width=width, colour=colour)


@widths
@pytest.mark.parametrize("verb", VERBS)
def test_without_colour_there_is_no_escape_sequence(verb: str, width: int) -> None:
    assert "\x1b" not in shown(verb, width=width, colour=False)


@pytest.mark.alike
@widths
@pytest.mark.parametrize("verb", VERBS)
def test_colour_adds_nothing_but_colour(verb: str, width: int) -> None:
    coloured = shown(verb, width=width, colour=True)
    assert coloured != _ANSI.sub("", coloured)
    assert _ANSI.sub("", coloured) == shown(verb, width=width, colour=False)


@widths
@pytest.mark.parametrize("verb", VERBS)
def test_no_line_is_wider_than_the_terminal(verb: str, width: int) -> None:
    lines = shown(verb, width=width, colour=False).splitlines()
    assert max(cell_len(each) for each in lines if not each.startswith(COMMANDS)) <= width


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("name", ["[red]x[/red]", "[/]", ":smile:", "[link=file:///etc]y"])
def test_markup_of_a_dump_is_shown_as_it_stands(name: str, colour: bool) -> None:
    text = RICH.replace("ns/a:http", name)
    assert name in _ANSI.sub("", shown("services", width=140, colour=colour, text=text))


def test_a_control_character_of_a_dump_is_shown_as_a_sign() -> None:
    name = "ns/\x1b]0;owned\x07"
    found = shown("services", width=140, colour=False, text=RICH.replace("ns/a:http", name))
    assert printable(name) in found
    assert "\x1b" not in found


def test_nothing_of_a_cell_is_lost_in_a_narrow_column() -> None:
    long = "a-service-with-a-name-of-exactly-sixty-three-characters-padded-2"
    columns = (Column("NAME", foldable=True), Column("", foldable=True))
    table = TextTable(columns, ((long, "x" * 40), (Span("b", Style.BAD),)))
    found = render_terminal(Document([table, Line(("end",))]), width=40, colour=False)
    assert sorted(re.sub(r"\s|─|NAME", "", found)) == sorted(long + "x" * 40 + "b" + "end")


def test_a_table_that_cannot_fit_loses_nothing_and_cuts_no_address() -> None:
    found = shown("services", width=48, colour=False)
    plain = shown("services", width=200, colour=False)
    addresses = re.findall(r"\d+\.\d+\.\d+\.\d+:\d+|\[[0-9a-f:]+\]:\d+", plain)
    assert len(addresses) > 3
    assert re.findall(r"\d+\.\d+\.\d+\.\d+:\d+|\[[0-9a-f:]+\]:\d+", found) == addresses
    assert max(map(cell_len, found.splitlines())) <= 48


def test_rows_that_do_not_fit_go_on_deeper_where_a_column_begins() -> None:
    columns = (Column("A"), Column("B", begins=True), Column("C"), Column("D", begins=True))
    rows = (("name", "10.0.0.1:80", "x", "10.1.0.1:80"), ("", "", "", "10.1.0.2:80"))
    found = render_terminal(Document([TextTable(columns, rows)]), width=20, colour=False)
    assert found.splitlines() == [
        "A  B  C",
        "      D",
        "name  10.0.0.1:80  x",
        "      10.1.0.1:80",
        "      10.1.0.2:80",
    ]


# --- what stays where there is little room ---------------------------------------

NAMES = Column("SERVICE PORT", shortens=True)
LONG = "kube-system/a-very-long-name-of-a-service:metrics"


def at_width(width: int, *columns: Column, rows: tuple[tuple[str, ...], ...]) -> list[str]:
    document = Document([TextTable(columns, rows)])
    return [
        line.rstrip() for line in render_terminal(document, width=width, colour=False).splitlines()
    ]


def test_a_name_loses_its_middle_and_no_line_is_added() -> None:
    columns = NAMES, Column("PROTO", spare=1), Column("SHARE", right=True)
    rows = ((LONG, "tcp", "50.0%"), ("ns/a", "tcp", "100.0%"))
    assert at_width(80, *columns, rows=rows)[1].split() == [LONG, "tcp", "50.0%"]
    found = at_width(45, *columns, rows=rows)
    assert found == [
        "SERVICE PORT                    PROTO   SHARE",
        "kube-system/a-\u2026service:metrics  tcp     50.0%",
        "ns/a                            tcp    100.0%",
    ]
    # Before a name loses what tells it apart, what is spare goes.
    assert at_width(38, *columns, rows=rows)[1].split() == [
        "kube-system/a-\u2026service:metrics",
        "50.0%",
    ]
    assert at_width(26, *columns, rows=rows)[1].split() == ["kube-sys\u2026e:metrics", "50.0%"]


@pytest.mark.parametrize("width", range(20, 90, 5))
def test_columns_that_decide_stay(width: int) -> None:
    columns = NAMES, Column("PROTO", spare=1), Column("NODE", shortens=True), Column("")
    rows = ((LONG, "tcp", "node-" * 8, "DEAD"), ("ns/b", "udp", "n1", ""))
    found = at_width(width, *columns, rows=rows)
    assert all(len(line) <= width for line in found)
    joined = " ".join(found)
    assert "DEAD" in joined
    assert "n1" in joined
    together = re.sub(r"\s", "", joined)  # a name that is wider than the terminal is broken
    assert together.count("kube-") == together.count("rics") == 1


@given(
    name=st.text("ab/:\u4e16e\u0301", max_size=40),
    most=st.integers(16, 40),
)
def test_what_is_left_of_a_name_is_its_ends(name: str, most: int) -> None:
    (_, *lines) = at_width(most, NAMES, rows=((f"x{name}x",),))
    (line,) = lines
    assert cell_len(line) <= most
    head, sign, tail = line.partition("\u2026")
    assert f"x{name}x".startswith(head)
    assert f"x{name}x".endswith(tail)
    assert bool(sign) == (cell_len(f"x{name}x") > most)


@pytest.mark.parametrize("width", range(20, 50))
def test_names_that_begin_and_end_alike_are_told_apart(width: int) -> None:
    columns = Column("NODE", shortens=True), Column("SHARE", right=True)
    numbers = "10-0-12-101", "10-0-117-203", "10-0-117-204"
    rows = tuple((f"ip-{each}.eu-central-1.compute.internal", "50.0%") for each in numbers)
    _, *found = at_width(width, *columns, rows=rows)
    assert len({*found}) == len(rows)
    assert max(map(len, found)) <= width


def test_a_table_of_long_names_stays_a_table_at_80_columns() -> None:
    columns = (
        NAMES,
        Column("FRONTEND", begins=True),
        Column("ENDPOINT", begins=True),
        Column("NODE", shortens=True),
        Column("SHARE", right=True),
    )
    row = LONG, "ClusterIP 10.96.100.100:8080", "10.244.100.10:80", "node-" * 8, "100.0%"
    assert len(at_width(80, *columns, rows=(row,))) == 2


def test_a_sentence_gets_room_before_names_do() -> None:
    columns = NAMES, Column("WHY", foldable=True)
    rows = ((LONG, "pods that no object lists"),)
    found = at_width(60, *columns, rows=rows)
    assert found[1].endswith("pods that no object")
    assert [line.strip() for line in found[2:]] == ["lists"]


def test_frontends_of_one_distribution_say_so() -> None:
    text = dump(
        cluster_ip(),
        cluster_ip("ns/a:http", "10.96.0.7").replace("cluster IP", "external IP"),
        *two_endpoints()[1:],
    )
    for width in (80, 140):
        lines = shown("services", width=width, colour=False, text=text).splitlines()
        (external,) = [line for line in lines if "10.96.0.7:80" in line]
        (cluster,) = [line for line in lines if "10.96.0.1:80" in line]
        assert {"as below" in external, "as below" in cluster} == {True, False}


@pytest.mark.parametrize(
    "lead", ["", "  ", "\u251c\u2500 ", "\u2502  \u2514\u2500 ", "\u2502  \u2502  "]
)
def test_a_line_of_a_tree_goes_on_as_deep_as_it_begins(lead: str) -> None:
    words = " ".join(f"word{n}" for n in range(12))
    shown = render_terminal(
        Document([Line((Span(lead, Style.FAINT), words))]), width=40, colour=False
    )
    first, *others = shown.splitlines()
    assert first.startswith(f"{lead}word0")
    assert others
    below = lead.replace("\u251c", "\u2502").replace("\u2514", " ").replace("\u2500", " ")
    assert all(line.startswith(f"{below}word") for line in others)
    assert " ".join(line[len(lead) :] for line in (first, *others)).split() == words.split()
    assert max(map(cell_len, (first, *others))) <= 40


def test_a_command_is_not_broken_where_it_would_be_copied() -> None:
    command = "iptables-legacy -t nat -I KUBE-SEP-J2W2PM2EJNGL7DWU -j KUBE-SEP-S5UX5RFD5X5TSEPT"
    found = render_terminal(Document([Line((command,), whole=True)]), width=40, colour=False)
    assert found == f"{command}\n"


@pytest.mark.parametrize("width", range(40, 80))
def test_nothing_is_cut_without_a_sign_whatever_the_heading(width: int) -> None:
    columns = (
        NAMES,
        Column("ENDPOINT"),
        Column("NODE", shortens=True),
        Column("SHARE", right=True),
        Column(""),
    )
    rows = (("ns/" + "a" * 30, "192.168.100.100:6443", "worker1", "100.0%", "partial loss"),)
    found = " ".join(at_width(width, *columns, rows=rows)).split()
    for word in ("192.168.100.100:6443", "worker1", "100.0%", "partial", "loss"):
        assert word in found


def test_a_line_that_does_not_fit_goes_on_deeper_than_it_begins() -> None:
    columns = (Column("A"), Column("B", begins=True), Column("C", begins=True))
    rows = (("name", "from 10.0.0.0/8 to 10.1.0.1:80, 10.1.0.2:80", "c"),)
    found = at_width(36, *columns, rows=rows)
    assert found == [
        "A",
        "  B",
        "    C",
        "name",
        "  from 10.0.0.0/8 to 10.1.0.1:80,",
        "    10.1.0.2:80",
        "    c",
    ]


@pytest.mark.parametrize(
    ("verb", "first", "last"),
    [("suspects", "ENDPOINT", "P-VALUE"), ("pinned", "SERVICE PORT", "WHY")],
)
def test_sentences_fold_so_that_a_row_stays_in_its_columns(
    verb: str, first: str, last: str
) -> None:
    lines = shown(verb, width=80, colour=False).splitlines()
    assert [line for line in lines if line.startswith(first) and last in line]


def test_no_word_of_a_sentence_is_broken_while_anything_is_spare() -> None:
    columns = (
        Column("CLIENT"),
        Column("OPERATION", foldable=True),
        Column("TARGET", foldable=True),
        Column("TAKES", right=True, spare=1),
    )
    rows = (("http-retry", "reach it", "ClusterIP of kube-system/kube-dns:dns-tcp", "15m to 36m"),)
    for width in range(54, 90):
        found = at_width(width, *columns, rows=rows)
        assert "kube-system/kube-dns:dns-tcp" in " ".join(found), width
    assert "TAKES" not in at_width(58, *columns, rows=rows)[0]
    # All that is left goes to sentences.
    (_, *whole) = at_width(90, *columns, rows=rows)
    assert len(whole) == 1
