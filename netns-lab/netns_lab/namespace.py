"""Network namespaces without names, held only by file descriptors.

Safety: a process that uses this module calls `leave_host` first, which moves it into an empty
network namespace permanently. A forgotten or failed setns() then leaves it in that empty one and
never in the host's. Nothing here has a name or a mount point, so when the process ends, however it
ends, the kernel removes everything.

Source: namespaces(7), user_namespaces(7), setns(2), unshare(2).
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from netns_lab.errors import LabError

_NEWNS: Final = 0x00020000
_NEWUSER: Final = 0x10000000
_NEWNET: Final = 0x40000000
_PR_SET_PDEATHSIG: Final = 1
_MS_REC_PRIVATE: Final = 0x4000 | 0x40000
_OWN: Final = "/proc/thread-self/ns/net"

_libc: Final = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Call a libc function that returns -1 and sets errno when it fails.

    Raises:
        OSError: it failed; the message names the function.
    """
    if getattr(_libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


class _Home:
    """The empty namespace that this process has moved to."""

    descriptor: int | None = None


def leave_host() -> None:
    """Move this process into an empty network namespace, permanently. A second call does nothing.

    An ordinary user gets a user namespace too, if those are allowed.

    Raises:
        LabError: the kernel refuses; the message says why and what helps.
    """
    if _Home.descriptor is not None:
        return
    try:
        if os.geteuid() == 0:
            call("unshare", _NEWNET | _NEWNS)
        else:
            _enter_user_namespace()
        # Mounts from here on are ours alone, and vanish with us.
        call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC_PRIVATE), None)
    except OSError as error:
        who = "even as root (in a container?)" if os.geteuid() == 0 else "as an ordinary user"
        raise LabError(
            f"no network namespace can be made {who}: {error.strerror}; run as root, or allow "
            "user namespaces (sysctl kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns)"
        ) from None
    _Home.descriptor = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def _enter_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    call("unshare", _NEWUSER | _NEWNET | _NEWNS)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1", encoding="ascii")


def _home() -> int:
    assert _Home.descriptor is not None, "leave_host() comes before everything else"
    return _Home.descriptor


class Namespace:
    """One anonymous network namespace; use ``with`` to enter it.

    Only for a process of one thread, since a namespace belongs to a thread.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._back: list[int] = []
        home = _home()
        call("unshare", _NEWNET)
        self._descriptor = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        call("setns", home, _NEWNET)

    @property
    def descriptor(self) -> int:
        """The file descriptor that keeps it alive."""
        return self._descriptor

    @property
    def path(self) -> str:
        """A path by which other programs, such as ip(8), can refer to this namespace."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def __enter__(self) -> Self:
        self._back.append(os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC))
        call("setns", self._descriptor, _NEWNET)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        back = self._back.pop()
        call("setns", back, _NEWNET)
        os.close(back)

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Return a socket of this namespace, which may be used from anywhere."""
        with self:
            return socket.socket(family, kind, protocol)

    def set(self, name: str, value: object) -> None:
        """Write one sysctl, for example ``net/ipv4/ip_forward``."""
        with self:
            Path("/proc/sys", name).write_text(str(value), encoding="ascii")

    def entering(self) -> Callable[[], None]:
        """Return what a child process calls before exec: it enters, and will die with us."""
        descriptor, parent = self._descriptor, os.getpid()

        def enter() -> None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # the parent holds it
            call("setns", descriptor, _NEWNET)
            call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it died before we asked
                os._exit(1)

        return enter

    def close(self) -> None:
        """Close the descriptor; the kernel frees the namespace once nothing uses it."""
        os.close(self._descriptor)
