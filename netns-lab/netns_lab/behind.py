"""Flows that endpoints of other nodes with rules of their own send to their own Services.

Theory of operation
===================

Such a flow traverses the rules of its own node first, and these draw the endpoint. The next node on
its way, if there is one, sees it with that destination, and with the source that the node before
has left it. So its ends are those of one packet at one node after the other, each walked with the
node's own dump; the draws of different nodes are independent. The answer comes back through the
same nodes, and the walk at each follows it (`semantics/answers`).

Flows to a NodePort are sent to the address of the lab's own node, whose rules draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analyzer.errors import ParseError
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, ServicePort
from analyzer.model.addresses import VERSIONS, Address
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, capped_sum
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.fate import fate_of
from analyzer.semantics.shares import shares
from analyzer.semantics.tree import Leaf
from netns_lab.arriving import NOTHING, Arriving, sockaddr_of_endpoint
from netns_lab.backend import SocketAddress
from netns_lab.beyond import ENDED
from netns_lab.direct import DirectRoutes
from netns_lab.errors import NotMeasuredError
from netns_lab.loaded_nodes import LoadedNode
from netns_lab.plan import bridge_of, device_name
from netns_lab.reasons import BEHIND, DIRECT

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: The device of every node towards the others.
_UPLINK: Final = "eth0"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A node with rules, its addresses in the lab, and its device towards its pods."""

    name: str
    rulesets: tuple[Rules, ...]
    addresses: tuple[Address, ...]
    assumed: Mapping[str, str]
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """A packet as it is when a node is done with it.

    Attributes:
        fate: as `trace` names it.
        translated: whether the node has drawn its destination.
        masqueraded: whether the node has changed its source; None: not known.
    """

    fate: str
    to: Address | None
    port: int | None
    translated: bool | None
    masqueraded: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The end of a flow.

    Attributes:
        to: the endpoint that it came to or, if `ended`, that it was sent to; None: to none.
        share: of all flows.
        ended: rules ended it.
        answered: its answer comes back.
    """

    to: SocketAddress | None
    share: Bounds
    ended: bool
    answered: bool


class SendersBehind:
    """Predicts the flows of endpoints whose node has rules of its own."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._own = lab.topology.plan.node
        self._routes = DirectRoutes(lab.topology)
        self._nodes = {each.name: each for each in lab.nodes}
        self._hosts = {
            address: host
            for host in lab.topology.others
            if host.plan is not None
            for address in (*host.plan.endpoints, *host.plan.addresses)
        }
        self._known: dict[tuple[str, str, Frontend, Endpoint], Arriving | str] = {}

    def node_of(self, address: Address) -> LoadedNode | None:
        """Return the node with rules of its own that an endpoint is behind, if it is behind one."""
        host = self._hosts.get(address)
        return None if host is None or host.plan is None else self._nodes.get(host.plan.name)

    def why_not(self, service: ServicePort, route: Route, sender: Endpoint) -> str | None:
        """Return why an endpoint's flows to its own Service are not sent; None if they are."""
        mute = self.why_not_to_here(service, route, sender)
        if mute != BEHIND or not self._lab.question.sends_behind:
            return mute
        found = self._found(service, route, sender)
        return found if isinstance(found, str) else None

    def why_not_to_here(self, service: ServicePort, route: Route, sender: Endpoint) -> str | None:
        """Return the same for a sender whose flows come to the lab's own node as they were sent."""
        mute = self._lab.why_mute(sender)
        host = self._hosts.get(sender.address)
        if mute is not None or host is None or host.plan is None:
            return mute
        if sender.address not in host.plan.addresses:
            return None
        dead = self._lab.question.dead.endpoints
        beside = frozenset(
            each.address
            for each in service.endpoints
            if each not in dead and self._hosts.get(each.address) is host
        ) - {sender.address}
        return DIRECT if beside and not self._masqueraded(service, route, sender, beside) else None

    def _masqueraded(
        self, service: ServicePort, route: Route, sender: Endpoint, to: frozenset[Address]
    ) -> bool:
        """Return whether all of a sender's flows that come to some addresses are masqueraded.

        So their answers come back to the lab's own node.
        """
        packet = Packet(
            protocol=service.protocol,
            source=sender.address,
            destination=self._sent_to(route, sender.address),
            destination_port=route.frontend.port,
            in_interface=_UPLINK,
        )
        try:
            every = [left for left, _ in _walked(self._place(self._own), packet)]
        except NotMeasuredError:
            return False
        return all(
            left.masqueraded is True or left.fate in ENDED for left in every if left.to in to
        )

    def expected(self, service: ServicePort, route: Route, sender: Endpoint) -> Arriving:
        """Return the prediction for the flows of a sender whose node has rules of its own.

        Raises:
            NotMeasuredError: there is none; the message says why.
        """
        found = self._found(service, route, sender)
        if isinstance(found, str):
            raise NotMeasuredError(found)
        return found

    def sending(
        self, service: ServicePort, route: Route, sender: Address
    ) -> AbstractContextManager[None]:
        """Let what a sender sends go where its own node's rules send it, within this context.

        What is sent to the lab's own node goes there by the routes that all flows have.
        """
        to = self._sent_to(route, sender)
        if self.node_of(sender) is None or to in self._lab.topology.plan.node_addresses:
            return nullcontext()
        addresses = [each.address for each in service.endpoints]
        others = {id(h): h for a in addresses if (h := self._hosts.get(a)) is not None}
        return self._routes.between(self._hosts[sender], others.values())

    def _sent_to(self, route: Route, sender: Address) -> Address:
        return route.frontend.address or self._lab.topology.plan.node_address(sender.version)

    def _found(self, service: ServicePort, route: Route, sender: Endpoint) -> Arriving | str:
        key = service.name.text, service.protocol, route.frontend, sender
        if key not in self._known:
            try:
                self._known[key] = self._predicted(service, route, sender)
            except NotMeasuredError as error:
                self._known[key] = f"{BEHIND}; {error}"
        return self._known[key]

    def _predicted(self, service: ServicePort, route: Route, sender: Endpoint) -> Arriving:
        if service.affinity is not None:
            raise NotMeasuredError("session affinity is not measured there")
        node = self.node_of(sender.address)
        assert node is not None
        if sender.address in {*node.addresses, *node.node.given.own}:
            raise NotMeasuredError(f"it sends as {node.name} itself does")
        packet = Packet(
            protocol=service.protocol,
            source=sender.address,
            destination=self._sent_to(route, sender.address),
            destination_port=route.frontend.port,
            in_interface=self._place(node.name).device,
        )
        every = [*self._ends(self._place(node.name), packet, None, [])]
        endpoints = [e for e in service.endpoints if e.port is not None]
        known = dict.fromkeys(map(sockaddr_of_endpoint, endpoints))
        if any(each.to not in known for each in every if not each.ended and each.share.upper):
            raise NotMeasuredError("not all of it comes to an endpoint of its Service")
        return _arriving(every, known)

    def _ends(
        self, place: _Place, packet: Packet, sent_to: SocketAddress | None, passed: list[str]
    ) -> Iterator[_End]:
        """Yield the ends of a packet that comes to a node.

        `sent_to` is what one of the nodes that it has `passed` has drawn.

        Raises:
            NotMeasuredError: some are not predicted.
        """
        for left, share in _walked(place, packet):
            to = sent_to
            if left.translated and left.to is not None and left.port is not None:
                to = int(left.to), left.port
            if left.fate in ENDED:
                yield _End(to=to, share=share, ended=True, answered=False)
                continue
            assert left.to is not None
            name, answered = self._where(place, left.to), left.fate != "unanswered"
            if name != place.name:
                self._check(packet, place, left, name, passed)
            silent = {gate.namespace.name for gate in self._lab.dying.silent}
            # What comes to one that is silent is counted before its rules.
            has_rules = name == self._own or name in self._nodes.keys() - silent
            if name == place.name or not has_rules:
                at = int(left.to), left.port or 0
                yield _End(to=at, share=share, ended=False, answered=answered)
                continue
            source = packet.source
            if left.masqueraded:
                source = next(a for a in place.addresses if a.version == left.to.version)
            onwards = Packet(
                protocol=packet.protocol,
                source=source,
                destination=left.to,
                destination_port=left.port,
                in_interface=_UPLINK,
            )
            for end in self._ends(self._place(name), onwards, to, [*passed, place.name]):
                yield _End(
                    to=end.to,
                    share=Bounds(share.lower * end.share.lower, share.upper * end.share.upper),
                    ended=end.ended,
                    answered=answered and end.answered,
                )

    def _where(self, place: _Place, to: Address) -> str:
        """Return the name of the node that has an address, or whose pod has it.

        Raises:
            NotMeasuredError: the lab has it nowhere.
        """
        plan, host = self._lab.topology.plan, self._hosts.get(to)
        if to in plan.node_addresses or to in plan.own_pods.endpoints:
            return self._own
        if host is None or host.plan is None:
            raise NotMeasuredError(f"not all of it comes from {place.name} to an endpoint")
        return host.plan.name

    def _check(
        self, packet: Packet, place: _Place, left: _Left, name: str, passed: Sequence[str]
    ) -> None:
        """Check that a packet goes from a node to the next, `name`, and its answer back.

        Raises:
            NotMeasuredError: they do not in the lab, or it is not known.
        """
        if left.masqueraded is None:
            raise NotMeasuredError(f"its source is not known when it leaves {place.name}")
        # Such routes are there from the sender's node alone, and not for what goes to a NodePort.
        is_direct = not passed and packet.destination not in self._lab.topology.plan.node_addresses
        if self._own not in {place.name, name} and not is_direct:
            raise NotMeasuredError(f"{place.name} sends some of it on to {name}")
        # The answer goes to the source: past this node, if the source is that of another.
        if passed and not left.masqueraded:
            raise NotMeasuredError(f"{place.name} sends some of it on with its source unchanged")
        if len(passed) > 1:
            raise NotMeasuredError(f"{place.name} sends some of it on once more")

    def _place(self, name: str) -> _Place:
        question, plan = self._lab.question, self._lab.topology.plan
        if name == plan.node:
            return _Place(
                name=name,
                rulesets=question.rulesets,
                addresses=plan.node_addresses,
                assumed=question.assumed,
                device=plan.bridge or plan.pods_device,
            )
        node = self._nodes[name]
        return _Place(
            name=name,
            rulesets=node.node.rulesets,
            addresses=node.addresses,
            assumed=node.node.given.assumed,
            device=bridge_of(node.node.pod_device) or device_name(node.node.pod_device, "pods"),
        )


def _walked(place: _Place, packet: Packet) -> Iterator[tuple[_Left, Bounds]]:
    """Yield what a node makes of a packet, with the share of each.

    Raises:
        NotMeasuredError: the rules leave some of it open.
    """
    assert packet.destination is not None
    version = packet.destination.version
    question = Question(
        packet=packet,
        assumed=place.assumed,
        addresses=tuple(each for each in place.addresses if each.version == version),
        follows_answers=True,
        follows_unchanged=True,
    )
    family = next(name for name, each in VERSIONS.items() if each == version)
    try:
        found = shares(trace(place.rulesets, question, family).tree, _left)
    except ParseError as error:
        raise NotMeasuredError(f"{place.name} has a rule that is malformed: {error}") from None
    every = [(left, share) for left, share in found.items() if share.upper]
    if found.unresolved or any(left.fate == "unresolved" for left, _ in every):
        raise NotMeasuredError(f"the dump of {place.name} does not show all of its ends")
    yield from every


def _left(leaf: Leaf) -> _Left:
    packet = leaf.packet
    return _Left(
        fate=fate_of(leaf).kind,
        to=packet.destination,
        port=packet.destination_port,
        translated=packet.translated,
        masqueraded=packet.masqueraded,
    )


def _arriving(every: list[_End], known: Mapping[SocketAddress, None]) -> Arriving:
    """Return the prediction that these ends add up to."""

    def total(some: list[_End]) -> Bounds:
        lower = capped_sum(each.share.lower for each in some)
        return Bounds(lower, capped_sum(each.share.upper for each in some))

    unanswered = {}
    for sockaddr in known:
        silent = total([e for e in every if e.to == sockaddr and not e.ended and not e.answered])
        heard = total([e for e in every if e.to == sockaddr and not e.ended and e.answered])
        if silent != NOTHING:
            # Of those that come there; a dyadic fraction of these need not exist.
            unanswered[sockaddr] = Bounds(NEVER if heard.upper else ALWAYS, ALWAYS)
    return Arriving(
        {s: total([e for e in every if e.to == s and not e.ended]) for s in known},
        {s: total([e for e in every if e.to == s and e.ended]) for s in known},
        total([each for each in every if each.ended]),
        unanswered,
    )
