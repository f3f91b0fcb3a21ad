"""A naive node: nf_hook_entries_grow() and nf_nat_inet_fn() written out, for nft and iptables.

It shares no code with analyzer/semantics. Chains are registered one after the other, as the
kernel does it, and each hook calls what then hangs on it.

Source: Linux, net/netfilter/core.c, nf_nat_core.c, nf_conntrack_core.c; net/ipv4/ip_output.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.nft.ruleset import Chain, Table
from tests.support.naive import hooks as naive_hooks
from tests.support.naive.draws import Script
from tests.support.naive.nft import Flow, Verdict, Walk
from tests.support.naive.table import Draw as YesOrNo

HOOKS: Final = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
#: What one chain makes of a packet; it ends the packet's way by raising Ended.
_Calls: TypeAlias = Callable[["Node"], None]
#: Chains at devices hang before all others of a hook, or behind them: nf_ingress(), nf_egress().
_AT_DEVICES: Final = {
    ("netdev", "ingress"): ("PREROUTING", -(10**10)),
    ("inet", "ingress"): ("PREROUTING", -(10**10)),
    ("netdev", "egress"): ("POSTROUTING", 10**10),
}
_NAT: Final = {"PREROUTING": -100, "OUTPUT": -100, "INPUT": 100, "POSTROUTING": 100}
_IPTABLES: Final = {
    "raw": (-300, ("PREROUTING", "OUTPUT")),
    "mangle": (-150, HOOKS),
    "filter": (0, ("INPUT", "FORWARD", "OUTPUT")),
    "security": (50, ("INPUT", "FORWARD", "OUTPUT")),
}


class Ended(Exception):  # noqa: N818  # an outcome, not an error
    """The packet goes no further."""


@dataclass(frozen=True)
class Fate:
    """How a packet ends: where it was sent, if it got there; the marks show the order of rules."""

    kind: str
    destination: Address | None
    port: int | None
    masqueraded: bool
    marks: tuple[int, int]


@dataclass
class Hook:
    """What one hook calls, in order, with the priorities."""

    entries: list[tuple[int, _Calls]] = field(default_factory=list)

    def register(self, priority: int, calls: _Calls) -> None:
        """Put it before the first whose priority is not lower."""
        at = 0
        while at < len(self.entries) and priority > self.entries[at][0]:
            at += 1
        self.entries.insert(at, (priority, calls))


@dataclass
class Node:
    """One packet through all hooks."""

    flow: Flow
    script: Script
    device: str
    hooks: dict[str, Hook] = field(default_factory=lambda: {name: Hook() for name in HOOKS})
    nat: dict[str, Hook] = field(default_factory=lambda: {name: Hook() for name in _NAT})
    has_nat: bool = False

    def __post_init__(self) -> None:
        for hook in ("PREROUTING", "OUTPUT"):
            self.hooks[hook].register(-200, lambda node: node.flow.track())

    # --- registration ---

    def register(self, hook: str, priority: int, calls: _Calls, *, nat: bool) -> None:
        if not nat:
            self.hooks[hook].register(priority, calls)
            return
        if not self.has_nat:
            for each, at in _NAT.items():
                self.hooks[each].register(at, lambda node, each=each: node.translate(each))  # type: ignore[misc]  # a default binds it
            self.has_nat = True
        self.nat[hook].register(priority, calls)

    def register_nft(self, table: Table, chain: Chain) -> None:
        both = {"ip", "ip6"}
        families = {"inet": both, "netdev": both}.get(table.family, {table.family})
        if self.flow.family not in families or "dormant" in table.flags or chain.hook is None:
            return
        assert chain.priority is not None
        if (table.family, chain.hook) in _AT_DEVICES:
            hook, beyond = _AT_DEVICES[table.family, chain.hook]
            at = chain.priority + beyond
            self.register(hook, at, lambda node: node.at_device(table, chain), nat=False)
            return
        self.register(
            chain.hook.upper(),
            chain.priority,
            lambda node: node.nft(table, chain),
            nat=chain.type == "nat",
        )

    def register_iptables(self, ruleset: Ruleset, table: str) -> None:
        if ruleset.family != self.flow.family:
            return
        priority, hooks = _IPTABLES.get(table, (-100, tuple(_NAT)))
        for hook in hooks:
            at = _NAT[hook] if table == "nat" else priority
            self.register(
                hook,
                at,
                lambda node, hook=hook: node.iptables(ruleset, table, hook),  # type: ignore[misc]  # a default binds it
                nat=table == "nat",
            )

    # --- what chains do ---

    def nft(self, table: Table, chain: Chain) -> None:
        verdict = Walk(table, self.flow, self.script).base(chain.name)
        self.settled(verdict, chain.hook or "")
        if verdict.kind == "drop" or (verdict == Verdict("end") and chain.policy == "drop"):
            raise Ended("drop")
        if verdict.kind == "reject":
            raise Ended("reject")

    def at_device(self, table: Table, chain: Chain) -> None:
        device = self.flow.iif if chain.hook == "ingress" else self.flow.oif
        if device in chain.devices:
            self.nft(table, chain)

    def iptables(self, ruleset: Ruleset, table: str, hook: str) -> None:
        flow = self.flow
        walk = _Iptables(
            ruleset,
            flow.own,
            flow.destination,
            (),
            flow.mark,
            flow.flow_mark,
            not flow.untracked,
            flow.seen is not None,
            flow.dnat,
            flow.snat,
        )
        walk.draws = self.script
        try:
            walk.base(table, hook)
        except naive_hooks.Ended as ended:
            raise Ended(str(ended)) from None
        finally:
            flow.mark, flow.flow_mark = walk.mark, walk.flow_mark
            flow.untracked = not walk.tracked
            flow.destination = walk.destination
            flow.dnat, flow.snat = walk.translated, walk.masqueraded
        if isinstance(walk.decided, t.Dnat):
            port = walk.decided.to.first_port or flow.destination_port
            flow.dnat = flow.dnat or port != flow.destination_port
            flow.destination_port = port
        if isinstance(walk.decided, t.Dnat | t.Masquerade):
            flow.done.add(_manip(hook))

    def settled(self, verdict: Verdict, hook: str) -> None:
        flow = self.flow
        if verdict.kind not in {"dnat", "snat"}:
            return
        if verdict.how == ("redirect",):
            flow.destination = next(iter(flow.own))
        flow.done.add(_manip(hook.upper()))

    def translate(self, hook: str) -> None:
        """nf_nat_inet_fn()."""
        flow = self.flow
        if flow.seen is None or _manip(hook) in flow.done:
            return
        for _, calls in self.nat[hook].entries:
            calls(self)
            if _manip(hook) in flow.done:
                return
        flow.done.add(_manip(hook))

    # --- ways ---

    def call(self, hook: str) -> None:
        for _, calls in self.hooks[hook].entries:
            calls(self)

    def fate(self, *, made_here: bool) -> Fate:
        flow = self.flow
        try:
            kind = self.made() if made_here else self.came()
        except Ended as ended:
            return Fate(str(ended), None, None, False, (flow.mark, flow.flow_mark))
        marks = flow.mark, flow.flow_mark
        return Fate(kind, flow.destination, flow.destination_port, flow.snat, marks)

    def came(self) -> str:
        flow = self.flow
        self.call("PREROUTING")
        if flow.destination in flow.own:
            self.call("INPUT")
            return "here"
        flow.oif = self.device
        self.call("FORWARD")
        self.call("POSTROUTING")
        return "sent"

    def made(self) -> str:
        flow = self.flow
        flow.oif = self.out()
        self.call("OUTPUT")
        flow.oif = self.out()
        self.call("POSTROUTING")
        if flow.destination not in flow.own:
            return "sent"
        flow.iif, flow.oif = "lo", ""
        self.call("PREROUTING")
        self.call("INPUT")
        return "here"

    def out(self) -> str:
        return "lo" if self.flow.destination in self.flow.own else self.device


def _manip(hook: str) -> str:
    return "source" if hook in {"INPUT", "POSTROUTING"} else "destination"


class _Iptables(naive_hooks.Walk):
    """The walk through a table of iptables, its draws taken from the node's script."""

    draws: Script
    decided: t.Target | None = None

    def asked(self, question: Exception) -> bool:
        assert isinstance(question, YesOrNo)
        return self.draws.draw((question.chance, Fraction(1) - question.chance)) == 0

    def chain(self, table: str, name: str) -> Any:
        self.decided = super().chain(table, name)
        return self.decided


#: Something that registers chains with a node: a table of iptables, or a chain of nft.
Registration: TypeAlias = Callable[[Node], None]


def registrations(
    rulesets: Iterable[Ruleset | Iterable[Table]],
) -> list[list[Registration]]:
    """What each ruleset registers, in order; the tables of iptables come in any."""
    found: list[list[Registration]] = []
    for each in rulesets:
        if isinstance(each, Ruleset):
            found += [
                [lambda node, each=each, name=name: node.register_iptables(each, name)]  # type: ignore[misc]  # a default binds it
                for name in each.tables
            ]
        else:
            found.append(
                [
                    lambda node, table=table, chain=chain: node.register_nft(table, chain)  # type: ignore[misc]  # a default binds it
                    for table in each
                    for chain in table.chains.values()
                ]
            )
    return found
