"""Rows that a dump has lost in its middle, as far as the rest betrays it.

kube-proxy writes a table at once, so each of its chains that is declared has rows, one of a Service
or an endpoint is jumped to, and one of an endpoint sends flows on. Where that is not so rows are
lost, and nobody can tell which others went with them: every chain of a Service, what leads there
and what follows, is then taken to have had more. A chain that nothing leads to may also be a stale
one: kube-proxy removes them at once from small dumps, and from large ones later.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``,
``largeClusterEndpointsThreshold``; pkg/util/iptables, ``RestoreAll``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from analyzer.kubeproxy import names
from analyzer.model.diagnostics import Diagnostic, Location, Severity
from analyzer.model.rules import Chain, Rule, Ruleset, Table
from analyzer.model.value import replace
from analyzer.parsers.rows import Chains, RuleRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What leads to the chains of Services, and what is met behind them.
_BASES: Final = frozenset({"PREROUTING", "OUTPUT", "POSTROUTING"})
_PREFIXES: Final = (*names.SERVICE_PREFIXES, names.ENDPOINT_PREFIX)
_LED_TO: Final = re.compile(r" -[jg] (KUBE-(?:SVC|SVL|EXT|XLB|FW|SEP)-\S+)")
#: The Service that a row of an endpoint names.
_NAMED: Final = re.compile(r'-m comment --comment (?:"([^"\\]*)"|([\w-]+))')
#: Endpoints from which on kube-proxy leaves stale chains behind.
_LARGE: Final = 1000
#: Chains that are told by name.
_FEW: Final = 3


def without_holes(ruleset: Ruleset) -> tuple[Ruleset, list[Diagnostic]]:
    """Return the rules with what holes leave open put in, and what there is to say of them."""
    nat = ruleset.tables.get("nat")
    if nat is None or names.SERVICES not in nat.chains:
        return ruleset, []
    ours = [name for name in nat.chains if name.startswith(_PREFIXES)]
    if nat.complete and len(ours) > _LARGE:
        return ruleset, []
    led_to = set(_LED_TO.findall(_text(nat)))
    empty = set(_empty(nat, ours))
    betraying = [*_stray(nat, ours, led_to, empty), *_halves(nat, ours)]
    # In a whole dump an empty chain of a Service is told of by itself.
    betraying += [
        name
        for name in empty & led_to
        if not nat.complete or name.startswith(names.ENDPOINT_PREFIX)
    ]
    if not betraying:
        return ruleset, []
    lost = _lost(Location(ruleset.file, 0, "nat"))
    chains = {
        name: replace(chain, rules=(*lost, *chain.rules))
        if name in _BASES or name.startswith(names.SERVICE_PREFIXES)
        else chain
        for name, chain in nat.chains.items()
        if name not in empty  # what is not there may be anything
    }
    tables = {**ruleset.tables, "nat": replace(nat, chains=chains)}
    return replace(ruleset, tables=tables), [_told(ruleset, betraying)]


def _lost(location: Location) -> tuple[Rule, ...]:
    """Return what stands for lost rows: they may have marked the flow, or ended its way."""
    from analyzer.model.matches import MatchUnknown
    from analyzer.model.targets import ChangeSet, Queue

    text = "the dump may have lost rules here"
    # Behind what takes its mark out of a set that no dump shows, the mark is not known.
    marks = ChangeSet(action="map-set", name="", directions="src", map_mark=True)
    return (
        Rule((), marks, location, f"# {text}"),
        Rule((MatchUnknown(text),), Queue(), location, f"# {text}"),
    )


def _text(nat: Table) -> str:
    if isinstance(nat.chains, Chains):
        start, end = nat.chains.block.span
        return nat.chains.block.text[start:end]
    texts = [c.rules.text for c in nat.chains.values() if isinstance(c.rules, RuleRows)]
    return "".join(texts)


def _empty(nat: Table, ours: list[str]) -> Iterator[str]:
    """Give the chains whose rows are lost: in a dump that ends too soon those before its end."""
    filled = [name for name, chain in nat.chains.items() if _has_rows(chain)]
    order = {name: at for at, name in enumerate(nat.chains)}
    last = len(order) if nat.complete or not filled else order[filled[-1]]
    return (name for name in ours if not _has_rows(nat.chains[name]) and order[name] < last)


def _halves(nat: Table, ours: list[str]) -> Iterator[str]:
    """Give the chains of endpoints that mark flows and send none on."""
    for name in ours:
        rules = nat.chains[name].rules
        if not name.startswith(names.ENDPOINT_PREFIX) or not isinstance(rules, RuleRows):
            continue
        if rules.complete and rules.text and " -j DNAT" not in rules.text:
            yield name


def _has_rows(chain: Chain) -> bool:
    # What may follow where the dump ends counts as a rule.
    return bool(chain.rules.text if isinstance(chain.rules, RuleRows) else chain.rules)


def _stray(nat: Table, ours: list[str], led_to: set[str], empty: set[str]) -> Iterator[str]:
    """Give the chains that nothing leads to although what does should be there."""
    stray = [name for name in ours if name not in led_to]
    if nat.complete:
        yield from stray
        return
    # What would lead there may lie before or behind the piece, but for what is in its middle.
    whole = {
        name
        for chain in nat.chains.values()
        if chain.name.startswith(names.SERVICE_PREFIXES) and _is_whole(chain)
        for name in _named(chain)
    }
    for name in stray:
        if name in empty or (
            name.startswith(names.ENDPOINT_PREFIX) and whole & set(_named(nat.chains[name]))
        ):
            yield name


def _is_whole(chain: Chain) -> bool:
    return getattr(chain.rules, "complete", True)


def _named(chain: Chain) -> Iterator[str]:
    """Give the Services that the comments of a chain's rows name."""
    if isinstance(chain.rules, RuleRows):
        for match in _NAMED.finditer(chain.rules.text):
            name, _ = names.name_and_kind(match[1] or match[2])
            yield name or (match[1] or match[2]).partition(" -> ")[0]


def _told(ruleset: Ruleset, betraying: list[str]) -> Diagnostic:
    shown = ", ".join(sorted(betraying)[:_FEW])
    more = f" and {len(betraying) - _FEW} more" if betraying[_FEW:] else ""
    return Diagnostic(
        severity=Severity.WARNING,
        code="lost-rows",
        message=f"the dump has lost rows of table nat: {shown}{more} should have rules and be "
        "jumped to; which others are lost it does not tell, so shares are bounds",
        file=ruleset.file,
        partial=True,
    )
