"""What ``cluster timeline`` says of the dumps it reads: failures, times, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.reports.cluster_timeline_answer import NodeCourse
from analyzer.reports.phrases import listed


def notes(file: str, courses: Sequence[NodeCourse]) -> Iterator[Diagnostic]:
    """Yield what is wrong with dumps, or with their times."""
    for node in courses:
        for look in node.looks:
            if look.why:
                yield partial_warning("dump-failed", f"{node.node}: {look.why}", look.source)
    hint = "--name-from or --node say which dumps are of one node"
    if alone := [each.node for each in courses if len(each.good) == 1]:
        says = f"a single dump says nothing about time: {listed(alone)}; {hint}"
        yield partial_warning("one-dump", says, file)
    if together := [each.node for each in courses if each.is_twice_at_once]:
        says = (
            f"several dumps from one time, which may be of several nodes: {listed(together)}; "
            f"{hint}"
        )
        yield partial_warning("same-time", says, file)


def assumed(courses: Sequence[NodeCourse], objects: int) -> Iterator[str]:
    """Say what the course rests on besides the dumps and `objects`, the number of their states."""
    clocks = {each.clock for node in courses for each in node.good}
    if "dump" in clocks:
        yield "clocks of nodes are in UTC, if a dump gives its time without a zone"
    if "file" in clocks:
        yield "a dump without a time was taken when its file was written"
    yield (
        "between two dumps rules changed once, at any time; what appeared and disappeared "
        "was not seen"
    )
    if objects == 1:
        yield "the objects were the same all the time"
    elif objects:
        yield (
            "before the first objects they were as in the first, and after the last as in the last"
        )
