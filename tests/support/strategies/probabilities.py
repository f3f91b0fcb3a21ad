"""Hypothesis strategies for probabilities."""

from __future__ import annotations

from hypothesis import strategies as st

from analyzer.model.probability import Dyadic

dyadics = st.integers(0, 40).flatmap(
    lambda bits: st.builds(Dyadic.of, st.integers(0, 1 << bits), st.just(bits))
)
