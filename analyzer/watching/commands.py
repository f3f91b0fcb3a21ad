"""The output of a user's command, run without a shell, limited in time and size."""

from __future__ import annotations

import os
import signal
import subprocess  # noqa: TID251  # who watches runs a command that the user names, and this alone
import time
from collections.abc import Sequence
from contextlib import suppress

from analyzer.errors import InputError
from analyzer.model.text import printable
from analyzer.parsers.contents import too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.watching.signals import Signals

_PIECE: Final = 1 << 20
#: Bytes of a command's stderr that are kept; its last line is reported.
_MOST_SAID: Final = 1 << 14
_MOST_TOLD: Final = 200
#: Seconds between two looks whether a command that says no more has ended.
_POLL: Final = 0.02


def printed(words: Sequence[str], seconds: float, most: int, signals: Signals) -> bytes:
    """Return the stdout of a command, limited to `seconds` and `most` bytes.

    It runs in a process group of its own, which ends with it: its children are not left behind.

    Raises:
        InputError: it cannot be started, fails, is too slow or too long, or the watch is to end
            before it does.
    """
    name = words[0]
    try:
        process = subprocess.Popen(  # noqa: S603  # the user's own command, without a shell
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(f"{name}: cannot be run: {error.strerror or error}") from None
    except ValueError as error:  # a zero byte in a word
        raise InputError(f"{printable(name)}: cannot be run: {error}") from None
    said = bytearray()
    try:
        found = _read(process, name, time.monotonic() + seconds, (seconds, most), said, signals)
    finally:
        _end(process)
    if process.returncode:
        why = _last_line(said)
        how = f"status {process.returncode}"
        if process.returncode < 0:
            how = f"signal {-process.returncode}"
        raise InputError(f"{name}: ended with {how}{f': {why}' if why else ''}")
    return bytes(found)


def _read(
    process: subprocess.Popen[bytes],
    name: str,
    until: float,
    limits: tuple[float, int],
    said: bytearray,
    signals: Signals,
) -> bytearray:
    """Read to the end of both of its outputs, and wait for its own end."""
    seconds, most = limits
    assert process.stdout is not None  # they are pipes
    assert process.stderr is not None
    out, err = process.stdout.fileno(), process.stderr.fileno()
    found, open_ = bytearray(), [out, err]
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise InputError(f"{name}: took more than {seconds:g} s; --timeout allows more")
        if not open_ and _has_ended(process.pid):
            return found
        for each in signals.wait(left if open_ else min(left, _POLL), open_):
            piece = os.read(each, _PIECE)
            if not piece:
                open_.remove(each)
            elif each == out:
                found += piece
            elif len(said) < _MOST_SAID:
                said += piece[: _MOST_SAID - len(said)]
        if len(found) > most:
            raise InputError(f"{name}: printed {too_large(most)}")
        if signals.is_ended():
            raise InputError(f"{name}: stopped, since the watch ends")


def _has_ended(number: int) -> bool:
    """Return whether a child has, and leave it to be waited for."""
    return os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group of a command, and take back what the kernel keeps of it."""
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    # Its leader has not been waited for: no other process can have its number.
    with suppress(ProcessLookupError, PermissionError):  # which a program of another user may be
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:  # in the kernel, which is not to be waited for
        return


def _last_line(said: bytes | bytearray) -> str:
    lines = bytes(said).decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return printable(last)[:_MOST_TOLD]
