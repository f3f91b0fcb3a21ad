"""Flows that nat sends to no endpoint: how they end, and why.

A flow may end before nat, by a rule of raw or mangle. One that leaves nat unchanged goes on to its
original destination: kube-proxy's rules in filter may refuse it there, and other rules may drop
it. No host has a ClusterIP as its address, so a flow to one that gets through is lost too. Which
host has another address of a Service is not in the dump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import Frontend, Route
from analyzer.model.addresses import Address
from analyzer.model.endings import (
    PASSES,
    UNKNOWN_END,
    Ending,
    Endings,
    EndKind,
    any_of,
    part,
    summed,
)
from analyzer.model.intervals import Intervals
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import (
    Accept,
    Dnat,
    Goto,
    Jump,
    Return,
)
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, capped_sum
from analyzer.model.region import Region
from analyzer.model.value import replace
from analyzer.semantics.conditions import from_source, questions
from analyzer.semantics.fate import ways
from analyzer.semantics.onward import chain_of, decided, ending_of
from analyzer.semantics.parts import Parts, at
from analyzer.semantics.shares import Shares, shares, shares_by_source
from analyzer.semantics.tree import AnyRule, Delivered, Leaf, Tree, Unresolved, every_leaf
from analyzer.semantics.untracking import untracks

Reasons: TypeAlias = frozenset[Ending]

#: If a rule drops them, its verdict takes precedence over this.
_REFUSED: Final = Ending(kind=EndKind.REFUSED, how=PASSES)
_LEFT_OVER: Final = Ending(kind=EndKind.LEFT_OVER)
_UNCHANGED: Final = Ending(kind=EndKind.UNCHANGED)
_NO_REASON: Final[Reasons] = frozenset({_UNCHANGED})


class Astray:
    """The flows of one tree that nat sends to no endpoint.

    `passing` returns what happens after nat to a packet that nat left unchanged.
    """

    def __init__(self, tree: Tree, passing: Callable[[Packet], Tree]) -> None:
        self._tree = tree
        self._passing = passing
        self._known: dict[Packet, Parts[Shares[Ending | bool]]] = {}

    def of(self, address: Address | None, region: Region | None, among: Bounds) -> Endings:
        """Return how flows from an address end; `among`: the share of these flows that goes astray.

        If the address is not known, it is one of a region; None: any.
        """
        if self._alike is not None:
            return part(self._alike, among)
        # For all sources at once it would take time in proportion to the number of pairs of them.
        tree = from_source(self._tree, address, region)
        is_clear = all(len(reasons) == 1 for reasons in self._why.values())
        why = self._why if is_clear else _reasons(tree)
        return summed(
            each
            for end, bounds in shares(tree, _left_at).items()
            if end is not None and bounds.upper
            for each in part(self._endings(end, address, why), bounds)
        )

    @cached_property
    def parts(self) -> frozenset[Intervals]:
        """Parts of the sources whose flows go astray in different ways; none if in one way."""
        if self._alike is not None:
            return frozenset()
        by_end = shares_by_source(self._tree, _left_at)
        told = [by_end, *map(self._passed, self._unchanged)]
        return frozenset(
            where for each in told if len(each) > 1 for where, _ in each if where is not None
        )

    @cached_property
    def questions(self) -> set[Intervals]:
        """What rules after nat match on of the sources of flows that nat left unchanged."""
        if not self.parts:
            return set()
        return {asked for each in self._unchanged for asked in questions(self._passing(each))}

    @cached_property
    def _unchanged(self) -> list[Packet]:
        ends = dict.fromkeys(_left_at(leaf) for leaf in every_leaf(self._tree))
        return [end for end in ends if isinstance(end, Packet)]

    def _passed(self, packet: Packet) -> Parts[Shares[Ending | bool]]:
        """Return how packets end that nat left unchanged."""
        if packet not in self._known:
            self._known[packet] = shares_by_source(self._passing(packet), _end_of)
        return self._known[packet]

    @cached_property
    def _alike(self) -> Endings | None:
        """How all flows end that go astray, from any source; None: not all in the same way."""
        ends = {_left_at(leaf) for leaf in every_leaf(self._tree)}
        found = {self._endings(end, None, self._why) for end in ends if end is not None}
        told = found.pop() if len(found) == 1 else ()
        return told if told and all(bounds.is_exact for _, bounds in told) else None

    @cached_property
    def _why(self) -> dict[Packet, frozenset[Ending]]:
        return _reasons(self._tree)

    def _endings(
        self, end: Packet | Ending, address: Address | None, why: Mapping[Packet, Reasons]
    ) -> Endings:
        if isinstance(end, Ending):
            return ((_refused(end), Bounds(ALWAYS, ALWAYS)),)
        return any_of(
            _told(reason, found)
            for found in at(self._passed(end), address)
            for reason in why.get(end, _NO_REASON)
        )


def _told(reason: Ending, found: Shares[Ending | bool]) -> Endings:
    """Return how packets end after nat that arrived there for a given reason."""
    told = [
        (_behind(end, reason) if isinstance(end, Ending) else reason, bounds)
        for end, bounds in found.items()
        if bounds.upper
    ]
    if reason == UNKNOWN_END or found.unresolved:
        upper = capped_sum([*(b.upper for _, b in told), found.unresolved])
        told = [(e, b) for e, b in told if e != UNKNOWN_END]
        told.append((UNKNOWN_END, Bounds(NEVER, upper)))
    return summed(told)


def _behind(end: Ending, reason: Ending) -> Ending:
    """Return how a packet ends that is dropped or rejected after nat, by kube-proxy or by others.

    Flows that no endpoint's rule took are refused by kube-proxy just as those of sources that it
    does not admit.
    """
    if reason.kind is EndKind.LEFT_OVER and names.is_own(end.chain, end.table):
        return replace(reason, how=_how(end))
    return _refused(end)


def as_refused(
    routes: Iterable[Route], refusals: Iterable[tuple[Frontend, str]]
) -> tuple[Route, ...]:
    """Return routes, with flows left over (taken by no endpoint) of refused frontends as refused.

    A frontend with a local traffic policy and without an endpoint on this node leads to a chain
    that forwards the flows of pods only.
    """
    answers = dict(refusals)

    def told(route: Route) -> Route:
        answer = answers.get(route.frontend)
        if answer is None or not route.astray:
            return route
        refused = Ending(kind=EndKind.REFUSED, how=answer)
        ends = [(refused if e.kind is EndKind.LEFT_OVER else e, b) for e, b in route.astray]
        return replace(route, astray=summed(ends))

    return tuple(map(told, routes))


def _reasons(tree: Tree) -> dict[Packet, Reasons]:
    """Return for each packet that leaves nat unchanged all reasons, over all ways to it."""
    found: dict[Packet, set[Ending]] = {}
    for _, rules, leaf in ways(tree):
        if isinstance(leaf.outcome, Dnat | Unresolved) or ending_of(leaf) is not None:
            continue
        packet = leaf.packet.from_all()
        found.setdefault(packet, set()).add(_reason(packet, rules))
    return {packet: frozenset(reasons) for packet, reasons in found.items()}


def _reason(packet: Packet, rules: Sequence[AnyRule]) -> Ending:
    if packet.tracked is False:
        at_ = next((at for at, rule in enumerate(rules) if untracks(rule)), len(rules) - 1)
        return decided(EndKind.NOT_TRANSLATED, "", rules[: at_ + 1])
    if packet.tracked is None or packet.translated is not False:
        return UNKNOWN_END
    if rules and _lets_go(rules[-1]):  # no rule of nat is evaluated after it
        ending = decided(EndKind.UNCHANGED, "", rules)
        if not names.is_own(ending.chain, ending.table):
            return ending
    led = [(chain, rule) for rule in rules for chain in _led_to(rule)]
    # The rule that drops packets with this mark is in filter, which may not be in the dump.
    by = [chain_of(rule) for chain, rule in led if chain == names.MARK_DROP]
    came = any(chain.startswith(names.ENTERED_PREFIXES) for chain, _ in led)
    if any(not chain.startswith(names.FIREWALL_PREFIX) for chain in by):
        return _REFUSED
    if came:
        return _LEFT_OVER
    is_stopped = by or any(chain.startswith(names.FIREWALL_PREFIX) for chain, _ in led)
    return _REFUSED if is_stopped else _UNCHANGED


def _left_at(leaf: Leaf) -> Packet | Ending | None:
    """Return how a flow ends up to nat, or the packet that leaves nat; None: it is sent on."""
    if isinstance(leaf.outcome, Dnat | Unresolved):
        return None
    return ending_of(leaf) or leaf.packet.from_all()


def _end_of(leaf: Leaf) -> Ending | bool:
    """Return how a packet ends; False: it reaches its destination."""
    if isinstance(leaf.outcome, Delivered):
        return False
    return ending_of(leaf) or False


def _refused(ending: Ending) -> Ending:
    """Return an ending, without its rule if kube-proxy's own rules refuse the flow."""
    if not names.may_refuse(ending.chain, ending.table):
        return ending
    return Ending(kind=EndKind.REFUSED, how=_how(ending))


def _how(ending: Ending) -> str:
    return "reject" if ending.kind is EndKind.REJECTED else "drop"


def _lets_go(rule: AnyRule) -> bool:
    """Return whether later rules are not evaluated for a packet that the rule matches."""
    if not isinstance(rule, Rule):
        from analyzer.kubeproxy.routes.astray_nft import lets_go

        return lets_go(rule)
    return isinstance(rule.target, Accept | Return)


def _led_to(rule: AnyRule) -> Iterator[str]:
    """Yield the chains that a rule leads to, or what replaces them in nft."""
    if not isinstance(rule, Rule):
        from analyzer.kubeproxy.routes.astray_nft import leads_to_service

        if leads_to_service(rule):
            yield names.ENTERED_PREFIXES[0]
        return
    match rule.target:
        case Jump(chain) | Goto(chain):
            yield chain
        case _:
            pass
