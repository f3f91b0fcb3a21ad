"""``lab verify`` of many dumps: how many routes were measured, and which dumps disagree."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def options(says: str | None) -> argparse.Namespace:
    """Return how long to go on, with which seed, and where to keep dumps that disagree."""
    parser = argparse.ArgumentParser(description=(says or "").partition("\n")[0])
    parser.add_argument("--dumps", type=int, default=1_000_000, help="how many at most")
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for dumps that disagree")
    return parser.parse_args()


class Verified:
    """What was measured so far.

    A line is printed for each dump that disagrees or is refused. It is kept in a folder, named
    after the seed and its number; all others are removed.
    """

    def __init__(self, folder: Path | None, seed: int) -> None:
        self._folder = folder or Path(tempfile.mkdtemp(prefix="verified-"))
        self._folder.mkdir(exist_ok=True)
        self._seed = seed
        self.counts: Counter[str] = Counter()

    @property
    def name(self) -> str:
        """The next dump's path, without an ending."""
        return str(self._folder / f"{self._seed}-{self.counts['dumps']}")

    def put(
        self, text: str, objects: Path | Sequence[Any], node: str, case: str, more: Sequence[str]
    ) -> None:
        """Measure what is predicted of a dump, with more options of `lab verify`."""
        dump = Path(f"{self.name}.txt")
        dump.write_text(text)
        made = None
        if not isinstance(objects, Path):
            made = Path(f"{self.name}.json")
            made.write_text(json.dumps({"kind": "List", "items": [*objects]}))
        words = [str(dump), "--objects", str(made or objects), "--node", node, *more]
        done = subprocess.run(
            [sys.executable, "-m", "analyzer", "lab", "verify", *words, "-o", "json"],
            capture_output=True,
            text=True,
            check=False,
        )
        told = json.loads(done.stdout) if done.stdout else {}
        self.counts["dumps"] += 1
        self.counts["routes"] += told.get("routes", 0)
        self.counts["left_out"] += len(told.get("left_out", ()))
        if done.returncode == 0 and told.get("agrees"):
            dump.unlink()
            if made is not None:
                made.unlink()
            return
        self.counts["disagree"] += 1
        says = done.stderr.strip()[:300]
        line = {"case": case, "words": words, "status": done.returncode, "says": says}
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()

    def finish(self) -> int:
        """Print the counts, and return the exit status."""
        sys.stdout.write(f"{json.dumps(self.counts)}\n")
        return 1 if self.counts["disagree"] else 0
