"""What is predicted of random dumps is what the kernel does with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.lab.running import python
from tests.support.lab.verified import Verified

pytestmark = pytest.mark.lab


@pytest.mark.deep
@pytest.mark.parametrize("module", ["foreign_verify", "cluster_verify"])
def test_routes_are_measured_as_predicted(tmp_path: Path, module: str) -> None:
    words = ["--dumps", "6", "--seconds", "120", "--seed", "3", "--keep", str(tmp_path)]
    done = python("-m", f"tests.support.lab.{module}", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["dumps"] + found.get("refused", 0) >= 6
    assert found["routes"] > 10 * found["dumps"]
    assert [*tmp_path.iterdir()] == []


def test_a_dump_that_disagrees_is_kept_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verified = Verified(tmp_path, 7)
    verified.put("not rules", [], "master", "a case", [])
    assert verified.finish() == 1
    line, counts = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["case"], line["status"], line["words"][0]) == ("a case", 2, f"{tmp_path}/7-0.txt")
    assert counts == {"dumps": 1, "routes": 0, "left_out": 0, "disagree": 1}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["7-0.json", "7-0.txt"]
