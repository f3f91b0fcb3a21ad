"""Dumps that are damaged: what may stand there nobody knows, and no end of a packet is certain."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer import cli
from tests.support.defects import path
from tests.support.json_reader import read

LOCAL, DROP, UNKNOWN = "local", "drop", "unresolved"


def traced(capsys: pytest.CaptureFixture[str], name: str) -> Any:
    packet = ["--from", "203.0.113.7", "--to", "172.16.0.1:22", "--node-ip", "172.16.0.1"]
    assert cli.main(["trace", path(name), *packet, "--format", "json"]) == 0
    return read(capsys.readouterr().out)


def ends(document: Any) -> dict[str, tuple[float, float]]:
    """The bounds of each end."""
    return {
        each["outcome"]: (float(each["probability"][0]), float(each["probability"][1]))
        for each in document["outcomes"]
    }


@pytest.mark.parametrize(
    ("name", "may_be", "code", "line"),
    [
        ("policy-misspelt.txt", {DROP, LOCAL}, "unknown-policy", 2),
        ("policy-misspelt.nft", {DROP, LOCAL}, "unknown-policy", 3),
        ("flushed-between.txt", {LOCAL, UNKNOWN}, "noise", 6),
        ("deleted-and-replaced.txt", {LOCAL, UNKNOWN}, "noise", 5),
        ("dash-lost.txt", {LOCAL, UNKNOWN}, "noise", 5),
        ("rule-outside-chain.nft", {LOCAL, UNKNOWN}, "unknown-block", 5),
        ("indent-of-blanks.nft", {LOCAL, DROP}, "iptables-nft", 4),
        ("priority-unknown.nft", {LOCAL, UNKNOWN}, "unknown-priority", 3),
        ("hook-not-understood.nft", {LOCAL, UNKNOWN}, "unknown-hook", 3),
        ("flags-misspelt.nft", {LOCAL, UNKNOWN}, "unknown-flag", 7),
        ("table-cut-off.nft", {DROP, UNKNOWN}, "cut-off", 7),
        ("chain-twice.nft", {LOCAL, UNKNOWN}, "declared-twice", 6),
        ("block-misspelt.nft", {LOCAL, UNKNOWN}, "unknown-block", 2),
        ("set-twice.nft", {LOCAL, DROP}, "declared-twice", 11),
        ("priority-missing.json", {LOCAL, UNKNOWN}, "unknown-priority", "object 2,"),
        ("flags-misprinted.json", {DROP, UNKNOWN}, "unknown-flag", "object 1,"),
        ("chain-undeclared.json", {LOCAL, UNKNOWN}, "undeclared-chain", "object 2,"),
        ("element-object.json", {LOCAL, DROP}, "unknown-object", "object 3,"),
    ],
)
def test_where_a_dump_is_damaged_no_end_is_certain_and_the_place_is_named(
    name: str, may_be: set[str], code: str, line: int | str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = traced(capsys, name)
    assert ends(document) == dict.fromkeys(may_be, (0.0, 1.0))
    (told,) = [each for each in document["diagnostics"] if each["code"] == code]
    assert line == told["line"] or (told["line"] is None and told["message"].startswith(str(line)))


def test_elements_that_come_twice_in_a_set_are_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ends(traced(capsys, "elements-twice.nft")) == dict.fromkeys((LOCAL, DROP), (0.0, 1.0))


@pytest.mark.parametrize(
    "name", ["comment-ends-in-backslash.txt", "declaration-ends-in-backslash.txt"]
)
def test_a_backslash_swallows_no_rule(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(traced(capsys, name)) == {DROP: (1.0, 1.0)}
