"""Flows through the nat table of iptables, as kube-proxy fills it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from ipaddress import ip_network
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.asked_bits import rows_of
from analyzer.kubeproxy.between import NOTHING, Between
from analyzer.kubeproxy.chain_order import ChainOrder
from analyzer.kubeproxy.flows import HOOKS
from analyzer.kubeproxy.route_walks import RouteWalks
from analyzer.kubeproxy.view import Frontend, Route, Source
from analyzer.model.addresses import Address, Network
from analyzer.model.diagnostics import Location
from analyzer.model.matches import (
    MatchComment,
    MatchDestination,
    MatchInInterface,
    MatchMultiport,
    MatchNot,
    MatchNth,
    MatchOutInterface,
    MatchProtocol,
    MatchRandom,
    MatchRecent,
    MatchSctp,
    MatchSet,
    MatchSource,
    MatchTcp,
    MatchUdp,
    MatchUnknown,
)
from analyzer.model.packet import ALL_BITS, UNKNOWN_PACKET, Mark, Packet
from analyzer.model.rules import Chain, Rule, Ruleset, Table
from analyzer.model.targets import Accept, Dnat, Drop, Goto, Jump
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumptions import every_leaf
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.index import ChainIndex
from analyzer.semantics.matching import match_all
from analyzer.semantics.traverse import Traversal
from analyzer.semantics.tree import AnyRule, FellThrough, Leaf, Outcome, Tree

#: Matches that neither a flow's source nor its mark decides.
_OF_ALL_SOURCES: Final = (
    MatchComment,
    MatchDestination,
    MatchInInterface,
    MatchMultiport,
    MatchNth,
    MatchOutInterface,
    MatchProtocol,
    MatchRandom,
    MatchRecent,
    MatchSctp,
    MatchSet,
    MatchTcp,
    MatchUdp,
    MatchUnknown,
)
#: Rows of nat that go by marks, in whichever chain, and the masks under which they match.
_BY_MARK: Final = re.compile(r"-A (\S+) .*--(?:mark|save-mark|restore-mark) .*")
_MASKS: Final = re.compile(r"--mark (?:0x[\da-f]+|\d+)(?:/(0x[\da-f]+|\d+))?(?!\S)")
_LEADS: Final = re.compile(r"-A (\S+) .*-[jg] (\S+)")
#: Where nat is entered; a piece of a dump may lack the base chains.
_ENTERING: Final = (*dict.fromkeys(HOOKS.values()), names.SERVICES)


class NatWalks(RouteWalks):
    """Walks through the rules of iptables; `own` are the node's addresses, if known."""

    def __init__(
        self,
        rulesets: Sequence[Rules],
        ruleset: Ruleset,
        own: tuple[Address, ...],
        sources: Mapping[Source, Address | None],
        between: Between = NOTHING,
    ) -> None:
        super().__init__(rulesets, ruleset.family, own, sources, between)
        self._table = ruleset.tables.get("nat") or Table(ruleset.family, "nat", {})

    def _walked(self, chain: str, packet: Packet) -> Tree:
        """Return what one chain alone makes of a packet."""
        self._effort.begin()
        walk = Traversal(self._table, effort=self._effort)
        tree = walk.tree(chain, packet)
        self._judged |= walk.judged
        return tree

    def behind(self, chain: str, frontend: Frontend, protocol: str, source: Source) -> Route:
        """Return the distribution of the flows that come to a chain of a Service.

        For a frontend whose port is not known: what its rules before that chain match is not
        known either, and so neither is the masquerade.
        """
        packet = self._flow(self._packet(source), frontend, protocol)
        route = self._route(self._walked(chain, packet), frontend, source)
        shares = tuple([replace(share, masquerade=None) for share in route.shares])
        return replace(route, shares=shares)

    def _returns(self, came: Packet, source: Source, leaf: Leaf) -> set[Ternary] | None:
        found = super()._returns(came, source, leaf)
        if found is not None:
            return found
        last, chain = leaf.rules[-1] if leaf.rules else None, self._chain_of(leaf)
        if chain is None or not self._is_usual(chain, last):
            return None
        tree = self._walked(chain, replace(came, mark=leaf.packet.mark))
        usual = self._walked(chain, replace(came, source=leaf.packet.source, mark=leaf.packet.mark))
        if _outcomes(tree) != _outcomes(usual):
            return None  # the endpoint's own flows end elsewhere, as where others' rules mark them
        if not isinstance(tree, Leaf) and self.goes_by_marks:
            return None  # what comes back may go elsewhere, since it is marked
        to = leaf.packet.destination, leaf.packet.destination_port
        packets = [
            each.packet
            for each in every_leaf(tree)
            if isinstance(each.outcome, Dnat)
            and (each.packet.destination, each.packet.destination_port) == to
        ]
        return {self._masquerades(packet, source) for packet in packets} or None

    def _chain_of(self, leaf: Leaf) -> str | None:
        last = leaf.rules[-1] if leaf.rules else None
        return _chain_of(last) if isinstance(last, Rule) else None

    def order(self, frontend: Frontend, protocol: str) -> ChainOrder:
        """Return the order in which flows to a frontend meet chains, from whomever they come."""
        if any(_has_nat(ruleset) for ruleset in self._rulesets[1:]):
            return ChainOrder({}, ())  # its chains may have the same names
        packet = self._flow(UNKNOWN_PACKET, frontend, protocol)
        hooks = frozenset(HOOKS.values())
        rows: dict[str, Sequence[Collection[str]]] = {"": [hooks]}  # it meets one of them
        rest = list(hooks)
        while rest:
            name = rest.pop()
            if name in rows or name not in self._table.chains:
                continue
            rules = self._table.chains[name].rules
            met = [rules[at] for at in ChainIndex.of(rules).candidates(packet, 0)]
            rows[name] = [
                [rule.target.chain]
                for rule in met
                if isinstance(rule.target, Jump | Goto)
                and match_all(rule.matches, packet, self._situation).known is not Ternary.FALSE
            ]
            rest += [to for row in rows[name] for to in row]
        return ChainOrder(rows, [""])

    def _is_usual(self, chain: str, last: AnyRule | None) -> bool:
        """Tell whether a chain, as far as `last`, treats flows of all sources alike but for marks.

        So does that of an endpoint, which marks what the endpoint itself sends, and only that.
        """
        own = _sent_to(last)
        for rule in self._table.chains[chain].rules:
            marks = rule.target == Jump(names.MARK_MASQUERADE)
            for match in rule.matches:
                if marks and own is not None and match == MatchSource(own):
                    continue
                inner = match.match if isinstance(match, MatchNot) else match
                if not isinstance(inner, _OF_ALL_SOURCES):
                    return False
            if isinstance(rule.target, Jump | Goto) and not marks:
                return False
            if rule is last:
                return True
        return False

    @cached_property
    def goes_by_marks(self) -> bool:
        """Whether rules of nat match, before flows leave, on what KUBE-MARK-MASQ marks."""
        bits = ALL_BITS if self.bits_of_masquerade is None else self.bits_of_masquerade
        text = rows_of(self._table)
        chains = {row[1] for row in _BY_MARK.finditer(text) if _may_match(row[0], bits)}
        return bool(chains) and not chains.isdisjoint(_reached(text, _ENTERING))

    @cached_property
    def bits_of_masquerade(self) -> int | None:
        """The bits of marks that KUBE-MARK-MASQ may change; None: it may do something else."""
        bits = 0
        for before in (0, ALL_BITS):
            came = Packet(mark=Mark(before))
            match self._walked(names.MARK_MASQUERADE, came):
                case Leaf(FellThrough(), left) if replace(left, mark=came.mark) == came:
                    bits |= left.mark.value ^ before | left.mark.unknown
                case _:
                    return None
        return bits

    def reaches_services(self, source: Source) -> bool:
        """Tell whether every packet from `source` comes to KUBE-SERVICES, unchanged and first.

        Walked with nothing known of where the packet goes or comes from, and a verdict in that
        chain's place.
        """
        here = Rule((), Drop(), Location("", 0), "")
        chains = {
            name: chain
            for name, chain in self._table.chains.items()
            if not name.startswith((names.ENDPOINT_PREFIX, *names.SERVICE_PREFIXES))
        }
        chains[names.SERVICES] = Chain(names.SERVICES, (here,))
        packet = self._packet(source, None)
        walk = Traversal(replace(self._table, chains=chains))
        match walk.tree(HOOKS[source], packet):
            case Leaf(Drop(), reached, rules):
                return reached == packet and rules[-1] is here
            case _:
                return False

    def comes_to_nat(self, source: Source) -> bool:
        """Tell whether every packet from `source` comes to the nat table, unchanged."""
        packet = self._packet(source, None)
        match self._hooks.before_nat(HOOKS[source], packet):
            case Leaf(FellThrough() | Accept(), reached):
                return reached == packet
            case _:
                return False

    def mark_of_masquerade(self) -> Mark | None:
        """Return the mark that KUBE-MARK-MASQ gives to a packet without one, if it is certain."""
        match self._walked(names.MARK_MASQUERADE, Packet()):
            case Leaf(FellThrough(), packet):
                return packet.mark
            case _:
                return None


def _has_nat(ruleset: Rules) -> bool:
    if isinstance(ruleset, Ruleset):
        return "nat" in ruleset.tables
    return any(c.type == "nat" for table in ruleset.tables.values() for c in table.chains.values())


def _reached(text: str, starts: Iterable[str]) -> set[str]:
    """Return the chains that rows lead to, one from the other, from `starts` on."""
    leads: dict[str, set[str]] = {}
    for chain, to in _LEADS.findall(text):
        leads.setdefault(chain, set()).add(to)
    found, rest = set(starts), list(starts)
    while rest:
        new = leads.get(rest.pop(), set()) - found
        found |= new
        rest += new
    return found


def _may_match(row: str, bits: int) -> bool:
    """Tell whether a row that goes by marks matches on some of `bits`, as far as it is told."""
    masks = _MASKS.findall(row)
    whole = len(masks) == row.count("mark ") - row.count("-m mark ") - row.count("-m connmark ")
    return not whole or any(not mask or int(mask, 0) & bits for mask in masks)


def _outcomes(tree: Tree) -> list[Outcome]:
    return [leaf.outcome for leaf in every_leaf(tree)]


def _sent_to(last: AnyRule | None) -> Network | None:
    """Return the one address that a rule translates to, as ``-s`` asks for it."""
    match last.target if isinstance(last, Rule) else None:
        case Dnat(to) if to.first_address is not None and to.last_address is None:
            return ip_network(to.first_address)
        case _:
            return None


def _chain_of(rule: Rule) -> str | None:
    """Return the chain that a rule is of, as its row says."""
    found = re.match(r"(?:\[\d+:\d+\] )?-A (\S+) ", rule.raw)
    return None if found is None else found[1]
