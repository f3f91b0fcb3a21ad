"""conntrack's table, as one more witness of where flows came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from analyzer.errors import InputError
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.addresses import IPV4, Address
from analyzer.model.measurement import ANSWERED, Measurement
from analyzer.parsers.conntrack import parse_conntrack
from netns_lab.backend import SocketAddress
from netns_lab.command import program, run
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace
from netns_lab.sources import version_of

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: The ends of a flow as it was sent: protocol, client and port, address and port.
Ends = tuple[str, Address, int, Address, int]
#: Flows that are sent to compare the table with what was seen of them.
_FLOWS: Final = 512


def tracked(node: Namespace, version: int) -> Mapping[Ends, tuple[Address, int]] | None:
    """Return the flows that conntrack knows, each with the address and port that answers it.

    None if conntrack(8) is not installed.
    """
    try:
        asked = program("conntrack")
    except LabError:
        return None
    family = "ipv4" if version == IPV4 else "ipv6"
    listed = run(node, [asked, "-L", "-f", family]).stdout
    try:
        found, _ = parse_conntrack(listed.encode(), "conntrack -L")
    except InputError:  # no flow is known, as where rules end all of them
        return {}
    return {
        (
            *(each.protocol, each.source, each.source_port),
            *(each.destination, each.destination_port),
        ): (each.reply_source, each.reply_source_port)
        for each in found
    }


def cross_check(lab: Lab, routes: Sequence[tuple[ServicePort, Route]]) -> None:
    """Send some flows of one route, and compare conntrack's table with what was seen of them.

    Raises:
        LabError: conntrack has other flows than came to an endpoint.
    """
    place = next((each for each in routes if _is_plain(lab, *each)), None)
    if place is None:
        return
    service, route = place
    (measured,) = lab.measure(service, route, flows=_FLOWS)
    known = tracked(lab.topology.node, version_of(service, route))
    if known is None or measured.ended.upper or measured.unaccounted:
        return  # other nodes end flows that this one knows; what is lost the verdict tells
    address = route.frontend.address or lab.topology.plan.node_address(version_of(*place))
    to = service.protocol, address, route.frontend.port
    found: Counter[SocketAddress] = Counter(
        (int(by), port)
        for (protocol, _, _, *ends), (by, port) in known.items()
        if (protocol, *ends) == to
    )
    differs = (found - _seen(measured)) + (_seen(measured) - found)
    if differs:
        raise LabError(
            f"of {measured.flows} flows to {service.name.text}, conntrack has {differs.total()} "
            "elsewhere than they came to, or not at all"
        )


def _is_plain(lab: Lab, service: ServicePort, route: Route) -> bool:
    """Return whether conntrack keeps each flow of a route until the next one is measured."""
    refusing = any(lab.refuses(each) for each in lab.question.dead.endpoints)
    return (
        service.protocol in ANSWERED
        and service.affinity is None
        and route.source is not Source.HAIRPIN
        and bool(route.shares)
        and not route.astray
        and not any(each.lost for each in route.shares)
        # conntrack forgets what is reset at once: nf_conntrack_proto_tcp.c.
        and not (service.protocol == "tcp" and refusing)
        # The node's kernel resets the answers to flows that none of its programs sent.
        and not (service.protocol == "tcp" and route.source is Source.NODE)
    )


def _seen(measured: Measurement) -> Counter[SocketAddress]:
    return Counter(
        {(int(ip_address(e.address)), e.port): e.landed for e in measured.endpoints if e.landed}
    )
