"""A program in a namespace of the lab, with processes and mounts that end with it.

Whatever it starts, in the background too, is in a PID namespace of its own: when the first process
there ends, the kernel kills all others. Three processes are needed: one that enters the namespaces,
the first of the new PID namespace, and the program itself, since the first process of a PID
namespace ignores the signals that would end others.

Source: pid_namespaces(7), mount_namespaces(7), prctl(2).
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from netns_lab.errors import LabError
from netns_lab.namespace import Namespace, call

_NEWNS: Final = 0x00020000
_NEWPID: Final = 0x20000000
_PR_SET_PDEATHSIG: Final = 1
_MS_BIND: Final = 0x1000
_MS_NOSUID_NODEV: Final = 0x2 | 0x4
#: Exit statuses as shells use them: not found, and what is added to a signal's number.
_NOT_FOUND: Final = 127
_SIGNALLED: Final = 128
#: Signals that a terminal sends to all processes of a command; only the program shall get them.
_OF_TERMINALS: Final = (signal.SIGINT, signal.SIGQUIT)


class Inside:
    """A program that runs in a namespace.

    Args:
        arguments: the program's path and its arguments.
        environment: its whole environment.
        furnish: creates the mounts that it sees; called after the namespaces are entered.
    """

    def __init__(
        self,
        namespace: Namespace,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        furnish: Callable[[], None],
    ) -> None:
        self._arguments = list(arguments)
        self._environment = dict(environment)
        enter = namespace.entering()
        self._before = {each: signal.getsignal(each) for each in _OF_TERMINALS}
        for each in _OF_TERMINALS:
            signal.signal(each, signal.SIG_IGN)
        self._child = os.fork()
        if not self._child:
            _become(lambda: self._enter(enter, furnish))

    def ended(self) -> int | None:
        """Return the exit status as a shell reports it; None if the program still runs."""
        child, status = os.waitpid(self._child, os.WNOHANG)
        if not child:
            return None
        for each, handler in self._before.items():
            signal.signal(each, handler)
        return _as_shells_say(status)

    def _enter(self, enter: Callable[[], None], furnish: Callable[[], None]) -> int:
        enter()
        call("unshare", _NEWPID | _NEWNS)
        furnish()
        alive, held = os.pipe()
        first = os.fork()
        if not first:
            os.close(held)
            _become(lambda: self._begin(alive))
        return _as_shells_say(os.waitpid(first, 0)[1])

    def _begin(self, alive: int) -> int:
        """Run as the first process: start the program, and reap what it leaves behind."""
        call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
        os.set_blocking(alive, False)
        try:
            os.read(alive, 1)
        except BlockingIOError:  # our parent holds the other end
            pass
        else:  # it died before prctl(2) was called
            return _SIGNALLED + signal.SIGKILL
        # Where a container hides parts of /proc, this mount fails, and the host's /proc stays.
        with suppress(OSError):
            call("mount", b"proc", b"/proc", b"proc", _flags(_MS_NOSUID_NODEV), None)
        program = os.fork()
        if not program:
            _become(self._run)
        while True:
            ended, status = os.wait()
            if ended == program:
                return _as_shells_say(status)

    def _run(self) -> int:
        # Python ignores SIGPIPE, and the program would inherit that.
        for each in (*_OF_TERMINALS, signal.SIGPIPE):
            signal.signal(each, signal.SIG_DFL)
        try:
            os.execve(self._arguments[0], self._arguments, self._environment)  # noqa: S606  # ours
        except OSError as error:
            _complain(f"{self._arguments[0]}: {error.strerror}")
            return _NOT_FOUND


def fresh_folder(path: Path) -> None:
    """Mount an empty folder for the program at `path`."""
    call("mount", b"tmpfs", bytes(path), b"tmpfs", _flags(_MS_NOSUID_NODEV), b"mode=0755")


def show(what: Path, path: Path) -> None:
    """Show the program the file `what` at `path`, which is a file too."""
    call("mount", bytes(what), bytes(path), None, _flags(_MS_BIND), None)


def _flags(flags: int) -> object:
    return ctypes.c_ulong(flags)


def _become(body: Callable[[], int]) -> NoReturn:
    """Run `body` in a forked child, and exit without running any other code of ours."""
    status = _NOT_FOUND
    try:
        status = body()
    except (OSError, LabError) as error:
        _complain(str(error))
    finally:
        os._exit(status)


def _complain(says: str) -> None:
    os.write(2, f"kubeodds: {says}\n".encode(errors="replace"))


def _as_shells_say(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code
