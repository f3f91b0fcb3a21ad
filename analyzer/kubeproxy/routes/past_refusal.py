"""Flows to frontends without endpoints that other programs' rules take before kube-proxy's do.

kube-proxy rejects or drops them in table filter, and in nftables mode at the same hooks. Where
rules of others come first there and accept them, they are forwarded unchanged, to an address that
no host has: a client then waits where it would have been refused at once. Where others drop what
kube-proxy would reject, it waits too. Where others translate them, they have an endpoint after all.
A rule of nft that accepts only ends its own base chain.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.routes.source_routes import Way
from analyzer.kubeproxy.view import FrontendKind, Route, Source
from analyzer.model.endings import PASSES, Ending, EndKind, summed
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.model.iptables.targets import Goto, Jump
from analyzer.model.nft.ruleset import Table as NftTable
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.value import replace

#: What chains of kube-proxy and of the kubelet begin with.
_OURS: Final = "KUBE-"
#: Most rules of base chains that are looked at: kube-proxy and the kubelet write no more in one.
_FEW: Final = 32
_OUTER: Final = (FrontendKind.EXTERNAL_IP, FrontendKind.LOAD_BALANCER_IP)
#: Who may send flows to a frontend that has no endpoint.
_CLIENTS: Final = frozenset(Source) - {Source.HAIRPIN}
_ANY: Final = ("drop", PASSES, "reject")
_HOW: Final = {EndKind.DROPPED: "drop", EndKind.REJECTED: "reject"}


def has_others(rulesets: Iterable[Ruleset]) -> bool:
    """Return whether base chains have rules that are neither kube-proxy's nor the kubelet's."""
    return any(_has_others(table) for each in rulesets for table in each.tables.values())


def _has_others(table: Table) -> bool:
    for chain in table.chains.values():
        if chain.policy is None:
            continue
        for rule in islice(chain.rules, _FEW):
            match rule.target:
                case Jump(to) | Goto(to) if to.startswith(_OURS):
                    pass
                case _:
                    return True
        if len(chain.rules) > _FEW:
            return True
    return False


def has_other_tables(tables: Iterable[NftTable]) -> bool:
    """Return whether tables of nft have base chains that are not kube-proxy's nftables mode's."""
    return any(
        chain.hook is not None and not names.is_own(chain.name, table.name)
        for table in tables
        for chain in table.chains.values()
    )


def past_refusal(how: str, ways: Iterable[Way], *, spares_node: bool) -> tuple[Way, ...]:
    """Return the ways to a frontend of which not all flows are refused; none if all are.

    `how` is what kube-proxy's rules do to them: reject or drop. Rules of others may also send them
    to an endpoint, as that of a hostPort with a NodePort's port does. With `spares_node`, as in
    iptables mode, what the node sends to an external address traverses no chain that refuses it.
    """
    told = [(_told(r), address) for r, address in ways if r.shares or r.source in _CLIENTS]
    every = ((_refused(how), Bounds(ALWAYS, ALWAYS)),)
    if all(r.astray == every for r, _ in told if not spares_node or _may_be_refused(r)):
        return ()
    return tuple(told)


def _may_be_refused(route: Route) -> bool:
    """Return whether iptables mode refuses some flows of a route without endpoints."""
    return route.source is not Source.NODE or route.frontend.kind not in _OUTER


def _told(route: Route) -> Route:
    """Return a route, its flows as refused: those that have no endpoint count as no loss."""
    is_open = route.unresolved or any(end.kind is EndKind.UNKNOWN for end, _ in route.astray)
    if is_open and route.shares:
        return route
    if is_open:
        ends = tuple((_refused(how), Bounds(NEVER, ALWAYS)) for how in _ANY)
        return replace(route, astray=ends, unresolved=NEVER)
    return replace(route, astray=summed((_as_refused(end), b) for end, b in route.astray))


def _as_refused(ending: Ending) -> Ending:
    if ending.kind is EndKind.REFUSED:
        return ending
    return _refused(_HOW.get(ending.kind, PASSES))


def _refused(how: str) -> Ending:
    return Ending(kind=EndKind.REFUSED, how=how)
