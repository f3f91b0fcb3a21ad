"""Effect of other nodes' rules on flows to the pods there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import TYPE_CHECKING, Final

from analyzer.errors import ParseError
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import Share
from analyzer.model.addresses import VERSIONS, Address
from analyzer.model.packet import Packet
from analyzer.model.probability import Bounds, Dyadic, capped_sum
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.fate import PacketEnd
from netns_lab.arriving import NOTHING_BEYOND, Beyond, LostBeyond, hull

if TYPE_CHECKING:
    from netns_lab.experiment import Lab


#: Fates, as `trace` names them.
ENDED: Final = frozenset({"drop", "reject"})
_PASSED: Final = frozenset({"no-service", "local"})
_UNANSWERED: Final = frozenset({"unanswered"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherNode:
    """Another node, and the rules and objects read for it."""

    name: str
    given: Input
    rulesets: tuple[Rules, ...]
    pod_device: str


def lost_beyond(
    lab: Lab,
    others: tuple[OtherNode, ...],
    client: Address | None,
    silent: Collection[str] = (),
) -> Beyond:
    """Return a function that says which flows to an endpoint, and answers, its node's rules end.

    The node sees the flow's source as the address of the node that masqueraded it, or else as
    `client`; None means that the node itself is the client. Where the rules do anything but let the
    flow pass, drop or reject it, the bounds are wide. Nodes in `silent` are left out: their flows
    are counted before their rules.
    """
    if not others:  # saves a look at every endpoint
        return lambda _: NOTHING_BEYOND
    question = lab.question
    by_name = {each.name: each for each in others if each.name not in silent}

    @cache
    def lost(name: str, source: Address, to: tuple[Address, int], protocol: str) -> LostBeyond:
        flow = by_name[name], source, to, protocol
        return LostBeyond(_ended(*flow), _unanswered(*flow))

    protocols: dict[object, set[str]] = {}
    for service in question.view.services:
        for endpoint in service.endpoints:
            protocols.setdefault(endpoint, set()).add(service.protocol)

    def beyond(share: Share) -> LostBeyond:
        endpoint = share.endpoint
        name = question.cluster.placement(endpoint.address).node
        if name not in by_name or endpoint.port is None:
            return NOTHING_BEYOND
        own = lab.topology.plan.node_address(endpoint.address.version)
        sources = {own} if client is None else set()
        if client is not None:
            sources |= {own} if share.masquerade is not False else set()
            sources |= {client} if share.masquerade is not True else set()
        found = [
            lost(name, source, (endpoint.address, endpoint.port), protocol)
            for source in sources
            for protocol in protocols[endpoint]
        ]
        return LostBeyond(
            reduce(hull, [each.ended for each in found]),
            reduce(hull, [each.unanswered for each in found]),
        )

    return beyond


def _ended(node: OtherNode, source: Address, to: tuple[Address, int], protocol: str) -> Bounds:
    """Return the part of the flows from `source` to a pod that a node's rules drop or reject."""
    found = _ends(node, source, to, protocol, follows_answers=False)
    # Any other end is neither lost nor passed for certain.
    return Bounds(_least(found, ENDED), ~_least(found, _PASSED))


def _unanswered(node: OtherNode, source: Address, to: tuple[Address, int], protocol: str) -> Bounds:
    """Return the part of these flows that pass, and whose answers the rules drop or reject."""
    found = _ends(node, source, to, protocol, follows_answers=True)
    return Bounds(_least(found, _UNANSWERED), ~_least(found, ENDED | _PASSED))


def _least(found: Sequence[PacketEnd], kinds: Collection[str]) -> Dyadic:
    """Return the part of the flows that certainly end in one of these ways."""
    return capped_sum(each.probability.lower for each in found if each.fate.kind in kinds)


def _ends(
    node: OtherNode,
    source: Address,
    to: tuple[Address, int],
    protocol: str,
    *,
    follows_answers: bool,
) -> Sequence[PacketEnd]:
    """Return the ends of flows from `source` to a pod; none if they are not known."""
    address, port = to
    packet = Packet(
        protocol=protocol,
        source=source,
        destination=address,
        destination_port=port,
        in_interface="eth0",
    )
    own = tuple(each for each in node.given.own if each.version == address.version)
    question = Question(
        packet=packet,
        assumed=node.given.assumed,
        addresses=own or None,
        follows_answers=follows_answers,
        follows_unchanged=follows_answers,
    )
    family = next(family for family, each in VERSIONS.items() if each == address.version)
    try:
        return trace(node.rulesets, question, family).ends
    except ParseError:
        return ()
