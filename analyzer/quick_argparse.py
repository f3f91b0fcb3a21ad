"""argparse without gettext, which takes a fourteenth of the time of a small dump to load.

argparse asks gettext for translations of its messages, of which there are none here. gettext is
away only while argparse is loaded; who needs it gets the real one.
"""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _as_it_is(message: str) -> str:
    return message


def _one_or_more(one: str, more: str, count: int) -> str:
    return one if count == 1 else more


def _load() -> None:
    """Load argparse, unless it or gettext is there already."""
    if "argparse" in sys.modules or "gettext" in sys.modules:
        return
    messages: Any = ModuleType("gettext")
    messages.gettext, messages.ngettext = _as_it_is, _one_or_more
    sys.modules["gettext"] = messages
    try:
        import argparse  # noqa: F401  # for what it leaves in sys.modules
    finally:
        del sys.modules["gettext"]


_load()

import argparse as argparse  # noqa: E402, PLC0414  # from here on it is the one above
