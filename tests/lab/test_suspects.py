"""Suspects of flows that the kernel has drawn and tracked, some endpoints silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.dumps import many_endpoints
from tests.support.effort import PROFILE
from tests.support.lab.running import case, kubeodds, python

pytestmark = pytest.mark.lab

RUNS = 20 if PROFILE == "soak" else 1


def tracked(folder: Path, flows: int, *words: str) -> str:
    """Send flows with some endpoints silent, and return the file of what conntrack has."""
    done = python("-m", "tests.support.lab.suspected", "--each", str(flows), "--", *words)
    assert done.returncode == 0, done.stderr
    name = folder / "conntrack.txt"
    name.write_text(done.stdout)
    return str(name)


def suspects(*words: str) -> set[str]:
    done = kubeodds("suspects", *words, "-o", "json")
    assert done.returncode == 1, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return {each["address"] for each in found["endpoints"] if each["suspect"]}


@pytest.mark.parametrize("run", range(RUNS))
def test_of_two_the_silent_one_is_named(tmp_path: Path, run: int) -> None:
    del run  # each draws anew
    given = case("1.36.2-iptables-legacy/two-node@worker1").given
    words = "--service", "default/app"
    conntrack = tracked(tmp_path, 500, *given, "--dead", "10.244.0.7", *words)
    assert suspects(*given, *words, "--conntrack", conntrack) == {"10.244.0.7"}


@pytest.mark.deep
@pytest.mark.parametrize("run", range(RUNS))
def test_of_five_the_two_silent_ones_are_named(tmp_path: Path, run: int) -> None:
    del run
    dump = tmp_path / "dump.txt"
    dump.write_text(many_endpoints(5))
    conntrack = tracked(tmp_path, 500, str(dump), "--dead", "10.0.0.2,10.0.0.4")
    assert suspects(str(dump), "--conntrack", conntrack) == {"10.0.0.2", "10.0.0.4"}
