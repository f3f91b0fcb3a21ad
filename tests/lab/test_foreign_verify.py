"""What is predicted of captures with rules of others is what the kernel does with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.lab.running import python

pytestmark = pytest.mark.lab


@pytest.mark.deep
def test_routes_beside_rules_of_others_are_measured_as_predicted(tmp_path: Path) -> None:
    words = ["--dumps", "6", "--seconds", "120", "--seed", "3", "--keep", str(tmp_path)]
    done = python("-m", "tests.support.lab.foreign_verify", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["dumps"] + found.get("refused", 0) == 6
    assert found["routes"] > 20 * found["dumps"]
    assert [*tmp_path.iterdir()] == []
