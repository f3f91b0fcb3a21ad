from __future__ import annotations

import json

import pytest

from tests.support.lab.kernel_round_trip import BINARIES, offered
from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

PROGRAM = "from tests.support.lab.kernel_round_trip import main; main({arguments!r})"


@pytest.mark.deep
@pytest.mark.parametrize("binary", BINARIES)
def test_rules_that_the_real_iptables_loads_and_saves_are_the_same_rules(binary: str) -> None:
    arguments = ["--binary", binary, "--examples", "1"]
    trial = json.loads(in_lab(PROGRAM.format(arguments=arguments)))[binary]
    assert trial["faults"] == []
    assert set(trial["accepted"]) == {kind.__name__ for kind in offered(binary)}
    if binary == "iptables-legacy":
        # python-iptables reads the same table, and sees the same extensions.
        assert trial["witnessed"] > 0.9 * sum(trial["accepted"].values())


def test_what_programs_print_is_kept_as_it_is() -> None:
    """A prefix of LOG may have a carriage return, which is no end of a line."""
    program = (
        "from netns_lab.command import run\n"
        "from netns_lab.namespace import Namespace, leave_host\n"
        "leave_host()\n"
        "print(ascii(run(Namespace('x'), ['cat'], 'a\\rb\\n').stdout))"
    )
    assert in_lab(program).strip() == r"'a\rb\n'"
