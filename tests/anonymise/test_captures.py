"""All captures that there are, anonymised: the answers stay, and the names go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.anonymise.object_words import LABELS
from tests.support.anonymised import (
    ALWAYS_THERE,
    InFolder,
    Shown,
    answers_are_the_same,
    held_in,
    of_every_cluster,
    originals,
    shown,
    unpacked,
    words_of,
)
from tests.support.captures import items_of, text_of
from tests.support.effort import PROFILE

pytestmark = pytest.mark.skipif(PROFILE != "soak", reason="takes long")


def dumps_of(captures: Path) -> Iterator[tuple[Path, Path]]:
    """Give each dump with its objects."""
    for objects in sorted(captures.glob("*/*/objects.json*")):
        folder = objects.parent
        for dump in sorted([*folder.glob("ip*save.txt*"), *folder.glob("nft-list-ruleset.*")]):
            yield dump, objects


def check_names(given: Shown, folder: Path, kept: set[str]) -> None:
    """Look for each name, address and hash of the original in what was written."""
    dump, objects = Path(given.before[0]), Path(str(given.objects_before))
    old = originals([text_of(dump)], items_of(objects)) - kept
    old -= words_of(" ".join(LABELS))  # of the API's own, as `topology`
    assert held_in(text_of(objects), old)  # a dump of the other IP version may name nothing
    for data in unpacked(folder / "b.tgz").values():
        assert not held_in(data.decode(), old), dump


def test_every_verb_answers_as_before_and_no_name_is_left(captures: Path, tmp_path: Path) -> None:
    """Of many failures that are equal a cut list shows others by name, so that all are asked for.

    Of thousands of Services what more takes too long is not asked.
    """
    for number, (dump, objects) in enumerate(dumps_of(captures)):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = InFolder(folder)
        given = shown(command, [str(dump)], str(objects))
        node = ("--node", json.loads((dump.parent / "run.json").read_text())["node"])
        is_big = re.search("scale|big", dump.parent.name)
        whatif = ("--all", "--depth", "1") if is_big else ()
        answers_are_the_same(command, given, "services", names=node)
        answers_are_the_same(command, given, "whatif", *whatif, names=node)
        for verb in () if is_big else ("loss", "timeline", "pinned"):
            answers_are_the_same(command, given, verb, names=(*node, "--dead-node", node[1]))
        if "nft" not in dump.name:
            answers_are_the_same(command, given, "services", "--check", names=node)
        check_names(given, folder, of_every_cluster())


def test_with_every_name_no_name_is_left_at_all(captures: Path, tmp_path: Path) -> None:
    for number, (dump, objects) in enumerate(dumps_of(captures)):
        folder = tmp_path / str(number)
        folder.mkdir()
        given = shown(InFolder(folder), [str(dump)], str(objects), "--every-name")
        check_names(given, folder, set(ALWAYS_THERE))
