"""Markdown for tickets: text of a dump is text, whatever stands in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from analyzer.model.text import printable
from analyzer.reports.document import Column, Document, Line, Span, Style, TextTable
from analyzer.reports.markdown import render_markdown
from analyzer.reports.renderers import RENDERERS, renderer
from tests.support.answers import Answers

_READER = MarkdownIt("gfm-like", {"linkify": False})
_TEXTS = st.text(
    st.sampled_from("aZ0 \\`*_{}[]()<>#+-.!|~&;:/@$\n\t\x1b\u202e\u05d0'\"="), max_size=24
)


def shown(text: str) -> tuple[list[str], set[str]]:
    """Return the texts that a reader of Markdown shows, and the kinds of markup it found."""
    texts, kinds = [], set()
    for token in _READER.parse(text):
        kinds.add(token.type)
        for child in token.children or ():
            kinds.add(child.type)
            if child.type in {"text", "text_special"}:
                texts.append(child.content)
    return texts, kinds


def bare(text: str) -> str:
    """Return a text without blanks, which Markdown does not keep."""
    return text.replace(" ", "")


@given(_TEXTS)
def test_a_cell_shows_just_its_text(text: str) -> None:
    table = TextTable((Column("A"), Column("B")), ((text, "x"),))
    texts, kinds = shown(render_markdown(Document([table])))
    assert bare("".join(texts)) == bare(f"AB{printable(text)}x")
    parts = ("table", "thead", "tbody", "tr", "th", "td", "text", "inline")
    assert [kind for kind in kinds if not kind.startswith(parts)] == []


@example("0.")
@example("12) a")
@given(_TEXTS.filter(lambda text: text.strip() and not text.startswith((" ", "\t", "\n"))))
def test_a_line_shows_just_its_text(text: str) -> None:
    texts, kinds = shown(render_markdown(Document([Line((text,))])))
    assert bare("".join(texts)) == bare(printable(text))
    assert kinds <= {"paragraph_open", "paragraph_close", "inline", "text", "text_special"}


@given(_TEXTS)
def test_a_line_whose_places_matter_stands_in_code(text: str) -> None:
    written = render_markdown(Document([Line((f" {text}",), whole=True)]))
    (code,) = [token for token in _READER.parse(written) if token.type == "fence"]
    assert code.content == f" {printable(text)}\n"


def test_nobody_is_named_and_nothing_linked() -> None:
    line = Line((Span("@everyone https://x.example WWW.x.example", Style.STRONG),))
    written = render_markdown(Document([line]))
    assert not re.search(r"@|://|www\.", written, re.IGNORECASE)


@pytest.mark.parametrize("verb", [v for v, formats in RENDERERS.items() if "markdown" in formats])
def test_tables_are_whole(verb: str) -> None:
    written = renderer(verb, "markdown")(Answers().of(verb))
    assert isinstance(written, str)
    outside = re.sub(r"^```.*?^```$", "", written, flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^\|.*\n)+", outside, re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(cells) == 1, table
