"""What pyproject.toml and the locks say, without building anything."""

from __future__ import annotations

import re
import tomllib

import pytest

from analyzer import __version__
from tests.support.captures import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WHEEL = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
LOCKS = sorted(ROOT.glob("requirements*.lock"))
#: Which lock holds a group, or the extras.
HOLDERS = {
    "test": "requirements.lock",
    "lint": "requirements.lock",
    "build": "requirements.lock",
    "lab": "requirements-lab.lock",
    "release": "requirements-release.lock",
}


def test_the_version_is_said_once_and_again_the_same() -> None:
    assert PYPROJECT["project"]["version"] == __version__


def test_kubectl_finds_the_program_as_its_plugin() -> None:
    scripts = PYPROJECT["project"]["scripts"]
    assert scripts["kubectl-odds"] == scripts["kubeodds"] == "analyzer.__main__:main"


def test_whatever_the_wheel_shares_or_is_made_of_is_there() -> None:
    named = [*WHEEL["shared-data"], *WHEEL["packages"], *WHEEL["sbom-files"]]
    named += [
        each.strip("/")
        for each in PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    ]
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_holds_versions_and_hashes_and_no_address(lock: object) -> None:
    text = (ROOT / str(lock)).read_text(encoding="utf-8")
    assert not re.search(r"https?:|file:|--(extra-)?index|find-links| @ ", text)
    for each in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE):
        if each.strip():
            assert re.match(r"[a-z0-9-]+==[^ ]+( ; .*)? \\\n    --hash=sha256:[0-9a-f]{64}", each)


@pytest.mark.parametrize("group", PYPROJECT["dependency-groups"])
def test_every_requirement_of_a_group_is_locked(group: str) -> None:
    lock = (ROOT / HOLDERS[group]).read_text(encoding="utf-8")
    locked = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    wanted = {re.split(r"[^a-z0-9-]", each)[0] for each in PYPROJECT["dependency-groups"][group]}
    assert wanted <= locked


def test_a_package_of_two_locks_has_the_same_versions_in_both() -> None:
    """By version of Python a lock may hold several of one package."""
    found: dict[str, set[frozenset[str]]] = {}
    for lock in LOCKS:
        versions: dict[str, set[str]] = {}
        text = lock.read_text(encoding="utf-8")
        for name, version in re.findall(r"^([a-z0-9-]+)==([^ ]+)", text, re.MULTILINE):
            versions.setdefault(name, set()).add(version)
        for name, several in versions.items():
            found.setdefault(name, set()).add(frozenset(several))
    assert {name: each for name, each in found.items() if len(each) > 1} == {}
