"""The scripts of pages, asked by Node without a browser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ASK = Path(__file__).parent / "ask.mjs"


def asked(*questions: tuple[str, Any]) -> Sequence[Any]:
    """Return the answers to questions, each a name and what it is asked of."""
    done = subprocess.run(
        ["node", str(_ASK)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: Sequence[Any] = json.loads(done.stdout)
    return found
