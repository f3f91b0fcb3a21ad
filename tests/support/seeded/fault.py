"""What a deliberate fault is: a part of the program that does something else than it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

Patch: TypeAlias = pytest.MonkeyPatch
#: Puts the fault in its place; the patch takes it out again.
Fault: TypeAlias = Callable[[Patch], None]
Make: TypeAlias = Callable[[Any], Any]


def method(of: Any, name: str, make: Make) -> Fault:
    """Something does something else; `make` gets what is right."""
    return lambda patch: patch.setattr(of, name, make(getattr(of, name)))
