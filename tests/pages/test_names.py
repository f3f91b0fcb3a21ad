"""Names of nodes, where a page has little room for them."""

from __future__ import annotations

import pytest

from tests.support.pages.scripts import asked

pytestmark = pytest.mark.packages


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (["ip-10-0-1-2.eu.internal", "ip-10-0-1-3.eu.internal"], ".eu.internal"),
        (["a.x.internal", "b.y.internal"], ".internal"),
        (["x.internal", "y.x.internal"], ".internal"),
        (["internal", "x.internal"], ""),
        (["a.x", "b"], ""),
        (["worker1", "worker2"], ""),
        (["one.internal"], ""),
        ([], ""),
    ],
)
def test_a_domain_is_what_all_names_end_in(names: list[str], common: str) -> None:
    assert asked(("domain", names)) == [common]
