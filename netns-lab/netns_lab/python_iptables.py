"""Loading python-iptables without what takes longest: programs that look for its own library."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

#: Where python-iptables looks for libraries before it asks ldconfig, gcc and ld by turns.
_FOLDERS: Final = "IPTABLES_LIBDIR"


@contextmanager
def quickly_loaded() -> Iterator[None]:
    """Let ``import iptc`` take half its time."""
    with _without_setuptools(), _beside_the_package():
        yield


@contextmanager
def _beside_the_package() -> Iterator[None]:
    """Let it find its own library, which pip puts beside it, without 30 programs: 0.1 s."""
    found = find_spec("iptc")
    if found is None or found.origin is None or _FOLDERS in os.environ:
        yield
        return
    os.environ[_FOLDERS] = str(Path(found.origin).parents[1])
    try:
        yield
    finally:
        del os.environ[_FOLDERS]


@contextmanager
def _without_setuptools() -> Iterator[None]:
    """Let it import the library's distutils while there is one.

    The one of setuptools, which otherwise takes its place, is 0.25 s of each run.
    """
    shims = [each for each in sys.meta_path if type(each).__module__ == "_distutils_hack"]
    taken = shims if sys.version_info < (3, 12) else []
    for each in taken:
        sys.meta_path.remove(each)
    try:
        yield
    finally:
        sys.meta_path[:0] = taken
