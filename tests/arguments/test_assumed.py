"""``--assume`` and ``--assume-nothing``, of every verb that reads rules."""

from __future__ import annotations

import pytest

from analyzer.arguments.command_line import parse
from analyzer.semantics.assumed import ASSUMPTIONS, DEFAULTS
from tests.support.commands import DUMP, OBJECTS, Command

VERBS = {
    "services": (DUMP,),
    "tree": (DUMP, "default/app"),
    "trace": (DUMP, "--from", "10.244.1.9", "--to", "10.96.0.1:443"),
    "loss": (DUMP, "--dead", "10.244.0.7"),
    "whatif": (DUMP, *OBJECTS),
    "diff": (DUMP, DUMP),
}
OVER = {**DEFAULTS, "limits": "over"}


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ([], DEFAULTS),
        (["--assume", "limits=over"], OVER),
        (["--assume", "limit=over"], OVER),  # as it was called
        (["--assume", "limits=under", "--assume=limits=over"], OVER),
        (["--assume", "limits=over,policy=unknown"], {**OVER, "policy": "unknown"}),
        (["--assume", "limits=over", "--assume", "policy=unknown"], {**OVER, "policy": "unknown"}),
        (["--assume-nothing"], {}),
        (["--assume-nothing", "--assume", "limits=over"], {"limits": "over"}),
        (["--assume", "limits=over", "--assume-nothing"], {"limits": "over"}),
    ],
)
def test_what_is_named_replaces_the_default(words: list[str], want: dict[str, str]) -> None:
    for verb, given in VERBS.items():
        assert parse([verb, *given, *words]).assumed == want


@pytest.mark.parametrize(
    "word", ["", "limits", "limits=", "limits=x", "x=under", "=under", "limit"]
)
def test_another_name_or_value_is_bad_usage_and_all_are_listed(command: Command, word: str) -> None:
    for verb, given in VERBS.items():
        done = command(verb, *given, f"--assume={word}")
        assert done.status == 2
        assert done.out == ""
        message = done.err.splitlines()[0]
        assert f"argument --assume: {word!r} is not one of " in message
        for each in ASSUMPTIONS:
            assert f"{each.name}={'|'.join(each.values)}" in message


def test_the_lab_takes_them_too(command: Command) -> None:
    for verb in ("run", "clients"):
        assert "--assume NAME=VALUE" in command("lab", verb, "--help").out
