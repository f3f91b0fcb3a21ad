"""Which Node object a dump's name for its node means.

A kubelet registers its node by the machine's full name (``ip-10-0-0-1.ec2.internal``) in one
cluster and by the first part of it in another; collectors write one or the other.
"""

from __future__ import annotations

from collections.abc import Collection


class NodeNames:
    """Names of Node objects, also found by their first label if it is unambiguous."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._by_first: dict[str, list[str]] = {}
        for name in known:
            self._by_first.setdefault(name.partition(".")[0], []).append(name)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def called(self, name: str) -> str | None:
        """Return the node that a name means; None if there is none, or more than one may be."""
        if name in self._known:
            return name
        first, _, domain = name.partition(".")
        found = self._by_first.get(first, [])
        if len(found) != 1:
            return None
        # Two full names that differ are two machines, and what is numbered is no domain.
        if domain and ("." in found[0] or not domain.rpartition(".")[2][:1].isalpha()):
            return None
        return found[0]
