"""Routes between other nodes, past the lab's own.

What other nodes send goes by the lab's own node, so that answers to flows that it has sent on come
back through it. What an endpoint behind one node's rules sends to another node does not go there,
nor do the answers. These routes are in a table of their own, looked up only while such flows are
sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Final

from netns_lab.netlink import Netlink
from netns_lab.servers import FAMILIES
from netns_lab.topology import Host, LabTopology

_TABLE: Final = 101
#: Before the tables that have every other route.
_FIRST: Final = 0


class DirectRoutes:
    """The routes of one lab; each is added once."""

    def __init__(self, topology: LabTopology) -> None:
        self._topology = topology
        self._known: set[tuple[str, str]] = set()

    @contextmanager
    def between(self, host: Host, others: Iterable[Host]) -> Iterator[None]:
        """Let a host and others send to each other directly within this context."""
        others = [each for each in others if each is not host]
        own, *theirs = (Netlink(each.entry[0]) for each in (host, *others))
        for other, asked in zip(others, theirs, strict=True):
            self._add(own, host, other)
            self._add(asked, other, host)
        self._look_up([own, *theirs], delete=False)
        try:
            yield
        finally:
            self._look_up([own, *theirs], delete=True)
            for asked in (own, *theirs):
                asked.close()

    def _look_up(self, asked: Iterable[Netlink], *, delete: bool) -> None:
        for each in asked:
            for version in self._topology.plan.versions:
                each.rule(_FIRST, _TABLE, family=FAMILIES[version], delete=delete)
            each.send()

    def _add(self, asked: Netlink, host: Host, to: Host) -> None:
        """Add the routes from a host to the addresses of another one and of its pods."""
        assert host.plan is not None
        assert to.plan is not None
        key = host.plan.name, to.plan.name
        if key in self._known:
            return
        self._known.add(key)
        index, mac = host.entry[2], to.entry[3]
        hops = {address.version: address for address in to.plan.addresses}
        for address in hops.values():
            asked.neighbour(index, address, mac)
        for network in (*map(ip_network, to.plan.addresses), *to.plan.networks):
            asked.route(network, index, hops[network.version], table=_TABLE)
