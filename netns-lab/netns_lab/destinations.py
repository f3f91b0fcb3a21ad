"""What the addresses and ports of captured packets are in a dump: of Services, or of endpoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.view import Frontend, FrontendKind, ServicePort
from analyzer.model.addresses import Address
from netns_lab.decoding import Incomplete

#: Protocol, address as packed bytes, and port.
Place = tuple[str, bytes, int]


class Destinations:
    """The addresses and ports that a dump knows.

    Attributes:
        endpoints: those of all Services.
        listening: ports of endpoints.
        addresses: of each ServicePort, by its identity, those of its endpoints.
    """

    def __init__(self, given: Input) -> None:
        self._sockaddrs = dict(_sockaddrs(given))
        services = given.view.services
        every = {id(service): service.endpoints for service in services}
        self.endpoints = {
            (service.protocol, each.address.packed, each.port)
            for service in services
            for each in every[id(service)]
        }
        self.listening = {port for _, _, port in self.endpoints}
        self.addresses = {at: {e.address for e in each} for at, each in every.items()}
        #: Of NodePorts, if the node's addresses are not known.
        self._node_ports = {
            (service.protocol, frontend.port)
            for service in services
            for frontend in service.frontends
            if _is_of_node(frontend) and not _own_addresses(service, given)
        }
        #: The Services at each address, by protocol; None: any protocol.
        self._at: dict[tuple[str | None, bytes], list[ServicePort]] = defaultdict(list)
        for (protocol, address, _), (service, _) in self._sockaddrs.items():
            self._at[protocol, address].append(service)
            self._at[None, address].append(service)

    def frontend(self, place: Place) -> tuple[ServicePort, Frontend] | None:
        """Return the Service and the frontend at an address and port; None if there is none."""
        return self._sockaddrs.get(place)

    def may_be_node_port(self, protocol: str | None, port: int | None) -> bool:
        """Return whether a NodePort is at some address of the node, of which none is known.

        None is any protocol, or any port.
        """
        if protocol is not None and port is not None:
            return (protocol, port) in self._node_ports
        return any(protocol in (None, of) and port in (None, at) for of, at in self._node_ports)

    def services(self, found: Incomplete) -> Sequence[ServicePort]:
        """Return the Services that a packet may be to, as far as its destination is visible."""
        address, port = found.destination
        if found.protocol is None or port is None:
            return self._at.get((found.protocol, address), ())
        to = self.frontend((found.protocol, address, port))
        return () if to is None else (to[0],)


def _sockaddrs(given: Input) -> Iterator[tuple[Place, tuple[ServicePort, Frontend]]]:
    """Yield the addresses and ports of Services; for NodePorts, the node's addresses."""
    for service in given.view.services:
        for frontend in service.frontends:
            if frontend.port is None:
                continue
            own = _own_addresses(service, given)
            for address in own if _is_of_node(frontend) else [frontend.address]:
                if address is not None:
                    yield (service.protocol, address.packed, frontend.port), (service, frontend)


def _is_of_node(frontend: Frontend) -> bool:
    return frontend.kind is FrontendKind.NODE_PORT and frontend.address is None


def _own_addresses(service: ServicePort, given: Input) -> list[Address]:
    """Return the node's addresses at which a ServicePort may have NodePorts, as far as known."""
    return [each for each in given.own if service.version in (None, each.version)]
