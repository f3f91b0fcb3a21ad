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

#: The PATH of an ordinary user often lacks the sbin folders.
PATH: Final = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/local/sbin:/usr/sbin:/sbin"

#: Encoding of the text that programs read and print.
_AS_TEXT: Final = ("utf-8", "surrogateescape")

#: Seconds after which a program is considered hung: half a million rules load in 150.
_DEADLINE: Final = 600

#: Debian package of each program, for the error message.
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
    """Return the whole environment of a program."""
    # The host's xtables lock is not ours to hold or to write, so programs get one in memory.
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
    # Python's text mode would turn carriage returns into line feeds, even inside quotes.
    out, err = (each.decode(*_AS_TEXT) for each in printed)
    done = subprocess.CompletedProcess(arguments, process.returncode, out, err)
    if check and done.returncode:
        said = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise LabError(f"{' '.join(arguments)} in {namespace.name}: {said}")
    return done


def lines_of(namespace: Namespace, arguments: Sequence[str]) -> Iterator[str]:
    """Run a program to its end, and yield the lines that it prints, which may be a million.

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
    """Start a program without waiting; its output is read when it has ended."""
    return _spawn(namespace, arguments, subprocess.DEVNULL, subprocess.STDOUT, text=True)


class Meanwhile:
    """A program that reads one text and prints another while this process continues."""

    def __init__(self, namespace: Namespace, arguments: Sequence[str], stdin: str = "") -> None:
        self._arguments, self._namespace = arguments, namespace
        # Files in memory, because a pipe would have to be emptied.
        self._files = [os.memfd_create(name, 0) for name in ("in", "out", "err")]
        with os.fdopen(os.dup(self._files[0]), "wb") as file:
            file.write(stdin.encode(*_AS_TEXT))
        os.lseek(self._files[0], 0, os.SEEK_SET)
        given, out, err = self._files
        self._process = _spawn(namespace, arguments, given, err, stdout=out)

    def ended(self) -> str | None:
        """Return what it printed; None if it has not ended.

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
        """Kill the program if it still runs, and free its files."""
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
    # Python's fork hooks would swallow a Ctrl-C, so the signal is blocked meanwhile.
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
    """Run a list of ip(8) commands in one process.

    Raises:
        LabError: one of them fails; the message says which.
    """
    if lines:
        run(namespace, ["ip", "-batch", "-"], "\n".join(lines) + "\n")
