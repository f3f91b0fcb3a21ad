"""Traverses the chains of an nft table, mirroring nft_do_chain.

Theory of operation
===================

The traversal from a position is cached: see `positions`. Within a rule the statements are evaluated
in order. Their changes to the packet stay even if a later statement of the rule does not match. A
statement after which the traversal may continue in several ways forks it: each branch evaluates the
rest of the rule by itself, and the loop continues with the next rule.

Source: Linux, net/netfilter/nf_tables_core.c, ``nft_do_chain``.
"""

from __future__ import annotations

from functools import cached_property, partial

from analyzer.model.intervals import Intervals
from analyzer.model.nft.ruleset import Table
from analyzer.model.nft.statements import Match
from analyzer.model.packet import Packet
from analyzer.semantics.effort import Effort
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.nft.asks import asks, asks_affinity
from analyzer.semantics.nft.chain_index import WORTHWHILE, NftChainIndex, source_of
from analyzer.semantics.nft.changes import Changes
from analyzer.semantics.nft.matching import Lookups
from analyzer.semantics.nft.nat import NatStatements
from analyzer.semantics.nft.rule import RuleWalk
from analyzer.semantics.nft.said import AlikeChains
from analyzer.semantics.path import Path
from analyzer.semantics.positions import RulePosition, Walks, left, missing
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.nft.in_a_row import DecidingRules


class NftTraversal(Walks):
    """Traversals of one table by packets of one family in one situation; keeps the cache."""

    def __init__(
        self, table: Table, family: str, situation: Situation, effort: Effort | None = None
    ) -> None:
        super().__init__(effort)
        self._table = table
        #: What is assumed of the flow.
        self.situation = situation
        #: The sets of the table.
        self.lookups = Lookups(table, family, situation)
        self.family = family
        #: The effect of statements on packets.
        self.changes = Changes(self.lookups)
        self.nat = NatStatements(self.lookups, family)
        #: Its chains, by what they say.
        self.said = AlikeChains(table)
        self._visited: dict[str, None] = {}
        self._indexes: dict[str, NftChainIndex] = {}

    @property
    def visited(self) -> list[str]:
        """The chains that packets entered so far."""
        return list(self._visited)

    def rest_of(self, rule: RuleWalk, statement: int, packet: Packet) -> Tree:
        """Return what happens to a packet from a statement of a rule on."""
        place = RulePosition(rule.place.chain, rule.place.at - 1)
        return (
            self._meets(place, packet, [], statement) if statement else self.onward(place, packet)
        )

    def compare(self, match: Match, packet: Packet) -> MatchResult:
        """Evaluate a comparison.

        Raises:
            Parted: the result depends on the source.
        """
        self.evaluated |= asks(match.left)
        self.evaluated |= asks_affinity(match.right, self.situation)
        return self.lookups.evaluate(match, packet)

    def in_a_row(self, behind: RulePosition, packet: Packet) -> Tree | None:
        """Return what happens to a packet whose sources several rules in a row split, or None.

        `behind` is the place after the first of them.
        """
        deciding, chain = self._deciding, behind.chain
        following = self._table.chains[chain].rules[behind.at : behind.at + 1]
        if not any("addr" in rule.raw for rule in following):
            return None  # one alone is split in less time than by a row
        decides, alone = partial(deciding.decides, chain), partial(deciding.decides_alone, chain)

        def goes_on(at: int, packet: Packet) -> Tree:
            return self.onward(RulePosition(chain, at), packet)

        return self.rows.split(chain, behind.at - 1, packet, decides, alone, goes_on)

    def _matched_at(self, chain: str, at: int, is_source: bool) -> Intervals | None:
        rules = self._table.chains[chain].rules
        found = source_of(rules[at], "saddr" if is_source else "daddr") if at < len(rules) else None
        return None if found is None else found[1]

    @cached_property
    def _deciding(self) -> DecidingRules:
        from analyzer.semantics.nft.in_a_row import DecidingRules  # few dumps need it

        return DecidingRules(self._table, self)

    def _is_end(self, place: RulePosition) -> bool:
        chain = self._table.chains.get(place.chain)
        return chain is not None and place.at >= len(chain.rules)

    def _meets(
        self, start: RulePosition, packet: Packet, alike: list[int], statement: int = 0
    ) -> Tree:
        """Traverse from a statement of a rule on."""
        chain = self._table.chains.get(start.chain)
        if chain is None:
            return missing(start.chain, packet)
        self._visited[start.chain] = None
        path, rules, came = Path(), chain.rules, packet
        index = self._indexes.get(start.chain)
        if index is None:
            index = self._indexes[start.chain] = NftChainIndex(rules)
        # The rest of a rule is for a packet that has passed its beginning.
        at = start.at if statement else index.following(packet, start.at)
        if at > start.at and packet is not (whole := packet.from_all()):
            # A part of its sources, of which the first rule has none.
            packet = whole
            at = index.following(packet, start.at + 1)
        while at < len(rules):
            row = None
            if not statement and len(rules) >= WORTHWHILE:
                row = self._deciding.row(start.chain, at, packet)
            if row is not None:
                packet = packet.from_all()
                path.may_end(row.first, row.taken(packet), row.others)
                at = index.following(packet, row.behind)
                continue
            behind = RulePosition(start.chain, at + 1)
            met = RuleWalk(self, path, rules[at], behind)
            reached = met.walk(statement, packet)
            is_rest, statement = statement > 0, 0
            if not isinstance(reached, Packet):
                return path.tree(reached.tree)
            if is_rest or met.joined:
                # Several paths meet after the rule: cached, they do not multiply there.
                return path.tree(self.onward(behind, reached))
            if met.forked or reached != packet:
                # A chain that returned has evaluated the rest already: share it.
                rest = self.walked(behind, reached)
                if rest is not None:
                    return path.tree(rest)
            packet = reached
            if met.in_vain and packet is came and path.is_empty:
                alike.append(at + 1)
            at = index.following(packet, at + 1)
        return path.tree(left(packet))
