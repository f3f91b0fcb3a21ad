"""The site of docs/: it builds without a warning, and loads nothing from anywhere."""

from __future__ import annotations

import argparse
import html
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from release import site
from release.browser import browser
from release.commands import every_command, walk
from tests.packages.conftest import run
from tests.support.captures import ROOT

pytestmark = pytest.mark.packages

#: Where a browser goes by itself; a link is followed by a person.
_LOADS = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("source", "srcset"),
    ("iframe", "src"),
    ("object", "data"),
    ("video", "src"),
}


class Loads(HTMLParser):
    """What a page has a browser load, and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.classes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in _LOADS and value:
                self.loads.append(value)
            if (tag, name) == ("a", "href") and value:
                self.links.append(value)
            if name == "class":
                self.classes |= set((value or "").split())


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = (sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder))
    paths = f"{ROOT}:{ROOT / 'netns-lab'}"
    said = run(*words, where=ROOT, PYTHONPATH=paths, NO_MKDOCS_2_WARNING="1")
    assert said == ""
    return folder


@pytest.fixture(scope="session")
def pages(built: Path) -> dict[Path, Loads]:
    return {path: Loads(path.read_text(encoding="utf-8")) for path in built.glob("**/*.html")}


def test_every_page_of_docs_is_on_the_site(pages: dict[Path, Loads]) -> None:
    names = {path.stem for path in pages if path.parent.name != "commands"} - {"404"}
    of_docs = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert names == of_docs | {"index", "changelog"}
    of_verbs = {path.stem for path in pages if path.parent.name == "commands"}
    verbs = {"-".join(each.prog.split()[1:]) for each in walk(every_command())}
    assert of_verbs == (verbs - {"", "help"}) | {"index"}


def test_no_page_loads_anything_from_elsewhere(pages: dict[Path, Loads]) -> None:
    for path, page in pages.items():
        assert page.loads
        for each in page.loads:
            parts = urlsplit(each)
            assert (parts.scheme, parts.netloc) == ("", ""), f"{path.name}: {each}"
            # The page of errors is the server's, and is read from any folder.
            if path.stem != "404":
                assert (path.parent / parts.path).is_file(), f"{path.name}: {each}"


def test_no_style_or_script_of_a_page_loads_anything_from_elsewhere(
    pages: dict[Path, Loads], built: Path
) -> None:
    sheets = [*built.glob("**/*.css")]
    assert sheets
    for path in [*sheets, *pages]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), path.name
    # The theme's own script would load these, where a page has such a thing.
    for page in pages.values():
        assert page.classes & {"mermaid", "md-source"} == set()


def test_every_link_leads_to_a_page_and_a_place_on_it(pages: dict[Path, Loads]) -> None:
    places = {
        path: set(re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8"))) for path in pages
    }
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme == "https" or path.stem == "404":
                continue
            assert parts.scheme == "", link
            target = (path.parent / parts.path) if parts.path else path
            if target.is_dir():
                target /= "index.html"
            assert target.is_file(), f"{path.name}: {link}"
            if parts.fragment:
                assert parts.fragment in places[target], f"{path.name}: {link}"


def test_the_page_of_a_verb_has_all_that_its_help_says() -> None:
    for parser in site.verbs():
        page = html.unescape(site.page(parser))
        words = Counter(page.split())
        _, _, help_text = parser.format_help().partition("options:")
        assert help_text
        for option in re.findall(r"^  (-\S+)", help_text, re.MULTILINE):
            assert f"`{option.rstrip(',')}" in page, (parser.prog, option)
        # Every word of what is said of each, in whatever lines.
        said = [
            each.help % vars(each)
            for each in parser._actions  # noqa: SLF001  # argparse has no other list
            if each.help and each.help != argparse.SUPPRESS
        ]
        for each in said:
            assert set(each.split()) <= words.keys(), (parser.prog, each)
        for line in getattr(parser, "examples", ()):
            assert f"\n{line}\n" in page


def test_every_page_of_docs_is_in_the_navigation_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = Counter(re.findall(r"([\w-]+)\.md", text))
    assert set(named.values()) == {1}
    assert named.keys() == {p.stem for p in (ROOT / "docs").glob("*.md")} | {"index", "changelog"}


def test_the_site_is_searched_from_a_disk_without_a_network(built: Path) -> None:
    with browser() as window:
        window.size(1280, 900)
        window.driver.get((built / "index.html").as_uri())
        window.run(
            """
            const field = document.querySelector('[data-md-component=search-query]');
            field.focus();
            field.value = 'drain';
            field.dispatchEvent(new KeyboardEvent('keyup', {key: 'n', bubbles: true}));"""
        )
        found = "[...document.querySelectorAll('.md-search-result__item a')].map((a) => a.href)"
        window.until(lambda: bool(window.run(f"return {found}")))
        links = window.run(f"return {found}")
        assert any("which-node-may-i-drain.html" in link for link in links)
        asked = [each for each in window.requests() if not each.startswith(("file:", "blob:"))]
        assert [each for each in asked if not each.startswith("data:")] == []
        assert window.complaints() == []


def test_the_first_page_is_the_readme() -> None:
    assert "](docs/" not in site.first_page()
    assert site.first_page().startswith("# kubeodds\n")
