"""Changes to non-Service traffic in ``diff``, with the rules responsible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from analyzer.kubeproxy.diff.beside import NonServiceFlows, Topic
from analyzer.kubeproxy.diff.changes import MASQUERADED, UNRESOLVED, Otherwise
from analyzer.kubeproxy.view import Source
from analyzer.model.iptables.rules import Rule
from analyzer.reports.diff_words import ends, sources
from analyzer.reports.document import Block, Cell, Column, Line, Span, Style, TextTable
from analyzer.reports.rules import says, signed_place
from analyzer.semantics.tree import AnyRule

_COLUMNS: Final = (
    Column("OTHER FLOWS", foldable=True),
    Column("FROM", foldable=True),
    Column("A", foldable=True, begins=True),
    Column("B", foldable=True),
    Column(""),
)
#: What the flows are sent to.
TOPICS: Final = {
    Topic.CLUSTER_IP_PORT: "a port that a ClusterIP does not have",
    Topic.CLUSTER_IP_PING: "ping of a ClusterIP",
    Topic.UNALLOCATED: "an unallocated ClusterIP",
    Topic.NODE_PORT_LOOPBACK: "a NodePort at the loopback address",
    Topic.NODE_PORT_ADDRESS: "a NodePort at another address of the node",
    Topic.REFUSED_FROM_NODE: "an external address of a Service without endpoints",
    Topic.HAIRPIN_ELSEWHERE: "hairpin of another node's pod, through a ClusterIP",
    Topic.HAIRPIN_THROUGH_NODE: "hairpin of another node's pod, through an external address",
}
_HAIRPINS: Final = frozenset({Topic.HAIRPIN_ELSEWHERE, Topic.HAIRPIN_THROUGH_NODE})


def beside_blocks(found: Sequence[NonServiceFlows]) -> Iterator[Block]:
    """Yield a table of the outcomes that differ, with the rules responsible below."""
    if not found:
        return
    yield TextTable(_COLUMNS, tuple([_row(each) for each in found]))
    yield Line()
    if any(each.topic in _HAIRPINS and not each.is_certain for each in found):
        says = "Which endpoints are on another node is unknown: pass --objects and --node."
        yield from (Line((Span(says, Style.FAINT),)), Line())
    asked = [each for each in found if each.rules_a or each.rules_b]
    for each in asked:
        yield Line((Span(f"{TOPICS[each.topic]}, for example {each.places[0]}:", Style.FAINT),))
        for letter, how, rules in (("A", each.a, each.rules_a), ("B", each.b, each.rules_b)):
            rule = _deciding(how, rules)
            is_open = any(kind == UNRESOLVED for kind, _ in how)
            none = "what happens to it is not known" if is_open else "no rule matches"
            told = none if rule is None else _shown(rule)
            yield Line((Span(f"  {letter}: {told}", Style.FAINT),))
    if asked:
        yield Line()


def sources_of(each: NonServiceFlows) -> str:
    """Return the sources of the flows that were evaluated."""
    # Those of other nodes were not: they come in as those of this one do.
    return ", ".join("pods" if s is Source.POD else sources({s})[0] for s in each.sources)


def lost(found: Sequence[NonServiceFlows]) -> list[str]:
    """Return what works in A and is dropped or rejected by design in B.

    Flows to a ClusterIP never arrive from endpoints on other nodes, so nothing is lost there.
    """
    return list(
        dict.fromkeys(
            TOPICS[each.topic]
            for each in found
            if each.is_intended and _works(each, each.a) and not _works(each, each.b)
        )
    )


def _works(each: NonServiceFlows, how: Otherwise) -> bool:
    if each.topic is Topic.HAIRPIN_THROUGH_NODE:  # else the answer never leaves the endpoint
        return any(kind == MASQUERADED for kind, _ in how)
    return _reaches(how)


def _reaches(how: Otherwise) -> bool:
    return any(kind == "endpoint" for kind, _ in how)


def _deciding(how: Otherwise, rules: Sequence[AnyRule]) -> AnyRule | None:
    """Return the rule that says most of how a packet ends."""
    if _reaches(how):
        # The base chain's only leads to kube-proxy's; there one takes the flow.
        return rules[1] if rules[1:] else None
    refused = any(kind in {"drop", "reject"} for kind, _ in how)
    return rules[-1] if rules and refused else None


def _shown(rule: AnyRule) -> str:
    """Return a rule with its chain, all that it matches on, and where it stands."""
    text = rule.raw.strip() if isinstance(rule, Rule) else f"{rule.chain} {says(rule)}"
    return f"{signed_place(rule)}, {text}"


def _row(each: NonServiceFlows) -> tuple[Cell, ...]:
    kind: Cell = Span("intended", Style.GOOD)
    if not each.is_certain:
        kind = Span("cannot tell", Style.WARNING)
    elif not each.is_intended:
        kind = Span("differs", Style.BAD)
    return TOPICS[each.topic], sources_of(each), ends(each.a), ends(each.b), kind
