"""A naive interpreter of whole rulesets: the hooks written out one after the other.

It shares no code with analyzer/semantics. As in `naive`, what the rules leave open is asked of a
script: a random draw of nature, an unknown match of an adversary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from analyzer.model.addresses import Address
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Ruleset
from tests.support.naive.table import Choice, Scripted, Unreadable


@dataclass(frozen=True)
class Fate:
    """How a packet ends: where it was sent in the end, if it got there, and masqueraded or not.

    `marks` are the packet's and the flow's, by which the order of all rules shows.
    """

    kind: str
    destination: Address | None = None
    masqueraded: bool = False
    marks: tuple[int, int] | None = None

    @property
    def seen(self) -> Fate:
        """The same without the marks, which nobody sees who is not on the node."""
        return replace(self, marks=None)


class Ended(Exception):  # noqa: N818  # an outcome, not an error
    """The packet goes no further."""


@dataclass
class Walk(Scripted):
    """One packet through one node; True and False are taken from the script in turn."""

    ruleset: Ruleset
    own: frozenset[Address]
    destination: Address
    script: tuple[bool, ...] = ()
    mark: int = 0
    flow_mark: int = 0
    tracked: bool = True
    entry: bool = False
    translated: bool = False
    masqueraded: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.script)

    def fate(self, *, made_here: bool) -> Fate:
        try:
            here = self.made() if made_here else self.came()
        except Ended as ended:
            return Fate(str(ended), marks=(self.mark, self.flow_mark))
        kind = "here" if here else "sent"
        return Fate(kind, self.destination, self.masqueraded, (self.mark, self.flow_mark))

    def came(self) -> bool:
        self.base("raw", "PREROUTING")
        self.entry = self.tracked
        self.base("mangle", "PREROUTING")
        self.nat("PREROUTING")
        if self.destination in self.own:
            self.base("mangle", "INPUT")
            self.base("filter", "INPUT")
            self.base("security", "INPUT")
            self.nat("INPUT")
            return True
        self.base("mangle", "FORWARD")
        self.base("filter", "FORWARD")
        self.base("security", "FORWARD")
        self.base("mangle", "POSTROUTING")
        self.nat("POSTROUTING")
        return False

    def made(self) -> bool:
        self.base("raw", "OUTPUT")
        self.entry = self.tracked
        self.base("mangle", "OUTPUT")
        self.nat("OUTPUT")
        self.base("filter", "OUTPUT")
        self.base("security", "OUTPUT")
        self.base("mangle", "POSTROUTING")
        self.nat("POSTROUTING")
        if self.destination not in self.own:
            return False
        self.base("raw", "PREROUTING")
        self.entry = self.tracked
        self.base("mangle", "PREROUTING")
        self.base("mangle", "INPUT")
        self.base("filter", "INPUT")
        self.base("security", "INPUT")
        return True

    def nat(self, hook: str) -> None:
        if self.tracked:
            self.base("nat", hook)

    def base(self, table: str, hook: str) -> None:
        held = self.ruleset.tables.get(table)
        if held is None or hook not in held.chains:
            return
        target = self.chain(table, hook)
        if isinstance(target, t.Return):
            target = None
        match target:
            case None if held.chains[hook].policy == "DROP":
                raise Ended("drop")
            case None | t.Accept():
                pass
            case t.Drop():
                raise Ended("drop")
            case t.Reject():
                raise Ended("reject")
            case t.Dnat(to):
                assert to.first_address is not None
                # To be sent where it was sent already counts as no translation.
                self.translated = self.translated or self.destination != to.first_address
                self.destination = to.first_address
            case t.Masquerade():
                self.masqueraded = True
            case _:
                raise AssertionError(target)

    def chain(self, table: str, name: str) -> t.Target | None:
        """Return the target that decided, or None where the chain came to its end."""
        for rule in self.ruleset.tables[table].chains[name].rules:
            if not all(self.holds(match) for match in rule.matches):
                continue
            match rule.target:
                case None:
                    pass
                case t.Jump(to):
                    found = self.chain(table, to)
                    if found is not None:
                        return found
                case t.Goto(to):
                    return self.chain(table, to)
                case t.Return():
                    return None
                case t.SetMark(value, mask):
                    self.mark = self.mark & ~mask ^ value
                case t.NoTrack():
                    self.tracked = self.tracked and self.entry
                case t.SetConnmark(value, mask):
                    if self.entry:
                        self.flow_mark = self.flow_mark & ~mask ^ value
                case t.CopyConnmark("save", packet_mask, flow_mask):
                    if self.entry:
                        self.flow_mark = self.flow_mark & ~flow_mask ^ self.mark & packet_mask
                case t.CopyConnmark(_, packet_mask, flow_mask):
                    if self.entry:
                        self.mark = self.mark & ~packet_mask ^ self.flow_mark & flow_mask
                case t.TargetUnknown():
                    raise Unreadable
                case _:
                    return rule.target
        return None

    def holds(self, match: m.Match) -> bool:
        match match:
            case m.MatchUnknown() | m.MatchNot(m.MatchUnknown()):
                return self.asked(Choice())
            case m.MatchConnmark() | m.MatchNot(m.MatchConnmark()) if not self.entry:
                return False
            case m.MatchNot(inner):
                return not self.holds(inner)
            case m.MatchMark(mark):
                return self.mark & mark.mask == mark.value
            case m.MatchConnmark(mark):
                return self.flow_mark & mark.mask == mark.value
            case m.MatchDestination(network):
                return self.destination in network
            case m.MatchConntrack(state=state):
                assert state is not None
                now = {"NEW" if self.entry else "INVALID" if self.tracked else "UNTRACKED"}
                if self.translated:
                    now.add("DNAT")
                return bool(now & set(state.value)) is not state.negated
            case m.MatchRandom(threshold):
                return self.drawn(threshold)
            case _:
                raise AssertionError(match)
