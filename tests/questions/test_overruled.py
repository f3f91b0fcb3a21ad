"""What `--node-of` says of endpoints whose nodes the objects name is not used, and that is said."""

from __future__ import annotations

import pytest

from tests.support.commands import DUMP, OBJECTS, Command

FOR_ZZ = ("--node-of", "10.244.0.0/24=zz")
SAYS = (
    "warning: --node-of does not apply to 2 endpoint addresses that the objects place elsewhere, "
    "for example 10.244.0.7 on master, not on zz; "
)


@pytest.mark.parametrize("verb", [("loss", "--dead-node", "zz"), ("whatif",), ("services",)])
def test_a_network_that_the_objects_overrule_is_named(
    command: Command, verb: tuple[str, ...]
) -> None:
    name, *dead = verb
    assert SAYS in command(name, DUMP, *OBJECTS, *FOR_ZZ, *dead).err
    agreeing = ("--node-of", "10.244.0.0/24=master")
    assert command(name, DUMP, *OBJECTS, *agreeing).err == ""
    assert command(name, DUMP, *FOR_ZZ, "--node-of", "10.244.1.0/24=yy").err == ""


def test_one_of_a_store_is_named_too(command: Command) -> None:
    pytest.importorskip("duckdb")
    done = command("cluster", "build", DUMP, *OBJECTS, "--into", "made", "--engine", "serial")
    assert done.status == 0
    done = command("cluster", "loss", "made", *FOR_ZZ, "--dead-node", "zz")
    assert done.err.count(SAYS) == 1
