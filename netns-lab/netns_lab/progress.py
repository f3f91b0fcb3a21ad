"""A progress bar on stderr, for what takes longer than a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

#: Seconds before anything is shown.
_QUIET = 1.0


@contextmanager
def bar(total: int | None, what: str) -> Iterator[Callable[[int], None]]:
    """Give a function that is called with how much was done since its last call."""
    progress = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(what, total=total)
    begun = time.monotonic()
    shown = False

    def advance(done: int) -> None:
        nonlocal shown
        progress.advance(task, done)
        if not shown and time.monotonic() - begun > _QUIET:
            shown = True
            progress.start()

    try:
        yield advance
    finally:
        if shown:
            progress.stop()
