"""A node whose rules nft loads, and what the kernel makes there of one packet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import NftRuleset, Rule
from analyzer.parsers import nft_json, nft_text
from netns_lab.errors import LabError
from netns_lab.nft import Nft
from netns_lab.trace import TRACING_TABLE, NftEvent, NftTrace
from tests.support.lab.nodes import TRACED, Asked, Seen, Wired

#: What says where a packet goes on; other statements only change it or count.
_LEADING: Final = (
    s.Vmap | s.Reject | s.Dnat | s.Snat | s.Masquerade | s.Redirect | e.Accept | e.Drop | e.Return
) | (e.Jump | e.Goto)
#: Before anything else sees packets. No packet reaches the rule that matches on conntrack: it
#: enables conntrack, without which the kernel evaluates no nat chain. Rules with NAT enable it too,
#: so only rulesets with empty nat chains could notice this table. Source: Linux,
#: net/netfilter/nft_nat.c, ``nft_nat_init``; nf_nat_core.c, ``nf_nat_inet_fn``.
TRACING: Final = f"""
table inet {TRACING_TABLE} {{
    chain prerouting {{
        type filter hook prerouting priority -2000000000;
        jump trace
    }}
    chain output {{
        type filter hook output priority -2000000000;
        jump trace
    }}
    chain trace {{
        meta l4proto icmp return
        meta l4proto ipv6-icmp return
        ip id {TRACED} meta nftrace set 1
        ip6 flowlabel {TRACED} meta nftrace set 1
    }}
    chain conntrack {{
        ct state new
    }}
}}
"""
#: Seconds in which a busy kernel takes up what it has put off.
_LATE: Final = 0.05
#: A rule: family, table, chain, and its number in the chain, from 1.
Place = tuple[str, str, str, int]
Path = tuple[Place, ...]


@dataclass(frozen=True)
class Went:
    """What the kernel made of one packet.

    Attributes:
        told: every rule that it matched, and the policies that it came to.
        seen: where it came out; None: nowhere.
    """

    told: tuple[NftEvent, ...]
    seen: Seen | None

    @property
    def path(self) -> Path:
        """The rules that it matched."""
        return tuple(
            (each.family, each.table, each.chain, each.number)
            for each in self.told
            if each.number is not None
        )

    @property
    def lost(self) -> bool:
        """Whether a rule or a policy dropped it, as a reject does too."""
        return bool(self.told) and self.told[-1].verdict == "drop"

    def __str__(self) -> str:
        lines = [f"  {t.family} {t.table} {t.chain} {t.number} {t.verdict}" for t in self.told]
        return "\n".join([*lines, f"  {self.seen or ('dropped' if self.lost else 'nowhere')}"])


@dataclass
class Rules:
    """Where each rule of a ruleset stands, and whether it leads packets of a family anywhere."""

    ruleset: NftRuleset
    packets: str = "ip"
    by_line: dict[int, Place] = field(default_factory=dict)
    leading: set[Place] = field(default_factory=set)

    def __post_init__(self) -> None:
        for (family, table), held in self.ruleset.tables.items():
            for chain in held.chains.values():
                for number, rule in enumerate(chain.rules, 1):
                    place = family, table, chain.name, number
                    self.by_line[rule.location.line] = place
                    if any(self._leads(each) for each in rule.statements):
                        self.leading.add(place)

    def _leads(self, statement: s.Statement) -> bool:
        if isinstance(statement, s.Dnat | s.Snat):
            return statement.family in {None, self.packets}
        return isinstance(statement, _LEADING)

    def path(self, rules: Sequence[Rule]) -> Path:
        return self.leading_only([self.by_line[rule.location.line] for rule in rules])

    def leading_only(self, path: Sequence[Place]) -> Path:
        return tuple(each for each in path if each in self.leading)

    @property
    def filled(self) -> set[tuple[str, str, str]]:
        """The sets that packets fill."""
        return {
            (family, table, each.set)
            for (family, table), held in self.ruleset.tables.items()
            for chain in held.chains.values()
            for rule in chain.rules
            for each in rule.statements
            if isinstance(each, s.SetUpdate)
        }


class NftNode(Wired):
    """The node."""

    def __init__(self) -> None:
        super().__init__()
        self.nft = Nft(self.namespace)
        self.trace = NftTrace(self.namespace)
        self._filled: set[tuple[str, str, str]] = set()

    def load(self, frames: Sequence[str], rules: Sequence[str] = ()) -> list[str]:
        """Put rules in the place of those that are there; return the ones that were taken.

        Raises:
            LabError: a frame is refused.
        """
        self.nft.run("flush ruleset")
        self.forget()  # what an earlier flow has translated to a port, a new one must not get
        for frame in frames:
            self.nft.run(frame)
        taken = []
        for rule in rules:
            try:
                self.nft.run(rule)
            except LabError:
                continue
            taken.append(rule)
        return taken

    def listings(self) -> tuple[NftRuleset, NftRuleset]:
        """Return what is loaded, read from nft's text and from its JSON, and begin to trace."""
        text, listed = self.nft.run("list ruleset"), self.nft.json("ruleset")
        self.nft.run(TRACING)
        self.trace.learn()
        ruleset = nft_text.parse(text, "text")
        self._filled = Rules(ruleset).filled
        self.take_up()
        return ruleset, nft_json.parse(listed, "json")

    def send(self, asked: Asked) -> Went:
        """Send the first packet of a new flow, with all sets as they were loaded."""
        for family, table, name in self._filled:
            self.nft.run(f"flush set {family} {table} {name}")
        self.emit(asked)
        return self.take_up()

    def take_up(self) -> Went:
        """Return what the kernel told since this was asked last."""
        told, seen = tuple(self.trace.met()), self.seen()
        assert len(seen) <= 1, seen
        return Went(told, seen[0] if seen else None)

    def late(self, went: Went) -> Went:
        """Return `went` with what the kernel had put off."""
        time.sleep(_LATE)
        more = self.take_up()
        return Went((*went.told, *more.told), went.seen or more.seen)
