"""All real clients are held to their plans, where CLIENTS_REQUIRED=1: their time-outs take minutes.

`make soak` runs some of them, drawn anew each time.
"""

from __future__ import annotations

import pytest

from tests.support.lab.client_programs import PROGRAMS
from tests.support.lab.running import held_to_its_plan

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("dead", ["1/2", "2/5"])
@pytest.mark.parametrize("fate", ["silent", "refused", "unreachable"])
@pytest.mark.parametrize("program", [name for name in PROGRAMS if "kernel" not in name])
def test_a_client_fails_as_often_and_takes_as_long_as_its_plan_says(
    program: str, fate: str, dead: str
) -> None:
    held_to_its_plan(program, fate, dead, 96)


def test_a_kernel_gives_a_connection_up_when_it_should() -> None:
    held_to_its_plan("nc, kernel's time", "silent", "1/2", 32)
