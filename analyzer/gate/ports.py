"""The pod port that each port of a Service forwards to.

Source: Kubernetes, staging/src/k8s.io/endpointslice/utils.go, ``FindPort``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analyzer.parsers.api_objects import Object, at, elements, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def ports_of(service: Object, spec: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the ports of a Service by name with their port number on these pods, if any."""
    for port in elements(service, "spec", "ports"):
        target = at(port, "targetPort")
        target = at(port, "port") if target in (None, "", 0) else target
        if isinstance(target, str):
            target = _named(spec, target, at(port, "protocol") or "TCP")
        if type(target) is int:
            yield text(at(port, "name")) or "", target


def _named(spec: Mapping[str, Any], name: str, protocol: str) -> int | None:
    if name.isdecimal():  # as Helm writes numbers between quotes
        return int(name)
    sidecars = [c for c in elements(spec, "initContainers") if at(c, "restartPolicy") == "Always"]
    for container in [*elements(spec, "containers"), *sidecars]:
        for port in elements(container, "ports"):
            same = (at(port, "protocol") or "TCP") == protocol
            if at(port, "name") == name and same and type(at(port, "containerPort")) is int:
                return int(port["containerPort"])
    return None
