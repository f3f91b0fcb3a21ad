"""What an answer about a whole cluster is based on, if every node's rules were read."""

from __future__ import annotations

from collections.abc import Collection

from analyzer.model.value import replace, value


@value(kw_only=True)
class FromDumps:
    """The nodes of a store.

    Attributes:
        folder: of its tables.
        nodes: whose rules are known.
        failed: those that were not read, each with the reason.
        unseen: those whose dumps show no Services, each with the reason.
        without: nodes of the objects of which there is no dump.
        unknown: nodes with a dump that the objects, where there are any, do not have.
    """

    folder: str
    nodes: tuple[str, ...]
    failed: tuple[tuple[str, str], ...] = ()
    unseen: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the nodes whose rules are not known."""
        return tuple(dict.fromkeys([*(n for n, _ in (*self.failed, *self.unseen)), *self.without]))

    def but(self, names: Collection[str]) -> FromDumps:
        """Return the same without nodes that do not matter: dead ones send no flows."""
        return replace(
            self,
            failed=tuple(each for each in self.failed if each[0] not in names),
            unseen=tuple(each for each in self.unseen if each[0] not in names),
            without=tuple(each for each in self.without if each not in names),
        )

    @property
    def is_whole(self) -> bool:
        """Whether every node's rules are known, and their node too."""
        return not self.missing and not self.unknown
