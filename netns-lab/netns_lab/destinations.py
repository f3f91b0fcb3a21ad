"""What the addresses and ports of captured packets are in a dump: of Services, or of endpoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.view import Frontend, FrontendKind, ServicePort
from analyzer.model.addresses import IPV4, IPV6, Address
from netns_lab.decoding import Incomplete

#: IP versions by the length of packed addresses.
_VERSIONS: Final = {4: IPV4, 16: IPV6}
_IPV4_BYTES: Final = 4
_LOOPBACK_4, _LOOPBACK_6 = b"\x7f", bytes(15) + b"\1"
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
            if is_of_node(frontend) and not _own_addresses(service, given)
        }
        #: NodePorts, by protocol, IP version and port: loopback is the node's, too.
        self._at_loopback = {
            (service.protocol, version, frontend.port): (service, frontend)
            for service in services
            for frontend in service.frontends
            if is_of_node(frontend) and frontend.port is not None
            for version in ([IPV4, IPV6] if service.version is None else [service.version])
        }
        #: The Services at each address, by protocol; None: any protocol.
        self._at: dict[tuple[str | None, bytes], list[ServicePort]] = defaultdict(list)
        for (protocol, address, _), (service, _) in self._sockaddrs.items():
            self._at[protocol, address].append(service)
            self._at[None, address].append(service)

    def frontend(self, place: Place) -> tuple[ServicePort, Frontend] | None:
        """Return the Service and the frontend at an address and port; None if there is none."""
        protocol, address, port = place
        if _is_loopback(address):
            return self._at_loopback.get((protocol, _VERSIONS[len(address)], port))
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
            if _is_loopback(address):
                every = self._at_loopback.items()
                version = _VERSIONS[len(address)]
                return [
                    service
                    for (of, at, number), (service, _) in every
                    if at == version and found.protocol in (None, of) and port in (None, number)
                ]
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
            for address in own if is_of_node(frontend) else [frontend.address]:
                if address is not None:
                    yield (service.protocol, address.packed, frontend.port), (service, frontend)


def _is_loopback(address: bytes) -> bool:
    """Return what `is_loopback` of an address does, in a fraction of the time."""
    return address == _LOOPBACK_6 or (address[:1] == _LOOPBACK_4 and len(address) == _IPV4_BYTES)


def is_of_node(frontend: Frontend) -> bool:
    """Return whether a frontend is a port of each address of the node at which NodePorts answer."""
    return frontend.kind is FrontendKind.NODE_PORT and frontend.address is None


def _own_addresses(service: ServicePort, given: Input) -> list[Address]:
    """Return the node's addresses at which a ServicePort may have NodePorts, as far as known."""
    return [each for each in given.own if service.version in (None, each.version)]
