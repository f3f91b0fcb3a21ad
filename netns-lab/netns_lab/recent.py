"""The lists of xt_recent in a namespace, which implement session affinity in iptables mode.

Files stay open, because looking them up for each client would take longer than everything else.

Source: Linux, net/netfilter/xt_recent.c, ``recent_mt_proc_write``.
"""

from __future__ import annotations

import os
from typing import Final

from netns_lab.errors import NotMeasuredError
from netns_lab.namespace import Namespace

_FOLDER: Final = "/proc/thread-self/net/xt_recent"
_FLUSH: Final = b"/"
_ROOT_ONLY: Final = (
    "the kernel lets only root itself make iptables rules forget clients with session affinity"
)


class RecentLists:
    """All lists that the rules of a namespace use."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._folder: int | None = None
        self._files: dict[str, int] = {}

    def flush(self, *, again: bool = False) -> None:
        """Empty all lists: every client is treated as a new one. `again`: more than this once.

        Raises:
            NotMeasuredError: the kernel lets only root itself empty them, and this has to be.
        """
        if self._folder is None:
            try:
                with self._namespace:
                    self._folder = os.open(_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:  # no rule has loaded the match
                return
        for name in os.listdir(self._folder):  # noqa: PTH208  # pathlib takes no descriptor
            if name not in self._files:
                try:
                    self._files[name] = self._opened(name)
                except PermissionError:
                    if again or not self._is_empty(name):
                        raise NotMeasuredError(_ROOT_ONLY) from None
                    continue
            try:
                os.write(self._files[name], _FLUSH)
            except OSError:  # another list has taken the place of the one that was opened
                os.close(self._files[name])
                self._files[name] = self._opened(name)
                os.write(self._files[name], _FLUSH)

    def _is_empty(self, name: str) -> bool:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            return not os.read(descriptor, 1)
        finally:
            os.close(descriptor)

    def _opened(self, name: str) -> int:
        return os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._folder)
