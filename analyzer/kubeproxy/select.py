"""Find the ServicePorts that a person means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer.errors import UsageError, suggestion
from analyzer.kubeproxy.view import ServicePort, Source, View


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


def narrow(view: View, service: str | None, namespace: str | None) -> tuple[ServicePort, ...]:
    """Return the ServicePorts of that name and namespace, as far as either is given.

    Raises:
        UsageError: there is none.
    """
    found = view.services if service is None else select(view, service)
    if namespace is None:
        return found
    theirs = tuple(each for each in found if each.name.namespace == namespace)
    if not theirs:
        known = {each.name.namespace for each in view.services if each.name.namespace}
        which = "" if service is None else f" named {service}"
        hint = suggestion(namespace, known) if service is None else ""
        raise UsageError(f"no Service{which} in namespace {namespace} of this dump{hint}")
    return theirs


def names_in(
    views: Sequence[View], service: str | None, namespace: str | None
) -> frozenset[str] | None:
    """Return the names of the ServicePorts that are meant, in any of several dumps; None: all.

    Raises:
        UsageError: there is none in any of them.
    """
    if (service, namespace) == (None, None):
        return None
    found: set[str] = set()
    refused: list[UsageError] = []
    for view in views:
        try:
            found.update(each.name.text for each in narrow(view, service, namespace))
        except UsageError as error:
            refused.append(error)
    if len(refused) == len(views):
        raise refused[0]
    return frozenset(found)


def in_order(services: Iterable[ServicePort], by: str | None) -> tuple[ServicePort, ...]:
    """Return Services by `name`, by number of `endpoints`, or by `loss`: the most first.

    The loss of one that has lost nothing yet is the highest share of any of its endpoints.
    """
    name = sorted(services, key=lambda s: (s.name.text, s.protocol))
    match by:
        case "endpoints":
            return tuple(sorted(name, key=lambda s: -len(s.endpoints)))
        case "loss":
            return tuple(sorted(name, key=lambda s: -_busiest(s)))
        case _:
            return tuple(name)


def _busiest(service: ServicePort) -> float:
    routes = (route.columns()[1] for route in service.routes if route.source is not Source.HAIRPIN)
    return max((float(share.upper) for shares in routes for share in shares), default=0)


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
