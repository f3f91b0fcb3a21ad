"""``kubeodds/cluster-timeline/1``: dumps, changes, differences and losses, with exact times."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from analyzer.cluster.course import Length
from analyzer.parsers.clock_times import time_at
from analyzer.reports import json_values as values
from analyzer.reports.cluster_timeline_answer import (
    ChangedService,
    Look,
    LostAt,
    TimelineOfDumpsAnswer,
    Wrong,
)

_VERSION = 1


def render(answer: TimelineOfDumpsAnswer) -> Iterator[str]:
    """Yield the nodes with their dumps, then the findings."""
    wrong = None if answer.wrong is None else answer.wrong
    return values.document(
        "cluster-timeline",
        {
            "nodes": (
                values.encode({"node": each.node, "dumps": [*map(_look, each.looks)]})
                for each in answer.nodes
            ),
            "objects": map(values.encode, map(_look, answer.objects)),
            "changes": map(values.encode, map(_changed, answer.changes)),
            "differences": "null" if wrong is None else map(values.encode, map(_wrong, wrong)),
            "why_not_compared": values.encode(answer.why_not_compared or None),
            "dead": values.encode(list(answer.dead)),
            "losses": (
                "null" if answer.lost is None else map(values.encode, map(_lost, answer.lost))
            ),
            "not_judged": (
                values.encode({"node": node, "names": list(names)})
                for node, names in answer.not_judged.items()
                if names
            ),
            "assumed": values.encode(list(answer.assumed)),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _look(each: Look) -> dict[str, Any]:
    return {
        "at": _time(each.at),
        "clock": each.clock,
        "source": each.source,
        "failed": each.why or None,
    }


def _changed(each: ChangedService) -> dict[str, Any]:
    return {
        "node": each.node,
        "after": _time(each.after),
        "before": _time(each.before),
        "name": each.service,
        "protocol": each.protocol,
        "family": values.family(each.version),
        "whole": each.whole or None,
        "gone": list(each.gone),
        "added": list(each.added),
        "moved": each.moved,
        "frontends_gone": list(each.frontends_gone),
        "frontends_added": list(each.frontends_added),
        "other": list(each.other),
        "certain": each.is_certain,
        "stood": {
            "lower": _exact(each.stood.lower),
            "upper": None if each.stood.upper is None else _exact(each.stood.upper),
        },
    }


def _wrong(each: Wrong) -> dict[str, Any]:
    return {
        "node": each.node,
        "name": each.service or None,
        "protocol": each.protocol or None,
        "family": values.family(each.version),
        "code": each.drift.value,
        "what": each.what,
        "lasted": _length(each.lasted),
    }


def _lost(each: LostAt) -> dict[str, Any]:
    return {
        "node": each.node,
        "name": each.service,
        "protocol": each.protocol,
        "family": each.family or None,
        "most": values.bounds(each.lost.most),
        "lossy": _length(each.lost.lossy),
        "lost": _length(each.lost.total),
        "absent": _length(each.absent),
        "course": [
            {"from": _time(one.start), "to": _time(one.end), "loss": values.bounds(one.loss)}
            for one in each.lost.stretches
        ],
    }


def _length(found: Length) -> dict[str, Any]:
    return {"lower": _exact(found.lower), "upper": _exact(found.upper)}


def _exact(seconds: Fraction) -> dict[str, Any]:
    """Return seconds as a fraction of integers, which may be of any size, and the nearest float."""
    return {
        "numerator": hex(seconds.numerator),
        "denominator": hex(seconds.denominator),
        "value": float(seconds),
    }


def _time(at: Fraction) -> str:
    return time_at(at).isoformat().replace("+00:00", "Z")
