"""One file that runs wherever Python is: ``python -m release.zipapp FILE`` writes it.

It holds the sources as they are, without the lab, and no bytecode: that would be of one version of
Python, and three times as large. The same sources give the same bytes, whoever packs them and when:
members are sorted and have one time, `SOURCE_DATE_EPOCH`, and one mode.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
#: Where one of that name is first in PATH; who has several runs `python3.11 kubeodds.pyz`.
_SHEBANG: Final = b"#!/usr/bin/env python3\n"
_MAIN: Final = b"from analyzer.__main__ import main\n\nmain()\n"
#: The first second that a zip file can tell: 1 January 1980.
_FIRST: Final = 315_532_800
_EXECUTABLE: Final = 0o755
#: Made by Unix: then modes count, and the archive is the same wherever it is made.
_UNIX: Final = 3


def packed() -> Iterator[tuple[str, bytes]]:
    """Give the name and content of each member, sorted by name."""
    found = {"__main__.py": _MAIN, "LICENSE": (ROOT / "LICENSE").read_bytes()}
    for path in (ROOT / "analyzer").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            found[path.relative_to(ROOT).as_posix()] = path.read_bytes()
    yield from sorted(found.items())


def write(target: Path) -> None:
    """Write the file, and let it be run."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.write(_SHEBANG)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in packed():
                archive.writestr(member(name), content)
    target.chmod(_EXECUTABLE)


def member(name: str, mode: int = 0o644, method: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    """Return how a file is told in an archive: nothing of it depends on this machine or hour."""
    epoch = max(int(os.environ.get("SOURCE_DATE_EPOCH", _FIRST)), _FIRST)
    found = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
    found.compress_type = method
    found.create_system = _UNIX
    found.external_attr = (stat.S_IFREG | mode) << 16
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Write the file that is named."""
    parser = argparse.ArgumentParser(prog="python -m release.zipapp", description=__doc__)
    parser.add_argument("file", metavar="FILE", type=Path)
    write(parser.parse_args(words).file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
