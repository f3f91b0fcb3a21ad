"""``cluster timeline`` as TSV: one line for each loss, difference and change."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.parsers.clock_times import time_at
from analyzer.reports.cluster_timeline_answer import TimelineOfDumpsAnswer
from analyzer.reports.cluster_timeline_text import in_words
from analyzer.reports.tsv import cell

_HEADINGS = (
    "kind",
    "node",
    "service_port",
    "protocol",
    "what",
    "after",
    "before",
    "seconds_lower",
    "seconds_upper",
    "loss_lower",
    "loss_upper",
)


def render(answer: TimelineOfDumpsAnswer) -> Iterator[str]:
    """Yield the lines, header first; what is not known has the kind ``not-judged``."""
    yield "\t".join(_HEADINGS) + "\n"
    for lost in answer.lost or ():
        total, most = lost.lost.total, lost.lost.most
        names = "lost", lost.node, lost.service, lost.protocol, lost.family, "", ""
        seconds = (float(total.lower), float(total.upper), float(most.lower), float(most.upper))
        yield _row(*names, *map(repr, seconds))
    for wrong in answer.wrong or ():
        what = f"{wrong.drift.value} {wrong.what}".strip()
        names = "wrong", wrong.node, wrong.service, wrong.protocol, what, "", ""
        lasted = (repr(float(wrong.lasted.lower)), repr(float(wrong.lasted.upper)))
        yield _row(*names, *lasted, "", "")
    for each in answer.changes:
        times = [time_at(at).isoformat().replace("+00:00", "Z") for at in (each.after, each.before)]
        stood = each.stood
        upper = "" if stood.upper is None else repr(float(stood.upper))
        what = in_words(each)
        lower = repr(float(stood.lower))
        yield _row(
            "changed", each.node, each.service, each.protocol, what, *times, lower, upper, "", ""
        )
    for node in answer.nodes:
        for look in node.looks:
            if look.why:
                yield _row("not-judged", node.node, "", "", f"{look.source}: {look.why}", *[""] * 6)
    for of, names_of in answer.not_judged.items():
        for name in names_of:
            yield _row("not-judged", of, name, *[""] * 8)


def _row(*cells: str) -> str:
    return "\t".join(map(cell, cells)) + "\n"
