"""``services --check``: what it prints and where, and how it exits."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from analyzer import cli, output
from tests.support.captures import FIXTURES
from tests.support.documents import schema

_CAPTURE = FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1"
CLEAN = _CAPTURE / "iptables-legacy-save.txt"
OBJECTS = str(_CAPTURE / "objects.json")
_EVEN = "0.50000000000"


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    """A dump of which one draw is not even."""
    path = tmp_path / "dump.txt"
    path.write_text(CLEAN.read_text().replace(_EVEN, "0.40000000000", 1))
    return str(path)


def test_a_clean_dump_is_said_to_be_clean(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--objects", OBJECTS], ["--objects", OBJECTS, "--node", "worker1"]):
        assert cli.main(["services", "--check", str(CLEAN), *more]) == output.DONE
        printed = capsys.readouterr()
        assert printed.out.endswith("\ncheck: no finding\n")
        assert printed.err == ""


def test_without_the_option_nothing_is_said(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["services", wrong]) == output.DONE
    printed = capsys.readouterr()
    assert "check:" not in printed.out
    assert printed.err == ""


@pytest.mark.parametrize("kind", ["text", "json", "tsv"])
def test_a_finding_is_a_warning_with_its_place_and_status_1(
    wrong: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["services", "--check", wrong, "--format", kind]) == output.NO
    printed = capsys.readouterr()
    lines = Path(wrong).read_text().split("\n")
    line = next(at for at, text in enumerate(lines, 1) if "0.40000000000" in text)
    assert printed.err.startswith(f"{wrong}:{line}: warning: endpoint ")
    assert "gets 40% of new flows to" in printed.err
    assert printed.err.count("\n") == 1
    if kind == "text":
        assert printed.out.endswith("\ncheck: 1 finding\n")
    if kind == "json":
        document = json.loads(printed.out)
        Draft202012Validator(schema("services")).validate(document)
        (told,) = document["diagnostics"]
        assert (told["code"], told["line"]) == ("wrong-probability", line)


def test_a_document_without_the_option_says_nothing_of_it(
    wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["services", wrong, "--format", "json"]) == output.DONE
    assert json.loads(capsys.readouterr().out)["diagnostics"] == []


def test_what_the_reader_said_is_not_said_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(CLEAN.read_text().replace(" --dport 9153", ""))
    assert cli.main(["services", str(path)]) == output.DONE
    assert capsys.readouterr().err.count("--dport") == 0
    assert cli.main(["services", "--check", str(path)]) == output.NO
    told = capsys.readouterr().err
    assert told.count("warning") == 1
    assert "every tcp flow to 10.96.0.10, whatever its port" in told
    # What is understood only in part goes before what is not as it should be.
    assert cli.main(["services", "--check", "--strict", str(path)]) == output.PARTLY


def test_objects_may_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = Path(OBJECTS).read_text()
    assert '"10.244.1.9"' in objects
    objects = objects.replace('"10.244.1.9"', '"10.244.1.8"')
    given = io.TextIOWrapper(io.BytesIO(objects.encode()))
    monkeypatch.setattr(sys, "stdin", given)
    assert cli.main(["services", "--check", str(CLEAN), "--objects", "-"]) == output.NO
    told = capsys.readouterr().err
    assert "10.244.1.9:8080, one of 2 there, but the EndpointSlices no longer list it" in told
    assert "never sent to 10.244.1.8:8080" in told


def test_another_mode_is_no_clean_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.txt"
    path.write_text("*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-LOAD-BALANCER - [0:0]\nCOMMIT\n")
    assert cli.main(["services", "--check", str(path)]) == output.NO
    assert "kube-proxy's ipvs mode; the checks are for iptables" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--objects", OBJECTS]])
def test_a_dump_without_the_filter_table_is_not_checked_in_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    path = tmp_path / "dump.txt"
    table = re.compile(r"^\*filter\n.*?^COMMIT\n", re.MULTILINE | re.DOTALL)
    path.write_text(table.sub("", CLEAN.read_text()))
    assert cli.main(["services", "--check", str(path), *more]) == output.NO
    printed = capsys.readouterr()
    assert printed.out.endswith("\ncheck: 1 finding\n")
    says = f"{path}: warning: table filter is not in the dump, so its rules were not checked: "
    assert printed.err.startswith(says)
    assert printed.err.count("\n") == 1
    assert cli.main(["services", "--check", str(path), *more, "--strict"]) == output.PARTLY


def test_what_a_dump_contains_is_printed_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "dump.txt"
    text = CLEAN.read_text().replace("default/app", "default/\x1b[31mapp")
    path.write_text(text)
    assert cli.main(["services", "--check", str(path)]) == output.NO
    printed = capsys.readouterr()
    assert "(default/\N{SYMBOL FOR ESCAPE}[31mapp)" in printed.err
    assert "\x1b" not in printed.err + printed.out


def test_a_malformed_rule_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(CLEAN.read_text().replace("--probability 0.5", "--probability x", 1))
    assert cli.main(["services", "--check", str(path)]) == output.BAD_INPUT
    assert "^" in capsys.readouterr().err
