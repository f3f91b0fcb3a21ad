"""Rows of iptables-save, and the parts of them that all layouts of kube-proxy share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from analyzer.kubeproxy.generate.config import IPV4
from analyzer.kubeproxy.generate.reach import EndpointChain
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.names import MARK_MASQUERADE
from analyzer.model.addresses import Address, address_to_text

#: Number of endpoints above which kube-proxy leaves comments out of the chains of Services and
#: endpoints. Source: pkg/proxy/iptables/proxier.go, ``largeClusterEndpointsThreshold``.
LARGE: Final = 1_000
_MASKS: Final = {4: "255.255.255.255", 6: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}


class TableDraft:
    """One table under construction: chains in the order of iptables-save, each with its rows."""

    __slots__ = ("_built_in", "name", "rows")

    def __init__(self, name: str, built_in: Sequence[str], chains: Iterable[str]) -> None:
        self.name = name
        self._built_in = built_in
        self.rows: dict[str, list[str]] = {chain: [] for chain in (*built_in, *chains)}

    def add(self, chain: str, words: str) -> None:
        """Append a rule; a chain is declared if needed."""
        self.rows.setdefault(chain, []).append(f"-A {chain} {words}\n")

    def text(self) -> Iterator[str]:
        """Yield the table's lines; those of kube-proxy's chains by the name of the chain."""
        own = sorted(self.rows.keys() - set(self._built_in))
        yield f"*{self.name}\n"
        for chain in self._built_in:
            yield f":{chain} ACCEPT [0:0]\n"
        for chain in own:
            yield f":{chain} - [0:0]\n"
        for chain in (*self._built_in, *own):
            yield from self.rows[chain]
        yield "COMMIT\n"


def host(address: Address) -> str:
    """Return an address as ``-s`` and ``-d`` print it."""
    return f"{address_to_text(address)}/{address.max_prefixlen}"


def comment(text: str) -> str:
    """Return the match with the comment `text`."""
    return f'-m comment --comment "{text}"'


def to_port(protocol: str, port: int) -> str:
    """Return the match on a destination port."""
    return f"-m {protocol} --dport {port}"


def flow(service: ServicePortSpec, address: Address, says: str) -> str:
    """Return the matches of a flow to one of the Service's addresses, with a comment."""
    where = f"-d {host(address)} -p {service.protocol}"
    return f"{where} {comment(f'{service.name} {says}')} {to_port(service.protocol, service.port)}"


def local_flow(service: ServicePortSpec, says: str) -> str:
    """Return the matches, in the filter table, of a flow to the Service's NodePort."""
    named = f"-p {service.protocol} {comment(f'{service.name} {says}')}"
    return f"{named} -m addrtype --dst-type LOCAL {to_port(service.protocol, service.node_port)}"


def reject(service: ServicePortSpec) -> str:
    """Return the target that refuses a flow, as printed for the family."""
    kind = "icmp" if service.cluster_ip.version == IPV4 else "icmp6"
    return f"REJECT --reject-with {kind}-port-unreachable"


def write_endpoint(
    nat: TableDraft, service: ServicePortSpec, target: EndpointChain, *, large: bool
) -> None:
    """Write the chain of one endpoint: hairpin flows are marked, then all have DNAT."""
    endpoint, chain = target.endpoint, target.chain
    named = "" if large else f" {comment(service.name)}"
    remember = f" {_recent('--set', service, chain)}" if service.affinity is not None else ""
    protocol = service.protocol
    nat.rows[chain] = [
        f"-A {chain} -s {host(endpoint.address)}{named} -j {MARK_MASQUERADE}\n"
        f"-A {chain} -p {protocol}{named}{remember} -m {protocol} "
        f"-j DNAT --to-destination {endpoint.destination}\n"
    ]


def write_affinity(
    nat: TableDraft, service: ServicePortSpec, chain: str, jumps: Sequence[tuple[str, str]]
) -> None:
    """Write, for ``sessionAffinity: ClientIP``, the rules that come before the draws.

    `jumps` are a comment's match, or nothing, with the chain of each endpoint.
    """
    if service.affinity is None:
        return
    known = f"--rcheck --seconds {service.affinity} --reap"
    for named, target in jumps:
        nat.add(chain, f"{_and(named)}{_recent(known, service, target)} -j {target}")


def write_draws(
    nat: TableDraft, chain: str, jumps: Sequence[tuple[str, str]], digits: int = 10
) -> None:
    """Write the rules that draw one endpoint, evenly; `jumps` as for `write_affinity`.

    `digits`: of each probability.
    """
    left = len(jumps)
    if not left:
        return
    rows = nat.rows.setdefault(chain, [])
    for named, target in jumps:
        draw = _draw(left, digits) if left > 1 else ""
        rows.append(f"-A {chain} {_and(named)}{draw}-j {target}\n")
        left -= 1


def _and(match: str) -> str:
    return f"{match} " if match else ""


def _recent(what: str, service: ServicePortSpec, chain: str) -> str:
    mask = _MASKS[service.cluster_ip.version]
    return f"-m recent {what} --name {chain} --mask {mask} --rsource"


@cache
def _draw(left: int, digits: int) -> str:
    """Return the match of kube-proxy's 1/n with that many digits, as iptables-save prints it."""
    threshold = round((1 << 31) * float(f"{1 / left:.{digits}f}"))
    return f"-m statistic --mode random --probability {threshold / (1 << 31):.11f} "
