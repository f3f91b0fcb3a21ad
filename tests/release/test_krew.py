"""The plugin of kubectl: what the manifest says of the archive is so."""

from __future__ import annotations

import hashlib
import json
import subprocess  # noqa: TID251  # the plugin, as kubectl runs it
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from analyzer import __version__
from release import krew


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("krew")
    assert krew.main([str(found)]) == 0
    return found


def platforms(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / krew.MANIFEST).read_text())["spec"][
        "platforms"
    ]
    return found


def test_the_manifest_names_the_archive_by_its_digest(folder: Path) -> None:
    archive = folder / krew.ARCHIVE
    for each in platforms(folder):
        assert each["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
        assert each["uri"] == archive.as_uri()


def test_every_file_that_the_manifest_asks_for_is_there_and_the_plugin_runs(
    folder: Path, tmp_path: Path
) -> None:
    for each in platforms(folder):
        with zipfile.ZipFile(folder / krew.ARCHIVE) as archive:
            assert {file["from"] for file in each["files"]} == set(archive.namelist())
            assert archive.getinfo(each["bin"]).external_attr >> 16 & 0o111 == 0o111
            archive.extractall(tmp_path)
        done = subprocess.run(  # noqa: S603  # our own program
            [sys.executable, "-I", "-S", str(tmp_path / each["bin"]), "--version"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"kubeodds {__version__}\n"


def test_a_published_archive_is_named_by_its_address(tmp_path: Path) -> None:
    krew.main([str(tmp_path), "--uri", "https://example.org/kubectl-odds.zip"])
    assert {each["uri"] for each in platforms(tmp_path)} == {"https://example.org/kubectl-odds.zip"}


def test_the_same_sources_give_the_same_archive(folder: Path, tmp_path: Path) -> None:
    krew.write(tmp_path)
    assert (tmp_path / krew.ARCHIVE).read_bytes() == (folder / krew.ARCHIVE).read_bytes()


def test_the_manifest_is_what_krew_asks_of_one() -> None:
    found = krew.manifest("file:///archive", "0" * 64)
    assert found["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert (found["kind"], found["metadata"]["name"]) == ("Plugin", "odds")
    assert found["spec"]["version"] == f"v{__version__}"
    assert "\n" not in found["spec"]["shortDescription"]
