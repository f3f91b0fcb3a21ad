"""Real clients are held to their plans: one case here that waits for nobody.

All of them are in test_every_client.py.
"""

from __future__ import annotations

import pytest

from tests.support.lab.running import held_to_its_plan

pytestmark = pytest.mark.lab


@pytest.mark.deep
def test_glibc_fails_as_often_as_its_plan_says() -> None:
    held_to_its_plan("getent, search", "refused", "1/2", 24)
