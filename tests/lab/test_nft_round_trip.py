"""What nft prints of rules that the kernel took is read alike from text and from JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests.support.lab.running import ROOT, environment

pytestmark = pytest.mark.lab


@pytest.mark.skipif(shutil.which("nft") is None, reason="no nft here")
def test_rules_that_the_kernel_took_read_back_equal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.lab.nft_round_trip", "--rulesets", "6"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["taken"] > counts["rules"] // 3
    assert counts["again"] >= 2
