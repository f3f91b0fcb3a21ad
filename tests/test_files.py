from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from analyzer.errors import InputError
from analyzer.files import files_of_objects, read_file, read_rules

RULES = b"*nat\n:A - [0:0]\n-A A -j ACCEPT\nCOMMIT\n"


def test_a_minus_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(RULES)))
    assert read_file("-", len(RULES)) == RULES
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(RULES)))
    assert read_rules("-", None, None, None, None, most=99).file == "<stdin>"


def test_a_file_is_unpacked_and_no_more_than_is_allowed(tmp_path: Path) -> None:
    name = str(tmp_path / "packed")
    Path(name).write_bytes(gzip.compress(RULES))
    assert read_file(name, 1_000) == RULES
    assert read_rules(name, None, None, None, None, most=1_000).rules == 1
    with pytest.raises(InputError, match=f"^{name}: "):
        read_file(name, len(RULES) - 1)


def test_of_a_folder_files_with_objects_are_read(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"kind": "Pod"}')
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"kind": "Node"}'))
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "notes.txt").write_text('"kind"')
    found = [Path(name).name for name, _ in files_of_objects([str(tmp_path)], 1_000)]
    assert found == ["a.json.gz", "b.json"]
