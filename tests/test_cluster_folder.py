"""Which files of a folder are read and whose they are, and for whom a store is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from analyzer.cluster.store import Store
from analyzer.kubeproxy.generate import FLAGS, RulesLayout, mixed, node_name
from tests.support.clusters import GeneratedCluster
from tests.support.commands import Command

pytest.importorskip("duckdb")


@pytest.fixture
def dumps(command: Command) -> Path:
    """A folder with the dumps of two nodes, and with the objects."""
    folder = command.folder / "dumps"
    folder.mkdir()
    items = mixed(4, 2)
    for number in range(2):
        dump = GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(number)).dump
        (folder / f"{node_name(number)}-iptables-save.txt").write_text(dump)
    (folder / "objects.json").write_text(json.dumps({"kind": "List", "items": items}))
    return folder


def words(folder: Path) -> list[str]:
    objects = ["--objects", str(folder / "objects.json")]
    return [str(folder), *objects, "--into", "made", "--engine", "serial"]


def nodes() -> set[str]:
    store = Store.open("made")
    found = {each.node for each in store.nodes()}
    store.close()
    return found


@pytest.mark.parametrize("named", ["dumps", "dumps/*", "dumps/pipe"])
def test_what_is_no_file_is_named_and_not_opened(dumps: Path, command: Command, named: str) -> None:
    os.mkfifo(dumps / "pipe")
    (dumps / ".hidden").symlink_to("/nowhere")
    given = [named, "--objects", str(dumps / "objects.json"), "--into", "made"]
    done = command("cluster", "build", *given, "--engine", "serial")
    assert done.status == (2 if named == "dumps/pipe" else 0)
    assert "pipe was not read: neither a file nor a folder" in done.err


def test_a_link_to_a_folder_is_read_where_that_stands(dumps: Path, command: Command) -> None:
    (dumps / "latest").symlink_to(".")
    outside = command.folder / "outside"
    outside.mkdir()
    (outside / "other.txt").write_text("*nat\nCOMMIT\n")
    (dumps / "beyond").symlink_to(outside)
    done = command("cluster", "build", *words(dumps))
    assert done.status == 0
    assert "a link that leads out of" in done.err
    assert "latest" not in done.err


def test_all_that_is_kept_is_for_its_owner_only(dumps: Path, command: Command) -> None:
    made = command.folder / "made"
    made.mkdir(mode=0o755)
    assert command("cluster", "build", *words(dumps)).status == 0
    modes = {path.name: path.stat().st_mode & 0o777 for path in [made, *made.rglob("*")]}
    assert {modes[path.name] for path in [made, *made.rglob("*")] if path.is_dir()} == {0o700}
    files = [path.name for path in made.rglob("*") if path.is_file()]
    assert {modes[name] for name in files} == {0o600}
    assert any(name.endswith(".parquet") for name in files)


@pytest.mark.parametrize(
    ("registered", "dumped"),
    [("ip-10-0-0-1.ec2.internal", "ip-10-0-0-1"), ("ip-10-0-0-1", "ip-10-0-0-1.ec2.internal")],
)
def test_a_node_by_its_full_name_is_the_node_by_its_first_part(
    command: Command, registered: str, dumped: str
) -> None:
    items = mixed(4, 2)
    dump = GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(0)).dump
    other = GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(1)).dump
    text = json.dumps({"kind": "List", "items": items}).replace(node_name(0), registered)
    (command.folder / "d").mkdir()
    command.file(f"d/{dumped}-iptables-save.txt", dump)
    command.file(f"d/{node_name(1)}-iptables-save.txt", other)
    objects = command.file("o.json", text)
    given = ["d", "--objects", objects, "--into", "made", "--engine", "serial"]
    assert command("cluster", "build", *given).status == 0
    assert nodes() == {registered, node_name(1)}
    assert command("cluster", "drift", "made").status == 0
    done = command("cluster", "loss", "made", "--dead-node", registered, "-o", "json")
    assert json.loads(done.out)["vantage"] == [node_name(1)]


def test_a_node_that_the_objects_do_not_have_is_told_and_nothing_is_whole(
    dumps: Path, command: Command
) -> None:
    (dumps / f"{node_name(0)}-iptables-save.txt").rename(dumps / "other-iptables-save.txt")
    command("cluster", "build", *words(dumps))
    given = ["cluster", "loss", "made", "--dead-node", node_name(0), "--max-loss", "100%"]
    done = command(*given)
    assert "the objects have no node named other" in done.err
    assert done.status == 1
    assert command(*given, "--strict").status == 3
