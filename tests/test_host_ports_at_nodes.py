"""hostPorts are each node's own: that others lack them, and that no object has them, is no fault."""

from __future__ import annotations

from tests.support.commands import Command
from tests.support.noise import OBJECTS, dump


def test_to_watch_a_host_port_is_no_drift(command: Command) -> None:
    asked = ("--rules", dump("portmap"), *OBJECTS, "--node", "worker1", "--max-age", "999999h")
    done = command("watch", *asked, "--npd")
    assert done.status == 0
    assert done.out == "6 ServicePorts: none loses new flows; rules match the objects\n"
