"""``watch``: checks a node's rules periodically and reports what they lose.

Theory of operation
===================

Checks begin at intervals of `every` by the monotonic clock; one that takes longer, or more than its
share of CPU, makes the next ones be skipped, so that they never pile up. The page of metrics is
written beside the file and moved there, so that readers see one check or the next. What stays the
same is rendered once.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

from analyzer.arguments.watch import FILES
from analyzer.model.value import replace
from analyzer.output import BAD_INPUT, DONE, NO, say
from analyzer.reports.watch_npd import UNKNOWN, fitted, verdict
from analyzer.reports.watch_prometheus import body, head
from analyzer.watching.signals import Signals
from analyzer.watching.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace, TracebackType
    from typing import Final

    from analyzer.reports.watch_answer import Watched

#: Metrics are collected by another user.
_MODE: Final = 0o644


def watch(options: SimpleNamespace) -> int:
    """Check until a signal stops it, or once, and return the exit status."""
    if options.print is not None:
        sys.stdout.write(file_of(options.print))
        return DONE
    if options.npd:
        sys.excepthook = _unknown  # else a fault of ours would count as one of the node
        return _npd(options)
    with Signals() as signals:
        looking = Watch(options, signals)
        page = _Page(options)
        if options.once:
            found = looking.look()
            page.show(found)
            return _status(options, found)
        return _loop(options, signals, looking, page)


def file_of(name: str) -> str:
    """Return a data file for ``watch``; `name` is a key of `watch_arguments.FILES`."""
    from importlib.resources import files

    found = files("analyzer").joinpath("data/watch").joinpath(FILES[name])
    return found.read_text(encoding="utf-8")


def _loop(options: SimpleNamespace, signals: Signals, looking: Watch, page: _Page) -> int:
    every = float(options.every)
    share = float(options.max_cpu)
    begun, number, before = time.monotonic(), 0, 0.0
    while not signals.is_ended():
        if signals.again:
            signals.again = False
            looking.forget()
        found = looking.look()
        if signals.is_ended() and found.failure:
            break  # it was cut off
        # What a look takes is spread over the time to the next.
        used, before = found.cpu - before, found.cpu
        rest = max(0.0, used / share - found.took)
        try:
            page.show(replace(found, every=max(every, found.took + rest)))
        except OSError as error:
            # A missing folder, or a reader that has gone, must be noticed at once.
            if not number or isinstance(error, BrokenPipeError):
                raise
            say(f"kubeodds: {options.into or 'stdout'}: {error.strerror or error}")
        # The next one that is not past.
        number = int((time.monotonic() + rest - begun) // every) + 1
        while not signals.is_ended() and not signals.again:
            left = begun + number * every - time.monotonic()
            if left <= 0:
                break
            signals.wait(left)
    return DONE


def _explain(why: str) -> None:
    """Print why a check failed; the faulty line and its caret have lines of their own."""
    for line in f"kubeodds: {why}".split("\n"):
        say(line)


def _status(options: SimpleNamespace, found: Watched) -> int:
    if found.result is None:
        return BAD_INPUT
    if options.max_loss is None:
        return DONE
    return NO if found.result.beyond or not found.result.is_whole else DONE


class _Page:
    """Where metrics go, and what of them stays."""

    def __init__(self, options: SimpleNamespace) -> None:
        self._options = options
        self._number = 0
        self._body = b""
        self._failed = ""

    def show(self, found: Watched) -> None:
        """Write the metrics of a check; report failures, and when they have ended.

        Raises:
            OSError: they cannot be written.
        """
        if found.why != self._failed:
            if found.why:
                _explain(found.why)
            else:
                say("kubeodds: the rules can be judged again")
            self._failed = found.why
        result = found.result
        if result is None:
            self._number, self._body = 0, b""
        elif result.number != self._number:
            self._number = result.number
            of_rules = body(result, self._options.per_service, since=found.every is not None)
            self._body = of_rules.encode("utf-8", "backslashreplace")
        page = head(found).encode("utf-8", "backslashreplace"), self._body
        if self._options.into is None:
            for part in page:
                sys.stdout.write(part.decode())
            sys.stdout.flush()
        else:
            try:
                _replace(self._options.into, page)
            except OSError as error:
                # With the requested file's name, not that of the temporary one.
                raise OSError(error.errno, error.strerror, self._options.into) from None


def _replace(path: str, parts: tuple[bytes, ...]) -> None:
    """Put a file in place of another, whole and on the disk, or not at all."""
    # The collector reads *.prom only.
    new = f"{path}.{os.getpid()}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileNotFoundError):
        os.unlink(new)  # noqa: PTH108  # paths are text here; what a killed run has left
    held = os.open(new, flags, _MODE)
    try:
        with open(held, "wb") as file:  # noqa: PTH123  # as above
            os.fchmod(held, _MODE)  # whatever the umask is
            file.writelines(parts)
            file.flush()
            os.fsync(held)
        os.replace(new, path)  # noqa: PTH105  # as above
    except BaseException:
        with suppress(OSError):
            os.unlink(new)  # noqa: PTH108  # as above
        raise


# --- the node-problem-detector ------------------------------------------------------


def _npd(options: SimpleNamespace) -> int:
    with Signals() as signals:
        found = Watch(options, signals).look()
    status, line = verdict(found, allow_drift=options.allow_drift)
    if found.why:
        _explain(found.why)
    sys.stdout.write(f"{line}\n")
    return status


def _unknown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a fault of ours as Python does, and end with what the detector calls unknown."""
    sys.stdout.write(f"{fitted(f'unknown: a bug in kubeodds, {kind.__name__}')}\n")
    sys.stdout.flush()
    sys.__excepthook__(kind, error, trace)
    sys.stderr.flush()
    os._exit(UNKNOWN)
