"""``make release-check``: whether this commit can be released, and what a person has left to do.

It runs every check there is, those of packages too, writes the packages into dist/ and says by
which digests they are known. What only a release brings about (its tag, its section in the
CHANGELOG) is listed as left to do, and fails where ``--final`` asks for it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from analyzer import __version__

ROOT: Final = Path(__file__).parents[1]
SUMS: Final = "SHA256SUMS"


class ItemState(Enum):
    """What became of an item, as it is printed."""

    OK = "ok"
    FAILED = "FAILED"
    TO_DO = "to do"


@dataclass(frozen=True, slots=True)
class Item:
    """A line of the checklist.

    Attributes:
        says: what is wrong or left to do, or what there is to know.
    """

    name: str
    verdict: ItemState
    says: str = ""


def clean_tree(status: str) -> Item:
    """Judge what ``git status --porcelain`` prints."""
    said = ", ".join(line[3:] for line in status.splitlines())
    verdict = ItemState.FAILED if said else ItemState.OK
    return Item("nothing that is not committed", verdict, said)


def one_version(pyproject: str, own: str) -> Item:
    """Judge the version of pyproject.toml by that which the program prints."""
    version = tomllib.loads(pyproject)["project"]["version"]
    if version == own:
        return Item("one version", ItemState.OK, own)
    return Item("one version", ItemState.FAILED, f"{version} in pyproject.toml, {own} in analyzer")


def changelog(text: str, version: str) -> Item:
    """Judge the CHANGELOG, in which a release has a section and nothing above it."""
    sections: list[str] = re.findall(r"^## \[([^\]]+)\]", text, re.MULTILINE)
    if version in sections[:1]:
        return Item("CHANGELOG", ItemState.OK, f"begins with {version}")
    return Item(
        "CHANGELOG", ItemState.TO_DO, f"its first section is to be [{version}], with a date"
    )


def tagged(tags: str, version: str) -> Item:
    """Judge the tags of the commit."""
    if f"v{version}" in tags.split():
        return Item("tag", ItemState.OK, f"v{version}")
    return Item("tag", ItemState.TO_DO, f"git tag --sign v{version}")


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    """Give the digest and the name of each package."""
    for path in sorted(folder.iterdir()):
        if path.name != SUMS:
            yield hashlib.sha256(path.read_bytes()).hexdigest(), path.name


def packages(folder: Path, version: str) -> Item:
    """Write the digests of all packages, and judge whether each is there."""
    rows = [*digests(folder)]
    wanted = {
        f"kubeodds-{version}-py3-none-any.whl",
        f"kubeodds-{version}.tar.gz",
        "kubeodds.pyz",
        "kubectl-odds.zip",
        "odds.yaml",
    }
    names = {name for _, name in rows}
    if names != wanted:
        odd = ", ".join(sorted(names ^ wanted))
        return Item("packages", ItemState.FAILED, f"missing, or of another version: {odd}")
    text = "".join(f"{digest}  {name}\n" for digest, name in rows)
    (folder / SUMS).write_text(text, encoding="ascii")
    return Item("packages", ItemState.OK, f"{len(rows)} in {folder.name}/, digests in {SUMS}")


def published(manifest: str) -> Item:
    """Judge where the manifest of krew says that the archive is."""
    if '"uri": "https://' in manifest:
        return Item("krew", ItemState.OK)
    return Item("krew", ItemState.TO_DO, "make packages URI=https://... of the published archive")


def checked(name: str, command: Sequence[str], environment: Mapping[str, str]) -> Item:
    """Run a command, whose output is seen, and judge it by its exit status."""
    sys.stdout.flush()
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False)  # noqa: S603  # ours
    if done.returncode:
        return Item(name, ItemState.FAILED, f"{' '.join(command)}: exit status {done.returncode}")
    return Item(name, ItemState.OK)


def items(*, tests: bool) -> Iterator[Item]:
    """Give each line of the checklist, as it is known."""
    yield clean_tree(_git("status", "--porcelain"))
    yield one_version((ROOT / "pyproject.toml").read_text(encoding="utf-8"), __version__)
    if tests:
        every = {"PACKAGES_REQUIRED": "1", "LAB_REQUIRED": "1", "HYPOTHESIS_PROFILE": "ci"}
        yield checked("every check", [sys.executable, "-m", "tests.support.quick_check"], every)
    folder = ROOT / "dist"
    for old in folder.glob("*"):
        old.unlink()
    built = checked("build", ["make", "--no-print-directory", "packages"], {})
    yield built
    if built.verdict is ItemState.OK:
        yield packages(folder, __version__)
        yield published((folder / "odds.yaml").read_text(encoding="utf-8"))
    yield changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)
    yield tagged(_git("tag", "--points-at", "HEAD"), __version__)
    yield Item(
        "image", ItemState.TO_DO, f"docker build -f Containerfile -t kubeodds:{__version__} ."
    )


def _git(*words: str) -> str:
    done = subprocess.run(  # noqa: S603  # ours  # reads only
        ["git", *words],  # noqa: S607  # the one of PATH
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def shown(found: Sequence[Item]) -> str:
    """Return the checklist as text."""
    width = max(len(each.name) for each in found)
    rows = [
        f"{each.verdict.value:<6}  {each.name:<{width}}  {each.says}".rstrip() for each in found
    ]
    return "\n".join(rows) + "\n"


def status(found: Sequence[Item], *, final: bool) -> int:
    """Return the exit status: 1 where anything failed, and in the end where anything is left."""
    bad = {ItemState.FAILED, ItemState.TO_DO} if final else {ItemState.FAILED}
    return int(any(each.verdict in bad for each in found))


def main(words: Sequence[str] | None = None, judge: Callable[..., Iterator[Item]] = items) -> int:
    """Print the checklist and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m release.check", description=__doc__)
    parser.add_argument("--no-tests", action="store_true", help="build only; they have run before")
    parser.add_argument("--final", action="store_true", help="exit 1 if anything is left to do")
    options = parser.parse_args(words)
    found = [*judge(tests=not options.no_tests)]
    sys.stdout.write("\n" + shown(found))
    return status(found, final=options.final)


if __name__ == "__main__":
    sys.exit(main())
