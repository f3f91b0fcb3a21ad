"""Documents of ``client``, as a user's program reads them."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from tests.support.commands import DUMP, OBJECTS, Command

ASKED = (DUMP, *OBJECTS, "--node", "worker1")


def document(command: Command, *arguments: str, status: int = 0) -> Any:
    done = command("client", *arguments, "--format", "json")
    assert done.status == status, done.err
    return json.loads(done.out)


def number(given: Any) -> Fraction:
    return Fraction(int(given["numerator"], 16), int(given["denominator"], 16))


def fails(found: Any) -> dict[str, tuple[Fraction, Fraction]]:
    """The chance to fail of each client."""
    return {
        each["client"]: (number(each["fails"]["lower"]), number(each["fails"]["upper"]))
        for each in found["operations"]
    }


def point(numerator: int, denominator: int) -> tuple[Fraction, Fraction]:
    return (Fraction(numerator, denominator),) * 2
