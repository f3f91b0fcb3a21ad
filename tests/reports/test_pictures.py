"""Pictures are SVG that loads nothing; their lengths are shares, and names are text in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest

from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, Bounds, Dyadic, capped_sum, numgen_weights
from analyzer.reports.document import Span, Style
from analyzer.reports.pictures.cells import TreeCell, cells, every
from analyzer.reports.pictures.heat import domain
from analyzer.reports.pictures.icicle import icicle
from analyzer.reports.renderers import RENDERERS, renderer
from analyzer.semantics.tree import Chance, Either, Leaf, Tree
from tests.support.answers import BEFORE, LOSSY, RICH, Answers
from tests.support.commands import CAPTURE, DUMP, Command

PICTURES = [verb for verb, formats in RENDERERS.items() if "svg" in formats]
_SVG = "{http://www.w3.org/2000/svg}"


def drawn(verb: str, text: str = RICH) -> str:
    rendered = renderer(verb, "svg")(Answers(text).of(verb))
    assert isinstance(rendered, Iterator)
    return "".join(rendered)


@pytest.mark.parametrize("verb", PICTURES)
@pytest.mark.parametrize("text", [RICH, BEFORE, LOSSY])
def test_a_picture_is_svg_that_loads_nothing(verb: str, text: str) -> None:
    picture = drawn(verb, text)
    root = ET.fromstring(picture)  # noqa: S314  # our own
    assert root.tag == f"{_SVG}svg"
    assert root.find(f"{_SVG}title") is not None
    tags = {each.tag.removeprefix(_SVG) for each in root.iter()}
    assert tags <= {"svg", "title", "style", "g", "rect", "text", "line", "circle"}
    bare = picture.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|url\(|@import|href|<script|\son\w+=", bare)


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (["ip-10-0-1-2.eu.internal", "ip-10-0-1-3.eu.internal"], ".eu.internal"),
        (["x.internal", "y.x.internal"], ".internal"),
        (["internal", "x.internal"], ""),
        (["a.x", "b"], ""),
        (["one.internal"], ""),
        ([], ""),
    ],
)
def test_a_domain_is_what_all_names_end_in(names: list[str], common: str) -> None:
    assert domain(names) == common


def test_columns_of_nodes_of_one_domain_are_told_apart(command: Command) -> None:
    objects = (CAPTURE / "objects.json").read_text(encoding="utf-8")
    for name, number in (("master", "12-101"), ("worker1", "117-203")):
        objects = objects.replace(f'"{name}"', f'"ip-10-0-{number}.eu-central-1.compute.internal"')
    given = (DUMP, "--objects", command.file("objects.json", objects))
    picture = command("whatif", *given, "--format", "svg").out
    heads = re.findall(r"rotate\(-45\)\">([^<]*)<", picture)
    assert sorted(heads) == ["ip-10-0-117-203", "ip-10-0-12-101"]


@pytest.mark.parametrize("verb", PICTURES)
def test_names_are_text_in_a_picture(verb: str) -> None:
    hostile = "ns/<script>alert(1)</script>&amp;\x1b"
    picture = drawn(verb, RICH.replace("ns/a", hostile))
    root = ET.fromstring(picture)  # noqa: S314  # our own
    assert {each.tag.removeprefix(_SVG) for each in root.iter()} <= {
        *("svg", "title", "style", "g", "rect", "text", "line")
    }


def leaf() -> Tree:
    return Leaf(Drop(), Packet())


def end(_: Leaf) -> tuple[Span, ...]:
    return (Span("=> gone", Style.BAD),)


def check(root: TreeCell) -> None:
    """Hold that cells fill what leads to them, and stand where those before them end."""
    for cell, _, begins in every(root):
        assert 0 <= begins <= 1
        if cell.below:
            assert sum(each.size for each in cell.below) == pytest.approx(cell.size)
            lower = capped_sum(each.bounds.lower for each in cell.below)
            assert lower <= cell.bounds.upper


@pytest.mark.parametrize("size", [1, 2, 7, 100])
@pytest.mark.parametrize("most", [2, 40])
def test_a_draw_is_as_high_as_its_shares(size: int, most: int) -> None:
    tree = Chance(tuple((weight, leaf()) for weight in numgen_weights(size)))
    root = cells("all", tree, end, most)
    check(root)
    assert capped_sum(each.bounds.lower for each in root.below) == ALWAYS
    assert len(root.below) == min(size, most)
    if size > most:
        assert root.below[-1].title == f"{size - most + 1} more branches"


def test_of_a_question_each_answer_may_get_all_or_nothing() -> None:
    half = Dyadic.of(1, 1)
    tree = Chance(((half, Either("nobody knows", (leaf(), leaf()))), (half, leaf())))
    root = cells("all", tree, end, 40)
    check(root)
    asked = root.below[0]
    assert (asked.title, asked.says, asked.kind) == ("not known", "nobody knows", "other")
    assert [each.bounds for each in asked.below] == [Bounds(Dyadic.of(0), half)] * 2
    assert asked.below[0].share == "0.0 to 50.0%"


def test_more_ways_than_can_be_drawn_are_said_to_be_left_out() -> None:
    tree = leaf()
    for _ in range(14):
        tree = Chance(((Dyadic.of(1, 1), tree), (Dyadic.of(1, 1), tree)))
    found = [cell for cell, _, _ in every(cells("all", tree, end, 40))]
    assert len(found) < 2**14
    assert any(cell.title == "not drawn: too many paths" for cell in found)


def test_a_dead_end_is_marked_by_more_than_its_colour() -> None:
    tree = Chance(tuple((weight, leaf()) for weight in numgen_weights(2)))
    root = cells("all", tree, lambda _: (Span("=> 10.0.0.1:80 DEAD", Style.BAD),), 40)
    text = "".join(icicle(root, alone=True))
    assert text.count('class="dead"') == 2
    assert "10.0.0.1:80 DEAD" in text
