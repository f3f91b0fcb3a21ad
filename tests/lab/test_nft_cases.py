"""What the kernel makes of rules of nft, told by its trace and by where the packet comes out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.lab.nft_cases import CASES
from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def happened() -> Any:
    return json.loads(in_lab("from tests.support.lab.nft_cases import main; main()"))


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_does_as_was_measured(name: str, happened: Any) -> None:
    met, out = happened[name]
    assert met == list(CASES[name].met)
    assert out == CASES[name].out
