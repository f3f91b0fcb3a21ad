"""Which ServicePorts, and which frontends, of two dumps correspond.

Names decide, if both dumps have them. From rules without kube-proxy's comments each frontend
becomes a ServicePort; it gets the name of the one with this frontend in the other dump. A frontend
is its protocol, address and port: its kind is not in the kernel, and without comments, or in
nftables mode, it is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from analyzer.kubeproxy.view import Frontend, Route, ServicePort
from analyzer.model.addresses import Address
from analyzer.model.value import replace

#: IP version (None: not known), name and protocol of a ServicePort.
PairedBy: TypeAlias = tuple[int | None, str, str]
#: Address (None: any of the node) and port of a frontend.
FrontendAddress: TypeAlias = tuple[Address | None, int | None]
_Owners: TypeAlias = dict[tuple[str, FrontendAddress], ServicePort]


def version_of(service: ServicePort) -> int | None:
    """Return the IP version of a ServicePort; None if it has only NodePorts and no endpoint."""
    for frontend in service.frontends:
        if frontend.address is not None:
            return frontend.address.version
    return next((each.address.version for each in service.endpoints), None)


def place(frontend: Frontend) -> FrontendAddress:
    """Return what distinguishes a frontend from others of its protocol."""
    return frontend.address, frontend.port


def pairs(
    a: Sequence[ServicePort], b: Sequence[ServicePort]
) -> Iterator[tuple[ServicePort | None, ServicePort | None]]:
    """Yield each ServicePort with the same one of the other dump; None: that has none.

    In the order of A; those that only B has come last.
    """
    if not all(map(_is_named, a)) or not all(map(_is_named, b)):
        a, b = _named(a, b), _named(b, a)
    in_a, in_b = _by_key(a), _by_key(b)
    for key, service in in_a.items():
        yield service, in_b.get(key)
    for key, service in in_b.items():
        if key not in in_a:
            yield None, service


def _is_named(service: ServicePort) -> bool:
    return service.name.service is not None


def _by_key(services: Iterable[ServicePort]) -> Mapping[PairedBy, ServicePort]:
    found: dict[PairedBy, ServicePort] = {}
    for service in services:
        key = version_of(service), service.name.text, service.protocol
        before = found.get(key)
        found[key] = service if before is None else _joined(before, service)
    return found


def _named(services: Sequence[ServicePort], others: Sequence[ServicePort]) -> list[ServicePort]:
    """Return `services`, those without a name named after their frontends in the others."""
    owners: _Owners = {}
    for other in others:
        if _is_named(other):
            for frontend in other.frontends:
                owners.setdefault((other.protocol, place(frontend)), other)
    named = []
    for service in services:
        owner = None
        if not _is_named(service):
            owner = _owner(service, owners)
        named.append(service if owner is None else replace(service, name=owner.name))
    return named


def _owner(service: ServicePort, owners: _Owners) -> ServicePort | None:
    for frontend in service.frontends:
        found = owners.get((service.protocol, place(frontend)))
        # Both IP versions have NodePorts, with the same numbers.
        if found is not None and version_of(service) in {None, version_of(found)}:
            return found
    return None


def _joined(one: ServicePort, other: ServicePort) -> ServicePort:
    """Return two parts of one ServicePort, which had no name in common, as one."""
    routes: tuple[Route, ...] = (*one.routes, *other.routes)
    return replace(
        one,
        frontends=tuple(dict.fromkeys((*one.frontends, *other.frontends))),
        routes=routes,
        affinity=other.affinity if one.affinity is None else one.affinity,
        refusals=(*one.refusals, *other.refusals),
        unfilled=(*one.unfilled, *other.unfilled),
    )


def common_frontends(a: ServicePort, b: ServicePort) -> list[tuple[Frontend, Frontend]]:
    """Return the frontends that both have, in the order of A.

    One whose port an older iptables has lost corresponds to the one at the same address.
    """
    in_b = {place(frontend): frontend for frontend in b.frontends}
    found = [(f, in_b.pop(place(f))) for f in a.frontends if place(f) in in_b]
    rest = [f for f in a.frontends if all(f is not each for each, _ in found)]
    for frontend in rest:
        for other in in_b.values():
            lost = frontend.port is None or other.port is None
            if lost and frontend.address == other.address:
                del in_b[place(other)]
                found.append((frontend, other))
                break
    return found
