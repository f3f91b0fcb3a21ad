"""The scripts of pages, asked by Node without a browser."""

from __future__ import annotations

import atexit
import json
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

_ASK = Path(__file__).parent / "ask.mjs"


@cache
def _node() -> subprocess.Popen[str]:
    """Return a process that answers line by line, as long as this one lives."""
    pipe = subprocess.PIPE
    started = subprocess.Popen(["node", str(_ASK)], stdin=pipe, stdout=pipe, text=True)
    atexit.register(started.kill)
    return started


def asked(*questions: tuple[str, Any]) -> Sequence[Any]:
    """Return the answers to questions, each a name and what it is asked of."""
    node = _node()
    assert node.stdin is not None
    assert node.stdout is not None
    node.stdin.write(f"{json.dumps(questions)}\n")
    node.stdin.flush()
    found: Sequence[Any] = json.loads(node.stdout.readline())
    assert not isinstance(found, str), found
    return found
