from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

import pytest

from analyzer.semantics.depth import deep

#: More than Python lets anybody recurse that does not ask for it.
LEVELS: Final = 20_000


@pytest.fixture(autouse=True)
def usual_limit() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    yield
    sys.setrecursionlimit(before)


def depth(levels: int) -> int:
    return 1 + depth(levels - 1) if levels else 0


def test_a_deep_function_recurses_deeper_than_python_lets_others() -> None:
    with pytest.raises(RecursionError):
        depth(LEVELS)
    assert deep(depth)(LEVELS) == LEVELS


def test_the_limit_is_back_when_it_returns() -> None:
    before = sys.getrecursionlimit()
    deep(depth)(1)
    assert sys.getrecursionlimit() == before


def test_the_limit_is_back_when_it_fails() -> None:
    @deep
    def fails() -> None:
        raise LookupError

    before = sys.getrecursionlimit()
    with pytest.raises(LookupError):
        fails()
    assert sys.getrecursionlimit() == before


def test_a_deep_function_may_call_another_one_and_stay_deep() -> None:
    @deep
    def calls() -> int:
        return deep(depth)(1) + depth(LEVELS)

    assert calls() == LEVELS + 1
