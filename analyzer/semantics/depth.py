"""A larger recursion limit while it is needed: chains and trees may be thousands of levels deep.

Python-to-Python calls take no C stack, so the limit protects nothing here; other code, such as the
JSON parser, does need its protection, so the limit is restored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_FRAMES: Final = 10_000_000


def deep(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function, and all that it calls, recurse as deep as it has to."""

    @wraps(function)
    def wrapped(*arguments: P.args, **named: P.kwargs) -> R:
        before = sys.getrecursionlimit()
        if before == _FRAMES:
            return function(*arguments, **named)
        sys.setrecursionlimit(_FRAMES)
        try:
            return function(*arguments, **named)
        finally:
            sys.setrecursionlimit(before)

    return wrapped
