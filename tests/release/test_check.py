"""The checklist of a release: what fails, what is left to do, and what is fine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import check
from release.check import Item, ItemState


def test_a_tree_is_clean_or_what_is_not_committed_is_named() -> None:
    assert check.clean_tree("").verdict is ItemState.OK
    found = check.clean_tree(" M README.md\n?? new.txt\n")
    assert (found.verdict, found.says) == (ItemState.FAILED, "README.md, new.txt")


def test_two_versions_are_one_too_many() -> None:
    text = '[project]\nversion = "1.2.3"\n'
    assert check.one_version(text, "1.2.3").verdict is ItemState.OK
    found = check.one_version(text, "1.2.4")
    assert (found.verdict, "1.2.3" in found.says) == (ItemState.FAILED, True)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("# Changelog\n\n## [Unreleased]\n", ItemState.TO_DO),
        ("## [1.0] - 2026-11-22\n\n## [0.9]\n", ItemState.OK),
        ("## [Unreleased]\n\n## [1.0] - 2026-11-22\n", ItemState.TO_DO),
        ("", ItemState.TO_DO),
    ],
)
def test_the_changelog_begins_with_the_release(text: str, verdict: ItemState) -> None:
    assert check.changelog(text, "1.0").verdict is verdict


def test_the_tag_is_that_of_the_version() -> None:
    assert check.tagged("latest\nv1.0\n", "1.0").verdict is ItemState.OK
    assert check.tagged("v1.0.1\n", "1.0").verdict is ItemState.TO_DO


NAMES = (
    "kubectl-odds.zip",
    "kubeodds-1.0-py3-none-any.whl",
    "kubeodds-1.0.tar.gz",
    "kubeodds.pyz",
    "odds.yaml",
)


def test_every_package_is_there_and_known_by_its_digest(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(name, encoding="ascii")
    for _ in range(2):  # the digests are no package
        assert check.packages(tmp_path, "1.0").verdict is ItemState.OK
    rows = (tmp_path / check.SUMS).read_text(encoding="ascii").splitlines()
    assert rows == [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}" for name in NAMES]


def test_a_package_that_is_missing_or_of_another_version_is_named(tmp_path: Path) -> None:
    for name in NAMES[:-1]:
        (tmp_path / name).touch()
    (tmp_path / "kubeodds-0.9.tar.gz").touch()
    found = check.packages(tmp_path, "1.0")
    assert found.verdict is ItemState.FAILED
    assert found.says.endswith(": kubeodds-0.9.tar.gz, odds.yaml")
    assert not (tmp_path / check.SUMS).exists()


def test_a_manifest_that_names_a_file_is_not_published() -> None:
    assert check.published('{"uri": "https://example.org/a.zip"}').verdict is ItemState.OK
    assert check.published('{"uri": "file:///a.zip"}').verdict is ItemState.TO_DO


def test_a_command_is_judged_by_its_exit_status() -> None:
    assert check.checked("a", ["true"], {}).verdict is ItemState.OK
    found = check.checked("a", ["sh", "-c", 'exit "$N"'], {"N": "3"})
    assert (found.verdict, found.says[-1]) == (ItemState.FAILED, "3")


@pytest.mark.parametrize(
    ("verdict", "words", "status"),
    [
        (ItemState.OK, ["--final"], 0),
        (ItemState.TO_DO, [], 0),
        (ItemState.TO_DO, ["--final"], 1),
        (ItemState.FAILED, [], 1),
    ],
)
def test_what_is_left_to_do_fails_in_the_end_only(
    verdict: ItemState, words: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def judged(*, tests: bool) -> Iterator[Item]:
        assert tests
        yield Item("first", ItemState.OK)
        yield Item("second one", verdict, "why")

    assert check.main(words, judged) == status
    rows = capsys.readouterr().out
    assert rows == f"\nok      first\n{verdict.value:<6}  second one  why\n"
