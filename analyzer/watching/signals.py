"""Signals that stop ``watch`` or start a check, handled while it waits."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Sequence
from types import FrameType, TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Self

ENDING: Final = (signal.SIGTERM, signal.SIGINT)
AGAIN: Final = signal.SIGHUP


class Signals:
    """Handles signals while its context is active.

    A handler only records the signal, and a byte in a pipe wakes a waiting process: nothing is
    interrupted halfway.

    Attributes:
        again: whether a signal requested to read everything again; the reader resets it.
    """

    def __init__(self) -> None:
        self._ended = False
        self.again = False
        self._wake = (-1, -1)
        self._before: dict[int, object] = {}
        self._fd_before = -1

    def __enter__(self) -> Self:
        self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._fd_before = signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        for number in (*ENDING, AGAIN):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]  # what it gave
        signal.set_wakeup_fd(self._fd_before)
        for each in self._wake:
            os.close(each)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if number == AGAIN:
            self.again = True
        else:
            self._ended = True

    def is_ended(self) -> bool:
        """Return whether a signal has asked to stop."""
        return self._ended

    def wait(self, seconds: float, readable: Sequence[int] = ()) -> list[int]:
        """Wait so long, or until a signal; return those of `readable` that have data.

        Raises:
            OSError: one of them cannot be waited for.
        """
        found, _, _ = select.select([self._wake[0], *readable], [], [], max(0.0, seconds))
        if self._wake[0] in found:
            os.read(self._wake[0], 1024)
        return [each for each in found if each != self._wake[0]]
