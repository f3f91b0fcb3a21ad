"""Waits for a running ``watch``."""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.exposition import Metric, parse


def looked(into: Path, result: str, times: int) -> dict[str, Metric]:
    """Return the page once so many looks came to that; every page on the way is whole."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if into.exists():
            found = parse(into.read_text())
            if found["kubeodds_looks_total"].samples[frozenset({("result", result)})] >= times:
                return found
        time.sleep(0.01)
    raise AssertionError(f"no {times} looks were {result}")
