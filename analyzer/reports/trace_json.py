"""``kubeodds/trace/2``: every way a packet can end, with the rules on one path to it.

``probabilities`` is a distribution over the outcomes; rules are referred to by their place in the
list of all, where each stands once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.reports import json_values as values
from analyzer.reports.answers import TraceAnswer
from analyzer.reports.json_distributions import distribution
from analyzer.semantics.fate import PacketEnd


def render(answer: TraceAnswer) -> Iterator[str]:
    """Yield the ends, most likely first."""
    rules = values.RuleNumbers()
    shares = [end.probability for end in answer.ends]
    return values.document(
        "trace",
        {
            "node": values.encode(answer.node),
            "packet": values.encode({**_packet(answer.packet), "state": answer.state}),
            "outcomes": (values.encode(_end(end, answer, rules)) for end in answer.ends),
            "probabilities": values.encode(
                distribution(shares, None, len(shares), unresolved=None)
            ),
            "rules": rules.written(),
            "assumptions": map(values.encode, answer.assumptions),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
    )


def _packet(packet: Packet) -> dict[str, Any]:
    known = packet.destination or packet.source
    return {
        "family": values.family(None if known is None else known.version),
        "from": None if packet.source is None else str(packet.source),
        "source_port": packet.source_port,
        "to": None if packet.destination is None else str(packet.destination),
        "port": packet.destination_port,
        "protocol": packet.protocol,
        "in_interface": packet.in_interface or None,
        "made_here": packet.in_interface == NO_DEVICE,
        "mark": packet.mark.value,
        "icmp": None if packet.icmp is None else list(packet.icmp),
    }


def _end(end: PacketEnd, answer: TraceAnswer, rules: values.RuleNumbers) -> dict[str, Any]:
    fate = end.fate
    placement = None if fate.address is None else answer.cluster.placement(fate.address)
    return {
        "outcome": fate.kind,
        "address": None if fate.address is None else str(fate.address),
        "port": fate.port,
        "node": None if placement is None else placement.node,
        "dead": None if answer.dead is None else answer.is_dead(fate),
        "masquerade": end.masquerade,
        "how": fate.how,
        "lower": float(end.probability.lower),
        "upper": float(end.probability.upper),
        "rules": rules.of(end.rules),
    }
