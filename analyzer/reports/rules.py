"""How a rule is shown, whichever program's it is."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from analyzer.model.nft import Rule as NftRule
from analyzer.model.rules import Rule
from analyzer.semantics.tree import AnyRule

_CHAIN: Final = re.compile(r"(?:-A|-I)\s+(\S+)")
#: Elements between braces, and how many of them are shown.
_BRACES: Final = re.compile(r"\{ ([^{}]*) \}")
_MOST: Final = 3


def chain_of(rule: AnyRule) -> str:
    """Return the chain that a rule stands in."""
    if not isinstance(rule, Rule):
        return rule.chain
    found = _CHAIN.search(rule.raw)
    return found[1] if found else ""


def says(rule: AnyRule) -> str:
    """Return what a rule does, in a few words; a rule of nft also what it asks for."""
    if isinstance(rule, Rule):
        if rule.target is None:
            return "(counts)"
        from analyzer.parsers.xt.rule import render_target

        return render_target(rule.target)
    text = rule.raw
    if _is_json(rule):
        from analyzer.parsers.nft.rendering import render_rule

        with suppress(ValueError):  # a string with a quote in it, which nft does not print
            text = render_rule(rule)
    return _BRACES.sub(_shortened, text)


def place(rule: AnyRule) -> str:
    """Return where a rule stands: its line, or in JSON the number of the object."""
    what = "object" if not isinstance(rule, Rule) and _is_json(rule) else "line"
    return f"{what} {rule.location.line}"


def _is_json(rule: NftRule) -> bool:
    return rule.raw.startswith("[")  # as no rule of nft's text does


def _shortened(found: re.Match[str]) -> str:
    elements = found[1].split(", ")
    if len(elements) <= 2 * _MOST:
        return found[0]
    return f"{{ {', '.join(elements[:_MOST])}, ... {len(elements) - _MOST} more }}"
