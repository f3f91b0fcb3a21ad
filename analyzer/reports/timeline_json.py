"""``kubeodds/timeline/1``: what each ServicePort loses over time.

Seconds and shares are exact fractions, but that those of more than 1,024 bits are rounded outwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

from analyzer.failure.loss import losses
from analyzer.failure.models import Dead
from analyzer.model.probability import Bounds
from analyzer.outage.causes import by_cause
from analyzer.outage.clocks import DURATIONS, TimeBounds
from analyzer.outage.eviction import RATES_SOURCE, Rates
from analyzer.outage.scenario import OutageEvent
from analyzer.outage.timeline import Played
from analyzer.reports import json_values as values
from analyzer.reports.answers import TimelineAnswer
from analyzer.reports.control_plane_json import TERNARY, control_plane
from analyzer.reports.route_networks import network_fields

_VERSION: Final = 1
#: Numbers with more bits are rounded to this many.
_MOST_BITS: Final = 1_024
_ROUNDED_TO: Final = 64


def render(answer: TimelineAnswer) -> Iterator[str]:
    """Yield the events, the durations and the ServicePorts one by one."""
    scenario = answer.scenario
    outage, died = scenario.outage, scenario.died
    return values.document(
        "timeline",
        {
            "node": values.encode(answer.view.node),
            "dead": values.encode(
                {
                    "nodes": sorted(scenario.causes.nodes),
                    "zones": list(died.zones),
                    "endpoints": sorted(str(each) for each in died.endpoints),
                }
            ),
            "heals": values.encode(TERNARY[outage.heals]),
            "why": values.encode(list(scenario.why)),
            "control_plane": values.encode(control_plane(scenario.plane)),
            "kube_proxy_dead": values.encode(outage.proxy_dead),
            "until": values.encode(number(answer.until)),
            "rate": values.encode(None if answer.rate is None else number(answer.rate)),
            "slo": values.encode(_slo(answer)),
            "durations": (_duration(answer, name) for name in DURATIONS),
            "eviction": values.encode(_eviction(scenario.causes.rates)),
            "events": map(_event, scenario.events),
            "services": _services(answer),
            "assumed": values.encode(list(scenario.assumed)),
            "not_judged": map(values.encode, answer.not_judged),
            "cut": values.encode(answer.view.lacks_some),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _eviction(rates: Rates) -> dict[str, Any]:
    """Return how fast nodes are given up, and where the defaults of that stand."""
    return {
        "node_eviction_rate": number(rates.normal),
        "secondary_node_eviction_rate": number(rates.secondary),
        "unhealthy_zone_threshold": number(rates.threshold),
        "large_cluster_size_threshold": rates.large,
        "source": RATES_SOURCE,
    }


def number(value: Fraction, *, up: bool = False) -> dict[str, Any]:
    """Return a fraction, numerator and denominator in hexadecimal, and the nearest float."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        scaled = value * (1 << _ROUNDED_TO)
        value = Fraction(-(-scaled // 1) if up else scaled // 1, 1 << _ROUNDED_TO)
    return {
        "numerator": hex(value.numerator),
        "denominator": hex(value.denominator),
        "value": float(value),
    }


def _span(value: TimeBounds) -> dict[str, Any]:
    """Return both ends; null: never, or not for certain."""
    earliest, latest = value.earliest, value.latest
    return {
        "earliest": None if earliest is None else number(earliest),
        "latest": None if latest is None else number(latest, up=True),
    }


def _between(lower: Fraction, upper: Fraction) -> dict[str, Any]:
    return {"lower": number(lower), "upper": number(upper, up=True)}


def _slo(answer: TimelineAnswer) -> dict[str, Any] | None:
    if answer.slo is None or answer.budget is None:
        return None
    return {
        "share": number(answer.slo),
        "window": number(answer.slo_window),
        "budget": number(answer.budget),
    }


def _event(event: OutageEvent) -> str:
    return values.encode({"what": event.what, **_span(event.when)})


def _duration(answer: TimelineAnswer, name: str) -> str:
    clocks = answer.scenario.clocks
    return values.encode(
        {
            "option": f"--{name}",
            **_span(clocks.of(name)),
            "said": name in clocks.said,
            "says": DURATIONS[name].says,
            "source": DURATIONS[name].source or None,
        }
    )


def _services(answer: TimelineAnswer) -> Iterator[str]:
    now = losses(answer.services, Dead(endpoints=frozenset()))
    for played, lost in zip(answer.played, now, strict=True):
        yield _service(answer, played, lost.worst)


def _service(answer: TimelineAnswer, played: Played, lost_now: Bounds) -> str:
    curve, rate, budget = played.curve, answer.rate, answer.budget
    lower, upper = curve.lost
    return values.encode(
        {
            **values.name(played.service),
            "route": _way(played),
            "at_once": _between(*played.first),
            "lost_now": _between(lost_now.lower.as_fraction(), lost_now.upper.as_fraction()),
            "steps": [
                {"since": number(each.since), **_between(each.lower, each.upper)}
                for each in curve.steps
            ],
            "over": _span(curve.over),
            "lost_seconds": _between(lower, upper),
            "failed_flows": None if rate is None else _between(lower * rate, upper * rate),
            "budget_used": None if budget is None else _between(lower / budget, upper / budget),
            "causes": [
                {
                    "cause": fate.cause.name.lower().replace("_", "-"),
                    "endpoints": [str(each) for each in ends],
                    "removed": _span(fate.removed),
                    "replaced": _span(fate.replaced),
                    "returns": _span(fate.returns),
                }
                for fate, ends in by_cause(played.fates)
            ],
        }
    )


def _way(played: Played) -> dict[str, Any] | None:
    route = played.route
    if route is None:
        return None
    return {
        "frontend": values.frontend(route.frontend),
        "source": route.source.value,
        **network_fields(route),
    }
