"""Where one packet can end on the node that the rules are from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from ipaddress import IPv4Address
from typing import Final

from analyzer.errors import UsageError
from analyzer.kubeproxy import names
from analyzer.kubeproxy.matched.bits import asked_bits
from analyzer.kubeproxy.matched.conntrack_need import is_tracking
from analyzer.kubeproxy.matched.devices import asked_devices, dispatched
from analyzer.kubeproxy.matched.sets import node_ipsets
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.addresses import VERSIONS, Address
from analyzer.model.devices import Side
from analyzer.model.intervals import Intervals
from analyzer.model.iptables.matches import MatchRecent
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.iptables.targets import Dnat
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.nft.statements import Dnat as NftDnat
from analyzer.model.nft.statements import SetUpdate
from analyzer.model.packet import NO_DEVICE, UNKNOWN_MARK, Packet
from analyzer.model.routing import Routes
from analyzer.model.value import replace, value
from analyzer.semantics.assumed import (
    BRIDGE_PORT,
    CLUSTER_IP,
    DEFAULTS,
    POD_INTERFACE,
    Assumed,
)
from analyzer.semantics.assumptions import assumptions
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import NodeDevices, PodPlaces
from analyzer.semantics.fate import PacketEnd, ends
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.masquerade import MasqueradeAddresses
from analyzer.semantics.situation import FIRST, Situation
from analyzer.semantics.tree import Tree

_BROADCAST: Final = IPv4Address("255.255.255.255")


@value(kw_only=True)
class Question:
    """A packet, and what is known of its flow and of the node.

    Attributes:
        packet: with ``in_interface=NO_DEVICE`` the node makes it.
        state: its conntrack state.
        affinity: the endpoint that the client's session affinity has recorded, if any.
        assumed: the assumptions beyond the rules, by name.
        addresses: all of the node's; None: not known.
        devices: knows the devices that flows pass; None: only as far as rules name them.
        bridges: returns addresses of which bridges of the node may have some; None: not known.
        follows_answers: whether a new flow is lost if the answer to it is, as far as nodes' rules
            decide.
        follows_unchanged: likewise, of flows that no DNAT sends on.
    """

    packet: Packet
    state: str = "NEW"
    affinity: Endpoint | None = None
    assumed: Mapping[str, str] = DEFAULTS
    addresses: tuple[Address, ...] | None = None
    routes: Routes = Routes()
    devices: NodeDevices | None = None
    bridges: Callable[[], Intervals | None] = lambda: None
    follows_answers: bool = False
    follows_unchanged: bool = False


@value(kw_only=True)
class PacketTrace:
    """The result: all ways, their ends, and what they rest on.

    Attributes:
        used: names of the assumptions among them that are made beyond the rules.
        missed_sets: ipsets whose members are not known.
        visited: for each ruleset the chains that the packet reaches, by table.
        exceeded: the bounds on work that the traversal reached: what lies beyond is unresolved.
    """

    tree: Tree
    ends: tuple[PacketEnd, ...]
    assumptions: tuple[str, ...]
    visited: tuple[Mapping[str, Sequence[str]], ...]
    exceeded: tuple[str, ...] = ()
    used: frozenset[str] = frozenset()
    missed_sets: tuple[str, ...] = ()


@value
class KnownAddresses:
    """What is known of addresses from the Services of the rules.

    Attributes:
        is_outside: whether one is certainly neither a pod's nor the node's.
        is_cluster_ip: whether one is the ClusterIP of a Service.
        places: where addresses of an IP version are.
        bridges: those of which bridges of the node may have some; None: not known.
    """

    is_outside: Callable[[Address], bool] = lambda _: False
    is_cluster_ip: Callable[[Address], bool] = lambda _: False
    places: Callable[[int], PodPlaces] = lambda _: PodPlaces()
    bridges: Callable[[int], Intervals | None] = lambda _: None

    def side(self, address: Address, devices: NodeDevices) -> Side | None:
        """Return the side that a flow from an address comes from; None: not known."""
        known = devices.side(address)
        return Side.OUTSIDE if known is None and self.is_outside(address) else known


def trace(
    rulesets: Sequence[Rules],
    question: Question,
    family: str,
    known: KnownAddresses = KnownAddresses(),  # noqa: B008  # immutable
) -> PacketTrace:
    """Evaluate a packet of a family, ``ip`` or ``ip6``, at all hooks of a node with `rulesets`.

    `known` is used only if rules match on something for which the same is then assumed as for all
    flows to Services: bridge ports, for packets from outside by an unnamed device; devices; and the
    node's addresses, for packets to a ClusterIP.

    Raises:
        UsageError: the packet, or the endpoint of its affinity, does not fit these rules.
        ParseError: a rule on the way is malformed.
    """
    assumed = Assumed(question.assumed)
    devices = question.devices or _devices(rulesets, partial(known.places, VERSIONS[family]))
    question = replace(question, devices=devices, bridges=partial(known.bridges, VERSIONS[family]))
    hooks, situation, tree = _walk(rulesets, question, family, assumed)
    packet = _as_assumed(question.packet, assumed, known, devices)
    if packet != question.packet:
        assumed = Assumed(question.assumed)
        hooks, situation, tree = _walk(rulesets, replace(question, packet=packet), family, assumed)
    return PacketTrace(
        tree=tree,
        ends=ends(tree),
        assumptions=tuple(assumptions(rulesets, situation, tree, hooks.evaluated)),
        visited=tuple(hooks.visited(number) for number in range(len(rulesets))),
        exceeded=hooks.exceeded,
        used=frozenset(assumed.used),
        missed_sets=() if situation.ipsets is None else tuple(situation.ipsets.missed),
    )


def _as_assumed(
    packet: Packet, assumed: Assumed, known: KnownAddresses, devices: NodeDevices
) -> Packet:
    """Return a packet with the assumptions that the rules needed."""
    wanted = assumed.wanted & assumed.values.keys()
    of, to = packet.source, packet.destination
    unnamed = (packet.in_interface, packet.bridge_port) == (None, None)
    if BRIDGE_PORT in wanted and unnamed and of is not None and known.is_outside(of):
        packet = replace(packet, bridge_port=False)
    if POD_INTERFACE in wanted and of is not None and packet.in_interface is None:
        packet = replace(packet, comes_from=known.side(of, devices))
    if CLUSTER_IP in wanted and to is not None and known.is_cluster_ip(to):
        packet = replace(packet, cluster_ip=to)
    return packet


def way(
    rulesets: Sequence[Rules],
    question: Question,
    family: str,
    assumed: Assumed | None = None,
) -> Tree:
    """Return the tree of `trace` alone.

    `assumed` are the assumptions beyond the rules, instead of the question's, and records those
    that the tree rests on.

    Raises:
        UsageError: the packet, or the endpoint of its affinity, does not fit these rules.
        ParseError: a rule on the way is malformed.
    """
    return _walk(rulesets, question, family, assumed or Assumed(question.assumed))[2]


def _walk(
    rulesets: Sequence[Rules], question: Question, family: str, assumed: Assumed
) -> tuple[Hooks, Situation, Tree]:
    packet = question.packet
    version = VERSIONS[family]
    for address in (packet.source, packet.destination):
        if address is not None and address.version != version:
            raise UsageError(
                f"{address} is not an IPv{version} address, and the rules are for IPv{version}"
            )
    to = packet.destination
    if to is not None and to.is_loopback and packet.in_interface != NO_DEVICE:
        raise UsageError(
            f"{to}: the kernel drops packets that arrive for loopback; use --from-node"
        )
    if to is not None and (to.is_multicast or to == _BROADCAST or to.is_unspecified):
        raise UsageError(f"{to} is not a unicast address: only packets to one host are traced")
    if question.state not in FIRST:  # the mark that earlier packets left on the flow is not known
        packet = replace(packet, flow_mark=UNKNOWN_MARK)
    if packet.tracked and not is_tracking(rulesets, family):
        packet = replace(packet, tracked=None)
    own = question.addresses
    situation = Situation(
        local_addresses=None if own is None else frozenset(own),
        state=question.state,
        has_entry=question.state != "INVALID",
        flow=packet,
        lists=frozenset(_lists(rulesets, question.affinity, packet.source, family)),
        affinity_lists=names.AFFINITY_LISTS,
        assumed=assumed,
        ipsets=node_ipsets(rulesets),
        devices=question.devices or _devices(rulesets),
        masquerades=MasqueradeAddresses(own or (), question.bridges),
    )
    hooks = Hooks(
        rulesets,
        family,
        situation,
        question.routes,
        asked_bits=lambda: asked_bits(rulesets),
        follows_answers=question.follows_answers and question.state in FIRST,
        follows_unchanged=question.follows_unchanged,
    )
    return hooks, situation, hooks.way(packet)


def _devices(rulesets: Sequence[Rules], places: Callable[[], PodPlaces] = PodPlaces) -> NodeDevices:
    return NodeDevices(
        lambda: asked_devices(rulesets),
        places,
        lambda leaving: dispatched(rulesets, leaving=leaving),
    )


def _lists(
    rulesets: Sequence[Rules], endpoint: Endpoint | None, client: Address | None, family: str
) -> Iterator[str]:
    """Yield the affinity lists that have the client: those of `endpoint`, if given.

    Otherwise those in which the dump shows it; iptables dumps show none.
    """
    if endpoint is None:
        for ruleset in rulesets:
            if isinstance(ruleset, NftRuleset) and client is not None:
                yield from _that_hold(client, ruleset, family)
        return
    found = False
    for ruleset in rulesets:
        kept = (
            _of_iptables(ruleset, endpoint)
            if isinstance(ruleset, Ruleset)
            else _of_nft(ruleset, endpoint)
        )
        for name in kept:
            found = True
            yield name
    if not found:
        raise UsageError(
            f"--affinity {endpoint}: no Service with session affinity has that endpoint"
        )


def _of_iptables(ruleset: Ruleset, endpoint: Endpoint) -> Iterator[str]:
    """Yield the lists of an endpoint; kube-proxy names each after the KUBE-SEP chain."""
    nat = ruleset.tables.get("nat")
    for name, chain in nat.chains.items() if nat is not None else ():
        if not name.startswith(names.ENDPOINT_PREFIX):
            continue
        for rule in chain.rules:
            match rule.target:
                case Dnat(to) if (to.first_address, to.first_port) == (
                    endpoint.address,
                    endpoint.port,
                ):
                    if _is_asked(ruleset, name):
                        yield name
                case _:
                    pass


def _is_asked(ruleset: Ruleset, name: str) -> bool:
    """Return whether any rule of nat looks clients up in a list, or records them there."""
    return any(
        isinstance(match, MatchRecent) and match.name == name
        for chain in ruleset.tables["nat"].chains.values()
        for rule in chain.rules
        for match in rule.matches
    )


def _of_nft(ruleset: NftRuleset, endpoint: Endpoint) -> Iterator[str]:
    """Yield the sets to which a chain adds clients that it sends to an endpoint."""
    for table in ruleset.tables.values():
        for chain in table.chains.values():
            statements = [each for rule in chain.rules for each in rule.statements]
            to = [s for s in statements if isinstance(s, NftDnat)]
            if any((s.address, s.port) == (endpoint.address, endpoint.port) for s in to):
                yield from (s.set for s in statements if isinstance(s, SetUpdate))


def _that_hold(client: Address, ruleset: NftRuleset, family: str) -> Iterator[str]:
    for table in ruleset.tables.values():
        if table.family != family:
            continue
        for name, held in table.sets.items():
            is_kept = name.startswith(names.AFFINITY_PREFIX)
            if is_kept and any(element.key == client for element in held.elements):
                yield name
