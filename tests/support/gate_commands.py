"""Manifests written for ``gate``, and its answer as JSON."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.support.commands import Command
from tests.support.gated import HOST, template, workload

TWO_ZONES: Final = ("--nodes", "2xzone=a,2xzone=b", "--seed", "1")


def documents(*items: Any) -> str:
    # JSON is YAML, and has no aliases.
    return "---\n".join(f"{json.dumps(each, indent=1)}\n" for each in items)


def manifest(command: Command, *items: Any) -> str:
    return command.file("m.yaml", documents(*items))


def json_of(command: Command, *words: str) -> Any:
    result = command("gate", *words, "--seed", "1", "-o", "json")
    assert result.status in {0, 1}, result.err
    return json.loads(result.out)


def web(replicas: int = 2, **spec: Any) -> Any:
    return workload("web", replicas, template("web", **spec))


def spread(**more: Any) -> Any:
    selector = {"matchLabels": {"app": "web"}}
    wanted = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    return {**wanted, "labelSelector": selector, **more}
