"""The command `loss`, what it prints, and small dumps and objects to ask it about."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.commands import Command
from tests.support.dumps import dump, two_endpoints

ALL_CLEAR = re.compile(r"^No new flow goes to a dead endpoint\.$", re.MULTILINE)
IDLE = ["--dead", "10.0.0.1"]


def document(command: Command, *arguments: str) -> Any:
    """Return the JSON document that `loss` prints."""
    done = command("loss", *arguments, "--format", "json")
    assert done.status == 0, done.err
    return json.loads(done.out)


def service(name: str, **spec: Any) -> dict[str, Any]:
    """Return the API object of a Service."""
    namespace, _, bare = name.partition("/")
    address = spec.get("clusterIP", "10.96.9.9")
    ports = [{"port": 80, "protocol": "TCP", "name": "http"}]
    return {
        "kind": "Service",
        "metadata": {"namespace": namespace, "name": bare, "labels": spec.pop("labels", {})},
        "spec": {"clusterIP": address, "ports": ports, **spec},
    }


def with_services(command: Command, *services: dict[str, Any]) -> list[str]:
    """Return the option of objects that also place the endpoints of a small dump."""
    pods = [
        {"kind": "Pod", "spec": {"nodeName": f"n{n}"}, "status": {"podIP": f"10.0.0.{n}"}}
        for n in (1, 2, 3)
    ]
    text = json.dumps({"items": [*pods, *services]})
    return ["--objects", command.file("services.json", text)]


#: A small dump's own Service, and the filter table in which one without endpoints would stand.
OWN = service("ns/a", clusterIP="10.96.0.1")
REFUSING = "*filter\n:KUBE-SERVICES - [0:0]\nCOMMIT\n"
TWO = dump(*two_endpoints()) + REFUSING
