"""Facts of a node's rules beyond its Services, which nodes of one cluster have in common."""

from __future__ import annotations

import json
from collections.abc import Iterable

from analyzer.kubeproxy import names
from analyzer.kubeproxy.rows.shapes import mark_of, uncommented
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import value
from analyzer.parsers.rows import RuleRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.kubeproxy.view import View
    from analyzer.model.iptables.rules import Table
    from analyzer.model.nft.ruleset import NftRuleset
    from analyzer.semantics.base_chains import Rules

_BASES: Final = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
_OWN: Final = "KUBE-"
_NFT_TABLE: Final = "kube-proxy"


@value(kw_only=True)
class RuleFacts:
    """Facts of one node's rules.

    Attributes:
        backends: those with kube-proxy's rules: legacy, nft, nftables; ``iptables`` if a dump does
            not say which of the first two.
        jumps: from base chains to chains of kube-proxy, as ``ip nat PREROUTING KUBE-SERVICES``.
        chains: of kube-proxy, but of no single Service, as ``ip nat KUBE-MARK-MASQ``.
        marks: for flows to masquerade, as ``ip 0x4000``.
        policies: of base chains that do not accept, as ``ip filter FORWARD DROP``.
        cut: tables that may have had more rules than the dump shows, as ``ip nat``.
        untold: what else is not in the dump, as of `View`.
        frames: chains that are not evaluated, as of `View`.
    """

    backends: tuple[str, ...] = ()
    jumps: tuple[str, ...] = ()
    chains: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()


def facts_of(rulesets: Iterable[Rules], view: View | None = None) -> RuleFacts:
    """Return the facts of the rules of one node; `view` says what of them was not evaluated."""
    found: dict[str, set[str]] = {name: set() for name in _FIELDS}
    for each in () if view is None else view.untold:
        found["frames" if each.rules else "untold"].add(each.name)
    for ruleset in rulesets:
        for table in ruleset.tables.values():
            if not table.complete:
                found["cut"].add(f"{table.family} {table.name}")
        if isinstance(ruleset, Ruleset):
            _iptables(ruleset, found)
        else:
            _nft(ruleset, found)
    return RuleFacts(**{name: tuple(sorted(each)) for name, each in found.items()})


def as_text(facts: RuleFacts) -> str:
    """Return the facts as stored in the table of nodes."""
    return json.dumps({name: list(getattr(facts, name)) for name in _FIELDS})


def from_text(text: str) -> RuleFacts:
    """Return the facts that `as_text` wrote."""
    told: dict[str, Any] = json.loads(text)
    return RuleFacts(**{name: tuple(told.get(name, ())) for name in _FIELDS})


_FIELDS: Final = ("backends", "jumps", "chains", "marks", "policies", "cut", "untold", "frames")


def _iptables(ruleset: Ruleset, found: dict[str, set[str]]) -> None:
    family = ruleset.family
    for table in ruleset.tables.values():
        place = f"{family} {table.name}"
        own = [
            name for name in table.chains if name.startswith(_OWN) and not names.is_of_service(name)
        ]
        found["chains"].update(f"{place} {name}" for name in own)
        for base in _BASES:
            chain = table.chains.get(base)
            if chain is None:
                continue
            if chain.policy not in {None, "ACCEPT"}:
                found["policies"].add(f"{place} {base} {chain.policy}")
            jumps = (row.rpartition(" -j ")[2] for row in _rows(table, base))
            found["jumps"].update(f"{place} {base} {to}" for to in jumps if to.startswith(_OWN))
        if table.name == "nat" and names.SERVICES in table.chains:
            found["backends"].add(ruleset.backend or "iptables")
            mark = mark_of(_rows(table, names.MARK_MASQUERADE))
            if mark is not None:
                found["marks"].add(f"{family} {mark}")
    if ruleset.legacy_beside:
        found["backends"].add("legacy")


def _rows(table: Table, name: str) -> list[str]:
    """Return the rows of a chain without comments; none where it is not there, or not as text."""
    chain = table.chains.get(name)
    if chain is None or not isinstance(chain.rules, RuleRows):
        return []
    return uncommented("".join(f"{line}\n" for line in chain.rules.lines))


def _nft(ruleset: NftRuleset, found: dict[str, set[str]]) -> None:
    for (_, name), table in ruleset.tables.items():
        if name != _NFT_TABLE:
            continue
        found["backends"].add("nftables")
        own = (each for each in table.chains if not names.is_of_service(each))
        found["chains"].update(f"{table.family} {_NFT_TABLE} {each}" for each in own)
