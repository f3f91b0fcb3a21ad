"""What ``make soak`` runs: each part is an endless row of jobs of one kind."""

from __future__ import annotations

import os
import random
import subprocess  # noqa: TID251  # it lists our own tests
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from release.browser import is_there

ROOT: Final = Path(__file__).parents[2]
#: Where what failed is kept.
KEPT: Final = ROOT / ".soak"

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
            _timed(
                f"{name} in the lab",
                f"tests.support.lab.{module}",
                counted=r'"routes": (\d+)',
                unit="routes",
            )
            for name, module in (
                ("rules of others", "foreign_verify"),
                ("generated clusters", "cluster_verify"),
            )
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
                *("--nodes", "600", "--rules", "2000", "--engine", engine),
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
