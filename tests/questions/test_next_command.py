"""The commands that answers end with ask the same of the same input."""

from __future__ import annotations

import os
import subprocess  # noqa: TID251  # a shell reads what is printed
from types import SimpleNamespace
from typing import Any

import pytest

from analyzer.inputs.files import Member
from analyzer.parsers.contents import MOST_BYTES
from analyzer.questions.next_command import OF_DEAD, OF_INPUT, command, dumps_of, words_of_dead
from analyzer.semantics.assumed import DEFAULTS


def given(**told: Any) -> SimpleNamespace:
    nothing: dict[str, Any] = dict.fromkeys([*OF_INPUT.values(), *OF_DEAD.values()])
    usual = {"dumps": ["dump.txt"], "assumed": DEFAULTS, "max_input": MOST_BYTES}
    return SimpleNamespace(**{**nothing, **usual, **told})


def test_a_bundle_is_named_once_and_its_files_are_read_from_it_again() -> None:
    files = [Member.of("b.tgz", name, b"", "n1") for name in ("iptables-save", "ip6tables-save")]
    options = given(dumps=files, objects=[Member.of("b.tgz", "objects.json", b"", "n1")])
    assert dumps_of(options) == ["b.tgz"]
    assert command(options, "repair", ["b.tgz"], []) == "kubeodds repair b.tgz"


def test_options_are_repeated_and_quoted() -> None:
    options = given(objects=["o 1.json", "o2.json"], node_of=[("10.0.0.0/24", "n1")], dead=["::1"])
    words = "--objects 'o 1.json' --objects o2.json --node-of 10.0.0.0/24=n1"
    assert command(options, "loss", ["d"], words_of_dead(options)) == (
        f"kubeodds loss d {words} --dead ::1"
    )


@pytest.mark.parametrize(
    ("assumed", "words"),
    [
        (DEFAULTS, ""),
        ({**DEFAULTS, "limits": "over"}, " --assume limits=over"),
        ({**DEFAULTS, "pod-interface": "cali+ eth9"}, " --pod-interface cali+,eth9"),
        ({**DEFAULTS, "pod-interface": "unknown"}, " --assume pod-interface=unknown"),
        ({}, " --assume-nothing"),
        ({"limits": "under"}, " --assume-nothing --assume limits=under"),
    ],
)
def test_what_is_assumed_is_assumed_again(assumed: dict[str, str], words: str) -> None:
    assert command(given(assumed=assumed), "loss", ["d"], []) == f"kubeodds loss d{words}"


@pytest.mark.parametrize(
    "name", ["new\nline.txt", "esc\x1b[31m.txt", "it's\t\\ here", "\udcff.txt", "\u202egnp.txt"]
)
def test_names_that_cannot_be_shown_are_written_so_that_a_shell_reads_them(name: str) -> None:
    words = command(given(), "repair", [name], [])
    assert words.isprintable()
    assert words.isascii()
    script = f'kubeodds() {{ printf %s "$2"; }}; {words}'
    done = subprocess.run(  # noqa: S603  # a word of our own
        ["/bin/bash", "-c", script], capture_output=True, check=True
    )
    assert os.fsdecode(done.stdout) == name
