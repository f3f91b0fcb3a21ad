"""Generated rulesets of nftables mode are what nft lists, byte for byte."""

from __future__ import annotations

import json

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab


PROGRAM = "from tests.support.lab.nft_generated import main; main(['--examples', '6'])"


@pytest.mark.deep
def test_nft_lists_generated_rulesets_as_they_were_made() -> None:
    found = json.loads(in_lab(PROGRAM))
    assert found["differing"] == []
    assert found["listed"] == 12
