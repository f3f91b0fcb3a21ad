"""Exact probability distributions over values of any type."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from analyzer.model.probability import ALWAYS, NEVER, Dyadic
from analyzer.model.value import value

K = TypeVar("K", bound=Hashable)


@value
class Distribution(Generic[K]):
    """A finite probability distribution; the weights sum to exactly 1."""

    weights: Mapping[K, Dyadic]

    def __post_init__(self) -> None:
        total = sum(self.weights.values(), NEVER)
        if total != ALWAYS:
            msg = f"weights sum to {float(total)}, not 1"
            raise ValueError(msg)

    @classmethod
    def collect(cls, pairs: Iterable[tuple[K, Dyadic]]) -> Distribution[K]:
        """Add up the weights of equal outcomes, dropping those of weight 0."""
        weights: dict[K, Dyadic] = {}
        for outcome, weight in pairs:
            if weight:
                weights[outcome] = weights.get(outcome, NEVER) + weight
        return cls(weights)
