"""Wheel and sdist: each installs alone in a clean environment, and answers as the sources do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from analyzer import __version__
from release import manual
from tests.packages.conftest import Clean, build, run
from tests.support.captures import ROOT
from tests.support.commands import CAPTURE

pytestmark = pytest.mark.packages

#: How a golden file was made: the capture, in the root of the project.
_GIVEN = [
    str((CAPTURE / name).relative_to(ROOT)) for name in ("iptables-legacy-save.txt", "objects.json")
]
ASKED = ["loss", _GIVEN[0], "--dead-node", "master", "--objects", _GIVEN[1], "--node", "worker1"]


def check(program: Path, folder: Path) -> None:
    """Ask an installed program, where nothing of the project lies but the files it is asked of."""
    for name in _GIVEN:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    assert run(program, "--version", where=folder) == f"kubeodds {__version__}\n"
    golden = (CAPTURE / "expected" / "loss.txt").read_text(encoding="utf-8")
    assert run(program, *ASKED, "--format", "text", where=folder) == golden
    assert run(program, "collect", where=folder).startswith("#!/bin/sh")


def test_the_wheel_installs_alone(wheel: Path, clean: Clean, tmp_path: Path) -> None:
    clean.pip("install", "--quiet", "--no-index", str(wheel))
    check(clean.program("kubeodds"), tmp_path)
    check(clean.program("kubectl-odds"), tmp_path)
    installed = {each["name"] for each in json.loads(clean.pip("list", "--format", "json"))}
    assert installed - {"pip", "setuptools"} == {"kubeodds"}
    share = clean.folder / "share"
    pages = {path.name for path in (share / "man" / "man1").iterdir()}
    assert pages == {path.name for path in (ROOT / manual.FOLDER).iterdir()}
    for shell, place in (
        ("bash", "bash-completion/completions/kubeodds"),
        ("zsh", "zsh/site-functions/_kubeodds"),
        ("fish", "fish/vendor_completions.d/kubeodds.fish"),
    ):
        shown = run(clean.program("kubeodds"), "completion", shell, where=tmp_path)
        assert (share / place).read_text(encoding="utf-8") == shown


def test_the_wheel_holds_the_package_and_the_lab_and_its_inventory(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    info = f"kubeodds-{__version__}.dist-info"
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"analyzer", "netns_lab", info, f"kubeodds-{__version__}.data"}
    assert {f"{info}/sboms/kubeodds.cdx.json", f"{info}/licenses/LICENSE"} <= set(names)
    sources = {
        path.relative_to(base).as_posix()
        for base, package in ((ROOT, "analyzer"), (ROOT / "netns-lab", "netns_lab"))
        for path in (base / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources == {name for name in names if name.startswith(("analyzer/", "netns_lab/"))}


@pytest.mark.lab
def test_the_wheel_with_its_lab_measures(wheel: Path, clean: Clean, tmp_path: Path) -> None:
    clean.install(f"{wheel}[lab]")
    check(clean.program("kubeodds"), tmp_path)
    words = ["lab", "run", *ASKED[1:], "--service", "default/app", "--flows", "1000"]
    assert "Verdict: agrees" in run(clean.program("kubeodds"), *words, where=tmp_path)


def test_the_sdist_installs_alone(sdist: Path, clean: Clean, tmp_path: Path) -> None:
    clean.install(str(sdist))
    check(clean.program("kubeodds"), tmp_path)


def test_what_is_built_of_the_sdist_is_the_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    build(unpacked, tmp_path / "again", "wheel")
    (again,) = (tmp_path / "again").iterdir()
    assert again.read_bytes() == wheel.read_bytes()


def test_the_same_sources_give_the_same_packages(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        build(ROOT, tmp_path, "wheel", "sdist")
    finally:
        os.umask(before)
    for made in (wheel, sdist):
        assert (tmp_path / made.name).read_bytes() == made.read_bytes()


def test_each_way_to_install_of_the_readme_works(sdist: Path, tmp_path: Path) -> None:
    """Word for word, in a folder that holds just what is published."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (clone,) = tmp_path.iterdir()
    environment = {
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_MAN_DIR": str(tmp_path / "man"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    section = (clone / "README.md").read_text(encoding="utf-8").split("## Install\n")[1]
    (ways,) = re.findall(r"```sh\n(.*?)```", section.split("\n## ")[0], re.DOTALL)
    lines = [line.partition(" #")[0].strip() for line in ways.splitlines()]
    assert [line.split()[0] for line in lines] == ["pipx", "make", "python3", "docker"]
    for line in lines:
        if not line.startswith("docker "):
            run("sh", "-c", line, where=clone, **environment)
    check(tmp_path / "bin" / "kubeodds", tmp_path)
    assert (tmp_path / "man" / "man1" / "kubeodds-loss.1").is_file()
    check(clone / "dist" / "kubeodds.pyz", tmp_path)


def test_the_image_runs(tmp_path: Path) -> None:
    docker = shutil.which("docker") or shutil.which("podman")
    if (
        docker is None
        or subprocess.run([docker, "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no engine of containers runs here")
    run(docker, "build", "-f", "Containerfile", "-t", "kubeodds:test", ".", where=ROOT)
    dump = f"{CAPTURE / 'iptables-legacy-save.txt'}:/dump.txt:ro"
    words = (docker, "run", "--rm", "--network", "none", "-v", dump, "kubeodds:test")
    assert "default/app" in run(*words, "services", "/dump.txt", where=tmp_path)


def test_kubectl_takes_it_for_its_own_verb(wheel: Path, clean: Clean, tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    clean.pip("install", "--quiet", "--no-index", str(wheel))
    path = f"{clean.folder / 'bin'}:{os.environ['PATH']}"
    assert run(kubectl, "odds", "--version", where=tmp_path, PATH=path).startswith("kubeodds ")
