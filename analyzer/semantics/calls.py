"""The base chains that hooks call, evaluated one after another.

Each table is evaluated by itself, and each leaf of the result is continued by the evaluation of the
next table, with the packet as changed so far. So the tree of the whole path contains the chances
and the unknowns of all tables, and the rules of each in order.

nat is evaluated for the first packet of a flow only, and not for flows that conntrack does not
track. Once a nat chain on a hook has set up NAT for the flow, later nat chains are not evaluated.

Source: Linux, net/netfilter/core.c, ``nf_hook_slow``; net/netfilter/nf_nat_core.c,
``nf_nat_inet_fn``; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from analyzer.model.iptables.targets import Accept, Dnat, Masquerade, Redirect, Snat
from analyzer.model.packet import UNKNOWN_PACKET, Packet
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.at_devices import passes_any
from analyzer.semantics.base_chains import Rules, base_chains
from analyzer.semantics.calling_order import BaseChain, Stage, Tie, each_as, without_nat
from analyzer.semantics.effort import Effort
from analyzer.semantics.grow import Grown
from analyzer.semantics.situation import FIRST, Situation
from analyzer.semantics.tree import (
    Delivered,
    Either,
    FellThrough,
    Leaf,
    PolicyDrop,
    Tree,
    Unresolved,
    every_leaf,
)

#: The hooks where nat changes destinations; in the others it changes sources.
_ENTERING: Final = frozenset({"PREROUTING", "OUTPUT"})


#: What follows the last stage; None: the traversal ends there, and a translation ends it sooner.
Then = Callable[[Packet], Tree] | None
#: What gives a part of the stages of a hook.
PartOf = Callable[[Iterable[Stage], str], tuple[Stage, ...]]


class Calls:
    """The base chains of one node for packets of one family in one situation.

    Attributes:
        stages: by hook, what it calls.
        is_behind: whether the traversal began after nat, so that only what follows is evaluated.
        joins_marks: whether rules of nat that mark some sources need not split the packet.
    """

    def __init__(
        self, rulesets: Sequence[Rules], family: str, situation: Situation, effort: Effort
    ) -> None:
        self._situation = situation
        self.stages = base_chains(rulesets, family, situation, effort)
        #: Parts of these, by what gives a part and the hook: every packet needs them.
        self._parts: dict[tuple[PartOf, str], tuple[Stage, ...]] = {}
        self.is_behind = False
        self.joins_marks = False

    def part(self, of: PartOf, hook: str) -> tuple[Stage, ...]:
        """Return a part of what a hook calls; `of` gives it, for example `up_to_nat`."""
        found = self._parts.get((of, hook))
        if found is None:
            found = self._parts[of, hook] = of(self.stages[hook], hook)
        return found

    def forget(self) -> None:
        """Forget the results so far, which other packets could seldom share."""
        for chain in self.chains():
            chain.walker.forget()
            chain.again.forget()

    def chains(self) -> Iterator[BaseChain]:
        """Yield all base chains."""
        for stages in self.stages.values():
            for stage in stages:
                yield from stage.chains if isinstance(stage, Tie) else (stage,)

    def run(self, stages: tuple[Stage, ...], packet: Packet, then: Then) -> Tree:
        """Evaluate the chains of `stages`, and continue what they accept with `then`."""
        for at, stage in enumerate(stages):
            rest = stages[at + 1 :]
            if isinstance(stage, Tie):
                if not stage.orders:
                    order = f"the order of {_named(stage)}"
                    return Leaf(Unresolved(order), UNKNOWN_PACKET)
                ways = [self.run((*order, *rest), packet, then) for order in stage.orders]
                because = f"which of {_named(stage)} is called first"
                return Either(because, tuple(ways))
            if stage.lost is not None:
                lost = Leaf(Unresolved(stage.lost), UNKNOWN_PACKET)
                if self.is_behind and _never_drops(stage):
                    lost = Leaf(Delivered(here=False), _of_some_source(packet))
                because = f"the contents of {stage.lost}, which is incomplete"
                return Either(because, (lost, self.run(rest, packet, then)))
            if stage.is_nat:
                if packet.tracked is False or self._situation.state == "INVALID":
                    continue  # nat is not evaluated
                if self._situation.state not in FIRST:
                    packet = _as_before(packet, stage.hook)
                    continue
                if packet.tracked is None:
                    asked = self._one(stage, packet, rest, then)
                    return Either(
                        "whether conntrack sees the flow", (self.run(rest, packet, then), asked)
                    )
            if stage.devices is not None:
                return self._at_devices(stage, stage.devices, packet, rest, then)
            return self._one(stage, packet, rest, then)
        return Leaf(FellThrough(), packet) if then is None else then(packet)

    def _at_devices(
        self,
        stage: BaseChain,
        devices: tuple[str, ...],
        packet: Packet,
        rest: tuple[Stage, ...],
        then: Then,
    ) -> Tree:
        """Return what follows for a packet that may pass the devices of a chain."""
        without = self.run(rest, packet, then)
        own = stage.walker.tree(stage.name, packet)

        def passes(leaf: Leaf) -> bool:
            goes_on = isinstance(leaf.outcome, Accept | FellThrough) and leaf.packet == packet
            return goes_on and stage.policy == "ACCEPT"

        if all(map(passes, every_leaf(own))):
            return without  # nothing rests on the device

        def behind(leaf: Leaf) -> Tree:
            # What follows what the chain lets pass unchanged is evaluated once.
            return without if passes(leaf) else self._behind(stage, packet, leaf, rest, then)

        tree = Grown(behind).of(own)
        comes = stage.hook in _ENTERING
        match passes_any(devices, packet, self._situation, comes=comes):
            case Ternary.TRUE:
                return tree
            case Ternary.FALSE:
                return without
            case _:
                because = f"whether it passes a device of {stage.name} in table {stage.table}"
                return Either(because, (without, tree))

    def _one(self, stage: BaseChain, packet: Packet, rest: tuple[Stage, ...], then: Then) -> Tree:
        if not stage.is_before and packet.template:
            packet = replace(packet, template=False)  # conntrack has made an entry of it
        if then is None and not rest and stage.policy != "DROP" and not stage.lacks_policy:
            if self.joins_marks and stage.is_nat and stage.walker.joins_marks:
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
        then: Then,
    ) -> Tree:
        """Return what follows for a packet that one table has finished; `came` is as it entered."""
        match leaf.outcome:
            case FellThrough() if stage.policy == "DROP":
                return Leaf(PolicyDrop(stage.table, stage.name, stage.place), leaf.packet)
            case FellThrough() if stage.lacks_policy:
                drop = PolicyDrop(stage.table, stage.name, stage.place, is_known=False)
                dropped = Leaf(drop, leaf.packet)
                because = f"the policy of {stage.name} in table {stage.table}"
                return Either(because, (dropped, self.run(rest, leaf.packet, then)))
            case Accept() | FellThrough():
                pass
            case Dnat() | Redirect() | Masquerade() | Snat() if then is not None:
                rest = without_nat(rest)
            case Unresolved(is_lost=True) if self.is_behind and _never_drops(stage):
                return self.run(without_nat(rest), _of_some_source(came), then)
            case _:
                return leaf
        if then is None and not rest:
            return leaf
        return self.run(rest, leaf.packet, then)


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


def met_before(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
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
        packet,
        source=None,
        sources=None,
        source_port=None,
        from_node=None,
        masqueraded=None,
        is_masquerades=False,
    )
