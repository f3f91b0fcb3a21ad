"""Names of pods stand beside the addresses of endpoints, in every report that shows these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import CAPTURE, DUMP, OBJECTS, Command

ON_MASTER, ON_WORKER = "default/app-7c5d-x2x", "default/app-7c5d-qq7"


@pytest.fixture
def named(command: Command) -> list[str]:
    """Objects whose slices say which pods are behind the addresses of the app."""
    held: dict[str, Any] = json.loads(Path(CAPTURE / "objects.json").read_text(encoding="utf-8"))
    pods = {"10.244.0.7": ON_MASTER, "10.244.1.9": ON_WORKER}
    for item in held["items"]:
        for each in item.get("endpoints", []) if item["kind"] == "EndpointSlice" else []:
            pod = pods.get(each["addresses"][0])
            if pod is not None:
                namespace, _, name = pod.partition("/")
                each["targetRef"] = {"kind": "Pod", "namespace": namespace, "name": name}
    return ["--objects", command.file("named.json", json.dumps(held))]


def lines_of(text: str, address: str) -> list[str]:
    """Return the lines with an address, but for those of trees that show a rule alone."""
    found = [line for line in text.splitlines() if address in line]
    return [line for line in found if "-j" not in line or "label=" in line]


@pytest.mark.parametrize(
    "asked",
    [
        ("services", DUMP, "--service", "app"),
        ("loss", DUMP, "--service", "app", "--dead-node", "master", "-q"),
        ("loss", DUMP, "--all", "--dead-node", "master", "-q"),
        ("tree", DUMP, "app"),
        ("tree", DUMP, "app", "-o", "dot"),
        ("trace", DUMP, "--from", "pod", "--to", "app"),
        ("trace", DUMP, "--from", "pod", "--to", "app", "--dead-node", "master"),
    ],
    ids=" ".join,
)
def test_each_address_has_the_name_of_its_pod(
    command: Command, named: list[str], asked: tuple[str, ...]
) -> None:
    done = command(*asked, *named)
    assert done.status == 0, done.err
    for address, pod in (("10.244.0.7:8080", ON_MASTER), ("10.244.1.9:8080", ON_WORKER)):
        shown = [line for line in lines_of(done.out, address) if "not known:" not in line]
        assert shown
        for line in shown:
            assert pod in line
    # Where nobody names them, nothing is kept free for them.
    assert "POD" not in command(*asked, *OBJECTS).out


def test_diff_names_pods_of_endpoints_that_are_gone(command: Command, named: list[str]) -> None:
    text = Path(DUMP).read_text(encoding="utf-8")
    chain = "KUBE-SEP-S5UX5RFD5X5TSEPT"  # of 10.244.1.9:8080
    less = [line for line in text.split("\n") if chain not in line]
    less = [line.replace("-m statistic --mode random --probability 0.50000000000 ", "")
            if "default/app -> " in line else line for line in less]  # fmt: skip
    done = command("diff", DUMP, command.file("less.txt", "\n".join(less)), *named)
    assert f"10.244.1.9:8080 ({ON_WORKER}) gone" in done.out
