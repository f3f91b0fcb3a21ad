"""A command to compare with others: its CPU seconds, peak memory, and size of output."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: A process has one account for all its children, and its maximum only grows.
_MEASURE: Final = """
import json, os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                      stderr=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss, done.returncode, done.stderr]))
"""


@dataclass
class Contender:
    """A command, and what its runs took.

    Attributes:
        statuses: exit statuses that count as success.
        seconds: CPU seconds of each run.
        peak: peak memory of all runs, KiB.
    """

    name: str
    command: list[str]
    statuses: tuple[int, ...] = (0,)
    seconds: list[float] = field(default_factory=list)
    peak: int = 0

    @property
    def median(self) -> float:
        """CPU seconds of the median run."""
        return statistics.median(self.seconds)

    def run(self, namespace: Namespace | None = None) -> None:
        """Run once, and record CPU seconds and peak memory.

        Raises:
            LabError: it failed.
        """
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, *self.command],
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=namespace.entering() if namespace else None,
        )
        seconds, peak, status, error = json.loads(done.stdout)
        if status not in self.statuses:
            raise LabError(f"{self.name} fails: {error.strip()}")
        self.seconds.append(seconds)
        self.peak = max(self.peak, peak)

    def printed(self) -> int:
        """Return how many bytes it prints."""
        return len(subprocess.run(self.command, capture_output=True, check=False).stdout)


def kubeodds(*words: str | Path) -> Contender:
    """Return a kubeodds command, named by its words without the files, which are given as paths."""
    installed = Path(sys.executable).with_name("kubeodds")
    program = [str(installed)] if installed.exists() else [sys.executable, "-m", "analyzer"]
    name = " ".join(["kubeodds", *(word for word in words if isinstance(word, str))])
    # `diff` exits with 1 if it finds a difference.
    statuses = (0, 1) if words[0] == "diff" else (0,)
    return Contender(name, [*program, *map(str, words)], statuses)


def alternate(
    contenders: Sequence[Contender], rounds: int, namespace: Namespace | None = None
) -> None:
    """Run each once per round, so that other load on the machine affects all of them alike."""
    for _ in range(rounds):
        for each in contenders:
            each.run(namespace)
