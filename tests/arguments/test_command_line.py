"""Options that take several values, and which words are theirs."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.arguments.command_line import parse, parser_of

VERBS = ("services", "tree", "trace", "loss", "diff")
PLACES = {"tree": ["DUMP", "SERVICE"], "diff": ["A", "B"]}
#: Options of all verbs that take several values of any text.
SEVERAL = {"--with": "others", "--objects": "objects"}

values = st.from_regex(r"[a-z0-9./][a-z0-9./-]{0,3}", fullmatch=True)


def options_of(verb: str) -> list[str]:
    """Return the options of a verb that its help shows."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), pytest.raises(SystemExit):
        parser_of(verb).parse_args(["--help"])
    return sorted(set(re.findall(r"--[a-z][a-z-]*", shown.getvalue())) - {"--help"})


def places_of(verb: str) -> list[str]:
    words = PLACES.get(verb, ["DUMP"])
    return [*words, "--to=10.0.0.1:80"] if verb == "trace" else words


@given(
    verb=st.sampled_from(VERBS),
    option=st.sampled_from(sorted(SEVERAL)),
    given_=st.lists(values, min_size=1, max_size=4),
    before=st.booleans(),
    data=st.data(),
)
def test_values_are_repeated_or_joined_or_follow_each_other(
    verb: str, option: str, given_: list[str], before: bool, data: st.DataObject
) -> None:
    repeated = [word for value in given_ for word in (option, value)]
    joined = [option, ",".join(given_)]
    equals = [f"{option}={value}" for value in given_]
    follow = [option, *given_]
    words = data.draw(st.sampled_from([repeated, joined, equals, follow]))
    # Of several words behind an option the last may be the dump.
    if before and words is not follow:
        found = parse([verb, *words, *places_of(verb)])
    else:
        found = parse([verb, *places_of(verb), *words])
    assert getattr(found, SEVERAL[option]) == given_


@pytest.mark.parametrize("verb", ["services", "loss"])
def test_a_word_that_the_verb_needs_is_no_value(verb: str) -> None:
    found = parse([verb, "--objects", "o.json", "DUMP"])
    assert (found.dumps, found.objects) == (["DUMP"], ["o.json"])
    assert parse([verb, "--objects", "o.json", "--", "DUMP"]).dumps == ["DUMP"]
    assert parse([verb, "--objects", "o.json", "-"]).dumps == ["-"]


def test_two_dumps_stand_anywhere() -> None:
    found = parse(["diff", "A", "--objects", "o.json", "p.json", "--with", "w", "-v", "B"])
    assert (found.a, found.b, found.objects) == ("A", "B", ["o.json", "p.json"])
    assert (found.others, found.verbose) == (["w"], True)


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["services", "--objects", "a", "b", "DUMP"], "DUMP"),
        (["tree", "--with", "a", "b", "DUMP", "SERVICE"], "DUMP or SERVICE"),
        (["diff", "--objects", "a", "b", "A", "B"], "A or B"),
    ],
)
def test_words_that_may_be_either_are_refused(
    words: list[str], needed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        parse(words)
    assert exited.value.code == 2
    assert f"it is unclear which word is {needed}" in capsys.readouterr().err


def test_a_list_of_nothing_is_not_no_list() -> None:
    for empty in ("", ",", ",,"):
        assert parse(["loss", "DUMP", "--dead", empty]).dead == [empty]
    assert parse(["loss", "DUMP", "--dead", ",10.0.0.1,"]).dead == ["10.0.0.1"]


def test_a_file_may_have_a_comma_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a,b").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    assert parse(["services", "DUMP", "--objects", "a,b"]).objects == ["a,b"]
    assert parse(["services", "DUMP", "--objects", "a,c"]).objects == ["a", "c"]


def test_each_of_several_values_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    found = parse(["services", "DUMP", "--node-ip", "10.0.0.1,fd00::1"])
    assert list(map(str, found.node_ip)) == ["10.0.0.1", "fd00::1"]
    with pytest.raises(SystemExit):
        parse(["services", "DUMP", "--node-ip", "10.0.0.1,x"])
    assert "argument --node-ip: 'x' is not an IP address" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_two_strokes_are_no_value_of_an_option(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in options_of(verb):
        with pytest.raises(SystemExit) as exited:
            parse([verb, "DUMP", f"{option}=--"])
        assert exited.value.code == 2
        assert f"error: argument {option}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["services", "DUMP", "--output", "-1"],
        ["services", "DUMP", "--output=--strict"],
        ["anonymise", "DUMP", "--salt-file=-m"],
        ["cluster", "build", "DUMPS", "--into", "-1"],
        ["watch", "--rules", "DUMP", "--into=-d"],
    ],
)
def test_no_file_is_written_whose_name_looks_like_an_option(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(words)
    name = words[-1].rpartition("=")[2]
    says = f"{name} looks like an option; write a file as ./{name}"
    assert says in capsys.readouterr().err
    *before, last = words
    for of_a_file in (f"./{name}", "-"):
        parse([*before, last.replace(name, of_a_file)])


def test_an_ipv4_mapped_address_of_the_node_is_the_ipv4_address() -> None:
    found = parse(["services", "DUMP", "--node-ip", "::ffff:192.0.2.1,fd00::1"])
    assert [str(each) for each in found.node_ip] == ["192.0.2.1", "fd00::1"]
