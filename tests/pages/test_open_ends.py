"""Flows of which rules leave open where they end, with nothing dead, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.browser import Browser
from tests.pages.conftest import Write
from tests.support.captures import ROOT
from tests.support.pages.commands import SMALL, given

pytestmark = pytest.mark.packages

_VERDICT = "return document.querySelector('.verdict').textContent"
_FIRST = "document.querySelector('input[data-kind=node]').click()"


def test_a_page_names_them_while_nothing_is_dead(
    write: Write, shown: Browser, tmp_path: Path
) -> None:
    dump, *rest = given(SMALL)
    text = (ROOT / dump).read_text(encoding="utf-8")
    strange = tmp_path / "strange.txt"
    to = "-j DNAT --to-destination 10.244.0.7:8080"
    strange.write_text(text.replace(to, "-j STRANGE"), encoding="utf-8")
    shown.open(write("whatif", str(strange), *rest))
    says = "Not known where up to 50.0% of new flows end, with nothing dead: default/app."
    assert says in shown.run(_VERDICT)
    shown.run(_FIRST)
    shown.drawn()
    assert "with nothing dead" not in shown.run(_VERDICT)
