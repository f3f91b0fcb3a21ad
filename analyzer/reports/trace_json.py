"""``kubeodds/trace/1``: every way a packet can end, and the rules on one of the ways there."""

from __future__ import annotations

from typing import Any

from analyzer.model.packet import Packet
from analyzer.reports import json_values as values
from analyzer.reports.answers import TraceAnswer
from analyzer.reports.rules import chain_of
from analyzer.semantics.fate import End


def render(answer: TraceAnswer) -> str:
    """Return the ends, the likeliest first."""
    fields = {
        "node": answer.node,
        "packet": {**_packet(answer.packet), "state": answer.state},
        "outcomes": [_end(end, answer) for end in answer.ends],
        "assumptions": list(answer.assumptions),
        "diagnostics": values.diagnostics(answer.diagnostics),
    }
    return values.document("trace", 1, fields)


def _packet(packet: Packet) -> dict[str, Any]:
    return {
        "from": None if packet.source is None else str(packet.source),
        "source_port": packet.source_port,
        "to": None if packet.destination is None else str(packet.destination),
        "port": packet.destination_port,
        "protocol": packet.protocol,
        "in_interface": packet.in_interface or None,
        "made_here": packet.in_interface == "",
        "mark": packet.mark.value,
        "icmp": None if packet.icmp is None else list(packet.icmp),
    }


def _end(end: End, answer: TraceAnswer) -> dict[str, Any]:
    fate = end.fate
    placement = None if fate.address is None else answer.cluster.placement(fate.address)
    return {
        "outcome": fate.kind,
        "address": None if fate.address is None else str(fate.address),
        "port": fate.port,
        "node": None if placement is None else placement.node,
        "masquerade": end.masquerade,
        "how": fate.how,
        "probability": values.bounds(end.probability),
        "rules": [values.rule(r, r.location.table, chain_of(r)) for r in end.rules],
    }
