"""Find the ServicePorts that a person means."""

from __future__ import annotations

from analyzer.errors import UsageError, suggestion
from analyzer.kubeproxy.view import ServicePort, View


def select(view: View, wanted: str) -> tuple[ServicePort, ...]:
    """Return what ``ns/name:port``, ``ns/name``, ``name[:port]`` or a frontend's IP names.

    Raises:
        UsageError: nothing of that name; the message says what is similar.
    """
    for names in (_full, _without_port, _bare, _frontends):
        found = tuple(s for s in view.services if wanted in names(s))
        if found:
            return found
    hint = suggestion(wanted, {s.name.text for s in view.services})
    raise UsageError(f"no Service {wanted} in this dump{hint}")


def _full(service: ServicePort) -> set[str]:
    return {service.name.text}


def _without_port(service: ServicePort) -> set[str]:
    name = service.name
    return {f"{name.namespace}/{name.service}"} if name.namespace and name.service else set()


def _bare(service: ServicePort) -> set[str]:
    name = service.name
    if name.service is None:
        return set()
    return {name.service, *([f"{name.service}:{name.port}"] if name.port else [])}


def _frontends(service: ServicePort) -> set[str]:
    found = {str(f) for f in service.frontends}
    return found | {str(f.address) for f in service.frontends if f.address is not None}
