"""Draws of a naive interpreter: each is asked of a script, and all scripts give all results."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar


class Draw(Exception):  # noqa: N818  # a question, not an error
    """Nature draws one of these."""

    def __init__(self, weights: tuple[Fraction, ...]) -> None:
        self.weights = weights


@dataclass
class Script:
    """What is drawn, in order; what it does not say is asked."""

    answers: tuple[int, ...] = ()
    asked: int = 0

    def draw(self, weights: tuple[Fraction, ...]) -> int:
        if self.asked == len(self.answers):
            raise Draw(weights)
        self.asked += 1
        return self.answers[self.asked - 1]


K = TypeVar("K", bound=Hashable)


def distribution(start: Callable[[Script], K]) -> dict[K, Fraction]:
    """What comes out of all draws, each with its exact weight."""
    found: dict[K, Fraction] = {}
    rest: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while rest:
        answers, weight = rest.pop()
        try:
            end = start(Script(answers))
        except Draw as draw:
            rest += [((*answers, at), weight * w) for at, w in enumerate(draw.weights) if w]
        else:
            found[end] = found.get(end, Fraction(0)) + weight
    assert sum(found.values()) == 1
    return found


def scaled(modulus: int) -> tuple[Fraction, ...]:
    """How often ``numgen random mod`` gives each number: reciprocal_scale() of 32 bits."""
    edges = [-(-(at << 32) // modulus) for at in range(modulus + 1)]
    return tuple(Fraction(high - low, 1 << 32) for low, high in pairwise(edges))
