"""The pages of some captures in a real browser, beside their JSON; the soak opens all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.browser import Browser
from tests.support.captures import FIXTURES
from tests.support.pages.every_capture import VERBS, Pages, Seen, captures, partner

pytestmark = pytest.mark.packages

#: Of each backend, and of the oldest version.
CAPTURES = (
    "1.14.0-iptables-legacy/two-node",
    "1.36.2-iptables-legacy/two-node@worker1",
    "1.36.2-nftables/two-node@worker1",
)


@pytest.mark.parametrize("name", CAPTURES)
def test_pages_have_the_numbers_of_the_json(name: str, shown: Browser, tmp_path: Path) -> None:
    every = captures(FIXTURES)
    (capture,) = [each for each in every if "/".join(each.parts[-2:]) == name]
    pages = Pages(capture, partner(capture, every), shown, tmp_path)
    for verb in VERBS:
        pages.check(verb)
    assert pages.seen.wrong == []
    assert pages.seen.pages == len(VERBS)
    assert pages.seen.numbers > 3 * len(VERBS)


def test_another_number_is_noticed() -> None:
    seen = Seen()
    seen.share("loss", "33.4%", 1 / 3, 1 / 3)
    seen.share("loss", "20.0 to 50.1%", 0.2, 0.5)
    seen.same("state", "silenced", "degraded")
    assert len(seen.wrong) == seen.numbers == 3
    seen.share("loss", "20.0 to 50.0%", 0.2, 0.5)
    assert len(seen.wrong) == 3
