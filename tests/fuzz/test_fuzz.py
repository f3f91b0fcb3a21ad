"""A short fuzzing run, from the captures as seeds; a long one is part of ``make soak``."""

from __future__ import annotations

import subprocess  # noqa: TID251  # libFuzzer ends its process
import sys
from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds
from tests.support.effort import in_quick
from tests.support.lab.running import ROOT, environment, python

pytest.importorskip("atheris", reason="atheris is not installed")

MODULE = "tests.fuzz.fuzz_reader"
REGRESSIONS = Path(__file__).parent / "regressions"


@pytest.mark.deep
def test_mutated_dumps_raise_nothing_but_our_own_errors(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    seeds(corpus)
    limits = (f"-runs={in_quick(200)}", "-seed=1", "-max_len=4096")
    # A fork would have loaded before what atheris watches while it is loaded.
    done = subprocess.run(  # noqa: S603  # a program of ours
        [sys.executable, "-m", MODULE, str(corpus), *limits, f"-artifact_prefix={tmp_path}/"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_what_fuzzing_found_before_is_found_no_more() -> None:
    known = sorted(REGRESSIONS.glob("*"))
    assert known
    done = python("-m", MODULE, *map(str, known))
    assert done.returncode == 0, done.stderr[-4000:]
