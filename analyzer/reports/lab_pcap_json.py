"""``kubeodds/lab-pcap/1``: the flows of a capture, their destinations, and each route's test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.model.lab_pcap import PassedOver, ReplayedFlow, StandIn
from analyzer.reports import json_values as values
from analyzer.reports.lab_json import measurement
from analyzer.reports.lab_pcap_answer import LabPcapAnswer

_VERSION = 1


def render(answer: LabPcapAnswer) -> Iterator[str]:
    """Yield the document."""
    return values.document(
        "lab-pcap",
        {
            "file": values.encode(answer.file),
            "packets": values.encode(answer.packets),
            "cut": values.encode(answer.cut),
            "dead": values.encode(answer.dead),
            "timing": values.encode(answer.timing),
            "agrees": values.encode(answer.agrees),
            "false_alarm_rate": values.encode(answer.false_alarm_rate),
            "counter_difference": values.encode(answer.counters),
            "conntrack_difference": values.encode(answer.conntrack),
            "not_judged": values.encode(answer.not_judged),
            "passed_over": values.encode([_passed(each) for each in answer.passed_over]),
            "clients": (values.encode(_stand_in(each)) for each in answer.stand_ins),
            "measurements": (values.encode(measurement(each)) for each in answer.verdicts),
            "flows": (values.encode(_flow(each)) for each in answer.flows),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _passed(each: PassedOver) -> dict[str, Any]:
    return {
        "reason": each.reason,
        "packets": each.packets,
        "judged": each.judged,
        "examples": list(each.examples),
    }


def _stand_in(each: StandIn) -> dict[str, Any]:
    return {
        "client": each.client,
        "source": each.source,
        "stands_as": each.stands_as,
        "flows": each.flows,
    }


def _flow(each: ReplayedFlow) -> dict[str, Any]:
    return {
        "packet": each.packet,
        "at": round(each.at, 6),
        "client": each.client,
        "client_port": each.client_port,
        "stands_as": each.stands_as,
        "to": each.to,
        "protocol": each.protocol,
        "service": each.service,
        "frontend": each.frontend,
        "source": each.source,
        "outcome": each.outcome,
        "endpoint": each.endpoint,
        "answered": each.answered,
        "repeated": each.repeated,
        "predicted": values.bounds(each.predicted),
    }
