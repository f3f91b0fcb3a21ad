"""``cluster build``: which files are dumps, of which nodes, and what becomes of them later."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from analyzer.cluster.store import NodeRow, Store
from analyzer.kubeproxy.generate import node_name
from tests.support.captures import FIXTURES
from tests.support.cluster_builds import NODES, kept, words
from tests.support.commands import Command

pytest.importorskip("duckdb")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"nothing that anybody knows\n", "not a dump of rules"),
        (b"\x1f\x8b\x08\x00 cut", "damaged"),
        (b"PK\x03\x04 cut", "truncated"),
        (None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_failed_node(
    dumps: Path, command: Command, content: bytes | None, why: str
) -> None:
    odd = dumps / "odd.txt"
    if content is None:
        odd.symlink_to("nowhere")
    else:
        odd.write_bytes(content)
    done = command("cluster", "build", *words(dumps))
    found = kept()
    assert done.status == 0
    assert "1 failed" in done.out
    assert found["odd"][0] == ""
    assert why.lower() in (found["odd"][1] + done.err).lower()
    assert len([digest for digest, _ in found.values() if digest]) == NODES


@pytest.mark.deep
def test_a_name_that_is_no_text_is_a_name_as_any(dumps: Path, command: Command) -> None:
    first = min(dumps.glob("*.txt"))
    (dumps / os.fsdecode(b"w\xff.txt")).write_bytes(
        first.read_bytes().replace(b"cluster IP", b"\xff\xfe", 1)
    )
    assert command("cluster", "build", *words(dumps)).status == 0
    assert kept()["w\\udcff"][0]
    assert "0 read now" in command("cluster", "build", *words(dumps)).out


def test_where_nothing_can_be_read_the_input_is_bad(command: Command) -> None:
    command.file("a.txt", "nothing\n")
    done = command("cluster", "build", "a.txt", "--into", "made", "--engine", "serial")
    assert done.status == 2
    assert "a was not read" in done.err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["nowhere/", "--into", "made"], "no such file or directory"),
        (["*.none", "--into", "made"], "no file has this name"),
        (["d.txt", "--into", "made", "--name-from", "("], "--name-from"),
        (["d.txt", "--into", "made", "--name-from", "(a)(b)"], "2 groups"),
        (["d.txt", "--into", "made", "--engine", "ftp://x"], "--engine ftp://x"),
        (["d.txt", "--into", "."], "it contains other files"),
        (["d.txt", "--into", "a*b"], "does not accept"),
        (["d.txt", "--into", "made", "--workers", "0"], "between 1"),
    ],
)
def test_what_makes_no_sense_is_bad_usage(command: Command, given: list[str], says: str) -> None:
    command.file("d.txt", "*nat\nCOMMIT\n")
    done = command("cluster", "build", *given)
    assert done.status == 2
    assert says in done.err
    assert "Traceback" not in done.err


@pytest.mark.deep
def test_other_objects_are_another_build(dumps: Path, command: Command) -> None:
    assert command("cluster", "build", *words(dumps)).status == 0
    done = command("cluster", "build", str(dumps), "--into", "made", "--engine", "serial")
    assert done.status == 2
    assert "other objects" in done.err


@pytest.mark.deep
@pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
def test_an_archive_is_read_as_its_folder_is(
    dumps: Path, command: Command, clean: dict[str, tuple[str, str]], suffix: str
) -> None:
    mode = "w:gz" if suffix.endswith("gz") else "w"
    with tarfile.open(f"all.{suffix}", mode) as archive:  # type: ignore[call-overload]  # a mode
        archive.add(dumps, "dumps")
    objects = ["--objects", str(dumps / "objects.json")]
    given = [f"all.{suffix}", *objects, "--into", "made", "--engine", "serial"]
    done = command("cluster", "build", *given)
    assert (done.status, done.err) == (0, "")
    assert kept() == clean
    assert "0 read now" in command("cluster", "build", *given).out


@pytest.mark.deep
def test_names_are_as_the_pattern_finds_them(dumps: Path, command: Command) -> None:
    done = command("cluster", "build", *words(dumps, "--name-from", "node-00(..)"))
    assert done.status == 0
    assert [*kept()] == [f"{number:02}" for number in range(NODES)]


def test_a_node_that_is_there_twice_is_read_once(dumps: Path, command: Command) -> None:
    shutil.copytree(dumps, dumps / "older")
    done = command("cluster", "build", *words(dumps))
    assert f"{NODES} nodes known, {2 * NODES} read now, {NODES} failed" in done.out
    assert "is already read from" in done.err


@pytest.mark.deep
def test_a_node_whose_dump_is_gone_is_not_known_any_more(dumps: Path, command: Command) -> None:
    assert command("cluster", "build", *words(dumps)).status == 0
    gone = node_name(2)
    (dumps / f"{gone}-iptables-save.txt").rename(dumps.parent / "kept")
    done = command("cluster", "build", *words(dumps))
    assert f"{NODES - 1} nodes known, 0 read now, 1 failed" in done.out
    assert f"{gone} was not read: its dump has disappeared since it was read" in done.err
    asked = ("cluster", "loss", "made", "--dead-node", node_name(1))
    assert f"not judged, since their rules are not known: {gone}" in command(*asked).err
    assert command(*asked, "--max-loss", "100%").status == 1
    (dumps.parent / "kept").rename(dumps / f"{gone}-iptables-save.txt")
    done = command("cluster", "build", *words(dumps))
    assert (done.err, f"{NODES} nodes known, 1 read now, 0 failed" in done.out) == ("", True)


@pytest.mark.deep
def test_dumps_that_were_moved_are_read_where_they_are_now(dumps: Path, command: Command) -> None:
    assert command("cluster", "build", *words(dumps)).status == 0
    before, moved = kept(), dumps.with_name("moved")
    dumps.rename(moved)
    changed = moved / f"{node_name(0)}-iptables-save.txt"
    changed.write_text(changed.read_text().replace("--probability 0.5", "--probability 0.4"))
    done = command("cluster", "build", *words(moved))
    assert (done.err, f"{NODES} nodes known, {NODES} read now, 0 failed" in done.out) == ("", True)
    after = kept()
    assert after.keys() == before.keys()
    others = {name for name, (digest, _) in after.items() if before[name][0] != digest}
    assert others == {node_name(0)}


@pytest.mark.deep
def test_what_another_run_has_read_goes_on_counting(dumps: Path, command: Command) -> None:
    aside = dumps.parent / "aside"
    aside.mkdir()
    for number in (0, 1):
        name = f"{node_name(number)}-iptables-save.txt"
        (dumps / name).rename(aside / name)
    objects = ("--objects", str(dumps / "objects.json"), "--into", "made", "--engine", "serial")
    assert command("cluster", "build", str(dumps), *objects).status == 0
    done = command("cluster", "build", str(aside), *objects)
    assert f"{NODES} nodes known, 2 read now, 0 failed" in done.out


@pytest.mark.deep
def test_a_member_that_an_archive_has_lost_is_gone(dumps: Path, command: Command) -> None:
    packed, files = command.folder / "all.tar", sorted(dumps.glob("*.txt"))

    def build(number: int) -> str:
        with tarfile.open(packed, "w") as archive:
            for each in files[:number]:
                archive.add(each, each.name)
        objects = ("--objects", str(dumps / "objects.json"), "--into", "made")
        return command("cluster", "build", str(packed), *objects, "--engine", "serial").out

    assert f"{NODES} nodes known" in build(NODES)
    assert f"{NODES - 1} nodes known, {NODES - 1} read now, 1 failed" in build(NODES - 1)


def test_backends_versions_and_bundles_of_a_node_are_together(command: Command) -> None:
    folder = FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1"
    own = command.folder / "w" / "worker1"
    own.mkdir(parents=True)
    dump = (folder / "iptables-legacy-save.txt").read_text()
    (own / "iptables-save").write_text(dump)
    (own / "ip6tables-save").write_text(
        "# Generated by ip6tables-save v1.8.9\n*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n"
    )
    given = ["w", "--objects", str(folder / "objects.json"), "--into", "made"]
    done = command("cluster", "build", *given, "--engine", "serial")
    assert (done.status, done.err) == (0, "")
    store = Store.open("made")
    (row,) = store.nodes()
    store.close()
    assert isinstance(row, NodeRow)
    assert (row.node, len(row.files)) == ("worker1", 2)
