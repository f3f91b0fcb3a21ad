"""NodePorts at further addresses of the node: whether the rules treat flows to them alike.

The node has one address of each IP version in the lab. kube-proxy may accept NodePorts at some of
a node's addresses only (``--nodeport-addresses``; in nftables mode by default at the first), and at
loopback in iptables mode. So the rules are evaluated with a captured flow as it is, and with the
lab's address as its destination.
"""

from __future__ import annotations

import enum
from typing import Final

from analyzer.errors import AnalyzerError
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import ServicePort, Source
from analyzer.model.addresses import VERSIONS, Address
from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.model.value import replace
from analyzer.semantics.fate import Fate, PacketEnd
from netns_lab.node_ports import accepting, own_first

#: Most packets for which rules are evaluated: with large dumps each takes a moment.
_MOST_EVALUATED: Final = 500


@enum.unique
class Answer(enum.Enum):
    """How the rules treat flows to a port of an address of the node.

    ALIKE: as flows to the same port of the lab's address. NO_SERVICE: they are the node's own.
    OTHERWISE: neither, or it is not known.
    """

    ALIKE = "alike"
    NO_SERVICE = "no-service"
    OTHERWISE = "otherwise"


class FurtherAddresses:
    """The addresses of the node, of which the lab has one of each IP version."""

    def __init__(self, given: Input) -> None:
        self._given = given
        self._own = own_first(given)
        self._accepting = accepting(given)
        self._known: dict[Packet, Answer | None] = {}

    def answer(
        self, service: ServicePort, source: Source, client: Address, to: tuple[Address, int]
    ) -> Answer:
        """Return how the rules treat a flow to a Service's NodePort at an address of the node."""
        address, port = to
        own = tuple(each for each in self._own if each.version == address.version)
        if own[:1] == (address,) and address in self._accepting:
            return Answer.ALIKE
        packet = Packet(
            protocol=service.protocol,
            destination=address,
            destination_port=port,
            in_interface=NO_DEVICE if source is Source.NODE else None,
        )
        # Of every client at once, as far as the rules do not distinguish any.
        of_all = self._once(packet, own)
        return of_all or self._once(replace(packet, source=client), own) or Answer.OTHERWISE

    def _once(self, packet: Packet, own: tuple[Address, ...]) -> Answer | None:
        """Return how the rules treat a packet; None if otherwise, or that depends on its source."""
        if packet not in self._known:
            if len(self._known) >= _MOST_EVALUATED:
                return Answer.OTHERWISE
            self._known[packet] = self._evaluated(packet, own)
        return self._known[packet]

    def _evaluated(self, packet: Packet, own: tuple[Address, ...]) -> Answer | None:
        try:
            found = self._ends(packet, own)
            here = Fate("local", packet.destination, packet.destination_port)
            if [each.fate for each in found] == [here]:
                return Answer.NO_SERVICE
            assert packet.destination is not None
            if not own or packet.destination.is_loopback or not all(map(_is_certain, found)):
                return None
            usual = self._ends(replace(packet, destination=own[0]), own)
        except AnalyzerError:  # no such packet arrives, or a rule on its way is malformed
            return None
        return Answer.ALIKE if _told(found) == _told(usual) else None

    def _ends(self, packet: Packet, own: tuple[Address, ...]) -> tuple[PacketEnd, ...]:
        assert packet.destination is not None
        version = packet.destination.version
        parts = self._given.parts or (self._given,)
        rulesets = next((each.rulesets for each in parts if version in each.versions), ())
        question = Question(packet=packet, assumed=self._given.assumed, addresses=own or None)
        family = next(name for name, each in VERSIONS.items() if each == version)
        return trace(rulesets, question, family).ends


def _is_certain(end: PacketEnd) -> bool:
    goes = end.fate.kind not in ("drop", "reject")
    known = end.fate.kind != "unresolved" and end.probability.is_exact
    return known and not (goes and end.masquerade is None)


def _told(ends: tuple[PacketEnd, ...]) -> list[tuple[object, ...]]:
    return [(each.fate, each.probability, each.masquerade) for each in ends]
