"""Makes endpoints and nodes of the lab fail, and restores them.

Theory of operation
===================

Each host of the lab owns the addresses of its endpoints, so packets to them reach its INPUT chain,
where a filter rule ends them: DROP, REJECT, or NFQUEUE, which queues them to us for some
milliseconds (`delays`). What is silent sends nothing by itself either. For `arp` the host acts as
the last router: an ip rule sends packets to a routing table in which the address is on the link,
where no host answers ARP or neighbour discovery. A node that has rules of its own drops packets
before these (`gates`), and flows are counted as they arrive at it.

Flows are counted on the host's device, before any of this applies.

Source: iptables-extensions(8), REJECT and NFQUEUE; ip-rule(8); ip-route(8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.addresses import IPV4, IPV6, Address
from netns_lab.command import run
from netns_lab.deaths import Death, DeathKind
from netns_lab.delays import Delay
from netns_lab.errors import LabError
from netns_lab.gates import Gate, silence, wake
from netns_lab.namespace import Namespace
from netns_lab.topology import Host

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: Address of the last router of the node's own pods, from unused ranges such as RFC 2544's.
_ROUTER: Final[dict[int, Address]] = {
    4: IPv4Address("198.19.0.2"),
    6: IPv6Address("fd6b:6f01::2"),
}
_TABLE: Final = 202
#: Priorities of ip rules: ours come first, then the table `local`.
_FIRST, _LOCALLY = 0, 2
_PROGRAMS: Final = {4: "iptables-nft-restore", 6: "ip6tables-nft-restore"}
_REFUSED: Final = {4: "icmp-port-unreachable", 6: "icmp6-port-unreachable"}
_UNREACHABLE: Final = {4: "icmp-host-unreachable", 6: "icmp6-addr-unreachable"}
#: How a node with rules of its own can die.
_WITH_RULES: Final = ("silent", "drop")
_ICMP: Final = {4: "icmp", 6: "ipv6-icmp"}


class Dying:
    """The deaths of a lab."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        #: Nodes with rules of their own that are silent.
        self.silent: list[Gate] = []
        self._delays: dict[tuple[Namespace, int], Delay] = {}
        self._routed: set[tuple[Namespace, int]] = set()
        self._protocols: dict[Endpoint, set[str]] = {}
        for service in lab.question.view.services:
            for endpoint in service.endpoints:
                self._protocols.setdefault(endpoint, set()).add(service.protocol)

    @property
    def delays(self) -> tuple[Delay, ...]:
        """Queues that hold packets back; code that waits for answers must serve them."""
        return tuple(self._delays.values())

    def serve(self) -> None:
        """Release the packets that were held long enough."""
        for each in self._delays.values():
            each.serve()

    def check(self, death: Death) -> None:
        """Raise a LabError if something cannot die in this way."""
        for host, endpoints in self._hosts(death):
            if death.node is not None and host is not None and host.gate is not None:
                _check_gate(death)
            if host is None:
                raise LabError(
                    f"--dead {death.what}:{death.kind}: {next(iter(endpoints))} is an address of "
                    "the node that the rules are from: only its process can be gone; leave out "
                    f":{death.kind}"
                )

    def kill(self, death: Death) -> None:
        """Let something die.

        Raises:
            LabError: it cannot die in this way.
        """
        self.check(death)
        self._change(death, "I")

    def revive(self, death: Death) -> None:
        """Bring back to life what died."""
        self._change(death, "D")

    def _hosts(self, death: Death) -> Iterator[tuple[Host | None, frozenset[Endpoint]]]:
        """Yield the hosts of what dies; None is the node itself, whose rules must not change."""
        topology = self._lab.topology
        if death.node is not None:
            for other in topology.others:
                assert other.plan is not None
                if other.plan.name == death.node:
                    yield other, frozenset()
            return
        by_host: dict[int, tuple[Host | None, set[Endpoint]]] = {}
        for endpoint in death.endpoints:
            where = self._lab.where(endpoint.address)
            if where is None:  # not of these routes
                continue
            host = next((h for h in topology.hosts if h.namespace is where), None)
            by_host.setdefault(id(host), (host, set()))[1].add(endpoint)
        for host, endpoints in by_host.values():
            yield host, frozenset(endpoints)

    def _change(self, death: Death, how: str) -> None:
        for host, endpoints in self._hosts(death):
            assert host is not None  # `check`
            if death.node is not None and host.gate is not None:
                if how == "I":
                    self._silence(host.gate, sends=death.kind.name == "drop")
                else:
                    self._wake(host.gate)
                continue
            for version in self._lab.topology.plan.versions:
                mine = [e for e in endpoints if e.address.version == version]
                if mine or death.node is not None:
                    self._change_host(death, host, version, mine, how)
            self._lab.muting.tells(host.namespace)

    def _silence(self, gate: Gate, *, sends: bool) -> None:
        """Silence a node with rules of its own; packets to it are counted before the rules."""
        self.silent.append(gate)
        for each in self._lab.hearers.values():
            each.hear_before(gate)
        silence(gate, sends=sends)

    def _wake(self, gate: Gate) -> None:
        wake(gate)
        self.silent.remove(gate)
        for each in self._lab.hearers.values():
            each.hear_behind(gate)

    def _change_host(
        self, death: Death, host: Host, version: int, endpoints: list[Endpoint], how: str
    ) -> None:
        namespace, kind = host.namespace, death.kind
        if kind.name == "arp":
            self._without_neighbour(host, version, endpoints, how)
        if kind.name == "slow":
            key = namespace, kind.milliseconds
            if key not in self._delays:
                self._delays[key] = Delay(*key)
        if death.whole:
            addresses = {e.address for e in endpoints}
            comes = [f"-d {each}" for each in sorted(addresses, key=int)] or [f"-i {host.device}"]
            protocols: list[str | None] = [None] * len(comes)
            goes = [f"-s {each}" for each in sorted(addresses, key=int)] or [f"-o {host.device}"]
        else:
            ports = [(e, protocol) for e in endpoints for protocol in sorted(self._protocols[e])]
            comes = [f"-d {e.address} -p {p} -m {p} --dport {e.port}" for e, p in ports]
            protocols = [protocol for _, protocol in ports]
            goes = [each.replace("-d ", "-s ").replace("--dport", "--sport") for each in comes]
        lines = [
            f"-{how} INPUT {each} {end}"
            for each, protocol in zip(comes, protocols, strict=True)
            for end in _ends(kind, version, protocol)
        ]
        if kind.name in ("silent", "arp"):
            # The last router, which sends ICMP errors, is not silent.
            told = "" if kind.name == "silent" else f"! -p {_ICMP[version]} "
            lines += [f"-{how} OUTPUT {each} {told}-j DROP" for each in goes]
        text = "\n".join(["*filter", *lines, "COMMIT"]) + "\n"
        run(namespace, [_PROGRAMS[version], "--noflush"], text)

    def _without_neighbour(
        self, host: Host, version: int, endpoints: Iterable[Endpoint], how: str
    ) -> None:
        """Route packets to an address to a link where no host has it."""
        namespace = host.namespace
        everything = "0.0.0.0/0" if version == IPV4 else "::/0"
        if (namespace, version) not in self._routed:
            assert host.plan is not None
            lines = [
                f"rule add pref {_LOCALLY} table local",
                f"rule del pref {_FIRST} table local",
                f"route add {everything} dev {host.device} table {_TABLE}",
            ]
            if not host.plan.addresses:
                lines.append(f"address add {_ROUTER[version]} dev lo")
            # If endpoints send flows, the table `local` was moved already.
            moved = self._lab.topology.plan.endpoints_send
            _batch(namespace, version, lines[2:] if moved else lines)
            namespace.set(
                "net/ipv4/ip_forward" if version == IPV4 else "net/ipv6/conf/all/forwarding", 1
            )
            self._routed.add((namespace, version))
        verb = "add" if how == "I" else "del"
        which = [f"to {each}" for each in sorted({e.address for e in endpoints}, key=int)]
        _batch(
            namespace,
            version,
            [
                f"rule {verb} pref {_FIRST} {each} iif {host.device} table {_TABLE}"
                for each in which or [""]
            ],
        )
        if version == IPV6 and how == "I":
            # Neighbour entries from before would keep the address reachable.
            run(namespace, ["ip", "-6", "neigh", "flush", "dev", host.device], check=False)


def _check_gate(death: Death) -> None:
    """Raise a LabError if a node with rules of its own cannot die in this way."""
    if death.kind.name not in _WITH_RULES:
        raise LabError(
            f"--dead {death.what}:{death.kind}: it has rules of its own, by --rules, and goes "
            f"{' or '.join(_WITH_RULES)} with them; for {death.kind} name its endpoints"
        )


def _batch(namespace: Namespace, version: int, lines: Iterable[str]) -> None:
    run(namespace, ["ip", f"-{version}", "-batch", "-"], "\n".join(lines) + "\n")


def _ends(kind: DeathKind, version: int, protocol: str | None) -> Iterator[str]:
    """Yield the targets of the rules for packets to the dead, with matches where needed.

    `protocol`: of these packets; None if of any.
    """
    match kind.name:
        case "silent" | "drop":
            yield "-j DROP"
        case "process":
            # As the kernel answers if no socket is bound: RST, or ICMP port unreachable. The second
            # rule is inserted before the first.
            if protocol != "tcp":
                yield f"-j REJECT --reject-with {_REFUSED[version]}"
            if protocol in (None, "tcp"):
                which = "-p tcp " if protocol is None else ""
                yield f"{which}-j REJECT --reject-with tcp-reset"
        case "reject":
            yield f"-j REJECT --reject-with {_REFUSED[version]}"
        case "unreachable":
            yield f"-j REJECT --reject-with {_UNREACHABLE[version]}"
        case "slow":
            yield f"-j NFQUEUE --queue-num {kind.milliseconds}"
        case _:  # it comes to no socket
            return
