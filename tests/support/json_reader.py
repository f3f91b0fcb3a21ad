"""JSON documents read as another program would: every reference replaced by what it refers to.

It shares no code with what writes them, and computes shares with fractions.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

#: A share by its least and its greatest value.
Share = tuple[Fraction, Fraction]


def read(text: str) -> Any:
    """Return a document without references."""
    document = json.loads(text)
    verb = document["schema"].split("/")[1]
    for each in document.get("services", ()):
        if verb == "services":
            _services(each, document)
        elif verb == "loss":
            _loss(each)
        elif verb == "diff":
            _diff(each)
    if verb == "trace":
        exact = shares(document["probabilities"])
        for outcome, share in zip(document["outcomes"], exact, strict=True):
            outcome["probability"] = share
            outcome["rules"] = [document["rules"][at] for at in outcome["rules"]]
    return document


def shares(distribution: Any) -> list[Share | None]:
    """Return the shares of a distribution; None: never drawn."""
    exact, size = distribution["exact"], len(distribution["values"])
    if "shares" in exact:
        return [_share(each) for each in exact["shares"]]
    order = distribution["order"]
    order = range(size) if order is None else order
    found: list[Share | None] = [None] * size
    left = Fraction(1)
    for at, draw in zip(order, exact["draws"], strict=False):
        drawn = left * Fraction(int(draw, 16), 1 << exact["bits"])
        found[at] = drawn, drawn
        left -= drawn
    assert len(order) - len(exact["draws"]) in {0, 1}
    if len(exact["draws"]) < len(order):
        found[order[-1]] = left, left
    return found


def fraction(probability: Any) -> Fraction:
    """Return an exact probability."""
    return Fraction(int(probability["numerator"], 16), 1 << probability["exponent"])


def _share(value: Any) -> Share | None:
    if value is None:
        return None
    if "lower" in value:
        return fraction(value["lower"]), fraction(value["upper"])
    return fraction(value), fraction(value)


def rows(columns: Any) -> list[dict[str, Any]]:
    """Return the endpoints of a ServicePort one by one, of what is written as columns."""
    size = len(columns["address"])
    full = [
        value if isinstance(value, list) else [value] * size  # one value is that of all
        for value in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*full, strict=True)]


def _services(service: Any, document: Any) -> None:
    """Give each route its frontend, and its endpoints with their shares."""
    service["endpoints"] = rows(service["endpoints"])
    if service.get("api") is not None:
        service["api"]["endpoints"] = rows(service["api"]["endpoints"])
    service["routes"] = [{**route} for route in document["routes"][service["routes"]]]
    for route in service["routes"]:
        distribution = document["distributions"][route["distribution"]]
        told = shares(distribution)
        masked = route["masquerade"]
        masked = masked if isinstance(masked, list) else [masked] * len(told)
        route["frontend"] = service["frontends"][route["frontend"]]
        route["unresolved"] = fraction(distribution["unresolved"])
        route["endpoints"] = [
            {**endpoint, "share": share, "masquerade": masquerade}
            for endpoint, share, masquerade in zip(service["endpoints"], told, masked, strict=True)
            if share is not None
        ]


def _loss(service: Any) -> None:
    for each in (*service["routes"], *filter(None, [service["worst_loss"]])):
        each["frontend"] = service["frontends"][each["frontend"]]


def _diff(service: Any) -> None:
    endpoints = service["endpoints"]
    for change in service["routes"]:
        for kind in ("endpoints_gone", "endpoints_added", "shares_moved"):
            change[kind] = [endpoints[at] for at in change[kind]]
        for each in change["masquerade"]:
            each["endpoint"] = endpoints[each["endpoint"]]
        if change["shares"] is not None:
            change["shares"]["of"] = [endpoints[at] for at in change["shares"]["of"]]
            for side in ("a", "b"):
                change["shares"][side] = shares(change["shares"][side])
