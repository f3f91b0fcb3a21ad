"""Losses of a whole cluster, held against those of asking each dump alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

#: What each ServicePort of one dump loses, by its name and protocol: its state, and the bounds of
#: its worst loss as `loss` writes them, of none if it has no such loss.
Alone = Mapping[tuple[str, str], tuple[str, tuple[Any, Any] | None]]


def alone_of(text: str) -> Alone:
    """Return what each ServicePort loses, of what ``loss -o json`` prints of one dump."""
    return {
        (each["name"], each["protocol"]): (each["state"], _bounds(each["worst_loss"]))
        for each in json.loads(text)["services"]
    }


def compared(text: str, alone: Mapping[str, Alone]) -> int:
    """Compare what ``cluster loss -o json`` prints to some nodes' own; return how many losses.

    Of all nodes that live, also the means.

    Raises:
        AssertionError: one is another.
    """
    document = json.loads(text)
    every, number = document["vantage"], 0
    assert alone.keys() <= set(every)
    named = {(each["name"], each["protocol"]) for each in document["services"]}
    assert {name for each in alone.values() for name in each} <= named
    for each in document["services"]:
        key = each["name"], each["protocol"]
        total = Fraction(0)
        for at in each["at"]:
            for node in alone.keys() & set(at["nodes"] or every):
                number += 1
                bounds = _bounds(at["worst_loss"])
                assert alone[node][key] == (at["state"], bounds), (node, key)
                total += Fraction(bounds[1]["value"]) if bounds else 0
        if len(alone) == len(every):
            assert abs(each["mean_loss"]["upper"] - float(total / len(every))) < 1e-12  # rounded
    return number


def _bounds(loss: Mapping[str, Any] | None) -> tuple[Any, Any] | None:
    return None if loss is None else (loss["lower"], loss["upper"])
