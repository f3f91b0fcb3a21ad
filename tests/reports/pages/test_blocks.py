"""Lines of a report on a page: sentences are wrapped, and trees are left as printed."""

from __future__ import annotations

import pytest

from analyzer.reports.document import Line
from analyzer.reports.pages.blocks import html_of


@pytest.mark.parametrize(
    ("lines", "wraps"),
    [
        (("Control plane: 1 API server.", "  Assumed: etcd is on its nodes."), True),
        (("  2. Remove it: iptables-save | kubeodds repair -",), True),
        (("PREROUTING", "\u251c\u2500 1/2", "\u2502  line 7"), False),
        (("lost:", " 100% |####", "      +----"), False),
    ],
)
def test_what_is_drawn_is_not_wrapped(lines: tuple[str, ...], wraps: bool) -> None:
    page = "".join(html_of([Line((each,)) for each in lines]))
    assert page.count("<pre") == 1
    assert ('<pre class="text">' in page) is wraps
