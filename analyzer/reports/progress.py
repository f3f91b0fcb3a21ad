"""A progress bar on a terminal's stderr, for work longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Called with how much was done since the last call, and how much there is in all, if known.
Advance = Callable[[int, int | None], None]

#: Seconds before anything is shown, or even loaded.
_QUIET: Final = 1.0


class progress:  # noqa: N801  # used as a function is, and contextlib takes time to load
    """Yield a function to report progress with; `what` is counted: ``ServicePorts``.

    With `rate` it also shows how many a second.
    """

    def __init__(self, what: str, *, rate: bool = False) -> None:
        self._meter = _Meter(what, rate=rate) if sys.stderr.isatty() else None

    def __enter__(self) -> Advance | None:
        """Return the function; None if progress is not shown."""
        return None if self._meter is None else self._meter.advance

    def __exit__(self, *_: object) -> None:
        """Take the bar away, if it is there."""
        if self._meter is not None:
            self._meter.stop()


def up_to(total: int | None, advance: Advance | None) -> Callable[[int], None] | None:
    """Return a function that takes only how much is done, of `total`."""
    return None if advance is None else lambda done: advance(done, total)


class _Meter:
    """Counts, and shows the count once it has taken long enough."""

    def __init__(self, what: str, *, rate: bool) -> None:
        self._what = what
        self._rate = rate
        self._begun = time.monotonic()
        self._done = 0
        self._bar: Any = None
        self._wanted = True

    def advance(self, more: int, total: int | None) -> None:
        self._done += more
        if self._bar is None and self._wanted and time.monotonic() - self._begun > _QUIET:
            self._start()
        if self._bar is not None:
            # A rule that flows to several frontends hit is evaluated for each of them.
            done = self._done if total is None else min(self._done, total)
            rate = ""
            if self._rate:
                rate = f"{self._done / (time.monotonic() - self._begun):.1f} a second"
            self._bar.update(self._bar.task_ids[0], completed=done, total=total, rate=rate)

    def _start(self) -> None:
        import importlib

        try:
            rich = importlib.import_module("rich.progress")
            console = importlib.import_module("rich.console").Console(stderr=True)
        except ImportError:  # a zipapp on a node: do without
            self._wanted = False
            return
        self._bar = rich.Progress(
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TextColumn(self._what),
            rich.TextColumn("{task.fields[rate]}"),
            rich.TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._bar.add_task(self._what, total=None, rate="")
        self._bar.start()

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
