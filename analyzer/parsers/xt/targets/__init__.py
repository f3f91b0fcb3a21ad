"""One file per xtables target. To add one, write the file and add its line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analyzer.model import targets as model
from analyzer.parsers.xt.extension import Extension
from analyzer.parsers.xt.targets.dnat import DNAT
from analyzer.parsers.xt.targets.mark import MARK
from analyzer.parsers.xt.targets.masquerade import MASQUERADE
from analyzer.parsers.xt.targets.reject import REJECT
from analyzer.parsers.xt.targets.simple import ACCEPT, DROP, RETURN

#: What stands behind ``-j``, other than a chain, and what reads it.
TARGETS: Final[Mapping[str, Extension[Any]]] = {
    "ACCEPT": ACCEPT,
    "DNAT": DNAT,
    "DROP": DROP,
    "MARK": MARK,
    "MASQUERADE": MASQUERADE,
    "REJECT": REJECT,
    "RETURN": RETURN,
}

#: The values that each of them gives: how a value finds the way back to its name.
TARGET_NAMES: Final[Mapping[type, str]] = {
    model.Accept: "ACCEPT",
    model.Dnat: "DNAT",
    model.Drop: "DROP",
    model.Masquerade: "MASQUERADE",
    model.Reject: "REJECT",
    model.Return: "RETURN",
    model.SetMark: "MARK",
}
