"""``diff`` as TSV: one line for each change, however many there are.

Columns: ServicePort, protocol, the flows that notice it, what changes, the node of an endpoint,
how it is in A, how it is in B, and whether that is ``certain``, ``intended`` by nftables mode, or
``unknown``. Flows to no Service have no ServicePort. Words are those of the text; JSON has exact
shares and every route by itself. No line but the headings: nothing differs, as far as is known; the
exit status says whether all is.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy.diff.beside import NonServiceFlows
from analyzer.model.value import replace
from analyzer.reports.diff_answer import DiffAnswer
from analyzer.reports.diff_beside import TOPICS, sources_of
from analyzer.reports.diff_text import changes_of
from analyzer.reports.diff_words import ends
from analyzer.reports.tsv import cell

_HEADINGS = ("service", "protocol", "flows", "change", "node", "a", "b", "verdict")


def render(answer: DiffAnswer) -> Iterator[str]:
    """Yield the lines, header first."""
    every = replace(answer, every=True)
    yield _line(_HEADINGS)
    for change in answer.difference.changes:
        for flows, changes in changes_of(change, every):
            for what, node, a, b in changes:
                certain = "unknown" if "?" in (a, b) or not change.is_certain else "certain"
                told = (change.name.text, change.protocol, flows, what.text, node, a, b, certain)
                yield _line(told)
    for each in answer.difference.beside:
        yield _line(_beside(each))


def _beside(each: NonServiceFlows) -> tuple[str, ...]:
    verdict = "unknown" if not each.is_certain else "intended" if each.is_intended else "certain"
    flows = f"from {sources_of(each)}"
    return "", "", flows, TOPICS[each.topic], "", ends(each.a), ends(each.b), verdict


def _line(cells: tuple[str, ...]) -> str:
    return "\t".join(map(cell, cells)) + "\n"
