"""The part of a page where nodes are marked as dead, with losses and a heat map.

Without scripts there is the table of ServicePorts as the answer has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.reports.document import TextTable
from analyzer.reports.pages.blocks import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Rows that a page shows without scripts; with scripts it shows as many as are requested.
_MOST: Final = 200

_BEFORE: Final = """\
<section class="explorer" aria-labelledby="explorer-title">
<h2 id="explorer-title">Which Services lose what</h2>
<div id="explorer" hidden></div>
"""


def explorer(instead: Iterable[str]) -> Iterator[str]:
    """Yield the section; `instead` is shown without scripts."""
    yield _BEFORE
    yield '<div class="replaced">\n'
    yield from instead
    yield "</div>\n</section>\n"


def services(found: TextTable) -> Iterator[str]:
    """Yield a table of ServicePorts, greatest loss first."""
    yield from table(found, name="services", caption="ServicePorts", sorts=False, most=_MOST)
    if len(found.rows) > _MOST:
        yield f"<p>The first {_MOST:,} of {len(found.rows):,}; scripts show all.</p>\n"
