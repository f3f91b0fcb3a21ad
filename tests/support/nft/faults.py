"""Looks for a question to which a faulty walk gives a wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

Patch: TypeAlias = pytest.MonkeyPatch
Fault: TypeAlias = Callable[[Patch], None]
Make: TypeAlias = Callable[[Any], Any]

SEARCH: Final = settings(
    phases=[Phase.generate],
    database=None,
    suppress_health_check=list(HealthCheck),
)


def method(of: Any, name: str, make: Make) -> Fault:
    """Something does something else; `make` gets what is right."""
    return lambda patch: patch.setattr(of, name, make(getattr(of, name)))


def breaks(check: Callable[..., None], *given: Any) -> bool:
    try:
        check(*given)
    except (AssertionError, ValueError):
        return True
    return False


def search(given: st.SearchStrategy[Any], check: Callable[..., None], most: int = 6_000) -> bool:
    same = Random(0)  # noqa: S311  # the same search each time
    try:
        find(
            given,
            lambda made: breaks(check, *made),
            settings=settings(SEARCH, max_examples=most),
            random=same,
        )
    except NoSuchExample:
        return False
    return True
