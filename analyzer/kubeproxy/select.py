"""Finds the ServicePorts that the user names.

Theory of operation: a word names a ServicePort in full (``ns/name:port``), without its port, by the
name alone, by an address of it, by a chain that kube-proxy made for it, or by its name in DNS or
kubectl (``name.ns.svc``, ``svc/name``). The first of these ways in which it names any is used, so
that no looser one adds others. ``*`` matches any characters if nothing has that name literally.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from analyzer.errors import UsageError, suggestion
from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import ServicePort, Source, View

#: What kubectl puts before a Service's name.
_KINDS: Final = ("svc/", "service/", "services/")
#: What may follow name and namespace in DNS.
_DOMAIN: Final = ("svc", "cluster", "local")


def select(view: View, wanted: str, place: str = "this dump") -> tuple[ServicePort, ...]:
    """Return the ServicePorts that one word names; `place` is what the view is of, in words.

    Raises:
        UsageError: there is none of that name; the message suggests a similar one.
    """
    bare = next((wanted.removeprefix(kind) for kind in _KINDS if wanted.startswith(kind)), wanted)
    for word in dict.fromkeys((wanted, bare)):
        for way in _WAYS:
            found = tuple(s for s in view.services if word in way(s))
            if found:
                return found
    found = _of_chain(view, wanted) or (_like(view, bare) if "*" in bare else ())
    if found:
        return found
    if wanted.startswith("KUBE-"):
        raise UsageError(
            f"no Service of chain {wanted} in {place}; chains are found by the names of Services: "
            "if rules have no comments, pass --objects, or give the Service's address"
        )
    hint = suggestion(wanted, {s.name.text for s in view.services}, _short_names(view))
    raise UsageError(f"no Service {wanted} in {place}{hint}")


def _short_names(view: View) -> dict[str, str]:
    """Return the names without namespace and port, each with its namespace if that is the only."""
    found: dict[str, set[str]] = {}
    for name in (each.name for each in view.services):
        if name.service is not None:
            found.setdefault(name.service, set()).add(f"{name.namespace}/{name.service}")
    return {name: min(whole) if len(whole) == 1 else name for name, whole in found.items()}


def narrow(
    view: View,
    services: Collection[str] = (),
    namespaces: Collection[str] = (),
    place: str = "this dump",
) -> tuple[ServicePort, ...]:
    """Return the ServicePorts of any of these names and namespaces, as far as either is given.

    Raises:
        UsageError: there is none for one of them.
    """
    found = view.services
    if services:
        named = {wanted: select(view, wanted, place) for wanted in services}
        for wanted, every in named.items():
            if namespaces and not any(_is_in(e, name) for e in every for name in namespaces):
                within = " or ".join(namespaces)
                raise UsageError(f"no Service named {wanted} in namespace {within} of {place}")
        meant = {id(each) for every in named.values() for each in every}
        found = tuple(each for each in found if id(each) in meant)
    if not namespaces:
        return found
    known = {each.name.namespace for each in view.services if each.name.namespace}
    for namespace in namespaces:
        if not any(_is_in(each, namespace) for each in found):
            which = f" named {', '.join(services)}" if services else ""
            hint = "" if services else suggestion(namespace, known)
            raise UsageError(f"no Service{which} in namespace {namespace} of {place}{hint}")
    return tuple(each for each in found if any(_is_in(each, name) for name in namespaces))


def _is_in(service: ServicePort, namespace: str) -> bool:
    own = service.name.namespace
    return own is not None and (own == namespace or ("*" in namespace and _fits(own, namespace)))


def names_in(
    views: Sequence[View], services: Collection[str], namespaces: Collection[str]
) -> frozenset[str] | None:
    """Return the names of the ServicePorts that are meant, in any of several dumps; None: all.

    Raises:
        UsageError: there is none in any of them.
    """
    if not services and not namespaces:
        return None
    found: set[str] = set()
    for one in [[wanted] for wanted in services] or [[]]:
        for within in [[namespace] for namespace in namespaces] or [[]]:
            refused: list[UsageError] = []
            for view in views:
                try:
                    found.update(each.name.text for each in narrow(view, one, within))
                except UsageError as error:
                    refused.append(error)
            if len(refused) == len(views):
                raise refused[0]
    return frozenset(found)


def in_order(services: Iterable[ServicePort], by: str | None) -> tuple[ServicePort, ...]:
    """Return Services by `name`, by number of `endpoints`, or by `loss`: the greatest first.

    Before any loss is known, it is taken to be the highest share of any endpoint.
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
    if not (name.namespace and name.service):
        return set()
    whole = f"{name.namespace}/{name.service}"
    return {whole, *_with_numbers(whole, service)}


def _bare(service: ServicePort) -> set[str]:
    name = service.name
    if name.service is None:
        return set()
    named = [f"{name.service}:{name.port}"] if name.port else []
    return {name.service, *named, *_with_numbers(name.service, service)}


def _with_numbers(name: str, service: ServicePort) -> set[str]:
    """Return a name with each port at which the Service is reached, except for NodePorts."""
    return {f"{name}:{f.port}" for f in service.frontends if f.address is not None and f.port}


def _of_no_service(service: ServicePort) -> set[str]:
    """Return the name of what belongs to no Service, as a hostPort does."""
    return {service.name.text} if service.name.service is None else set()


def _frontends(service: ServicePort) -> set[str]:
    found = {str(f) for f in service.frontends}
    return found | {str(f.address) for f in service.frontends if f.address is not None}


def _in_dns(service: ServicePort) -> set[str]:
    name = service.name
    if not (name.namespace and name.service):
        return set()
    host = f"{name.service}.{name.namespace}"
    hosts = [".".join((host, *_DOMAIN[:labels])) for labels in range(len(_DOMAIN) + 1)]
    return {each for host in hosts for each in (host, *_with_numbers(host, service))}


_WAYS: Final[tuple[Callable[[ServicePort], set[str]], ...]] = (
    _full,
    _without_port,
    _bare,
    _frontends,
    _in_dns,
)


def _like(view: View, pattern: str) -> tuple[ServicePort, ...]:
    """Return the ServicePorts that a pattern names, in the first way in which it names any."""
    # kube* means Services with such names, not all Services in namespaces with such names.
    ways = _WAYS if "/" in pattern else (*_WAYS[2:], _of_no_service)
    for way in ways:
        found = tuple(s for s in view.services if any(_fits(name, pattern) for name in way(s)))
        if found:
            return found
    return ()


def _fits(name: str, pattern: str) -> bool:
    """Return whether a name has the parts of a pattern between its stars, in this order."""
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    *middle, last = others
    if len(name) < len(first) + len(last):
        return False
    if not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _of_chain(view: View, chain: str) -> tuple[ServicePort, ...]:
    """Return the ServicePort for which kube-proxy makes a chain of this name."""
    prefixes = (*names.SERVICE_PREFIXES, names.ENDPOINT_PREFIX)
    prefix = next((each for each in prefixes if chain.startswith(each)), None)
    if prefix is None:
        # In nftables mode: service-HASH-ns/name/protocol/port; an endpoint's has more after that.
        path = chain.partition("-")[2].partition("__")[0]
        return tuple(
            s for s in view.services if path == names.nft_service_name(s.name.text, s.protocol)
        )
    wanted = chain.removeprefix(prefix)
    return tuple(s for s in view.services if wanted in _hashes(s, prefix))


def _hashes(service: ServicePort, prefix: str) -> set[str]:
    ends = [""]
    if prefix == names.ENDPOINT_PREFIX:
        ends = [str(endpoint) for endpoint in service.endpoints]
    # Up to 1.18 the colon is there even if the port has no name.
    texts = (service.name.text, f"{service.name.text}:")
    return {names.chain_hash(text, service.protocol, end) for text in texts for end in ends}
