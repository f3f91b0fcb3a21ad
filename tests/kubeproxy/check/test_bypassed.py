"""Endpoints that rules before kube-proxy's leave out, as a repair does that was not undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import DUMP, OBJECTS, Command

BEFORE = "-A {0} -j KODDS-SERVICES\n-A {0} "
ONLY_ONE = "-A KODDS-SVC-A -p tcp -m tcp -j DNAT --to-destination 10.244.1.9:8080\n"


def repaired(command: Command, draw: str) -> str:
    """Return a dump with a chain before KUBE-SERVICES that takes the flows of default/app."""
    head, mark, nat = Path(DUMP).read_text().partition("*nat\n")
    rules = "-A KODDS-SERVICES -d 10.96.18.52/32 -p tcp -m tcp --dport 80 -j KODDS-SVC-A\n" + draw
    for hook in ("PREROUTING", "OUTPUT"):
        nat = nat.replace(f"-A {hook} ", BEFORE.format(hook), 1)
    nat = nat.replace("-A KUBE-MARK-MASQ", f"{rules}-A KUBE-MARK-MASQ", 1)
    declared = ":KODDS-SERVICES - [0:0]\n:KODDS-SVC-A - [0:0]\n:KUBE-SERVICES "
    return command.file("dump.txt", f"{head}{mark}{nat.replace(':KUBE-SERVICES ', declared, 1)}")


def test_a_repair_that_was_not_undone_is_found(command: Command) -> None:
    given = repaired(command, ONLY_ONE), *OBJECTS, "--node", "worker1", "--check"
    done = command("services", *given)
    assert (done.status, "check: 1 finding\n" in done.out) == (1, True)
    assert "new flows to default/app are never sent to 10.244.0.7:8080, which the End" in done.err
    # Without objects nothing says what there should be.
    assert command("services", given[0], "--check").status == 0


@pytest.mark.parametrize(
    "draw",
    [
        "-A KODDS-SVC-A -s 10.99.0.0/16 -j RETURN\n",
        "-A KODDS-SVC-A -m statistic --mode random --probability 0.5 -j RETURN\n" + ONLY_ONE,
    ],
)
def test_rules_that_keep_no_endpoint_from_its_flows_are_no_finding(
    command: Command, draw: str
) -> None:
    done = command("services", repaired(command, draw), *OBJECTS, "--node", "worker1", "--check")
    assert (done.status, "no finding" in done.out) == (0, True)
