"""Generated rulesets of nftables mode are what nft lists, byte for byte."""

from __future__ import annotations

import json

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab


def test_nft_lists_generated_rulesets_as_they_were_made() -> None:
    found = json.loads(in_lab("from tests.support.lab.nft_generated import main; main(30)").strip())
    assert found["differing"] == []
    assert found["listed"] == 60
