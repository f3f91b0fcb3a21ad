"""``make soak``: looks for what nobody has found yet, for as long as it is given.

Theory of operation
===================

Each part (`soak_parts`) is an endless row of jobs, each a program of its own with a seed of its
own: rulesets against the kernel, rules through the real iptables and nft, a fuzzer, one property
with many examples, a search for seeded faults. As many jobs as there are cores run at a time, and
the next one is always of the part that has had the least time. What a job prints is kept in
``.soak`` where it failed, and the table at the end has the command that repeats it.

What is found becomes a test or a stored example of the quick check.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess  # noqa: TID251  # it runs the programs
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.soak_parts import KEPT, ROOT, Part, parts, properties

#: Seconds that a job which could go on for ever is given at most.
_SLICE: Final = 60
#: Seconds that a job may take longer than the whole run was given, before it is ended.
_GRACE: Final = 120


@dataclass
class Done:
    """What the jobs of a part have come to."""

    jobs: int = 0
    seconds: float = 0.0
    amount: int = 0
    unfinished: int = 0
    failures: list[str] = field(default_factory=list)


def amount(part: Part, said: str) -> int:
    """How much a job says that it did."""
    found = re.findall(part.counted, said, re.MULTILINE)
    return sum(int(number) for each in found for number in re.findall(r"\d+\b", each))


class Soak:
    """Runs jobs until the time is over.

    Attributes:
        done: by the names of the parts.
    """

    def __init__(self, parts: Sequence[Part], seconds: float, draw: random.Random) -> None:
        self._parts = parts
        self._draw = draw
        self._until = time.monotonic() + seconds
        # So that each part has its turn.
        self._slice = max(1, min(_SLICE, int(seconds / sum(part.weight for part in parts))))
        self._lock = threading.Lock()
        self._running: dict[str, int] = dict.fromkeys((part.name for part in parts), 0)
        self._children: set[subprocess.Popen[str]] = set()
        self._stopped = False
        self.done = {part.name: Done() for part in parts}

    def run(self, workers: int) -> None:
        """Run jobs, `workers` at a time; Ctrl-C ends them all."""
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(self._work) for _ in range(workers)]
            try:
                for each in futures:
                    each.result()
            except KeyboardInterrupt:
                with self._lock:
                    self._stopped = True
                    for child in self._children:
                        child.terminate()

    def _work(self) -> None:
        while (left := self._until - time.monotonic()) > 0 and not self._stopped:
            with self._lock:
                part = min(self._parts, key=self._spent)
                self._running[part.name] += 1
                seed = self._draw.getrandbits(31)
            command = part.command(seed, max(1, int(min(self._slice, left))))
            self._job(part, command)
            with self._lock:
                self._running[part.name] -= 1

    def _spent(self, part: Part) -> float:
        given = self.done[part.name].seconds + self._slice * self._running[part.name]
        return given / part.weight

    def _job(self, part: Part, command: Sequence[str]) -> None:
        began = time.monotonic()
        child = subprocess.Popen(  # noqa: S603  # a program of ours
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'netns-lab'}", **part.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        with self._lock:
            self._children.add(child)
        finished = True
        try:
            said, _ = child.communicate(timeout=max(1.0, self._until - began) + _GRACE)
        except subprocess.TimeoutExpired:
            child.terminate()
            said, _ = child.communicate()
            finished = False
        with self._lock:
            self._children.discard(child)
            done = self.done[part.name]
            done.jobs += 1
            done.seconds += time.monotonic() - began
            done.amount += amount(part, said)
            done.unfinished += not finished or self._stopped
            if child.returncode and finished and not self._stopped:
                done.failures.append(self._keep(part, command, said))

    def _keep(self, part: Part, command: Sequence[str], said: str) -> str:
        """Keep what a failed job printed, and return the command that repeats it."""
        KEPT.mkdir(exist_ok=True)
        words = " ".join([*(f"{k}={v}" for k, v in part.environment.items()), *command])
        again = words.replace(sys.executable, ".venv/bin/python").replace(f"{ROOT}/", "")
        number = len(list(KEPT.glob("*.log")))
        path = KEPT / f"{number}-{re.sub('[^a-z0-9]+', '-', part.name)}.log"
        path.write_text(f"PYTHONPATH=.:netns-lab {again}\n\n{said}", encoding="utf-8")
        sys.stdout.write(f"{part.name}: failed; {path.relative_to(ROOT)} has what it said\n")
        sys.stdout.flush()
        return f"PYTHONPATH=.:netns-lab {again}"


def table(done: Mapping[str, Done], found: Sequence[Part]) -> str:
    """What was done, a line for each part, and the commands that repeat what failed."""
    rows = [("PART", "JOBS", "SECONDS", "DID", "", "FAILED")]
    for part in found:
        each = done[part.name]
        ended = f" ({each.unfinished} ended early)" if each.unfinished else ""
        rows.append(
            (
                part.name,
                str(each.jobs),
                f"{each.seconds:.0f}",
                f"{each.amount:,}",
                part.unit,
                f"{len(each.failures)}{ended}",
            )
        )
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  "
        f"{row[3]:>{widths[3]}} {row[4]:<{widths[4]}}  {row[5]}".rstrip()
        for row in rows
    ]
    again = [each for one in done.values() for each in one.failures]
    if again:
        lines += ["", "To repeat what failed:", *(f"  {each}" for each in again)]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, and print what was done; 1: something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="of all other seeds; random")
    parser.add_argument("--only", default="", help="parts whose names begin so")
    parser.add_argument("--property", default="", help="properties whose tests' names have this")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = random.SystemRandom().getrandbits(31) if options.seed is None else options.seed
    sys.stdout.write(f"soaking for {options.minutes:g} minutes, SEED={seed}\n")
    sys.stdout.flush()
    random.seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        from tests.fuzz.seeds import seeds

        seeds(Path(folder))
        asked = [each for each in properties() if options.property in each]
        if not asked:
            parser.error(f"no property has {options.property!r} in its name")
        every = parts(asked, Path(folder))
        chosen = [part for part in every if part.name.startswith(options.only)]
        if not chosen:
            names = "; ".join(part.name for part in every)
            parser.error(f"no part's name begins with {options.only!r}: {names}")
        soak = Soak(chosen, 60 * options.minutes, random.Random(seed))  # no secret
        soak.run(os.cpu_count() or 1)
    sys.stdout.write("\n" + table(soak.done, chosen))
    return int(any(each.failures for each in soak.done.values()))


if __name__ == "__main__":
    sys.exit(main())
