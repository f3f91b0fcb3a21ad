"""Plain command lines, which are read without argparse, and argparse's own reading of them."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.arguments import fully, plainly

VERBS = ("services", "tree", "trace", "loss", "diff")
#: Values of options, places, and what is no plain word.
VALUES = (
    *("a", "b c", "", "-", "1", "-1", "é", "=", "a=b"),
    *("text", "json", "tsv", "dot", "nft", "pod", "node", "tcp", "NEW", "loss", "limit=under"),
    *("10.0.0.1", "10.0.0.0/8=n", "5%", "4000000000"),
    *("-v", "-vv", "-x", "--", "--format=json", "--all=1", "--form", "--unknown", "-h", "--help"),
)


def options_of(verb: str) -> list[str]:
    """Return the options of a verb that its help shows."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), pytest.raises(SystemExit):
        fully(verb, ["--help"])
    return sorted(set(re.findall(r"--[a-z][a-z-]*", shown.getvalue())) - {"--help"})


OPTIONS = {verb: options_of(verb) for verb in VERBS}


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    verb = draw(st.sampled_from(VERBS))
    word = st.sampled_from(OPTIONS[verb]) | st.sampled_from(VALUES) | st.text(max_size=3)
    plain = st.sampled_from(OPTIONS[verb]) | st.sampled_from(VALUES[:3])
    return verb, draw(st.lists(plain, max_size=6) | st.lists(word, max_size=8))


@given(line=lines())
def test_what_is_read_without_argparse_argparse_reads_alike(line: tuple[str, list[str]]) -> None:
    found = plainly(*line)
    if found is not None:
        assert vars(found) == vars(fully(*line))


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_read_alike(verb: str) -> None:
    places = {"tree": ["DUMP", "SERVICE"], "diff": ["A", "B"]}.get(verb, ["DUMP"])
    base = [*places, "--to", "10.0.0.1:80"] if verb == "trace" else places
    plain = 0
    for option in OPTIONS[verb]:
        for behind in ([], *([value] for value in VALUES), ["a", "b"], ["a", option, "b"]):
            for words in ([*base, option, *behind], [option, *behind, *base]):
                found = plainly(verb, words)
                plain += found is not None
                with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
                    assert found is None or vars(found) == vars(fully(verb, words))
                    continue
                assert found is None  # argparse refuses it
    assert plain > 5 * len(OPTIONS[verb])  # most of them need no argparse


@pytest.mark.parametrize("verb", VERBS)
def test_two_strokes_are_no_value_of_an_option(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in OPTIONS[verb]:
        with pytest.raises(SystemExit) as exited:
            fully(verb, ["DUMP", f"{option}=--"])
        assert exited.value.code == 2
        assert f"error: argument {option}: " in capsys.readouterr().err


def test_a_plain_line_is_read() -> None:
    words = ["dump", "--objects", "a", "b", "--strict", "-v", "--format", "tsv", "--objects", "c"]
    found = plainly("services", words)
    assert found is not None
    assert (found.dump, found.objects, found.format) == ("dump", ["a", "b", "c"], "tsv")
    assert (found.verb, found.strict, found.verbose, found.check) == ("services", True, True, False)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("services", ["dump", "--format=tsv"]),
        ("services", ["dump", "--format", "dot"]),
        ("services", ["dump", "--node-ip", "10.0.0.1"]),  # argparse makes it an address
        ("services", ["--", "dump"]),
        ("services", ["dump", "other"]),
        ("services", ["--strict"]),
        ("services", ["dump", "-h"]),
        ("trace", ["dump"]),  # --to is required
        ("loss", ["dump", "--max-loss", "1%"]),
        ("diff", ["a"]),
    ],
)
def test_what_is_not_plain_is_left_to_argparse(verb: str, words: list[str]) -> None:
    assert plainly(verb, words) is None
