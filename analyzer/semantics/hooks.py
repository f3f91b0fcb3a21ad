"""A packet's traversal of the hooks, and of the base chains registered at each.

Theory of operation ===================

A hook calls the base chains of several tables one after another (`base_chains`); a packet that one
of them accepts goes to the next, and one that all accept is routed. Each table is evaluated by
itself (`traverse`), and each leaf of the result is continued by the evaluation of the next table,
with the packet as changed so far. So the tree of the whole path contains the chances and the
unknowns of all tables, and the rules of each in order.

A packet from outside traverses PREROUTING and then, depending on its destination, INPUT, or FORWARD
and POSTROUTING. A packet from the node itself traverses OUTPUT and POSTROUTING; if its destination
is an address of the node it comes back over loopback, to PREROUTING and INPUT, with its mark and
its conntrack entry, so nat is not evaluated again. OUTPUT sees the device that the first routing
decision chose, even if DNAT sends the packet elsewhere.

nat is evaluated for the first packet of a flow only, and not for flows that conntrack does not
track. Once a nat chain on a hook has set up NAT for the flow, later nat chains are not evaluated.

Source: Linux, include/uapi/linux/netfilter_ipv4.h, ``nf_ip_hook_priorities``;
net/netfilter/nf_nat_core.c, ``nf_nat_inet_fn``; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from analyzer.model.iptables.rules import LOST_ROWS
from analyzer.model.iptables.targets import Accept, Dnat, Masquerade, Redirect, Snat
from analyzer.model.packet import ALL_BITS, UNKNOWN_PACKET, Mark, Packet
from analyzer.model.region import Intervals
from analyzer.model.routing import LOOPBACK, Routes
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumed import POD_INTERFACE
from analyzer.semantics.base_chains import Rules, base_chains
from analyzer.semantics.calling_order import (
    BaseChain,
    Stage,
    Tie,
    behind_nat,
    each_as,
    up_to_nat,
    without_nat,
)
from analyzer.semantics.conditions import Label, questions, telling
from analyzer.semantics.depth import deep
from analyzer.semantics.devices import NOT_LOOPBACK
from analyzer.semantics.effort import Effort
from analyzer.semantics.grow import Grown
from analyzer.semantics.onward import OnwardBySource, onward
from analyzer.semantics.parts import Asked
from analyzer.semantics.situation import FIRST, Situation
from analyzer.semantics.tree import (
    Delivered,
    Either,
    FellThrough,
    Leaf,
    PolicyDrop,
    Tree,
    Unresolved,
)

#: The hooks where nat changes destinations; in the others it changes sources.
_ENTERING: Final = frozenset({"PREROUTING", "OUTPUT"})


#: What follows the last stage; or the hook, if the traversal ends there and a translation ends it
#: sooner.
_Then = Callable[[Packet], Tree] | str


class PortsAsked(Exception):  # noqa: N818  # it ends a walk, and is no error
    """Rules matched on the destination port more often than the traversal allows."""


class Hooks:
    """The paths of packets of one family through all base chains of one node, in one situation.

    `rulesets` are all of the node's; `family` is ``ip`` or ``ip6``. `asked_bits` returns the bits
    of marks that any of their rules matches on.
    """

    def __init__(
        self,
        rulesets: Sequence[Rules],
        family: str,
        situation: Situation,
        routes: Routes | None = None,
        asked_bits: Callable[[], int] = lambda: ALL_BITS,
    ) -> None:
        situation = replace(situation, noted_port=self._note_port)
        self._situation = situation
        #: How often, since the traversal began, rules matched on the destination port.
        self.asked_ports = 0
        #: How often they may, before `PortsAsked` ends the traversal; None: without limit.
        self.most_ports: int | None = None
        self._routes = routes or Routes()
        self._effort = Effort(asked_bits)
        self._stages = base_chains(rulesets, family, situation, self._effort)
        #: Whether the traversal began after nat, so that only what follows is evaluated.
        self._is_behind = False
        #: Whether rules of nat that mark some sources need not split the packet.
        self._joins_marks = False

    @property
    def judged(self) -> set[type]:
        """Kinds of matches that were evaluated so far."""
        walkers = [walker for each in self._base_chains() for walker in (each.walker, each.again)]
        return {kind for walker in walkers for kind in walker.judged}

    def _note_port(self) -> None:
        self.asked_ports += 1
        if self.most_ports is not None and self.asked_ports > self.most_ports:
            raise PortsAsked

    def _begin(self) -> None:
        """Start with another packet."""
        self.asked_ports = 0
        self._is_behind = False
        self._joins_marks = False
        self._effort.begin()
        for chain in self._base_chains():
            chain.walker.forget()
            chain.again.forget()

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The bounds on work that were reached so far, in words; beyond them all is unresolved."""
        return tuple(self._effort.exceeded)

    def forget(self, exceeded: Iterable[str]) -> None:
        """Forget all bounds that were reached except for these."""
        self._effort.exceeded = dict.fromkeys(exceeded)

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
        for chain in self._base_chains():
            if chain.ruleset == ruleset:
                for walker in (chain.walker, chain.again):
                    found.setdefault(chain.table, {}).update(dict.fromkeys(walker.visited))
        return {table: list(chains) for table, chains in found.items()}

    def _base_chains(self) -> Iterator[BaseChain]:
        for hook in self._stages:
            yield from self._chains_at(hook)

    def _chains_at(self, hook: str) -> Iterator[BaseChain]:
        for stage in self._stages[hook]:
            yield from stage.chains if isinstance(stage, Tie) else (stage,)

    # --- whole ways ---

    @deep
    def way(self, packet: Packet) -> Tree:
        """Return all paths of a packet; with ``in_interface=""``, of one that the node sends.

        Its leaves are Delivered, Drop, PolicyDrop, Reject or Unresolved.
        """
        self._begin()
        return self._out(packet) if packet.in_interface == "" else self._in(packet)

    def _in(self, packet: Packet) -> Tree:
        came = replace(packet, out_interface="")
        return self._run(self._stages["PREROUTING"], came, self._routed_in)

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
        came = replace(packet, out_interface="")
        return self._run(self._stages["INPUT"], came, lambda p: self._delivered(p, here=True))

    def _forwarded(self, packet: Packet) -> Tree:
        leaving = self._on_route(packet, self._routes.device(packet.destination))
        return self._run(self._stages["FORWARD"], leaving, self._leaving)

    def _leaving(self, packet: Packet) -> Tree:
        # Only some kernels tell POSTROUTING which device a packet came in by.
        unseen = replace(packet, in_interface=None, comes_from=None)
        return self._run(
            self._stages["POSTROUTING"], unseen, lambda p: self._delivered(p, here=False)
        )

    def _out(self, packet: Packet) -> Tree:
        return self._run(self._stages["OUTPUT"], self.made_here(packet), self._routed_out)

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
        return self._run(self._stages["POSTROUTING"], leaving, self._sent)

    def _sent(self, packet: Packet) -> Tree:
        return self._by_destination(packet, self._looped, lambda p: self._delivered(p, here=False))

    def _looped(self, packet: Packet) -> Tree:
        back = replace(packet, in_interface=LOOPBACK, out_interface="", is_routed=False)
        stages = (*self._stages["PREROUTING"], *self._stages["INPUT"])
        return self._run(_met_before(stages), back, lambda p: self._delivered(p, here=True))

    def _delivered(self, packet: Packet, *, here: bool) -> Tree:
        nowhere = packet.destination is None and packet.destinations is None
        # Whether nat changed the destination matters if it was sent on by nat.
        if not packet.to_node and (nowhere or (packet.translated is None and not self._is_behind)):
            # One of a range that the kernel chooses from, or anything, after an unknown target.
            return Leaf(Unresolved("the packet's destination is not known"), packet)
        return Leaf(Delivered(here), packet)

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
        self._joins_marks = joins_marks
        self._effort.lends = lends
        return self._run(up_to_nat(self._stages[hook], hook), packet, hook)

    @deep
    def before_nat(self, hook: str, packet: Packet) -> Tree:
        """Return the result of PREROUTING or OUTPUT for `packet` before nat."""
        self._begin()
        return self._run(without_nat(up_to_nat(self._stages[hook], hook)), packet, hook)

    # --- after nat ---

    @deep
    def behind_nat(self, packet: Packet, *, made_here: bool) -> Tree:
        """Return what happens to a packet after the nat of PREROUTING or OUTPUT.

        The packet is given as nat left it.

        Raises:
            Parted: rules match on some of the packet's destinations.
        """
        self._begin()
        self._is_behind = True
        hook = "OUTPUT" if made_here else "PREROUTING"
        stages = without_nat(behind_nat(self._stages[hook], hook))
        if not made_here:
            came = replace(packet, out_interface="")
            return self._run(stages, came, self._routed_in)
        # Its first destination decided which device the first routing decision chose.
        made = replace(packet, in_interface="")
        return self._run(stages, made, self._routed_out)

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

    def asked(self, packet: Packet, *, made_here: bool) -> Asked:
        """Return the same matches, and those that make no difference to this packet; or raise."""
        return frozenset(questions(self.behind_nat(packet, made_here=made_here)))

    # --- stages ---

    def _run(self, stages: tuple[Stage, ...], packet: Packet, then: _Then) -> Tree:
        """Evaluate the chains of `stages`, and continue what they accept with `then`."""
        for at, stage in enumerate(stages):
            rest = stages[at + 1 :]
            if isinstance(stage, Tie):
                if not stage.orders:
                    order = f"the order of {_named(stage)}"
                    return Leaf(Unresolved(order), UNKNOWN_PACKET)
                ways = [self._run((*order, *rest), packet, then) for order in stage.orders]
                because = f"which of {_named(stage)} is called first"
                return Either(because, tuple(ways))
            if stage.lost is not None:
                lost = Leaf(Unresolved(stage.lost), UNKNOWN_PACKET)
                if self._is_behind and _never_drops(stage):
                    lost = Leaf(Delivered(here=False), _of_some_source(packet))
                because = f"the contents of {stage.lost}, which is incomplete"
                return Either(because, (lost, self._run(rest, packet, then)))
            if stage.is_nat:
                if packet.tracked is False or self._situation.state == "INVALID":
                    continue  # nat is not asked
                if self._situation.state not in FIRST:
                    packet = _as_before(packet, stage.hook)
                    continue
                if packet.tracked is None:
                    asked = self._one(stage, packet, rest, then)
                    return Either(
                        "whether conntrack sees the flow", (self._run(rest, packet, then), asked)
                    )
            return self._one(stage, packet, rest, then)
        return Leaf(FellThrough(), packet) if isinstance(then, str) else then(packet)

    def _one(self, stage: BaseChain, packet: Packet, rest: tuple[Stage, ...], then: _Then) -> Tree:
        if not stage.is_before and packet.template:
            packet = replace(packet, template=False)  # conntrack has made an entry of it
        if isinstance(then, str) and not rest and stage.policy != "DROP" and not stage.lacks_policy:
            if self._joins_marks and stage.is_nat and stage.walker.joins_marks:
                from analyzer.semantics.joined import with_marks  # few dumps need it

                packet = with_marks(packet)
            return stage.walker.tree(stage.name, packet)  # which ends here
        tree = stage.walker.tree(stage.name, packet)
        return Grown(lambda leaf: self._behind(stage, packet, leaf, rest, then)).of(tree)

    def _behind(
        self,
        stage: BaseChain,
        came: Packet,
        leaf: Leaf,
        rest: tuple[Stage, ...],
        then: _Then,
    ) -> Tree:
        """Return what follows for a packet that one table has finished; `came` is as it entered."""
        match leaf.outcome:
            case FellThrough() if stage.policy == "DROP":
                return Leaf(PolicyDrop(stage.table, stage.name, stage.place), leaf.packet)
            case FellThrough() if stage.lacks_policy:
                dropped = Leaf(PolicyDrop(stage.table, stage.name, stage.place), leaf.packet)
                because = f"the policy of {stage.name} in table {stage.table}"
                return Either(because, (dropped, self._run(rest, leaf.packet, then)))
            case Accept() | FellThrough():
                pass
            case Dnat() | Redirect() | Masquerade() | Snat() if not isinstance(then, str):
                rest = without_nat(rest)
            case Unresolved(why) if why == LOST_ROWS and self._is_behind and _never_drops(stage):
                return self._run(without_nat(rest), _of_some_source(came), then)
            case _:
                return leaf
        if isinstance(then, str) and not rest:
            return leaf
        return self._run(rest, leaf.packet, then)


def _never_drops(chain: BaseChain) -> bool:
    """Return whether the lost rules of a chain are taken to change addresses at most.

    Source: iptables(8) refuses ``-j DROP`` in table nat: it is not intended for filtering.
    """
    return chain.is_nat and chain.table == "nat"


def _of_some_source(packet: Packet) -> Packet:
    """Return the packet with unknown whether a rule has changed its source."""
    return replace(packet, masqueraded=None)


def _named(tie: Tie) -> str:
    return " and ".join(f"{chain.name} of table {chain.table}" for chain in tie.chains)


def _met_before(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return the stages for a packet that comes back by loopback: conntrack and nat know it."""

    def known(chain: BaseChain) -> BaseChain:
        return replace(chain, walker=chain.again, is_before=False)

    return each_as(without_nat(stages), known)


def _as_before(packet: Packet, hook: str) -> Packet:
    """Return a later packet of a flow after nat, which treats it like the first one."""
    if hook in _ENTERING:
        return replace(
            packet,
            destination=None,
            destinations=None,
            destination_port=None,
            to_node=None,
            cluster_ip=None,
            translated=None,
        )
    return replace(
        packet, source=None, sources=None, source_port=None, from_node=None, masqueraded=None
    )
