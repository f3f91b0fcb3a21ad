"""The lists of xt_recent in a namespace, which implement session affinity in iptables mode.

Root writes to their files, which stay open, because looking them up for each client would take
longer than everything else. The files belong to the host's root. An ordinary user, who is root in
the lab alone, lets rules remove the clients: for each of them the node sends one packet, whose
destination these rules remove from all lists, and drop it before any rule of a dump. Lists are
those of a namespace, whichever program has loaded a rule: these rules are loaded by the variant of
iptables that has not loaded the dump.

Source: Linux, net/netfilter/xt_recent.c, ``recent_mt_proc_write``, ``recent_mt``; iptables, hooks
of one priority: the last that was registered comes first (``nf_hook_entries_grow``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from socket import SOCK_RAW, socket
from typing import Final

from analyzer.model.addresses import IPV4, Address
from netns_lab.command import run
from netns_lab.errors import LabError, NotMeasuredError
from netns_lab.namespace import Namespace
from netns_lab.restoring import restore
from netns_lab.servers import FAMILIES

_FOLDER: Final = "/proc/thread-self/net/xt_recent"
_FLUSH: Final = b"/"
_CLIENT: Final = re.compile(rb"(?m)^src=(\S+) ")
#: RFC 3692: for experiments.
_PROTOCOL: Final = 253


class RecentLists:
    """All lists that the rules of a namespace use.

    Args:
        variant: of iptables, by which no rules have been loaded there: ``nft`` or ``legacy``.
    """

    def __init__(self, namespace: Namespace, variant: str) -> None:
        self._namespace, self._variant = namespace, variant
        self._folder: int | None = None
        self._files: dict[str, int] = {}
        #: By IP version: lists from which rules remove clients, and what sends the packets.
        self._removed_from: dict[int, set[str]] = {}
        self._sending: dict[int, socket] = {}

    def flush(self) -> None:
        """Empty all lists: every client is treated as a new one.

        Raises:
            NotMeasuredError: they cannot be emptied; the message says why.
        """
        self._empty(self._names())

    def flushing(self) -> Callable[[], None]:
        """Empty all lists, and return what does so again as long as no rules come or go.

        Raises:
            NotMeasuredError: as of `flush`.
        """
        names = self._names()
        self._empty(names)
        return partial(self._empty, names)

    def _empty(self, names: Sequence[str]) -> None:
        others = []
        for name in names:
            if name not in self._files:
                try:
                    self._files[name] = self._opened(name)
                except PermissionError:
                    others.append(name)
                    continue
            try:
                os.write(self._files[name], _FLUSH)
            except OSError:  # another list has taken the place of the one that was opened
                os.close(self._files[name])
                self._files[name] = self._opened(name)
                os.write(self._files[name], _FLUSH)
        if others:
            self.remove_clients(others)

    def remove_clients(self, lists: Collection[str]) -> None:
        """Empty some lists by rules that remove clients, without writing to files.

        Raises:
            NotMeasuredError: as of `flush`.
        """
        lists = [name for name in self._names() if name in lists]
        clients = self._clients(lists)
        for version in sorted({each.version for each in clients}):
            if not self._removed_from.get(version, set()).issuperset(lists):
                self._load(version, lists)
        for client in clients:
            with suppress(PermissionError):  # the last rule has dropped it
                self._sending[client.version].sendto(b"", (str(client), 0))
        if left := self._clients(lists) if clients else ():
            raise NotMeasuredError(
                f"only root can remove {min(map(str, left))} from the kernel's lists of clients "
                "with session affinity"
            )

    def _clients(self, lists: Collection[str]) -> set[Address]:
        """Return the clients in any of some lists."""
        found: set[Address] = set()
        for name in lists:
            # A list goes with its last rule.
            with suppress(FileNotFoundError), open(name, "rb", opener=self._for_reading) as file:
                found.update(ip_address(each.decode()) for each in _CLIENT.findall(file.read()))
        return found

    def _load(self, version: int, lists: Collection[str]) -> None:
        """Load the rules that remove clients from some lists."""
        program = f"{'iptables' if version == IPV4 else 'ip6tables'}-{self._variant}"
        names = self._removed_from.get(version, set())
        here = f"-A OUTPUT -p {_PROTOCOL}"
        every = [*names, *(each for each in lists if each not in names)]
        rules = [f"{here} -m recent --remove --rdest --name {each}" for each in every]
        text = "\n".join(["*raw", ":OUTPUT ACCEPT", *rules, f"{here} -j DROP", "COMMIT", ""])
        try:
            saved = run(self._namespace, [f"{program}-save", "-t", "raw"]).stdout
            if names or "\n-A " not in saved:
                restore(self._namespace, f"{program}-restore", text)
                why = ""
            else:
                why = f"another dump has rules in the table raw of {program}"
        except LabError as error:
            why = str(error)
        if why:
            raise NotMeasuredError(
                "the kernel's lists of clients with session affinity belong to root, and rules "
                f"that remove clients cannot be loaded: {why}"
            )
        self._removed_from[version] = set(every)
        if version not in self._sending:
            self._sending[version] = self._namespace.socket(FAMILIES[version], SOCK_RAW, _PROTOCOL)

    def _names(self) -> list[str]:
        if self._folder is None:
            try:
                with self._namespace:
                    self._folder = os.open(_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:  # no rule has loaded the match
                return []
        return os.listdir(self._folder)  # noqa: PTH208  # pathlib takes no descriptor

    def _opened(self, name: str) -> int:
        return os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._folder)

    def _for_reading(self, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_CLOEXEC, dir_fd=self._folder)
