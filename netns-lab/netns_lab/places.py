"""The places of a lab in which programs can run, and which addresses are where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from analyzer.kubeproxy.view import Endpoint, ServicePort, Source
from analyzer.model.addresses import Address
from analyzer.model.text import printable
from netns_lab.errors import LabError
from netns_lab.experiment import Lab
from netns_lab.muting import set_deaf
from netns_lab.namespace import Namespace
from netns_lab.topology import Host, move_outside, stand_as

CLIENT: Final = "client"
NODE: Final = "node"
PODS: Final = "pods"
WORLD: Final = "world"
OUTSIDE: Final = "outside"
#: Characters that names of places must not have, since prompts, paths and scripts contain them.
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9.-]+")
#: Addresses of one place that the map lists.
_FEW: Final = 4


@dataclass(frozen=True, slots=True)
class LabPlace:
    """A namespace with a name.

    Attributes:
        says: what it is, in words.
        addresses: those whose packets it receives, nodes' before pods'.
        host: the host, if it has endpoints.
    """

    name: str
    namespace: Namespace
    says: str
    addresses: tuple[Address, ...] = ()
    host: Host | None = None


class LabPlaces:
    """All places of a lab.

    With `outside`, a client outside the cluster is one of them; the plan must have an address for
    it.

    Raises:
        LabError: that place cannot be created.
    """

    def __init__(self, lab: Lab, *, outside: bool = False) -> None:
        self._lab = lab
        topology, plan = lab.topology, lab.topology.plan
        node = printable(plan.node)
        found = [
            LabPlace(
                CLIENT,
                topology.client.namespace,
                f"a pod of {node} that is not an endpoint",
                tuple(plan.clients_from(Source.POD)),
            ),
            LabPlace(
                NODE, topology.node, f"{node}, where the rules are loaded", plan.node_addresses
            ),
            LabPlace(
                PODS,
                topology.own_pods.namespace,
                f"endpoints that are pods of {node}",
                plan.own_pods.endpoints,
                topology.own_pods,
            ),
        ]
        taken = {CLIENT, NODE, PODS, WORLD, OUTSIDE}
        for host in topology.others:
            assert host.plan is not None
            name = _free_name(host.plan.name, taken)
            dead = "a dead node, which accepts every packet and never answers"
            says = dead if host.plan.dead else "another node, and its pods"
            held = (*host.plan.addresses, *host.plan.endpoints)
            found.append(LabPlace(name, host.namespace, says, held, host))
            taken.add(name)
        found.append(
            LabPlace(WORLD, topology.world.namespace, "where packets for none of these go")
        )
        if outside:
            own = move_outside(topology)
            theirs = tuple(plan.clients_from(Source.EXTERNAL))
            set_deaf(topology, dict.fromkeys(theirs, Source.EXTERNAL), deaf=False)
            found.append(LabPlace(OUTSIDE, own, "a client outside of the cluster", theirs))
        self.all: Sequence[LabPlace] = found

    def enter(self, wanted: str) -> LabPlace:
        """Return a place by its name, or by the address or the name of a pod.

        If a pod is named, programs there that do not bind an address send from the pod's.

        Raises:
            LabError: there is no such place, or the pod is dead.
        """
        named = {each.name: each for each in self.all}
        pods = dict(self._pods())
        own = named[PODS]
        found = named.get(wanted)
        pod = None if found is not None else pods.get(wanted)
        if found is None and wanted == self._lab.topology.plan.node:
            found = named[NODE]
        if pod is not None:
            found = next((each for each in self.all if pod in each.addresses), None)
        if found is None:
            known = ", ".join([*named, *([] if OUTSIDE in named else [OUTSIDE])])
            raise LabError(
                f"--in {printable(wanted)}: no such place; there are {known}, and each pod by its "
                "address or its name"
            )
        if pod is not None and found.host is not None and not _lives(found.host, pod):
            raise LabError(
                f"--in {printable(wanted)}: it is dead and sends nothing; packets for it can be "
                f"seen in {found.name}"
            )
        if pod is not None and found.host is not None:
            stand_as(self._lab.topology, found.host, pod)
        if found is not own or pod is None:
            # The devices of endpoints have no address, without which nothing could be sent from
            # there.
            living = [each for each in own.addresses if _lives(self._lab.topology.own_pods, each)]
            for each in {each.version: each for each in reversed(living)}.values():
                stand_as(self._lab.topology, self._lab.topology.own_pods, each)
        return found

    def _pods(self) -> Iterator[tuple[str, Address]]:
        """Yield the names of endpoints: address, pod, and pod with namespace."""
        pods = self._lab.question.cluster.pods
        for each in self._lab.question.view.endpoints:
            name = pods.of(each.address, each.port)
            if name is not None:
                yield name.partition("/")[2], each.address
                yield name, each.address
            yield str(each.address), each.address

    def of(self, address: Address) -> LabPlace | None:
        """Return the place where an address is."""
        return next((each for each in self.all if address in each.addresses), None)

    def talk(self, address: str, port: int, said: bytes) -> bytes:
        """Return what an endpoint sends over TCP about itself; to an HTTP client, as a page."""
        own = ip_address(address)
        place, pod = self.of(own), self._lab.question.cluster.pods.of(own, port)
        where = f" in {place.name}" if place is not None else ""
        body = f"{Endpoint(own, port)}{where}{' ' + printable(pod) if pod else ''}\n".encode()
        if b" HTTP/1." not in said.partition(b"\r\n")[0]:
            return body
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
        return head + b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    def map(self, here: LabPlace) -> str:
        """Return a table of the places, and the endpoints of all Services, as text."""
        rows = [("place", "addresses", "what it is")]
        for each in self.all:
            more = f" and {len(each.addresses) - _FEW} more" if each.addresses[_FEW:] else ""
            told = " ".join(map(str, each.addresses[:_FEW])) + more
            rows.append((each.name, told, each.says + (" (you are here)" if each is here else "")))
        lines = [*_table(rows), ""]
        for service in self._lab.question.view.services:
            lines += self._service(service)
        return "\n".join(lines) + "\n"

    def _service(self, service: ServicePort) -> Iterator[str]:
        sockaddrs = ", ".join(f"{each.kind.value} {each}" for each in service.frontends)
        yield printable(f"{service.name.text} ({service.protocol}): {sockaddrs}")
        rows = [self._endpoint(each) for each in service.endpoints]
        yield from (f"    {line}" for line in _table(rows))
        if not rows:
            yield "    no endpoints"

    def _endpoint(self, endpoint: Endpoint) -> tuple[str, str, str]:
        question = self._lab.question
        place = self.of(endpoint.address)
        name = question.cluster.pods.of(endpoint.address, endpoint.port)
        fate = ""
        if endpoint in question.dead.endpoints:
            kind = self._lab.kind_of(endpoint)
            how = "refuses" if self._lab.refuses(endpoint) else "silent"
            fate = f"dead: {kind or how}"
        elif (kind := self._lab.kind_of(endpoint)) is not None:
            fate = str(kind)
        where = f"in {place.name}" if place is not None else ""
        return str(endpoint), where, "  ".join(filter(None, (printable(name or ""), fate)))


def _free_name(name: str, taken: set[str]) -> str:
    found = _NO_NAME.sub("-", name).strip("-.") or "other"
    while found in taken:
        found += "-node"
    return found


def _lives(host: Host, address: Address) -> bool:
    assert host.plan is not None
    return not host.plan.dead and address not in host.plan.silent


def _table(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip()
