"""The site of docs/: it builds without a warning, and loads nothing from anywhere."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from release import site
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
    names = {path.stem for path in pages} - {"404"}
    of_docs = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert names == of_docs | {"index", "commands", "changelog"}


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


def test_the_page_of_commands_has_what_each_prints() -> None:
    text = site.commands()
    for parser in walk(every_command()):
        if parser.prog != "kubeodds help":
            assert f"$ {parser.prog} --help\nusage: {parser.prog} " in text


def test_the_first_page_is_the_readme() -> None:
    assert "](docs/" not in site.first_page()
    assert site.first_page().startswith("# kubeodds\n")
