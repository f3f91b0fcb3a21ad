"""What nft prints of rules that the kernel took is read alike from text and from JSON."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.support.lab.running import python

pytestmark = pytest.mark.lab


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("nft") is None, reason="no nft here")
def test_rules_that_the_kernel_took_read_back_equal() -> None:
    done = python("-m", "tests.support.lab.nft_round_trip", "--rulesets", "6")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["taken"] > counts["rules"] // 3
    assert counts["again"] >= 2
