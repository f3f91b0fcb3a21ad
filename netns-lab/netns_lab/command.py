"""Programs of this machine, run inside a namespace and ended with us."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: Of programs: an ordinary user's often leaves out what only root runs.
PATH: Final = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/local/sbin:/usr/sbin:/sbin"

#: How text that programs take and print is coded.
_AS_TEXT: Final = ("utf-8", "surrogateescape")

#: Seconds after which a program is taken to hang: half a million rules load in 150.
_DEADLINE: Final = 600

#: Which Debian package brings a program, to say what to install.
_PACKAGES: Final = {
    "conntrack": "conntrack",
    "dig": "bind9-dnsutils",
    "ip": "iproute2",
    "bridge": "iproute2",
    "nc": "netcat-openbsd",
    "nfacct": "nfacct",
    "nft": "nftables",
    "ipset": "ipset",
}


@cache
def program(name: str) -> str:
    """Return the path of a program.

    Raises:
        LabError: it is not installed; the message names the Debian package.
    """
    found = shutil.which(name, path=PATH)
    if found is None:
        package = "iptables" if name.startswith(("iptables", "ip6tables")) else _PACKAGES.get(name)
        raise LabError(
            f"{name} is not installed" + (f"; apt-get install {package}" if package else "")
        )
    return found


@cache
def _environment() -> dict[str, str]:
    """Return all that a program is told of its surroundings."""
    # The host's lock of iptables is not ours to hold, or even to write: one in memory.
    lock = os.memfd_create("xtables.lock", 0)
    return {
        "PATH": PATH,
        "LC_ALL": "C",
        "HOME": "/nonexistent",
        "XTABLES_LOCKFILE": f"/proc/{os.getpid()}/fd/{lock}",
    }


def run(
    namespace: Namespace, arguments: Sequence[str], stdin: str = "", *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end.

    Raises:
        LabError: it is not installed or, with `check`, it fails; the message quotes it.
    """
    with _spawn(namespace, arguments, subprocess.PIPE, subprocess.PIPE) as process:
        try:
            given = stdin.encode(*_AS_TEXT)
            printed = process.communicate(given, timeout=_DEADLINE)
        except BaseException:
            process.kill()
            raise
    # Python's own reading of text would make line feeds of carriage returns, also inside of quotes.
    out, err = (each.decode(*_AS_TEXT) for each in printed)
    done = subprocess.CompletedProcess(arguments, process.returncode, out, err)
    if check and done.returncode:
        said = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise LabError(f"{' '.join(arguments)} in {namespace.name}: {said}")
    return done


def lines_of(namespace: Namespace, arguments: Sequence[str]) -> Iterator[str]:
    """Run a program to its end, and give the lines that it prints, which may be a million.

    Raises:
        LabError: it is not installed, or it fails; the message quotes it.
    """
    encoding, errors = _AS_TEXT
    out = os.memfd_create("out", 0)
    with os.fdopen(out, "r", encoding=encoding, errors=errors, newline="\n") as lines:
        with _spawn(namespace, arguments, subprocess.DEVNULL, subprocess.PIPE, stdout=out) as made:
            try:
                said = made.communicate(timeout=_DEADLINE)[1].decode(encoding, errors)
            except BaseException:
                made.kill()
                raise
        if made.returncode:
            says = said.strip() or f"exit status {made.returncode}"
            raise LabError(f"{' '.join(arguments)} in {namespace.name}: {says}")
        lines.seek(0)
        yield from lines


def start(namespace: Namespace, arguments: Sequence[str]) -> subprocess.Popen[str]:
    """Start a program and go on; what it prints is kept for its end."""
    return _spawn(namespace, arguments, subprocess.DEVNULL, subprocess.STDOUT, text=True)


class Meanwhile:
    """A program that reads a text and prints another while this process does other things."""

    def __init__(self, namespace: Namespace, arguments: Sequence[str], stdin: str = "") -> None:
        self._arguments, self._namespace = arguments, namespace
        # Files in memory: a pipe would have to be emptied.
        self._files = [os.memfd_create(name, 0) for name in ("in", "out", "err")]
        with os.fdopen(os.dup(self._files[0]), "wb") as file:
            file.write(stdin.encode(*_AS_TEXT))
        os.lseek(self._files[0], 0, os.SEEK_SET)
        given, out, err = self._files
        self._process = _spawn(namespace, arguments, given, err, stdout=out)

    def ended(self) -> str | None:
        """Return what it printed; None: it goes on.

        Raises:
            LabError: it failed; the message quotes it.
        """
        status = self._process.poll()
        if status is None:
            return None
        printed = []
        for each in self._files[1:]:
            os.lseek(each, 0, os.SEEK_SET)
            with os.fdopen(os.dup(each), "rb") as file:
                printed.append(file.read().decode(*_AS_TEXT))
        self.close()
        if status:
            said = (printed[1] or printed[0]).strip() or f"exit status {status}"
            raise LabError(f"{' '.join(self._arguments)} in {self._namespace.name}: {said}")
        return printed[0]

    def close(self) -> None:
        """End it, if it goes on, and forget it."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for each in self._files:
            os.close(each)
        self._files = []


def _spawn(
    namespace: Namespace,
    arguments: Sequence[str],
    stdin: int,
    stderr: int,
    *,
    stdout: int = subprocess.PIPE,
    text: bool = False,
) -> subprocess.Popen[Any]:
    # Python's hooks around fork swallow a Ctrl-C that falls into them; so it waits for their end.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            [program(arguments[0]), *arguments[1:]],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            text=text,
            errors=_AS_TEXT[1] if text else None,
            env=_environment(),
            preexec_fn=namespace.entering(),  # noqa: PLW1509  # we have one thread only
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def ip_batch(namespace: Namespace, lines: Sequence[str]) -> None:
    """Let ip(8) do many things in one process.

    Raises:
        LabError: one of them fails; the message says which.
    """
    if lines:
        run(namespace, ["ip", "-batch", "-"], "\n".join(lines) + "\n")
