"""The answer of ``cluster build``, with everything its reports need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analyzer.cluster.store import NodeRow
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.value import value


@value(kw_only=True)
class BuildAnswer:
    """The state of one store.

    Attributes:
        nodes: all that are kept there, done or failed.
        read: how many this run has read.
        contents: by table, how many different ones there are.
        bytes: that the tables take.
        every: whether to name each node.
    """

    folder: str
    nodes: tuple[NodeRow, ...]
    read: int
    contents: Mapping[str, int]
    bytes: int
    every: bool = False

    @property
    def done(self) -> tuple[NodeRow, ...]:
        """The nodes whose rules are known."""
        return tuple(each for each in self.nodes if each.is_done)

    @property
    def failed(self) -> tuple[NodeRow, ...]:
        """The nodes that could not be read."""
        return tuple(each for each in self.nodes if not each.is_done)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Notes for its reader."""
        return tuple(self._told())

    def _told(self) -> Iterator[Diagnostic]:
        from analyzer.cluster.facts import from_text

        for each in self.failed:
            says = f"{each.node} was not read: {each.reason}"
            yield partial_warning("node-failed", says, each.source)
        for each in self.done:
            if each.unseen:
                says = f"{each.node} shows no Services: {each.unseen}"
                yield partial_warning("node-unseen", says, each.source)
            if each.cut:
                says = f"{each.node} was read only in part: its dump is truncated"
                yield partial_warning("node-truncated", says, each.source)
            for part in from_text(each.facts).untold:
                says = f"{each.node} was read only in part: its dump lacks {part}"
                yield partial_warning("node-lacks-table", says, each.source)
