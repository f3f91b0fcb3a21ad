"""What endpoints behind one node's rules send to a third node does not pass the lab's own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.clusters import GeneratedCluster
from tests.support.lab.running import lab_run
from tests.support.lab.two_nodes import cluster

pytestmark = pytest.mark.lab

ENDPOINTS: Final = {f"10.244.{at}.3": f"node{at}" for at in range(3)}
#: Of node0, which is not on the way.
BETWEEN: Final = (
    "-A FORWARD -s 10.244.1.0/24 -d 10.244.2.0/24 -j DROP",
    "-A FORWARD -s 10.244.2.0/24 -d 10.244.1.0/24 -j DROP",
)


def three_nodes() -> GeneratedCluster:
    """Return the cluster of two nodes, and a third one like the second."""
    made = cluster()
    items = json.loads(json.dumps(made.items))

    def third(item: Any) -> Any:
        text = json.dumps(item)
        for was, by in (("node1", "node2"), ("10.244.1.", "10.244.2."), ("9.11", "9.12")):
            text = text.replace(was, by)
        return json.loads(text)

    endpoints = items[-1]["endpoints"]
    endpoints.append(third(endpoints[1]))
    items.insert(2, third(items[1]))
    return replace(made, items=items)


def dump(node: str, *rules: str) -> str:
    rows = replace(three_nodes(), node=node).dump.splitlines()
    at = next(at for at, row in enumerate(rows) if row.startswith("-A FORWARD "))
    return "\n".join([*rows[:at], *rules, *rows[at:]]) + "\n"


def asked(folder: Path, here: str, **there: str) -> list[str]:
    """Return what asks about the endpoints of three nodes, of which these have rules."""
    objects = json.dumps({"kind": "List", "items": three_nodes().items})
    for name, text in {"objects.json": objects, "node0.txt": here, **there}.items():
        (folder / name).write_text(text)
    words = [str(folder / "node0.txt"), "--node", "node0"]
    words += ["--objects", str(folder / "objects.json"), "--from", "hairpin", "--flows", "600"]
    return words + [word for name in there for word in ("--rules", f"{name}={folder / name}")]


def by_sender(found: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Return the measurements of the frontends of a kind, by the node of the sender's rules."""
    return {m["node"]: m for m in found["measurements"] if m["frontend"].startswith(kind)}


@pytest.mark.parametrize("is_known", [True, False], ids=["with rules", "without"])
def test_rules_of_the_labs_own_node_are_not_on_the_way_between_others(
    tmp_path: Path, is_known: bool
) -> None:
    there = {"node1": dump("node1")} | ({"node2": dump("node2")} if is_known else {})
    status, found, errors = lab_run(*asked(tmp_path, dump("node0", *BETWEEN), **there))
    assert (status, found["agrees"], found["left_out"]) == (0, True, []), errors
    assert errors == ""
    each = by_sender(found, "ClusterIP")["node1"]
    assert {e["address"]: e["node"] for e in each["endpoints"]} == ENDPOINTS
    for endpoint in each["endpoints"]:
        assert endpoint["counted"] == endpoint["landed"] == endpoint["answered"] > 20


def test_rules_of_a_third_node_are_and_it_is_named(tmp_path: Path) -> None:
    rule = "-A FORWARD -s 10.244.1.3/32 -d 10.244.2.3/32 -p tcp -m tcp --dport 80 -j DROP"
    there = {"node1": dump("node1"), "node2": dump("node2", rule)}
    status, found, errors = lab_run(*asked(tmp_path, dump("node0"), **there))
    assert (status, found["agrees"], found["left_out"]) == (0, True, []), errors
    each = by_sender(found, "ClusterIP")["node1"]
    sent = next(e for e in each["endpoints"] if e["node"] == "node2")
    assert (sent["landed"], sent["predicted"]["upper"]["value"]) == (0, 0)
    named = {"rule": f"node node2, filter: {rule}", "packets": sent["counted"]}
    assert [told for told in each["ended_by"] if told["packets"]] == [named]
    assert each["unaccounted"] == sent["counted"] > 20
    # What comes to the third node masqueraded by node0 is not theirs.
    each = by_sender(found, "NodePort")["node1"]
    assert each["unaccounted"] == 0
