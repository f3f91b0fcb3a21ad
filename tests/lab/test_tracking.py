"""The kernel asks nat only where some rule needs conntrack."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.lab.running import in_lab
from tests.support.lab.tracking import IPTABLES, NFT, NOT_NEEDED

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def seen() -> Any:
    return json.loads(in_lab("from tests.support.lab.tracking import main; main()"))


@pytest.mark.deep
@pytest.mark.parametrize("name", IPTABLES)
@pytest.mark.parametrize("program", ["iptables-legacy", "iptables-nft"])
def test_nat_of_iptables_is_asked_with_a_rule_that_needs_conntrack(
    program: str, name: str, seen: Any
) -> None:
    assert seen[program][name] is (name not in NOT_NEEDED)


@pytest.mark.parametrize("name", NFT)
def test_nat_of_nft_is_asked_with_a_rule_that_needs_conntrack(name: str, seen: Any) -> None:
    assert seen["nft"][name] is (name not in NOT_NEEDED)
