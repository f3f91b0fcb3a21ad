"""The lists of xt_recent in a namespace, which implement session affinity in iptables mode.

Root writes to their files, which stay open, because looking them up for each client would take
longer than everything else. The files belong to the host's root, so an ordinary user, who is root
in the lab alone, empties a list in another way: it lives as long as a rule refers to it, so the
chains with such rules are emptied, and filled again by the same rules with the same counters.

Source: Linux, net/netfilter/xt_recent.c, ``recent_mt_proc_write``, ``recent_mt_destroy``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from netns_lab.counted import CountedRules, Place
from netns_lab.errors import NotMeasuredError
from netns_lab.namespace import Namespace
from netns_lab.restoring import add_to

_FOLDER: Final = "/proc/thread-self/net/xt_recent"
_FLUSH: Final = b"/"
_NAMED: Final = re.compile(r"-m recent .*?--name (\S+)")
#: Returns what reads the counters of some rules of a table.
_Counters = Callable[[str, Collection[Place]], CountedRules[int] | CountedRules[tuple[int, int]]]


class RecentLists:
    """All lists that the rules of a namespace use."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._folder: int | None = None
        self._files: dict[str, int] = {}

    def flush(self) -> set[str]:
        """Empty all lists: every client is treated as a new one.

        Returns:
            Names of lists that are not empty and belong to root.
        """
        held = set()
        for name in self._names():
            if name not in self._files:
                try:
                    self._files[name] = self._opened(name)
                except PermissionError:
                    if not self._is_empty(name):
                        held.add(name)
                    continue
            try:
                os.write(self._files[name], _FLUSH)
            except OSError:  # another list has taken the place of the one that was opened
                os.close(self._files[name])
                self._files[name] = self._opened(name)
                os.write(self._files[name], _FLUSH)
        return held

    def _names(self) -> list[str]:
        if self._folder is None:
            try:
                with self._namespace:
                    self._folder = os.open(_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:  # no rule has loaded the match
                return []
        return os.listdir(self._folder)  # noqa: PTH208  # pathlib takes no descriptor

    def _is_empty(self, name: str) -> bool:
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        except FileNotFoundError:  # its last rule has gone
            return True
        try:
            return not os.read(descriptor, 1)
        finally:
            os.close(descriptor)

    def _opened(self, name: str) -> int:
        return os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._folder)


class RecentRules:
    """The rules of one dump that refer to lists.

    Args:
        program: ``iptables-VARIANT-restore``.
        rows: for each table and chain, its rules as iptables-save prints them.
        counters: is called once for each table.
    """

    def __init__(
        self,
        namespace: Namespace,
        program: str,
        rows: Mapping[tuple[str, str], list[str]],
        counters: _Counters,
    ) -> None:
        self._lists = RecentLists(namespace)
        self._namespace, self._program, self._counters = namespace, program, counters
        self._rows: dict[str, dict[str, list[str]]] = {}
        self._names: dict[tuple[str, str], set[str]] = {}
        self._counted: dict[str, CountedRules[int] | CountedRules[tuple[int, int]]] = {}
        for (table, chain), lines in rows.items():
            names = {found for line in lines for found in _NAMED.findall(line)}
            if names:
                self._rows.setdefault(table, {})[chain] = list(lines)
                self._names[table, chain] = names

    def forget_clients(self) -> None:
        """Empty all lists.

        Raises:
            NotMeasuredError: only root can empty one, as rules of other dumps refer to it too.
        """
        held = self._lists.flush()
        if held:
            self.renew(held)
            held = self._lists.flush()
        if held:
            raise NotMeasuredError(
                f"only root can empty the list {min(held)} (-m recent), as rules of another dump "
                "refer to it too"
            )

    def renew(self, lists: Collection[str]) -> None:
        """Let the kernel make some lists anew, empty, together with the rules that refer to them.

        Raises:
            RefusedError: a program refuses the rules; the message quotes it.
        """
        again = list(self._lines(lists))
        # All tables first: a list lives on as long as a rule in one of them refers to it.
        for table, chains, _ in again:
            add_to(self._namespace, self._program, table, [f"-F {chain}" for chain in chains])
        for table, _, lines in again:
            add_to(self._namespace, self._program, table, lines)

    def _lines(self, lists: Collection[str]) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield tables, the chains there that refer to lists, and their rules with counters."""
        for table, rows in self._rows.items():
            chains = [each for each in rows if not self._names[table, each].isdisjoint(lists)]
            if not chains:
                continue
            if table not in self._counted:
                places = {(chain, at) for chain in rows for at in range(len(rows[chain]))}
                self._counted[table] = self._counters(table, places)
            packets = self._counted[table].packets()
            lines = [
                f"[{packets.get((chain, at), 0)}:0] {row}"
                for chain in chains
                for at, row in enumerate(rows[chain])
            ]
            yield table, chains, lines
