"""The script that `collect` prints: options are numbers in it, and nothing else changes."""

from __future__ import annotations

import re
import stat
from argparse import ArgumentTypeError
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer import __version__
from analyzer.arguments.collect import script, seconds_from_text
from tests.support.commands import Command

TEXT = files("analyzer").joinpath("data/collect.sh").read_text(encoding="utf-8")


def changed(twice: int, timeout: int) -> list[str]:
    """Return the lines of the script that are not those of the file."""
    pairs = zip(script(twice=twice, timeout=timeout).split("\n"), TEXT.split("\n"), strict=True)
    return [line for line, before in pairs if line != before]


def test_options_are_put_where_they_belong_and_nothing_else_changes() -> None:
    assert changed(10, 7) == [f"version={__version__}", "twice=10", "limit=7"]
    assert changed(0, 20) == [f"version={__version__}"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("1", 1), ("10s", 10), ("2m", 120), ("3600", 3600), ("60m", 3600)]
)
def test_a_time_has_seconds_or_minutes(text: str, seconds: int) -> None:
    assert seconds_from_text(text) == seconds


@given(st.text(alphabet="0123456789sm;$`'\n -.\u0663", max_size=6))
def test_any_other_text_is_refused(text: str) -> None:
    try:
        seconds = seconds_from_text(text)
    except ArgumentTypeError:
        return
    number = int(text.rstrip("sm"))
    assert text in {f"{text.rstrip('sm')}{unit}" for unit in ("", "s", "m")}
    assert seconds == number * (60 if text.endswith("m") else 1)
    assert 1 <= seconds <= 3600


@pytest.mark.parametrize("text", ["0", "3601", "61m", "1;reboot", "$(id)", "-1", "", "\u0663"])
def test_no_other_time_comes_into_the_script(command: Command, text: str) -> None:
    done = command("collect", f"--twice={text}")
    assert (done.status, done.out) == (2, "")
    assert "is not a time" in done.err


def test_the_verb_prints_the_script(command: Command) -> None:
    done = command("collect", "--twice", "10s", "--timeout", "1m")
    assert (done.status, done.err) == (0, "")
    assert done.out == script(twice=10, timeout=60)
    assert done.out.startswith("#!/bin/sh\n")


def test_a_secret_comes_into_the_script_as_its_hash_only(command: Command) -> None:
    """Whatever it holds, a shell reads 64 digits of it."""
    command.file("salt", b"$(reboot)'; reboot; \xff\n")
    (command.folder / "salt").chmod(0o600)
    done = command("collect", "--digest", "salt")
    assert (done.status, done.err) == (0, "")
    (line,) = [
        line
        for line, before in zip(done.out.split("\n"), TEXT.split("\n"), strict=True)
        if line != before and not line.startswith("version=")
    ]
    assert re.fullmatch("salt=[0-9a-f]{64}", line)
    assert "reboot" not in done.out


def test_a_secret_that_is_not_there_is_made_for_its_owner(command: Command) -> None:
    one = command("collect", "--digest", "new")
    assert stat.S_IMODE((command.folder / "new").stat().st_mode) == 0o600
    assert command("collect", "--digest", "new").out == one.out
    command.file("short", "short")
    assert command("collect", "--digest", "short").status == 2
