"""A short fuzzing run, from the captures as seeds; the long one is ``make fuzz``."""

from __future__ import annotations

import os
import subprocess  # noqa: TID251  # libFuzzer ends its process
import sys
from pathlib import Path

import pytest

pytest.importorskip("atheris", reason="atheris is not installed")

ROOT = Path(__file__).parents[2]
REGRESSIONS = Path(__file__).parent / "regressions"


def seeds(into: Path) -> None:
    for number, path in enumerate(sorted((ROOT / "fixtures/captures").glob("*/*/ip*-save.txt"))):
        text = path.read_text(encoding="utf-8")
        head = "*nat\n:PREROUTING ACCEPT [0:0]\n"
        (into / f"{number}.txt").write_text(head + text[-3500:], encoding="utf-8")
    for path in (ROOT / "fixtures/xt").glob("*.t"):
        words = [line.partition(" ; ")[0] for line in path.read_text().splitlines()]
        rows = [f"-A INPUT -p tcp -m {path.stem} {each} -j DROP" for each in words]
        text = "*filter\n:INPUT ACCEPT [0:0]\n" + "\n".join(rows) + "\nCOMMIT\n"
        (into / f"{path.stem}.txt").write_text(text, encoding="utf-8")


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = {"PYTHONPATH": str(ROOT)}
    return subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-m", "tests.fuzz.fuzz_reader", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **path},
        check=False,
    )


def test_mutated_dumps_raise_nothing_but_our_own_errors(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    seeds(corpus)
    done = fuzz(
        str(corpus), "-runs=600", "-seed=1", "-max_len=4096", f"-artifact_prefix={tmp_path}/"
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_what_fuzzing_found_before_is_found_no_more() -> None:
    known = sorted(REGRESSIONS.glob("*"))
    assert known
    done = fuzz(*map(str, known))
    assert done.returncode == 0, done.stderr[-4000:]
