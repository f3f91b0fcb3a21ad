"""``make soak``: looks for what nobody has found yet, for as long as it is given.

Theory of operation
===================

Each part is an endless row of jobs, each a program of its own with a seed of its own: rulesets
against the kernel, rules through the real iptables and nft, a fuzzer, one property with many
examples, a search for seeded faults. As many jobs as there are cores run at a time, and the next
one is always of the part that has had the least time. What a job prints is kept in ``.soak``
where it failed, and the table at the end has the command that repeats it.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from release.browser import is_there

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / ".soak"
#: Seconds that a job which could go on for ever is given at most.
_SLICE: Final = 60
#: Seconds that a job may take longer than the whole run was given, before it is ended.
_GRACE: Final = 120

#: Makes the words of a job, of a seed and of how many seconds it has.
Command = Callable[[int, int], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """An endless row of jobs of one kind.

    Attributes:
        command: of a job.
        counted: finds in what a job prints how much it did, all numbers of which are added up.
        unit: of that.
        environment: what is added to it.
        weight: how much of the time it is given, beside others.
    """

    name: str
    command: Command
    counted: str
    unit: str
    environment: Mapping[str, str] = field(default_factory=dict)
    weight: int = 1


@dataclass
class Done:
    """What the jobs of a part have come to."""

    jobs: int = 0
    seconds: float = 0.0
    amount: int = 0
    unfinished: int = 0
    failures: list[str] = field(default_factory=list)


def _module(name: str, *words: str) -> list[str]:
    return [sys.executable, "-m", name, *words]


def _sampled(name: str, module: str, *words: str, counted: str, unit: str) -> Part:
    """Return a part whose jobs end with as many examples as `words` say."""
    return Part(
        name=name,
        command=lambda seed, _: _module(module, *words, "--seed", str(seed)),
        counted=counted,
        unit=unit,
    )


def _timed(name: str, module: str, *words: str, counted: str, unit: str, weight: int = 1) -> Part:
    """Return a part whose jobs end with their time."""
    return Part(
        name=name,
        command=lambda seed, seconds: _module(
            module, *words, "--seed", str(seed), "--seconds", str(seconds)
        ),
        counted=counted,
        unit=unit,
        weight=weight,
    )


def _kernel(name: str, module: str, *words: str) -> Part:
    counted = r'"packets": (\d+)'
    most = ("--rulesets", "1000000")
    return _timed(name, module, *words, *most, counted=counted, unit="packets", weight=2)


def _round_trip(binary: str) -> Part:
    return _sampled(
        f"round trips of {binary}",
        "tests.support.lab.kernel_round_trip",
        *("--binary", binary, "--examples", "5"),
        counted=r'"accepted": \{([^}]*)\}',
        unit="rules",
    )


def parts(properties: Sequence[str], folder: Path) -> list[Part]:
    """All parts; `properties` are the tests that hypothesis gives examples."""
    draws = iter(_shuffled_for_ever(properties))
    lock = threading.Lock()

    def one_property(seed: int, _: int) -> Sequence[str]:
        with lock:
            test = next(draws)
        seeded = f"--hypothesis-seed={seed}"
        return _module("pytest", "-q", "--hypothesis-show-statistics", seeded, test)

    def fuzz(seed: int, seconds: int) -> Sequence[str]:
        KEPT.mkdir(exist_ok=True)  # libfuzzer does not make it
        limits = (f"-max_total_time={seconds}", f"-seed={seed}", "-max_len=4096", "-timeout=10")
        kept = f"-artifact_prefix={KEPT}/fuzz-"
        regressions = str(ROOT / "tests" / "fuzz" / "regressions")
        return _module("tests.fuzz.fuzz_reader", str(folder), regressions, kept, *limits)

    return [
        _kernel("kernel, iptables-legacy", "tests.support.lab.kernel_check", "--backend", "legacy"),
        _kernel("kernel, iptables-nft", "tests.support.lab.kernel_check", "--backend", "nft"),
        _kernel("kernel, rules of others", "tests.support.lab.kernel_check", "--foreign"),
        _kernel("kernel, nft", "tests.support.lab.nft_check"),
        _kernel("kernel, nft beside legacy", "tests.support.lab.nft_check", "--beside"),
        *map(_round_trip, ("iptables-legacy", "ip6tables-legacy", "iptables-nft", "ip6tables-nft")),
        _sampled(
            "clusters through iptables",
            "tests.support.lab.kernel_clusters",
            *("--examples", "15"),
            counted=r'"ip6?tables-\w+ [\d.]+": (\d+)',
            unit="clusters",
        ),
        _sampled(
            "repairs of clusters",
            "tests.support.lab.random_repairs",
            *("--examples", "4"),
            counted=r'"(?:legacy|nft|nftables) [46]": (\d+)',
            unit="repairs",
        ),
        _sampled(
            "clusters through nft",
            "tests.support.lab.nft_generated",
            *("--examples", "40"),
            counted=r'"listed": (\d+)',
            unit="clusters",
        ),
        _sampled(
            "rules through nft",
            "tests.support.lab.nft_round_trip",
            *("--rulesets", "60"),
            counted=r'"taken": (\d+)',
            unit="rules",
        ),
        _sampled(
            "clients",
            "tests.support.lab.client_plans",
            counted=r'"runs": (\d+)',
            unit="runs",
        ),
        *(
            [
                _sampled(
                    "captures in the lab",
                    "tests.support.lab.every_capture",
                    counted=r'"routes": (\d+)',
                    unit="routes",
                ),
                *(
                    [
                        _sampled(
                            "captures in a browser",
                            "tests.support.pages.every_capture",
                            counted=r'"numbers": (\d+)',
                            unit="numbers",
                        )
                    ]
                    if is_there()
                    else []
                ),
            ]
            if os.environ.get("KUBEODDS_CAPTURES")
            else []
        ),
        _timed(
            "rules of others",
            "tests.support.foreign",
            counted=r"^(\d+) dumps",
            unit="dumps",
            weight=2,
        ),
        Part(
            name="fuzzer",
            command=fuzz,
            counted=r"Done (\d+) runs",
            unit="inputs",
            weight=2,
        ),
        *(
            _sampled(
                f"builds that are killed, {engine}",
                "tests.support.killed_builds",
                *("--nodes", "60", "--rules", "20000", "--engine", engine),
                counted=r"; (\d+) losses",
                unit="losses",
            )
            for engine in ("processes", "dask")
        ),
        _sampled(
            "memory of watch",
            "netns_lab.bench_watch",
            *("--memory", "--looks", "1000"),
            counted=r"(\d+) looks",
            unit="looks",
        ),
        _timed(
            "seeded faults",
            "tests.support.seeded.search",
            counted=r"^(\d+) of",
            unit="searches",
        ),
        Part(
            name="properties",
            command=one_property,
            counted=r"(\d+) passing",
            unit="examples",
            environment={"HYPOTHESIS_PROFILE": "soak"},
            weight=8,
        ),
    ]


def _shuffled_for_ever(tests: Sequence[str]) -> Iterator[str]:
    while tests:
        yield from random.sample(tests, len(tests))


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


def properties() -> list[str]:
    """The tests that hypothesis gives examples, but for those of the lab."""
    done = subprocess.run(  # noqa: S603  # our own tests
        _module("pytest", "--collect-only", "-q", "-m", "hypothesis and not lab"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if "::" in line]
    if not found:
        raise SystemExit(f"no properties were found:\n{done.stdout}{done.stderr}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, and print what was done; 1: something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="of all other seeds; random")
    parser.add_argument("--only", default="", help="parts whose names begin so")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = random.SystemRandom().getrandbits(31) if options.seed is None else options.seed
    sys.stdout.write(f"soaking for {options.minutes:g} minutes, SEED={seed}\n")
    sys.stdout.flush()
    random.seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        from tests.fuzz.seeds import seeds

        seeds(Path(folder))
        chosen = [
            part for part in parts(properties(), Path(folder)) if part.name.startswith(options.only)
        ]
        soak = Soak(chosen, 60 * options.minutes, random.Random(seed))  # no secret
        soak.run(os.cpu_count() or 1)
    sys.stdout.write("\n" + table(soak.done, chosen))
    return int(any(each.failures for each in soak.done.values()))


if __name__ == "__main__":
    sys.exit(main())
