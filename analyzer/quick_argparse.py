"""argparse without gettext, which takes a fourteenth of the time of a small dump to load.

argparse asks gettext for translations of its messages, of which there are none here. gettext is
away only while argparse is loaded; who needs it gets the real one.
"""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

__all__ = ["argparse"]


def _as_it_is(message: str) -> str:
    return message


def _one_or_more(one: str, more: str, count: int) -> str:
    return one if count == 1 else more


def _argparse() -> ModuleType:
    """Return argparse, loaded alone unless it or gettext is there already."""
    if "argparse" in sys.modules or "gettext" in sys.modules:
        import argparse

        return argparse
    messages: Any = ModuleType("gettext")
    messages.gettext, messages.ngettext = _as_it_is, _one_or_more
    sys.modules["gettext"] = messages
    try:
        import argparse
    finally:
        del sys.modules["gettext"]
    return argparse


if not TYPE_CHECKING:
    argparse = _argparse()
