from __future__ import annotations

import sys

import pytest

from analyzer.semantics.depth import deep


def depth(levels: int) -> int:
    return 1 + depth(levels - 1) if levels else 0


def test_a_deep_function_recurses_deeper_than_python_lets_others() -> None:
    levels = 20 * sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        depth(levels)
    assert deep(depth)(levels) == levels


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
    levels = 20 * sys.getrecursionlimit()

    @deep
    def calls() -> int:
        return deep(depth)(1) + depth(levels)

    assert calls() == levels + 1
