"""Frontends become ServicePorts, alike in both backends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.view import Frontend, ServicePort, ServiceRoutes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeAlias, TypeVar

    #: Name and protocol of a ServicePort.
    NameAndProtocol: TypeAlias = tuple[str, str]
    #: Frontends whose flows are refused, and how: reject or drop.
    Refusals: TypeAlias = list[tuple[Frontend, str]]

    class Dispatch(Protocol):
        """One frontend of one ServicePort, which leads to a chain."""

        @property
        def name(self) -> str:
            """Namespace, name and port."""

        @property
        def protocol(self) -> str:
            """For example tcp."""

        @property
        def frontend(self) -> Frontend:
            """Where flows are sent to."""

    E = TypeVar("E", bound=Dispatch)


def grouped(
    dispatches: Iterable[E], refused: Mapping[NameAndProtocol, Refusals]
) -> Iterator[tuple[NameAndProtocol, list[E], Refusals]]:
    """Yield the frontends of each ServicePort, by name and protocol, and those refused."""
    found: dict[NameAndProtocol, list[E]] = {}
    for each in dispatches:
        found.setdefault((each.name, each.protocol), []).append(each)
    for key in sorted({**found, **refused}):
        yield key, found.get(key, []), refused.get(key, [])


def first_of(dispatches: Iterable[E]) -> list[E]:
    """Return one for each frontend: of two rules for it, the first one matches every flow."""
    found: dict[Frontend, E] = {}
    for each in dispatches:
        found.setdefault(each.frontend, each)
    return [*found.values()]


def service_port(
    key: NameAndProtocol,
    dispatches: Sequence[E],
    routes: ServiceRoutes,
    refusals: Refusals,
    *,
    affinity: int | None,
    unfilled: Iterable[E],
) -> ServicePort:
    """Return a ServicePort; `unfilled` are those whose chain has no rules."""
    name, protocol = key
    frontends = [*(e.frontend for e in dispatches), *(f for f, _ in refusals)]
    return ServicePort(
        name=service_name(name),
        protocol=protocol,
        frontends=tuple(dict.fromkeys(frontends)),
        routes=routes,
        affinity=affinity,
        refusals=tuple(refusals),
        unfilled=tuple([e.frontend for e in unfilled]),
    )


def plain_port(dispatch: E, routes: ServiceRoutes) -> ServicePort:
    """Return the ServicePort of an only frontend that is plain, as most are."""
    return ServicePort(
        name=service_name(dispatch.name),
        protocol=dispatch.protocol,
        frontends=(dispatch.frontend,),
        routes=routes,
    )
