from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from analyzer.errors import InputError
from analyzer.inputs import files
from analyzer.inputs.files import files_of_objects, read_file, read_rules

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


def test_a_folder_is_read_with_those_in_it(tmp_path: Path) -> None:
    """As `kubectl cluster-info dump --output-directory` and must-gather fill it."""
    pods = tmp_path / "kube-system" / "coredns"
    pods.mkdir(parents=True)
    (tmp_path / "nodes.json").write_text('{"kind": "NodeList", "items": []}')
    (tmp_path / "kube-system" / "pods.v2.json").write_text('{"kind": "PodList", "items": []}')
    (tmp_path / "kube-system" / "slices.yaml").write_text("kind: EndpointSliceList")
    (tmp_path / "json").write_text('{"kind": "Node"}')
    (pods / "logs.txt").write_text('"kind"')
    found = [Path(name).name for name, _ in files_of_objects([str(tmp_path)], 1_000)]
    assert found == ["pods.v2.json", "slices.yaml", "nodes.json"]


def test_an_empty_file_of_a_folder_is_given_to_be_refused(tmp_path: Path) -> None:
    (tmp_path / "pods.json").write_bytes(b"")
    assert [data for _, data in files_of_objects([str(tmp_path)], 1_000)] == [b""]


@pytest.mark.parametrize("target", ["file.json", ""])
def test_a_link_that_leads_out_of_a_folder_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file.json").write_text('{"kind": "Node"}')
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link.json").symlink_to(tmp_path / "out" / target)
    with pytest.raises(InputError, match=r"link\.json: a link that leads out of"):
        list(files_of_objects([str(tmp_path / "folder")], 1_000))


def test_what_a_link_inside_leads_to_is_read_once(tmp_path: Path) -> None:
    """A mounted ConfigMap is such a folder: `..data` leads to a folder beside it."""
    real = tmp_path / "..2026"
    real.mkdir()
    (real / "a.json").write_text('{"kind": "Node"}')
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "a.json").symlink_to("..data/a.json")
    (real / "loop").symlink_to("..")
    found = [name for name, _ in files_of_objects([str(tmp_path)], 1_000)]
    assert found == [str(real / "a.json")]


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").write_text('{"kind": "Node"}')
    assert len(list(files_of_objects([str(tmp_path)], 1_000))) == 1


def test_a_folder_of_no_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_FILES", 10)
    (tmp_path / "below").mkdir()
    for number in range(9):
        (tmp_path / "below" / f"{number}.json").write_text('{"kind": "Node"}')
    assert len(list(files_of_objects([str(tmp_path)], 1_000))) == 9
    (tmp_path / "more.txt").touch()
    with pytest.raises(InputError, match="more than 10 files"):
        list(files_of_objects([str(tmp_path)], 1_000))


def test_all_files_of_a_folder_together_are_no_more_than_is_allowed(tmp_path: Path) -> None:
    data = b'{"kind": "Node"}'
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(data)
    assert len(list(files_of_objects([str(tmp_path)], 2 * len(data)))) == 2
    with pytest.raises(InputError, match="altogether more than"):
        list(files_of_objects([str(tmp_path)], 2 * len(data) - 1))
