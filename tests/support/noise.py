"""The dumps of nodes with other programs' rules, and what the command says of them."""

from __future__ import annotations

from typing import Any, Final

from analyzer.semantics.assumed import BY_NAME
from tests.support.captures import ROOT
from tests.support.commands import Command
from tests.support.json_reader import read

NOISE: Final = ROOT / "fixtures" / "noise"
OBJECTS: Final = ("--objects", str(NOISE / "objects.json"))
KNOWN: Final = (*OBJECTS, "--node", "worker1")
DEAD: Final = ("--dead-node", "master")
REVERSE_PATH: Final = BY_NAME["reverse-path"].sentences["pass"]
PODS: Final = BY_NAME["pod-interface"].sentences["usual"]
OUTSIDE: Final = BY_NAME["outside-interface"].sentences["uplink"]
CLUSTER_IP: Final = BY_NAME["cluster-ip"].sentences["not-local"]
NAMES: Final = ("base", "calico", "portmap", "nodelocaldns", "flannel", "aws-vpc-cni")
#: What is assumed, this way and that.
OTHERWISE: Final = ((), ("reverse-path=fail",), ("limits=over",), ("cluster-ip=unknown",))


def dump(name: str) -> str:
    return str(NOISE / f"{name}.txt")


def told(command: Command, verb: str, name: str, *more: str) -> Any:
    done = command(verb, dump(name), *more, "--format", "json")
    assert done.status == 0, done.err
    return read(done.out)


def assumed(found: Any) -> list[str]:
    return [each["message"] for each in found["diagnostics"] if each["code"] == "assumed"]


def shares(found: Any) -> dict[tuple[str, ...], Any]:
    """Return the bounds of each endpoint's share, by Service, frontend and source."""
    return {
        (*way(service, route), endpoint["address"]): endpoint["share"]
        for service in found["services"]
        for route in service["routes"]
        for endpoint in route["endpoints"]
    }


def way(service: Any, route: Any) -> tuple[str, ...]:
    frontend = route["frontend"]
    place = f"{frontend['address']}:{frontend['port']}"
    return service["name"], service["protocol"], place, route["source"], str(route["network"])


def masked(found: Any) -> list[object]:
    return [e["masquerade"] for s in found["services"] for r in s["routes"] for e in r["endpoints"]]
