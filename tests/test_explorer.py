"""What `explore` shows on a terminal, key by key, beside what `loss` says."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textual")

from rich.text import Text
from textual.widgets import DataTable, Input, SelectionList, Static

from analyzer.arguments.command_line import parse
from analyzer.arguments.examples import EXAMPLES
from analyzer.errors import UsageError
from analyzer.verbs import explore as explore_verb
from tests.support.commands import CAPTURE, DUMP, OBJECTS, Command
from tests.support.losses import document

GIVEN = [DUMP, *OBJECTS, "--node", "worker1"]


def play(words: list[str], task: Callable[[Any, Any], Awaitable[None]]) -> None:
    """Run the program on a terminal of 100 columns, and do something there."""

    async def run() -> None:
        app = explore_verb.app(parse(["explore", *words]))
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            await task(app, pilot)

    asyncio.run(run())


def rows(app: Any) -> list[list[str]]:
    table = app.query_one(DataTable)
    return [[str(cell) for cell in table.get_row_at(at)] for at in range(table.row_count)]


def status(app: Any) -> str:
    return str(app.query_one("#status", Static).render())


def shown(app: Any) -> str:
    return str(app.screen.query_one("#shown Static", Static).render())


def test_marking_a_node_shows_what_loss_says(command: Command) -> None:
    told: list[list[list[str]]] = []

    async def task(app: Any, pilot: Any) -> None:
        told.append(rows(app))
        assert "Dead: node master" in status(app)
        await pilot.press("j", "space")
        await pilot.pause()
        told.append(rows(app))
        assert "These rules are from worker1, which is dead: no new flows." in status(app)
        await pilot.press("a")
        await pilot.pause()
        told.append(rows(app))
        await pilot.press("c")
        await pilot.pause()
        told.append(rows(app))
        assert "Nothing marked dead." in status(app)

    play([*GIVEN, "--dead-node", "master"], task)
    for found, died in zip(told, (["master"], ["master", "worker1"], ["master"], []), strict=True):
        dead = [word for name in died for word in ("--dead-node", name)]
        if not died:
            assert {row[3] for row in found} == {"0.0%"}
            continue
        wanted = document(command, *GIVEN, *dead)["services"]
        assert {(row[0], row[1], row[3]) for row in found} == {
            (e["name"], e["protocol"], f"{100 * e['worst_loss']['upper']['value']:.1f}%")
            for e in wanted
        }


def test_with_nothing_dead_it_names_flows_whose_end_is_open(command: Command) -> None:
    text = Path(DUMP).read_text(encoding="utf-8")
    strange = text.replace("-j DNAT --to-destination 10.244.0.7:8080", "-j STRANGE")
    words = [command.file("strange.txt", strange), *OBJECTS]
    says = "Not known where up to 50.0% of new flows end, with nothing dead: default/app."

    async def task(app: Any, pilot: Any) -> None:
        assert says in " ".join(status(app).split())
        await pilot.press("space")
        await pilot.pause()
        assert "with nothing dead" not in status(app)

    play(words, task)
    assert says in command("loss", *words).out


def with_zones(command: Command) -> list[str]:
    """Return objects of which each node is in a zone of its own, and the words that name them."""
    items = json.loads((CAPTURE / "objects.json").read_text(encoding="utf-8"))
    for item in items["items"]:
        if item["kind"] == "Node":
            zone = {"master": "eu-a", "worker1": "[b]eu-b"}[item["metadata"]["name"]]
            item["metadata"].setdefault("labels", {})["topology.kubernetes.io/zone"] = zone
    return ["--objects", command.file("zones.json", json.dumps(items)), "--node", "worker1"]


def test_marking_a_zone_shows_what_loss_says(command: Command) -> None:
    words = [DUMP, *with_zones(command)]
    told: list[list[list[str]]] = []

    async def task(app: Any, pilot: Any) -> None:
        zones = app.query_one("#zones", SelectionList)
        assert (zones.border_title, zones.option_count) == ("zones", 2)
        # As with nodes: Tab goes there, j and k move, Space marks and takes back.
        for keys, dead in (
            ([], "Dead: zone eu-a"),
            (["tab", "j", "space", "k", "space"], "Dead: zone [b]eu-b"),
            (["shift+tab", "space"], "Dead: node master, zone [b]eu-b"),
            (["a"], "Dead: zone eu-a"),
            (["c"], "Nothing marked dead."),
        ):
            await pilot.press(*keys)
            await pilot.pause()
            assert dead in status(app)
            told.append(rows(app))

    play([*words, "--dead-zone", "eu-a"], task)
    died = (
        ["--dead-zone", "eu-a"],
        ["--dead-zone", "[b]eu-b"],
        ["--dead-zone", "[b]eu-b", "--dead-node", "master"],
        ["--dead-zone", "eu-a"],
    )
    for found, dead in zip(told, died, strict=False):
        wanted = document(command, *words, *dead)["services"]
        assert {(row[0], row[1], row[3]) for row in found} == {
            (e["name"], e["protocol"], f"{100 * e['worst_loss']['upper']['value']:.1f}%")
            for e in wanted
        }
    assert {row[3] for row in told[-1]} == {"0.0%"}


def test_without_zones_there_is_no_list_of_them() -> None:
    async def task(app: Any, pilot: Any) -> None:
        assert not app.query("#zones")
        await pilot.press("tab", "j", "enter")
        await pilot.pause()
        assert "default/app tcp" in shown(app)

    play([*GIVEN, "--dead-node", "master"], task)


def test_objects_of_another_cluster_are_said_to_be_so(command: Command) -> None:
    nodes = [{"kind": "Node", "metadata": {"name": "elsewhere"}}]
    objects = command.file("objects.json", json.dumps({"kind": "List", "items": nodes}))

    async def task(app: Any, pilot: Any) -> None:
        await pilot.press("space")
        await pilot.pause()
        assert "it is not known on which node any endpoint of this dump is" in status(app)
        assert rows(app) == []
        await pilot.press("c")
        await pilot.pause()
        assert "Nothing marked dead." in status(app)
        assert rows(app)

    play([DUMP, "--objects", objects], task)


@pytest.mark.deep
def test_a_filter_narrows_and_escape_ends_it() -> None:
    async def task(app: Any, pilot: Any) -> None:
        every = len(rows(app))
        await pilot.press("slash", *"DNS:dns")
        await pilot.pause()
        assert 0 < len(rows(app)) < every
        assert all("dns:dns" in row[0] for row in rows(app))
        await pilot.press("enter", "enter")
        await pilot.pause()
        assert "KUBE-SVC-" in shown(app)
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert len(rows(app)) == every
        assert not app.query_one("#filter", Input).has_class("asked")

    play([*GIVEN, "--dead-node", "master"], task)


def test_enter_shows_the_tree_of_a_service_with_what_is_dead() -> None:
    async def task(app: Any, pilot: Any) -> None:
        await pilot.press("tab", "j", "enter")
        await pilot.pause()
        assert "default/app tcp, a new flow from a pod to ClusterIP" in shown(app)
        assert "10.244.0.7:8080 on master DEAD" in shown(app)
        await pilot.press("q")
        await pilot.pause()
        assert len(app.screen_stack) == 1

    play([*GIVEN, "--dead-node", "master"], task)


def test_the_table_is_fitted_to_the_terminal() -> None:
    async def task(app: Any, pilot: Any) -> None:
        for width, names in ((80, {"default/ku\u2026netes:https"}), (120, {"every route"})):
            await pilot.resize_terminal(width, 30)
            await pilot.pause()
            await pilot.pause()
            table = app.query_one(DataTable)
            assert table.virtual_size.width <= table.size.width
            told = rows(app)
            assert names <= {cell for row in told for cell in row}
            assert all("loss" in " ".join(row) for row in told)

    play([*GIVEN, "--dead-node", "master"], task)


def test_columns_are_as_wide_as_what_a_filter_leaves() -> None:
    async def task(app: Any, pilot: Any) -> None:
        await pilot.press("slash", *"dns-tcp", "enter")
        await pilot.pause()
        (row,) = rows(app)
        columns = app.query_one(DataTable).ordered_columns
        # Those that textual finds itself, when it is idle, may be those of headings alone.
        assert not any(column.auto_width for column in columns)
        widths = [max(len(cell), len(each.label)) for cell, each in zip(row, columns, strict=True)]
        assert [column.width for column in columns] == widths

    play([*GIVEN, "--dead-node", "master"], task)


def test_what_is_marked_shows_without_colour() -> None:
    async def task(app: Any, pilot: Any) -> None:
        await pilot.pause()
        marks = app.query_one("#nodes", SelectionList)
        shown = [marks.render_line(at).text.strip() for at in range(2)]
        assert shown == ["\u2590X\u258c master", "\u2590 \u258c worker1"]

    play([*GIVEN, "--dead-node", "master"], task)


def test_ctrl_c_quits() -> None:
    async def task(app: Any, pilot: Any) -> None:
        await pilot.press("slash", "ctrl+c")
        await pilot.pause()
        assert not app.is_running

    play(GIVEN, task)


def test_on_a_dumb_terminal_it_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    with pytest.raises(UsageError, match="TERM is dumb"):
        explore_verb.explore(parse(["explore", *GIVEN]))


def test_help_lists_the_keys_and_q_quits() -> None:
    async def task(app: Any, pilot: Any) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Space          mark a node or a zone dead" in shown(app)
        await pilot.press("escape", "q")
        await pilot.pause()
        assert not app.is_running

    play(GIVEN, task)


def test_names_are_text_whatever_they_hold(command: Command) -> None:
    text = (CAPTURE / "iptables-legacy-save.txt").read_text(encoding="utf-8")
    text = text.replace("default/app", "default/[red]\x1b[31m[/]x")
    given = command.file("dump.txt", text)

    async def task(app: Any, pilot: Any) -> None:
        names = [row[0] for row in rows(app)]
        assert "default/[red]\u241b[31m[/]x" in names
        assert isinstance(app.query_one(DataTable).get_row_at(0)[0], Text)
        await pilot.press("tab", *"jjjj", "enter")
        await pilot.pause()
        assert "\x1b" not in shown(app)

    play([given, *OBJECTS, "--node", "worker1"], task)


@pytest.mark.parametrize("line", EXAMPLES["explore"])
def test_an_example_of_the_help_is_read(command: Command, line: str) -> None:
    command.file("dump.txt", (CAPTURE / "iptables-legacy-save.txt").read_bytes())
    command.file("objects.json", (CAPTURE / "objects.json").read_bytes())
    app = explore_verb.app(parse(shlex.split(line)[1:]))
    assert app.nodes == ["master", "worker1"]


def test_without_a_terminal_it_says_what_to_do_instead(command: Command) -> None:
    done = command("explore", *GIVEN)
    assert (done.status, done.out) == (2, "")
    assert "explore needs a terminal" in done.err
    assert "--format html" in done.err
