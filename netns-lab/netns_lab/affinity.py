"""Flows of a route with session affinity: each client's first flow and a second one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address
from analyzer.model.packet import Packet
from netns_lab.columns import NO_PORT, RawSocketAddress, sockaddr_of, tag_of
from netns_lab.measure import Progress, RouteRun
from netns_lab.own_clients import alike
from netns_lab.sources import EPHEMERAL_PORTS
from netns_lab.topology import Host

#: Flows between two flushes of conntrack, counting the two of each client as one.
_ROOM: Final = 10_000


class AffineRun(RouteRun):
    """The flows of a route with session affinity.

    Each client sends one flow, for which an endpoint is drawn, and a second one, which must reach
    the same endpoint. Then the node forgets all clients, so that the next turn starts afresh.
    """

    in_turn = True

    def _clients(self) -> tuple[tuple[Address, ...], Host, str]:
        """Return the clients' addresses (for the node, all its own), and what they send by."""
        clients, host, gateway = super()._clients()
        if self._route.source is Source.NODE:
            clients += tuple(self._alike(clients[0]))
        return clients, host, gateway

    def _alike(self, client: Address) -> Iterator[Address]:
        """Yield the node's other addresses, if flows from them end like those of `client`."""
        plan = self._lab.topology.plan
        address, port = self._to
        packet = Packet(
            protocol=self._service.protocol,
            source=client,
            destination=address,
            destination_port=port,
            in_interface="",
        )
        others = [each for each in plan.own_clients if each.version == client.version]
        # The rules cannot tell one of these addresses from another.
        own = *plan.node_addresses, *plan.own_clients
        if others and alike(self._lab.question.rulesets, packet, others[0], own):
            yield from others

    def _prepared(self, clients: int) -> int:
        # Each flow of a client has its own port, and an endpoint does not send from all.
        avoided = len(self._lab.known_ports) if self._sender is not None else 0
        most = (len(EPHEMERAL_PORTS) - avoided) // 2 * clients
        self._count_of_flows = min(self._count_of_flows, most)
        return 2 * -(-self._count_of_flows // clients) * clients

    def _send_all(self, flows: int, progress: Progress) -> int:
        with self._lab.backend.forgetting(self._flows.clients) as forget:
            done = self._send_turns(flows, progress, forget)
        clients = len(self._flows.clients)
        # Second flows that the node's own stack refused to send are among those that came nowhere.
        self._kept_back -= sum(number // clients % 2 for number in self._flows.kept_back)
        return done

    def _send_turns(self, flows: int, progress: Progress, forget: Callable[[], None]) -> int:
        """Send the flows turn by turn, and return of how many clients each has sent both."""
        lab, clients = self._lab, len(self._flows.clients)
        hosts = self._captures.all_hosts
        at_once = max(1, self._batch // (2 * clients))
        #: Turns that are not counted yet, each with how many clients sent two flows in it.
        sent: list[tuple[int, int]] = []
        packets = done = 0
        for turn in range(-(-flows // clients)):
            if turn and self._is_stopped():
                break
            count = min(clients, flows - turn * clients)
            if turn * clients % _ROOM < clients:
                self._count_turns(sent, packets)
                packets = 0
                lab.forget_flows()
            forget()
            if count == clients:  # a turn stands right behind the one before
                self._put_out(2 * turn * clients, 2 * clients)
            else:
                for each in (2 * turn, 2 * turn + 1):
                    self._put_out(each * clients, count)
            sent.append((turn, count))
            packets += 2 * count
            # What is still on its way must not come to the rules after they have forgotten all.
            if len(sent) == at_once or sum([each.waiting() for each in hosts]) != packets:
                self._count_turns(sent, packets)
                packets = 0
            progress(count)
            done += count
        self._count_turns(sent, packets)
        return done

    def _count_turns(self, sent: list[tuple[int, int]], packets: int) -> None:
        """Wait for the packets of some turns, count them, and clear the list of turns."""
        if not sent:
            return
        self._drain()
        self._wait_for_the_rest(packets)
        # Of a tag one half is the client's number, and the other the port.
        of_clients = [tag_of(client, NO_PORT) for client in range(len(self._flows.clients))]
        tags: list[int] = []
        again: list[int] = []
        for turn, count in sent:
            for some, at in ((tags, 2 * turn), (again, 2 * turn + 1)):
                port = tag_of(0, self._flows.ports[at])
                some += [each | port for each in of_clients[:count]]
        first = list(map(self._landed.get, tags))
        second = [self._landed.pop(tag, None) for tag in again]
        for tag in again:
            self._answered.pop(tag, None)
        self._settle()
        for sockaddr, number in Counter(second).items():
            if sockaddr is None:
                self._repeated_ended += number
            else:
                self._repeated[sockaddr_of(sockaddr)] += number
        self._strayed += strayed(zip(first, second, strict=True))
        sent.clear()


def strayed(pairs: Iterable[tuple[RawSocketAddress | None, RawSocketAddress | None]]) -> int:
    """Return how many clients' second flows arrived elsewhere than their first; None: nowhere."""
    return sum(a != b and None not in (a, b) for a, b in pairs)
