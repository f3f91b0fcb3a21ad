"""``cluster build`` for people: what was read, what was not, and how long it took."""

from __future__ import annotations

from collections import Counter

from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.reports.cluster_build_answer import BuildAnswer
from analyzer.reports.document import Block, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.phrases import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_COLUMNS: Final = (
    Column("NODE", shortens=True),
    Column("MODE", spare=1),
    Column("RULES", right=True),
    Column("TAKEN", spare=2),
    Column("", shortens=True),
)
#: Most nodes that are named unless all are requested: those that failed.
_MOST: Final = 10
_MODES: Final = {ProxyMode.NONE.value: "with no kube-proxy rules found"}


def render(answer: BuildAnswer) -> Document:
    """Return how many nodes are known, then those that are not."""
    done, failed = answer.done, answer.failed
    modes = Counter(each.mode for each in done)
    in_modes = ", ".join(
        f"{number:,} {_MODES.get(mode, f'in {mode} mode')}" for mode, number in modes.most_common()
    )
    rules = sum(each.rules for each in done)
    held = answer.contents
    blocks: list[Block] = [
        Line(
            (
                Span(count(len(done), "node"), Style.STRONG),
                f" known, {answer.read:,} read now, {len(failed):,} failed"
                + (f": {in_modes}" if in_modes else ""),
            )
        ),
        Line(
            (
                f"{rules:,} rules have {held['service_ports']:,} distinct ServicePorts, "
                f"{held['endpoints']:,} lists of endpoints and {held['distributions']:,} of "
                f"shares; {_size(answer.bytes)} in {answer.folder}",
            )
        ),
    ]
    rows = answer.nodes if answer.every else failed
    shown = rows if answer.every else rows[:_MOST]
    if shown:
        cells = [
            (
                Span(each.node, Style.STRONG),
                each.mode,
                f"{each.rules:,}" if each.is_done else "",
                each.taken,
                each.unseen if each.is_done else f"failed: {each.reason}",
            )
            for each in shown
        ]
        blocks += [Line(), TextTable(_COLUMNS, tuple(cells))]
    if len(rows) > len(shown):
        more = f"{count(len(rows) - len(shown), 'more node')} failed: --all"
        blocks.append(Line((Span(more, Style.FAINT),)))
    return Document(blocks)


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number >= 1_000_000 else f"{number / 1e3:.1f} kB"  # noqa: PLR2004  # a million
