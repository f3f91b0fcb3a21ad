"""Commands run as an ordinary user, also where root's folders hide Python or this checkout."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.lab.running import ROOT, kubeodds

#: Shows the paths behind the first ``--`` again in place of folders that only root may enter.
#: Arguments: a pair of a folder and a path in it for each path, ``--``, and the command.
_SHOW: Final = """
set -e
mount -t tmpfs -o mode=755 tmpfs /mnt
number=0
while [ "$1" != -- ]; do
    number=$((number + 1))
    mkdir "/mnt/$number"
    mount --bind "$2" "/mnt/$number"
    printf '%s\\n%s\\n' "$1" "$2" >> /mnt/list
    shift 2
done
shift
number=0
while read -r hidden && read -r path; do
    number=$((number + 1))
    case " $done " in *" $hidden "*) ;; *) mount -t tmpfs -o mode=755 tmpfs "$hidden" ;; esac
    done="$done $hidden"
    mkdir -p "$path"
    mount --bind "/mnt/$number" "$path"
done < /mnt/list
cd "$1"
shift
exec "$@"
"""
_OTHERS_MAY: Final = stat.S_IXOTH


def ordinary_user() -> list[str]:
    """Return what makes a command an ordinary user's; nothing, where this already is one.

    Skips the test where that cannot be, with what is in the way; if LAB_REQUIRED is 1 it fails.
    """
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        _give_up("setpriv is not installed (util-linux)")
    becomes = [setpriv or "", "--reuid=65534", "--regid=65534", "--clear-groups"]
    needed = (ROOT, Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent)
    prefix = [*showing(needed, ROOT), *becomes]
    tried = kubeodds("--version", prefix=prefix)
    if tried.returncode:
        said = (tried.stderr.strip().splitlines() or [f"status {tried.returncode}"])[-1]
        _give_up(f"user 65534 cannot run {sys.executable} with this checkout: {said}")
    allowed = subprocess.run([*prefix, "unshare", "--user", "--net", "true"], check=False)
    if allowed.returncode:
        _give_up("this machine lets no ordinary user make namespaces")
    return prefix


def showing(needed: Iterable[Path], where: Path) -> Sequence[str]:
    """Return what lets a command reach paths in folders that only root may enter.

    They stand where they are, in a mount namespace of the command's own, which begins in `where`.
    Nothing, where no folder is in the way.
    """
    pairs: dict[Path, Path] = {}
    for path in (each.resolve() for each in needed):
        above = [*reversed(path.parents), path]
        hidden = next((each for each in above if not each.stat().st_mode & _OTHERS_MAY), None)
        if hidden is not None and hidden != path:
            pairs[path] = hidden
    # What is within another one is shown with it.
    outer = [p for p in pairs if not any(other in p.parents for other in pairs)]
    if not outer:
        return []
    words = [word for path in outer for word in (str(pairs[path]), str(path))]
    unshare = ["unshare", "--mount", "--propagation", "private", "--"]
    return [*unshare, "sh", "-c", _SHOW, "sh", *words, "--", str(where)]


def _give_up(why: str) -> None:
    reason = f"no command can be run as an ordinary user: {why}"
    if os.environ.get("LAB_REQUIRED") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
