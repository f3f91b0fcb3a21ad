"""The basis of an answer that was predicted from objects, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.cluster.from_dumps import FromDumps
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.phrases import count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.kubeproxy.predict.cluster import Prediction
    from analyzer.kubeproxy.predict.every_node import EveryNode


#: Nodes that are named with the reason why they were not read.
_MOST_REASONS: Final = 3


def head(prediction: Prediction | FromDumps) -> Iterator[Line]:
    """Yield which nodes' rules were predicted; or read, and which were not."""
    if isinstance(prediction, FromDumps):
        yield from _read(prediction)
        return
    settings = prediction.settings
    who = f"kube-proxy {settings.version.text} in {settings.mode.value} mode"
    dumps = prediction.dumps
    read = f"; the rules of {listed(dumps)} are read from dumps" if dumps else ""
    yield _faint(f"Predicted from objects: what {who} writes{read}; assumptions are listed below.")


def _read(given: FromDumps) -> Iterator[Line]:
    yield _faint(f"Read from the dumps of {count(len(given.nodes), 'node')}, in {given.folder}.")
    for name, why in (*given.failed, *given.unseen)[:_MOST_REASONS]:
        yield Line((Span(f"Not judged: {name}: {why}", Style.WARNING),))
    more = [name for name, _ in (*given.failed, *given.unseen)[_MOST_REASONS:]]
    if more:
        yield Line((Span(f"Not judged either: {listed(more)}.", Style.WARNING),))
    if given.without:
        says = f"No dump of {count(len(given.without), 'node')}: {listed(given.without)}."
        yield Line((Span(says, Style.WARNING),))


def grounds(prediction: Prediction | FromDumps) -> Iterator[Line]:
    """Yield what was assumed, and what was verified by traversal; nothing for rules read."""
    if isinstance(prediction, FromDumps):
        return
    yield _faint(f"Assumed: {'; '.join(prediction.assumed)}.")
    for walked in prediction.walked:
        number = count(walked.services - len(walked.differing), "prediction")
        yield _faint(
            f"Checked: {number} compared with generated rules, at {', '.join(walked.nodes)} "
            f"(--seed {walked.seed})."
        )


def dropped(services: Sequence[EveryNode]) -> Iterator[Line]:
    """Yield ServicePorts whose flows some nodes drop for lack of a local endpoint."""
    told = []
    for each in services:
        every = sum(len(at.nodes) for at in each.at)
        nodes = sum(
            len(at.nodes) for at in each.at if any(how == "drop" for _, how in at.service.refusals)
        )
        if nodes and any(len(route.shares) for at in each.at for route in at.service.routes):
            told.append(f"{each.service.name.text} ({nodes:,} of {every:,} nodes)")
    if told:
        says = f"Dropped, whatever fails, at nodes without endpoints of their own: {listed(told)}"
        yield Line((f"{says}.",))


def at_nodes(names: Sequence[str], number: int) -> str:
    """Return which of `number` nodes these are; empty if all."""
    if len(names) >= number or not names:
        return ""
    more = f" and {len(names) - 1:,} more" if names[1:] else ""
    return f"{names[0]}{more}"


def _faint(text: str) -> Line:
    return Line((Span(text, Style.FAINT),))
