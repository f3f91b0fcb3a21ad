"""Networks whose sources fare the same: a few in words, all of them once in a document."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, Source
from analyzer.model.probability import NEVER
from analyzer.reports.route_networks import NetworkLists, network_fields, networks
from tests.support.commands import Command
from tests.support.documents import schema
from tests.support.noise import NOISE

BLOCKED = [IPv4Network((0x0B000000 + 512 * at, 24)) for at in range(1_000)]
FIRST = "11.0.0.0/24, 11.0.2.0/24, 11.0.4.0/24"


def route(*of: IPv4Network) -> Route:
    frontend = Frontend(FrontendKind.NODE_PORT, None, 80)
    return Route(frontend, Source.EXTERNAL, (), NEVER, of[0] if of else None, (), of[1:])


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, ""),
        (1, "11.0.0.0/24"),
        (3, FIRST),
        (4, f"{FIRST} and 1 other"),
        (1_000, f"{FIRST} and 997 others"),
    ],
)
def test_three_are_named_and_the_others_counted(number: int, told: str) -> None:
    assert networks(route(*BLOCKED[:number])) == told


def test_one_of_several_is_named_with_how_many_more_there_are() -> None:
    assert network_fields(route()) == {"network": None}
    assert network_fields(route(*BLOCKED[:1])) == {"network": "11.0.0.0/24"}
    assert network_fields(route(*BLOCKED)) == {"network": "11.0.0.0/24", "more_networks": 999}


def test_a_document_has_each_list_once() -> None:
    lists = NetworkLists()
    assert lists.fields(route()) == '"network":null'
    assert lists.fields(route(*BLOCKED[:1])) == '"network":"11.0.0.0/24"'
    assert lists.written() is None
    routes = [route(*BLOCKED[:3]), route(*BLOCKED[1:3]), route(*BLOCKED[:3])]
    told = [json.loads(f"{{{lists.fields(each)}}}") for each in routes]
    assert [each["networks"] for each in told] == [0, 1, 0]
    assert [json.loads(each) for each in lists.written() or ()] == [
        ["11.0.0.0/24", "11.0.2.0/24", "11.0.4.0/24"],
        ["11.0.2.0/24", "11.0.4.0/24"],
    ]


@pytest.fixture
def dump(command: Command) -> tuple[str, ...]:
    row = "-A FORWARD -m set --match-set blocked src -j DROP\n"
    text = (NOISE / "base.txt").read_text(encoding="ascii")
    listed = ["create blocked hash:net family inet", *(f"add blocked {each}" for each in BLOCKED)]
    return (
        command.file("dump.txt", text.replace("-A FORWARD", f"{row}-A FORWARD", 1)),
        *("--ipsets", command.file("sets", "\n".join(listed) + "\n")),
        *("--node-ip", "192.168.0.10"),
    )


def document(command: Command, *words: str) -> Any:
    found = json.loads(command(*words, "--format", "json").out)
    Draft202012Validator(schema(words[0])).validate(found)
    return found


@pytest.mark.parametrize("verb", ["services", "loss"])
def test_a_blocklist_is_one_list_of_a_document(
    command: Command, dump: tuple[str, ...], verb: str
) -> None:
    dead = ("--dead", "10.244.0.7") if verb == "loss" else ()
    found = document(command, verb, *dump, *dead)
    assert found["networks"] == [[str(each) for each in BLOCKED]]
    app = next(each for each in found["services"] if each["name"] == "default/app")
    routes = found["routes"][app["routes"]] if verb == "services" else app["routes"]
    external = [each for each in routes if each["source"] == "external"]
    rest = (None, None)
    assert [(e["network"], e.get("networks")) for e in external] == [rest, ("11.0.0.0/24", 0)]
    if verb == "loss":
        worst = app["worst_loss"]
        assert (worst["network"], worst["more_networks"]) == ("11.0.0.0/24", 999)


def test_a_blocklist_is_a_few_names_of_a_text(command: Command, dump: tuple[str, ...]) -> None:
    text = command("services", *dump).out
    assert "external 11.0.0.0/24" in text
    assert "and 997 other networks" in text
    assert len(text.splitlines()) < 30
    loss = command("loss", *dump, "--dead", "10.244.0.7", "--format", "tsv").out
    assert f"external in {FIRST} and 997 others" in loss


@pytest.mark.deep
def test_what_a_blocklist_drops_is_told_by_other_verbs_too(
    command: Command, dump: tuple[str, ...]
) -> None:
    base = command.file("base.txt", (NOISE / "base.txt").read_text(encoding="ascii"))
    found = command("diff", base, *dump)
    assert found.status == 1
    assert "11.0.0.0/24" in found.out
    tree = document(command, "tree", *dump, "default/app")
    assert tree["schema"] == "kubeodds/tree/2"
    whatif = document(command, "whatif", *dump, "--node-of", "10.244.0.0/24=a")
    assert whatif["schema"] == "kubeodds/whatif/1"
