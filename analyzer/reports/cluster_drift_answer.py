"""The answer of ``cluster drift``, with everything its reports need."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.cluster.drift import Drifted
from analyzer.cluster.drift_kinds import DriftKind
from analyzer.cluster.store import NodeRow
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime


@value(kw_only=True)
class SharedDifference:
    """One difference, with all nodes that have it."""

    drift: DriftKind
    service: str
    protocol: str
    what: str
    version: int | None
    nodes: tuple[str, ...]


@value(kw_only=True)
class DriftAnswer:
    """The differences in one store.

    Attributes:
        rows: all nodes, read or not.
        objects_taken: when the objects were taken; None if not known.
        assumed: in words, what predictions assume.
        every: whether each difference is to be shown.
    """

    folder: str
    drifted: Drifted
    rows: tuple[NodeRow, ...]
    objects_taken: datetime | None
    assumed: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    every: bool = False

    @property
    def alike(self) -> tuple[SharedDifference, ...]:
        """The differences, each once with its nodes; those of nodes first, then the most common."""
        found: dict[tuple[DriftKind, str, str, str, int | None], list[str]] = {}
        for each in self.drifted.findings:
            key = each.drift, each.service, each.protocol, each.what, each.version
            found.setdefault(key, []).append(each.node)
        order = [*DriftKind]
        every = [
            SharedDifference(
                drift=drift,
                service=service,
                protocol=protocol,
                what=what,
                version=version,
                nodes=tuple(nodes),
            )
            for (drift, service, protocol, what, version), nodes in found.items()
        ]
        return tuple(
            sorted(
                every,
                key=lambda e: (bool(e.service), -len(e.nodes), e.service, order.index(e.drift)),
            )
        )

    @property
    def drifting(self) -> tuple[str, ...]:
        """Names of the nodes with a difference."""
        return tuple(dict.fromkeys(each.node for each in self.drifted.findings))

    def behind(self) -> Iterator[tuple[NodeRow, float]]:
        """Yield drifting nodes with the age of their rules when they were dumped."""
        from analyzer.parsers.ages import time_from_text

        names = set(self.drifting)
        for row in self.rows:
            taken = time_from_text(row.taken) if row.taken else None
            if row.node in names and taken is not None and row.synced is not None:
                yield row, taken.timestamp() - row.synced
