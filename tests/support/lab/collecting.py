"""The script of `collect` in a place of its own, and what it wrote."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from analyzer.arguments.collect import script

SHELLS = [each for each in (("dash",), ("busybox", "sh"), ("bash",)) if shutil.which(each[0])]
UNSHARE = ("unshare", "-nm" if os.geteuid() == 0 else "-rnm")
NEEDED = shlex.split("cat date gzip grep id mkdir mv rm sleep tar tr uname wc")
#: Backend, folder of a capture, its dump, and what loads it.
RULES = (
    ("1.25.1-iptables-legacy/two-node", "iptables-legacy-save.txt", "iptables-legacy"),
    ("1.20.2-iptables-nft/two-node", "iptables-nft-save.txt", "iptables-nft"),
    ("1.36.2-nftables/two-node@worker1", "nft-list-ruleset.txt", "nft"),
)
shells = pytest.mark.parametrize("shell", SHELLS, ids=lambda each: each[0])


@dataclass(frozen=True)
class Bundle:
    """What a script wrote: files by their names, and the rows of MANIFEST."""

    files: Mapping[str, bytes]

    @property
    def manifest(self) -> dict[str, list[str]]:
        rows = [line.split("\t") for line in self.files["MANIFEST"].decode().splitlines()]
        return {row[0]: row for row in rows if not row[0].startswith("#")}

    def result(self, name: str) -> str:
        return self.manifest[name][5]


def bundle(data: bytes) -> Bundle:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [each for each in archive if each.isfile()]
        assert {each.mode & 0o077 for each in members} == {0}
        return Bundle(
            {
                each.name.partition("/")[2]: file.read()
                for each in members
                if (file := archive.extractfile(each))
            }
        )


@dataclass(frozen=True)
class Place:
    """A folder with a script, temporary files and programs of its own."""

    folder: Path

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def temporary(self) -> list[Path]:
        return [*(self.folder / "tmp").iterdir()]

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def write(
        self, *, twice: int = 0, timeout: int = 20, only: bool = False, salt: bytes = b""
    ) -> str:
        """Write the script; where `only`, it has the PATH of this place and no other."""
        text = script(twice=twice, timeout=timeout, salt=salt)
        if only:
            line = "PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
            assert text.count(line) == 1
            text = text.replace(line, f"PATH={self.programs}\n")
        path = self.folder / "collect.sh"
        path.write_text(text)
        return str(path)

    def start(
        self, words: Sequence[str], stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            # Under nohup a hang-up is ignored, and so it would be here.
            ["env", "--default-signal=HUP", *UNSHARE, *words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
                "TMPDIR": str(self.folder / "tmp"),
                "HOME": str(self.folder),
                "XTABLES_LOCKFILE": str(self.folder / "lock"),
            },
        )

    def run(self, *words: str, text: bytes | None = None) -> tuple[int, bytes, str]:
        """Run words to their end; status, stdout and stderr. Nothing temporary is left."""
        with self.start(words, subprocess.DEVNULL if text is None else subprocess.PIPE) as process:
            out, err = process.communicate(text)
        assert self.temporary == []
        return process.returncode, out, err.decode()


def place_in(folder: Path) -> Place:
    for name in ("bin", "tmp"):
        (folder / name).mkdir()
    found = Place(folder)
    for name in NEEDED:
        path = shutil.which(name)
        assert path is not None
        (found.programs / name).symlink_to(path)
    return found
