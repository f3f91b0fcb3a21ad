"""The packet of ``trace``, from the options of the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from types import SimpleNamespace
from typing import Final

from analyzer.errors import UsageError
from analyzer.kubeproxy.routes.trace import KnownAddresses, Question
from analyzer.kubeproxy.select import select
from analyzer.kubeproxy.view import Endpoint, FrontendKind, ServicePort, View
from analyzer.model.addresses import (
    IPV6,
    VERSIONS,
    Address,
    address_and_port_from_text,
    address_from_text,
    packet_address,
)
from analyzer.model.devices import Side
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.intervals import holds
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.packet import ALL_BITS, NO_DEVICE, Mark, Packet
from analyzer.model.routing import Routes
from analyzer.semantics.base_chains import Rules

#: Echo request, and what the protocol is called, by family.
_ICMP: Final = {"ip": ("icmp", (8, 0)), "ip6": ("ipv6-icmp", (128, 0))}
_MOST_NAMED: Final = 5
_PORT_MAX: Final = 0xFFFF
_BYTE_MAX: Final = 0xFF
_BYTE_DIGITS: Final = 3
#: Types of ICMP that conntrack lets begin a flow. Source: Linux, nf_conntrack_proto_icmp.c.
_BEGINS_A_FLOW: Final = {"ip": frozenset({8, 13, 15, 17}), "ip6": frozenset({128, 139})}


def family_of(options: SimpleNamespace, dumps: Sequence[Rules]) -> str:
    """Return the family of the packet: of its destination, or the one that the rules have."""
    families = {each.family for each in dumps if isinstance(each, Ruleset)}
    if len(families) == 1 and all(isinstance(each, Ruleset) for each in dumps):
        return families.pop()
    address, _ = _destination(options)
    return "ip" if isinstance(address, IPv4Address) else "ip6"


def is_named(options: SimpleNamespace) -> bool:
    """Return whether the packet is sent to a Service by name, or from a pod by name."""
    return options.source == "pod" or address_and_port_from_text(options.to) is None


def resolved(options: SimpleNamespace, view: View) -> SimpleNamespace:
    """Return the options with the names of a Service and a pod replaced by addresses.

    Raises:
        UsageError: the name is none, or of several ports or addresses.
    """
    given = vars(options)
    if address_and_port_from_text(options.to) is None:
        given = {**given, **_service_meant(options, view)}
    if options.source == "pod":
        to = address_and_port_from_text(str(given["to"]))
        pods = [e for e in view.pod_sources if to is None or e.version == to[0].version]
        if not pods:
            raise UsageError(
                "--from pod: the dump does not show what addresses pods have; pass an IP address"
            )
        given = {**given, "source": str(pods[0]), "is_from_pod": True}
    return SimpleNamespace(**given)


def _service_meant(options: SimpleNamespace, view: View) -> dict[str, str]:
    wanted = options.protocol
    try:
        named = select(view, options.to)
    except UsageError as error:
        raise UsageError(
            f"--to {options.to}: expected IP:PORT (for example 10.96.0.10:53 or [fd00::1]:53), or "
            f"a Service; {error}"
        ) from None
    found = [
        service
        for service in named
        if wanted in (None, service.protocol) and any(f.address for f in service.frontends)
    ]
    source = None if options.source is None else address_from_text(options.source)
    if source is not None:
        version = packet_address(source).version
        found = [each for each in found if each.version == version] or found
    if wanted is None and len({each.protocol for each in found}) > 1:  # tcp, as of addresses
        found = [each for each in found if each.protocol == "tcp"]
    if not found:
        raise UsageError(
            f"--to {options.to}: no such ServicePort with an address"
            + (f" and protocol {wanted}" if wanted else "")
        )
    places = dict.fromkeys(_address_of(service) for service in found)
    if len(places) > 1 and len({each.version for each in found}) == 1:
        ports = ", ".join(f"{each.name.text} ({each.protocol})" for each in found[:_MOST_NAMED])
        raise UsageError(f"--to {options.to}: this matches several: {ports}; name one")
    return {"to": next(iter(places)), "protocol": found[0].protocol}


def _address_of(service: ServicePort) -> str:
    """Return the ClusterIP of a ServicePort, or another address, with its port."""
    addresses = [each for each in service.frontends if each.address is not None]
    cluster = [each for each in addresses if each.kind is FrontendKind.CLUSTER_IP]
    return str((cluster or addresses)[0])


def question(
    options: SimpleNamespace,
    own: tuple[Address, ...],
    routes: Routes,
    family: str,
) -> Question:
    """Return the packet to trace; `own` are the node's addresses, as far as they are known.

    Raises:
        UsageError: an option makes no sense, alone or with the others.
    """
    version = VERSIONS[family]
    own = tuple(address for address in own if address.version == version)
    return Question(
        packet=_packet(options, own, family),
        state=options.ctstate,
        affinity=_affinity(options.affinity),
        assumed=options.assumed,
        addresses=own or None,
        routes=routes,
        follows_answers=True,
    )


def odd_source(asked: Question, known: KnownAddresses, file: str) -> Iterator[Diagnostic]:
    """Yield a warning if no new flow gets through from the packet's address.

    Source: Linux, net/ipv6/ip6_output.c, ip6_forward(), for link-local addresses.
    """
    source = asked.packet.source
    if source is None or asked.state != "NEW":
        return
    places = known.places(source.version)
    if any(holds(each, int(source)) for each in (places.here, places.elsewhere)):
        return  # saves a look at every Service
    why = ""
    if source.version == IPV6 and source.is_link_local:
        why = "the kernel forwards no packets from link-local addresses"
    elif known.is_cluster_ip(source):
        why = "that is a ClusterIP, and no client has it; --from pod is a pod of the cluster"
    if why:
        yield Diagnostic(
            severity=Severity.WARNING,
            code="odd-source",
            message=f"--from {source}: {why}",
            file=file,
        )


def _packet(options: SimpleNamespace, own: tuple[Address, ...], family: str) -> Packet:
    destination, port = _destination(options)
    if options.from_node and options.in_interface:
        raise UsageError(
            "--from-node and --in-interface: packets from the node arrive by no device"
        )
    if options.from_node and getattr(options, "is_from_pod", False):
        raise UsageError("--from-node and --from pod: is it the node that sends it, or a pod?")
    if options.source is None and not options.from_node:
        raise UsageError("--from IP is needed, --from pod, or --from-node")
    given = None if options.source is None else _address(options.source)
    source = _chosen(destination, own) if given is None else given
    icmp = None
    protocol = options.protocol or "tcp"
    if protocol == "icmp":
        protocol, icmp = _ICMP[family]
        icmp = icmp if options.icmp_type is None else _icmp_type(options.icmp_type)
        if options.ctstate == "NEW" and icmp[0] not in _BEGINS_A_FLOW[family]:
            raise UsageError(
                f"--icmp-type {icmp[0]}: conntrack never treats this type as the first packet of "
                "a flow; use --ctstate INVALID"
            )
    elif options.icmp_type is not None:
        raise UsageError("--icmp-type needs --protocol icmp")
    # Nothing comes in from loopback, or from the node itself (accept_local is off).
    of_node = given is not None and (given.is_loopback or given in own)
    made_here = options.from_node or (of_node and options.in_interface is None)
    return Packet(
        protocol=protocol,
        source=source,
        source_port=_port(options.sport),
        destination=destination,
        destination_port=port,
        icmp=icmp,
        mark=Mark(_number("--mark", options.mark)),
        in_interface=NO_DEVICE if made_here else options.in_interface,
        comes_from=Side.POD if getattr(options, "is_from_pod", False) else None,
    )


def _chosen(destination: Address, own: tuple[Address, ...]) -> Address | None:
    """Return the source that the node takes, where that is certain."""
    if destination.is_loopback or destination in own:
        return destination
    return own[0] if len(own) == 1 else None


def _destination(options: SimpleNamespace) -> tuple[Address, int | None]:
    found = address_and_port_from_text(options.to)
    if found is None:
        raise UsageError(
            f"--to {options.to}: expected IP:PORT (for example 10.96.0.10:53 or [fd00::1]:53)"
        )
    if options.protocol != "icmp" and found[1] is None:
        raise UsageError(f"--to {options.to}: {options.protocol or 'tcp'} needs a port: IP:PORT")
    if options.protocol == "icmp" and found[1] is not None:
        raise UsageError(f"--to {options.to}: icmp has no ports")
    return packet_address(found[0]), found[1]


def _address(text: str) -> Address:
    address = address_from_text(text)
    if address is None:
        raise UsageError(f"--from {text}: not an IP address")
    return packet_address(address)


def _affinity(text: str | None) -> Endpoint | None:
    if text is None:
        return None
    found = address_and_port_from_text(text)
    if found is None or found[1] is None:
        raise UsageError(f"--affinity {text}: expected an endpoint (for example 10.1.0.1:53)")
    return Endpoint(*found)


def _port(port: int | None) -> int | None:
    if port is not None and not 0 <= port <= _PORT_MAX:
        raise UsageError(f"--sport {port}: a port is 0 to {_PORT_MAX}")
    return port


def _number(option: str, text: str) -> int:
    try:
        found = int(text, 0)
    except ValueError:
        found = -1
    if not 0 <= found <= ALL_BITS:
        raise UsageError(f"{option} {text}: expected a 32-bit number (for example 0x4000)")
    return found


def _icmp_type(text: str) -> tuple[int, int]:
    kind, _, code = text.partition("/")
    parts = [part for part in (kind, code or "0") if part.isascii() and part.isdecimal()]
    numbers = [int(part) for part in parts if len(part) <= _BYTE_DIGITS]
    if len(numbers) != 2 or max(numbers) > _BYTE_MAX:  # noqa: PLR2004  # type and code
        raise UsageError(
            f"--icmp-type {text}: expected a type (for example 8), or type and code (for example "
            "3/1)"
        )
    return numbers[0], numbers[1]
