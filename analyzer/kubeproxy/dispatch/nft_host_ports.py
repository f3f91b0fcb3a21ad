"""hostPorts in nft rules, as the CNI plugin portmap writes them with its nftables backend.

The table's name tells that its rules belong to hostPorts; where their flows go is found by
evaluating all rules, as for any frontend. portmap before 1.9.0 translates what is sent to the port
of any address, not just the node's (CVE-2025-67499): flows to Services, too, whose own walks find
that.

Source: containernetworking/plugins, plugins/meta/portmap/portmap_nftables.go, ``forwardPorts``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.kubeproxy.dispatch.host_ports import HostPort
from analyzer.kubeproxy.dispatch.nft_chains import reached_by
from analyzer.kubeproxy.dispatch.nft_places import of_rule
from analyzer.kubeproxy.view import Frontend, FrontendKind
from analyzer.model.nft.ruleset import Table
from analyzer.model.nft.statements import Dnat


def host_ports(table: Table, starts: Iterable[str]) -> Iterator[HostPort]:
    """Yield the hostPorts of a table that packets in the chains `starts` may reach, each once."""
    seen: set[tuple[str, Frontend]] = set()
    for chain in reached_by(table, starts):
        for rule in chain.rules:
            for place in of_rule(rule, table):
                if place.protocol is None or place.port is None:
                    continue
                if not isinstance(place.verdict, Dnat):
                    continue
                frontend = Frontend(FrontendKind.HOST_PORT, place.address, place.port)
                if (place.protocol, frontend) not in seen:
                    seen.add((place.protocol, frontend))
                    yield HostPort(place.protocol, frontend, chain.name)
