"""Traversals of the iptables nat table, as kube-proxy fills it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.routes.packets import HOOKS
from analyzer.kubeproxy.view import Frontend, Route, Source
from analyzer.model.addresses import VERSIONS, Address
from analyzer.model.diagnostics import Location
from analyzer.model.intervals import Interval, Intervals, joined
from analyzer.model.iptables.rules import Chain, Rule, Ruleset, Table
from analyzer.model.iptables.targets import Accept, Drop
from analyzer.model.packet import UNKNOWN_MARK, Mark, Packet
from analyzer.model.region import Parted, Region
from analyzer.model.value import replace
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import PodPlaces
from analyzer.semantics.effort import differing_bits
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import FellThrough, Leaf, Tree

#: Most parts of the destinations that are tried before nat; the others are evaluated in full.
_MOST_PARTS: Final = 100
#: Takes the place of the rules of KUBE-SERVICES.
_HERE: Final = Rule((), Drop(), Location("", 0), "")


class NatWalks(FlowWalks):
    """Flows through the rules of iptables; `own` are the node's addresses, if known."""

    def __init__(
        self,
        rulesets: Sequence[Rules],
        ruleset: Ruleset,
        own: tuple[Address, ...],
        sources: Mapping[Source, Address | None],
        assumed: Mapping[str, str] | None = None,
        places: Callable[[], PodPlaces] = PodPlaces,
        within: Callable[[], Intervals | None] = lambda: None,
        cluster_ips: Callable[[], Collection[Address]] = frozenset,
        bridges: Callable[[], Intervals | None] = lambda: None,
    ) -> None:
        super().__init__(
            *(rulesets, ruleset.family, own, sources),
            assumed=assumed,
            places=places,
            within=within,
            cluster_ips=cluster_ips,
            bridges=bridges,
        )
        self._table = ruleset.tables.get("nat") or Table(ruleset.family, "nat", {})

    def _walked(self, chain: str, packet: Packet) -> Tree:
        """Return what one chain alone does to a packet."""
        self._effort.begin()
        situation = Situation(assumed=self._assumed)
        return Traversal(self._table, situation, effort=self._effort).tree(chain, packet)

    def behind(self, chain: str, frontend: Frontend, protocol: str, source: Source) -> Route:
        """Return the distribution of the flows that reach a chain of a Service.

        For a frontend whose port is not known: what its rules before that chain match is not
        known either, and neither is the masquerade.
        """
        address = self.packets.sources[source]
        packet = self.packets.sent_to(frontend, protocol, source, address)
        tree = self._walked(chain, packet)
        from analyzer.kubeproxy.routes.up_to_nat import NatTree  # few dumps need it

        route = self._explored(NatTree(tree), source).route(frontend, source, address)
        shares = tuple([replace(share, masquerade=None) for share in route.shares])
        return replace(route, shares=shares)

    def untouched(
        self, source: Source, protocol: str | None, sources: Region | None, among: Intervals
    ) -> Intervals:
        """Return destinations `among` some to which flows reach KUBE-SERVICES unchanged.

        From a kind of source with the addresses `sources`; None: not known.
        """
        sent = replace(
            self.packets.sent(source, sources),
            protocol=protocol,
            destinations=Region(VERSIONS[self._family], among),
        )
        found: list[Interval] = []
        rest = [sent]
        for _ in range(_MOST_PARTS):
            if not rest:
                break
            packet = rest.pop()
            try:
                passes = self._comes_to_nat(source, packet) and self._reaches_services(
                    source, packet
                )
            except Parted as by:
                rest += packet.parted(by)
                continue
            if passes and packet.destinations is not None:
                found += packet.destinations.intervals
        return joined(found)

    def _comes_to_nat(self, source: Source, packet: Packet) -> bool:
        match self._hooks.before_nat(HOOKS[source], packet):
            case Leaf(FellThrough() | Accept(), reached):
                as_sent = replace(reached, mark=packet.mark, flow_mark=packet.flow_mark)
                return as_sent == packet and self._is_unseen(source, packet, reached)
            case _:
                return False

    def _is_unseen(self, source: Source, before: Packet, behind: Packet) -> bool:
        """Return whether no rule matches on the bits of marks that were changed before nat."""
        changed = differing_bits(before, behind)
        if not changed:
            return True
        # What the node sends to itself comes back through PREROUTING, and so to raw again.
        asked = self._asked_bits() if source is Source.NODE else self._asked_behind_raw
        return not changed & asked

    @cached_property
    def _asked_behind_raw(self) -> int:
        from analyzer.kubeproxy.matched.bits import asked_bits

        return asked_bits(self._rulesets, without={"raw"})

    def _reaches_services(self, source: Source, packet: Packet) -> bool:
        """Return whether a packet reaches KUBE-SERVICES first of all in nat, unchanged.

        A verdict takes that chain's place.
        """
        walk = Traversal(self._up_to_services, self._situation)
        match walk.tree(HOOKS[source], packet):
            case Leaf(Drop(), reached, rules):
                return reached == packet and rules[-1] is _HERE
            case _:
                return False

    @cached_property
    def _up_to_services(self) -> Table:
        """The table without the chains after KUBE-SERVICES."""
        chains = {
            name: chain
            for name, chain in self._table.chains.items()
            if not name.startswith((names.ENDPOINT_PREFIX, *names.SERVICE_PREFIXES))
        }
        chains[names.SERVICES] = Chain(names.SERVICES, (_HERE,))
        return replace(self._table, chains=chains)

    def spares_plain(self, most: int) -> bool:
        """Return whether no flow is lost that is marked by KUBE-MARK-MASQ, or is not marked.

        Hairpin flows are marked. Also False if rules distinguish more than `most` destinations.
        """
        mark = self.mark_of_masquerade
        if not self.spared.are_hairpins(None, mark or Mark(), None, self._leaving.within):
            return False
        at_once = [self.spared.at_once(source, self.plain_mark) for source in Source]
        if all(at_once) or (not most and None not in at_once):
            return all(at_once)
        every = self.spared.all_plain
        return every(Mark(), most) and (mark is None or every(mark, most))

    @cached_property
    def plain_mark(self) -> Mark:
        """What is known of the marks of plain flows: KUBE-MARK-MASQ has set its own, or not."""
        mark = self.mark_of_masquerade
        return UNKNOWN_MARK if mark is None else mark.joined(Mark())

    @cached_property
    def mark_of_masquerade(self) -> Mark | None:
        """The mark that KUBE-MARK-MASQ sets on a packet without one.

        None: it is not certain, or the chain does more than that.
        """
        # A Service marks flows from outside, and its endpoint's chain marks its own flows again.
        once = self._marked(Packet())
        return None if once is None or self._marked(once) != once else once.mark

    def _marked(self, packet: Packet) -> Packet | None:
        """Return a packet after KUBE-MARK-MASQ; None: it may change in more than its mark."""
        match self._walked(names.MARK_MASQUERADE, packet):
            case Leaf(FellThrough(), left) if left == replace(packet, mark=left.mark):
                return left
            case _:
                return None
