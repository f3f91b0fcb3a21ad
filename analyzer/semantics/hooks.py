"""A packet's traversal of the hooks, and of the base chains registered at each.

Theory of operation
===================

A hook calls the base chains of several tables one after another (`calls`); a packet that one of
them accepts goes to the next, and one that all accept is routed.

A packet from outside traverses PREROUTING and then, depending on its destination, INPUT, or FORWARD
and POSTROUTING. A packet from the node itself traverses OUTPUT and POSTROUTING; if its destination
is an address of the node it comes back over loopback, to PREROUTING and INPUT, with its mark and
its conntrack entry, so nat is not evaluated again. OUTPUT sees the device that the first routing
decision chose, even if DNAT sends the packet elsewhere.

Source: Linux, include/uapi/linux/netfilter_ipv4.h, ``nf_ip_hook_priorities``; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from analyzer.model.intervals import Intervals
from analyzer.model.packet import ALL_BITS, NO_DEVICE, UNKNOWN_PACKET, Mark, Packet
from analyzer.model.routing import LOOPBACK, Routes
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.answers import FlowAnswers
from analyzer.semantics.assumed import POD_INTERFACE
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.calling_order import after_nat, before_nat, up_to_nat
from analyzer.semantics.calls import Calls, met_before
from analyzer.semantics.conditions import Label, questions, telling
from analyzer.semantics.depth import deep
from analyzer.semantics.devices import NOT_LOOPBACK
from analyzer.semantics.effort import Effort
from analyzer.semantics.onward import OnwardBySource, onward
from analyzer.semantics.parts import MatchedSources
from analyzer.semantics.situation import PORT, Situation
from analyzer.semantics.tree import (
    Delivered,
    Either,
    Leaf,
    OwnSource,
    Tree,
    Unanswered,
    Unresolved,
)


class PortsAsked(Exception):  # noqa: N818  # it ends a walk, and is no error
    """Rules matched on the destination port more often than the traversal allows."""


class Hooks:
    """The paths of packets of one family through all base chains of one node, in one situation.

    `rulesets` are all of the node's; `family` is ``ip`` or ``ip6``. `asked_bits` returns the bits
    of marks that any of their rules matches on. With `follows_answers` a packet that DNAT sent on
    is delivered only if the answer to it is (`answers`); with `follows_unchanged` so is any other.
    """

    def __init__(
        self,
        rulesets: Sequence[Rules],
        family: str,
        situation: Situation,
        routes: Routes | None = None,
        asked_bits: Callable[[], int] = lambda: ALL_BITS,
        *,
        follows_answers: bool = False,
        follows_unchanged: bool = False,
    ) -> None:
        situation = replace(situation, noted_field=self._note)
        self._situation = situation
        #: How often rules matched on a packet's fields, by `ASKED`, since the traversal began.
        self.asked_fields: dict[str, int] = {}
        #: How often they may on the port, before `PortsAsked` ends the traversal; None: no limit.
        self.most_ports: int | None = None
        self._routes = routes or Routes()
        self._effort = Effort(asked_bits)
        self._calls = Calls(rulesets, family, situation, self._effort)
        self._answers: FlowAnswers | None = None
        self._follows_unchanged = follows_unchanged
        if follows_answers:
            self._answers = FlowAnswers(rulesets, family, situation, asked_bits, self._routes)
        #: The packet with which the traversal began.
        self._began = UNKNOWN_PACKET

    @property
    def evaluated(self) -> set[type]:
        """Kinds of matches that were evaluated so far."""
        walkers = [walker for each in self._calls.chains() for walker in (each.walker, each.again)]
        return {kind for walker in walkers for kind in walker.evaluated}

    def _note(self, field: str) -> None:
        times = self.asked_fields[field] = self.asked_fields.get(field, 0) + 1
        if field == PORT and self.most_ports is not None and times > self.most_ports:
            raise PortsAsked

    def _begin(self) -> None:
        """Start with another packet."""
        self.asked_fields = {}
        self._calls.is_behind = self._calls.joins_marks = False
        self._calls.forget()
        self._effort.begin()

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The bounds on work that were reached so far, in words; beyond them all is unresolved."""
        answers = () if self._answers is None else self._answers.exceeded
        return tuple(dict.fromkeys((*self._effort.exceeded, *answers)))

    def forget(self, exceeded: Iterable[str]) -> None:
        """Forget all bounds that were reached except for these."""
        self._effort.exceeded = dict.fromkeys(exceeded)
        if self._answers is not None:
            self._answers.exceeded = dict.fromkeys(exceeded)

    @property
    def joined_on(self) -> frozenset[Intervals]:
        """The sources that rules matched on since the traversal began, without splitting it."""
        return frozenset(self._effort.joined_on)

    @property
    def has_lent(self) -> bool:
        """Whether leaves of the last tree are those of a packet that came in another way."""
        return self._effort.has_lent

    def asked_of(self, mark: Mark) -> Mark:
        """Return a mark without the bits that no rule of the node matches on."""
        return self._effort.asked_of(mark)

    def visited(self, ruleset: int = 0) -> dict[str, list[str]]:
        """Return the chains that packets entered, by table, of the ruleset with this number."""
        found: dict[str, dict[str, None]] = {}
        for chain in self._calls.chains():
            if chain.ruleset == ruleset:
                for walker in (chain.walker, chain.again):
                    found.setdefault(chain.table, {}).update(dict.fromkeys(walker.visited))
        return {table: list(chains) for table, chains in found.items()}

    # --- whole ways ---

    @deep
    def way(self, packet: Packet) -> Tree:
        """Return all paths of a packet, which the node sends if `in_interface` is `NO_DEVICE`.

        Its leaves are Delivered, Drop, PolicyDrop, Reject or Unresolved.
        """
        self._begin()
        self._began = packet
        return self._out(packet) if packet.in_interface == NO_DEVICE else self._in(packet)

    def _in(self, packet: Packet) -> Tree:
        came = replace(packet, out_interface=NO_DEVICE)
        return self._calls.run(self._calls.stages["PREROUTING"], came, self._routed_in)

    def _routed_in(self, packet: Packet) -> Tree:
        return self._by_destination(packet, self._to_node, self._forwarded)

    def _by_destination(
        self,
        packet: Packet,
        here: Callable[[Packet], Tree],
        elsewhere: Callable[[Packet], Tree],
    ) -> Tree:
        local = self._situation.is_local(packet)
        if local is Ternary.TRUE:
            return here(packet)
        if local is Ternary.FALSE:
            return elsewhere(packet)
        where = "an address" if packet.destination is None else str(packet.destination)
        because = f"whether {where} is one of the node's"
        return Either(because, (here(packet), elsewhere(packet)))

    def _to_node(self, packet: Packet) -> Tree:
        came = replace(packet, out_interface=NO_DEVICE)
        return self._calls.run(
            self._calls.stages["INPUT"], came, lambda p: self._delivered(p, here=True)
        )

    def _forwarded(self, packet: Packet) -> Tree:
        leaving = self._on_route(packet, self._routes.device(packet.destination))
        return self._calls.run(self._calls.stages["FORWARD"], leaving, self._leaving)

    def _leaving(self, packet: Packet) -> Tree:
        # Only some kernels tell POSTROUTING which device a packet came in by.
        unseen = replace(packet, in_interface=None, comes_from=None)
        return self._calls.run(
            self._calls.stages["POSTROUTING"], unseen, lambda p: self._delivered(p, here=False)
        )

    def _out(self, packet: Packet) -> Tree:
        return self._calls.run(
            self._calls.stages["OUTPUT"], self.made_here(packet), self._routed_out
        )

    def made_here(self, packet: Packet) -> Packet:
        """Return a packet that the node sends, with what its destination tells of the device."""
        device = self._device(packet)
        assumed, devices = self._situation.assumed, self._situation.devices
        elsewhere = self._situation.is_local(packet) is Ternary.FALSE
        if elsewhere and device is None and devices is not None:
            device = devices.routed(packet.destination)
        if device is not None or assumed is None or POD_INTERFACE not in assumed.values:
            return replace(packet, out_interface=device)
        return replace(packet, leaves_by=NOT_LOOPBACK if elsewhere else None)

    def _device(self, packet: Packet) -> str | None:
        local = self._situation.is_local(packet)
        if local is Ternary.TRUE:
            return LOOPBACK
        # A packet to what may be one of the node's own addresses may leave by loopback.
        return self._routes.device(packet.destination) if local is Ternary.FALSE else None

    def _on_route(self, packet: Packet, device: str | None) -> Packet:
        """Return a packet that leaves by a device on the route to its destination."""
        elsewhere = device is None and self._situation.is_local(packet) is Ternary.FALSE
        return replace(packet, out_interface=device, leaves_by=None, is_routed=elsewhere)

    def _routed_out(self, packet: Packet) -> Tree:
        unseen = replace(packet, in_interface=None, comes_from=None)
        leaving = self._on_route(unseen, self._device(packet))
        return self._calls.run(self._calls.stages["POSTROUTING"], leaving, self._sent)

    def _sent(self, packet: Packet) -> Tree:
        return self._by_destination(packet, self._looped, lambda p: self._delivered(p, here=False))

    def _looped(self, packet: Packet) -> Tree:
        back = replace(packet, in_interface=LOOPBACK, out_interface=NO_DEVICE, is_routed=False)
        stages = (*self._calls.stages["PREROUTING"], *self._calls.stages["INPUT"])
        return self._calls.run(met_before(stages), back, lambda p: self._delivered(p, here=True))

    def _delivered(self, packet: Packet, *, here: bool) -> Tree:
        nowhere = packet.destination is None and packet.destinations is None
        # Whether nat changed the destination matters if it was sent on by nat.
        if not packet.to_node and (
            nowhere or (packet.translated is None and not self._calls.is_behind)
        ):
            # One of a range that the kernel chooses from, or anything, after an unknown target.
            return Leaf(Unresolved("the packet's destination is not known"), packet)
        if self._answers is None or not (packet.translated or self._follows_unchanged):
            return Leaf(Delivered(here), packet)
        returns = packet.source is not None and packet.source == packet.destination
        # Of many packets at once that is decided later, by where their endpoint is.
        if returns and not here and not self._calls.is_behind and packet.masqueraded is not True:
            by_itself = packet.masqueraded is False
            because = "whether the packet comes from the endpoint's own address"
            return Leaf(Unanswered(OwnSource()) if by_itself else Unresolved(because), packet)
        return self._answers.to(self._began, packet, here=here)

    # --- as far as nat ---

    @deep
    def to_nat(
        self, hook: str, packet: Packet, *, joins_marks: bool = False, lends: bool = False
    ) -> Tree:
        """Return the result of PREROUTING or OUTPUT for `packet` up to and including nat.

        With `joins_marks` its leaves may have marks by source, and not all rules that set these.
        With `lends` they may be those of a packet that came in another way (`has_lent`).

        Raises:
            MarksDiffer: a rule needs a mark that depends on the source.
        """
        self._begin()
        self._calls.joins_marks = joins_marks
        self._effort.lends = lends
        return self._calls.run(self._calls.part(up_to_nat, hook), packet, None)

    @deep
    def before_nat(self, hook: str, packet: Packet) -> Tree:
        """Return the result of PREROUTING or OUTPUT for `packet` before nat."""
        self._begin()
        return self._calls.run(self._calls.part(before_nat, hook), packet, None)

    # --- after nat ---

    @deep
    def behind_nat(self, packet: Packet, *, made_here: bool) -> Tree:
        """Return what happens to a packet after the nat of PREROUTING or OUTPUT.

        The packet is given as nat left it.

        Raises:
            Parted: rules match on some of the packet's destinations.
        """
        self._begin()
        self._calls.is_behind = True
        self._began = packet
        hook = "OUTPUT" if made_here else "PREROUTING"
        stages = self._calls.part(after_nat, hook)
        if not made_here:
            came = replace(packet, out_interface=NO_DEVICE)
            return self._calls.run(stages, came, self._routed_in)
        # Its first destination decided which device the first routing decision chose.
        made = replace(packet, in_interface=NO_DEVICE)
        return self._calls.run(stages, made, self._routed_out)

    def onward(self, packet: Packet, *, made_here: bool) -> OnwardBySource:
        """Return what happens to a packet after nat, by source, and the matches that decide it.

        Raises:
            Parted: rules match on some of the packet's destinations.
        """
        tree = self.behind_nat(packet, made_here=made_here)
        found = onward(tree, packet)
        if len(found) == 1 or packet.sources is None:
            return found, frozenset()
        parts: list[Label] = [(where, None) for where, _ in found if where is not None]
        return found, frozenset(telling(questions(tree), packet.sources.intervals, parts))

    def asked(self, packet: Packet, *, made_here: bool) -> MatchedSources:
        """Return the same matches, and those that make no difference to this packet; or raise."""
        return frozenset(questions(self.behind_nat(packet, made_here=made_here)))
