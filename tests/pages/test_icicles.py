"""Icicles in a real browser: as high as shares, and gone through by mouse and keys."""

from __future__ import annotations

import pytest

from release.browser import Browser
from tests.pages.conftest import Write
from tests.support.pages.commands import SMALL, asked, given

pytestmark = pytest.mark.packages

_CELLS = """\
return [...document.querySelectorAll('.icicle')].map((tree) => [...tree.querySelectorAll('g.node')]
  .map((each) => [each.getAttribute('aria-label'), each.__data__.x1 - each.__data__.x0,
                  each.getAttribute('class')]));
"""


def test_an_icicle_is_as_high_as_the_shares_of_the_json(
    write: Write, shown: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tree", *given(SMALL), "kube-dns", "--dead-node", "master"]
    shown.open(write(*words))
    document = asked(capsys, *words)
    trees = shown.run(_CELLS)
    assert len(trees) == len(document["trees"])
    for cells, tree in zip(trees, document["trees"], strict=True):
        ends = {f"{each['address']}:{each['port']}": each["dead"] for each in tree["outcomes"]}
        drawn = [cell for cell in cells if "node branch" not in cell[2]]
        assert len(drawn) == len(ends)
        for label, height, kind in drawn:
            address = label.split(" on ")[0]
            assert ("dead" in kind, " DEAD;" in label) == (ends[address], ends[address])
            assert label.endswith("; 1/2 50.0% of new flows")
            assert height == pytest.approx(0.5)


def test_an_icicle_zooms_is_searched_and_goes_by_keys(write: Write, shown: Browser) -> None:
    shown.open(write("tree", *given(SMALL), "default/app", "--dead-node", "master"))
    label = "return document.activeElement.getAttribute('aria-label')"
    height = "return Number(document.querySelector('g.dead rect')?.getAttribute('height') ?? 0)"
    before = shown.run(height)
    shown.run("document.querySelector('g.dead').dispatchEvent(new MouseEvent('click'))")
    assert shown.run(height) > 1.8 * before
    assert " DEAD" in shown.run(label)
    press = """document.activeElement.dispatchEvent(
        new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}));"""
    shown.run(press, "ArrowLeft")
    assert "DNAT" in shown.run(label)
    shown.run(press, "Escape")
    assert shown.run(height) == before
    shown.run(
        """
        const field = document.querySelector('.icicle input');
        field.value = '10.244.1.9'; field.dispatchEvent(new Event('input'));"""
    )
    # The end, and the rule that sends flows there.
    assert shown.run("return document.querySelectorAll('g.hit').length") == 2
    assert shown.complaints() == []


_SEEN = """\
const box = document.querySelector('.tree-box').getBoundingClientRect();
const cell = arguments[0].getBoundingClientRect();
return cell.left >= box.left - 1 && cell.right <= box.right + 1;
"""


def test_on_a_telephone_the_ends_are_seen_first_and_keys_lead_to_what_is_not(
    write: Write, shown: Browser
) -> None:
    shown.size(360, 740)
    shown.open(write("tree", *given(SMALL), "default/app", "--dead-node", "master"))
    dead = "document.querySelector('g.dead')"
    assert shown.run(_SEEN.replace("arguments[0]", dead))
    first = "document.querySelector('g.node')"
    assert not shown.run(_SEEN.replace("arguments[0]", first))
    shown.run(f"{first}.dispatchEvent(new MouseEvent('click'))")
    assert shown.run(_SEEN.replace("arguments[0]", first))
    for _ in range(6):
        shown.run(
            "document.activeElement.dispatchEvent("
            "new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))"
        )
        assert shown.run(_SEEN.replace("arguments[0]", "document.activeElement"))
    assert shown.complaints() == []
