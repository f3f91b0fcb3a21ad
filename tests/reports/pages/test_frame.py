"""A page is one file that loads nothing, and text of a dump is text in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.value import replace
from analyzer.reports.pages.frame import bundled
from analyzer.reports.renderers import RENDERERS, renderer
from tests.support.answers import BEFORE, LOSSY, RICH, Answers

#: Markup, a script's end, a comment, control characters, and letters that reorder what is beside.
HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\x1b[31m\u202e'&amp;"
PAGES = [verb for verb, formats in RENDERERS.items() if "html" in formats]
#: Without data, of 1,000 bytes.
_MOST = 400

pages = pytest.mark.parametrize("verb", PAGES)


def page(verb: str, text: str = RICH) -> str:
    rendered = renderer(verb, "html")(Answers(text).of(verb))
    assert isinstance(rendered, Iterator)
    return "".join(rendered)


class Parsed(HTMLParser):
    """Elements of a page with their attributes, and what stands in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, str]] = []
        self.comments: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.inside.append((self.elements[-1][0] if self.elements else "", data))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


@pages
def test_a_page_allows_just_the_style_and_the_script_that_stand_in_it(verb: str) -> None:
    text = page(verb)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    told = dict(each.split(" ", 1) for each in policy.split("; "))
    for kind in ("script", "style"):
        (inside,) = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert told[f"{kind}-src"] == f"'sha256-{digest}'"
    assert told["default-src"] == "'none'"
    assert set(told) == {
        *("default-src", "script-src", "style-src", "base-uri", "form-action"),
        *("require-trusted-types-for", "trusted-types"),
    }


@pages
def test_a_page_loads_nothing_and_acts_on_nothing(verb: str) -> None:
    found = Parsed(page(verb, RICH.replace("ns/a", "ns/" + HOSTILE.replace(" ", "")[:60])))
    loads = {"src", "href", "srcset", "action", "data", "style", "background", "poster"}
    for tag, attributes in found.elements:
        assert not loads & attributes.keys(), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert not {"img", "iframe", "object", "embed", "link", "base", "form"} & {
        tag for tag, _ in found.elements
    }
    assert found.comments == []


@pages
def test_names_of_a_dump_are_text(verb: str) -> None:
    name = HOSTILE.replace(" ", "")
    text = page(verb, RICH.replace("ns/a", f"ns/{name}"))
    plain, hostile = Parsed(page(verb, RICH.replace("ns/a", "ns/b"))), Parsed(text)
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert "\x1b" not in text
    assert "\u202e" not in text


@pages
@pytest.mark.parametrize("text", [RICH, BEFORE, LOSSY])
def test_data_of_a_page_are_json_that_ends_no_script(verb: str, text: str) -> None:
    blocks = re.findall(
        r'<script type="application/json" id="data-(\w+)">(.*?)</script>',
        page(verb, text),
        re.DOTALL,
    )
    for name, content in blocks:
        assert name.isascii()
        assert not set("<>&") & set(content)
        json.loads(content)


@pages
def test_a_page_is_small_without_its_data(verb: str) -> None:
    assert len(page(verb).encode()) < _MOST * 1000


def test_what_pages_carry_is_ascii_and_ends_no_element() -> None:
    for name in ("page.js", "page.css"):
        text = bundled(name)
        assert text.isascii()
        assert "</" not in text.replace("</script", "")
        assert not re.search(r"</script|</style|<!--", text)
        # d3 names the namespaces of markup; nothing else looks like an address.
        found = set(re.findall(r"https?://[^\"'` )]+", text))
        assert {each.split("/")[2] for each in found} <= {"www.w3.org"}
        assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|importScripts", text)


@pages
def test_warnings_stand_in_the_page_too(verb: str) -> None:
    answer = Answers().of(verb)
    told = Diagnostic(
        severity=Severity.WARNING, code="x", message="take <b>it</b> again", file="d.txt", line=3
    )
    silent = Diagnostic(severity=Severity.INFO, code="y", message="fine so far", file="d.txt")
    rendered = renderer(verb, "html")(replace(answer, diagnostics=(told, silent)))
    assert isinstance(rendered, Iterator)
    text = "".join(rendered)
    assert "<li>d.txt:3: warning: take &lt;b&gt;it&lt;/b&gt; again</li>" in text
    assert "fine so far" not in text
