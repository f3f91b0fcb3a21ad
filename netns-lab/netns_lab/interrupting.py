"""Early end of a run by Ctrl-C, which still reports what was measured until then."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first Ctrl-C in place of raising KeyboardInterrupt; the second raises."""
    before = signal.getsignal(signal.SIGINT)

    def first(_: int, __: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        stop()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
