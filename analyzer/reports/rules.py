"""A rule as text, of iptables or nft."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from analyzer.model.iptables.rules import Rule
from analyzer.model.nft.ruleset import Rule as NftRule
from analyzer.model.programs import KUBE_PROXY, program_of
from analyzer.semantics.onward import chain_of
from analyzer.semantics.tree import AnyRule

#: Elements between braces, and how many of them are shown.
_BRACES: Final = re.compile(r"\{ ([^{}]*) \}")
_MOST: Final = 3


def says(rule: AnyRule) -> str:
    """Return what a rule does, in a few words; for an nft rule also its matches."""
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
    """Return where a rule is: its line, or in JSON the index of the object."""
    what = "object" if not isinstance(rule, Rule) and _is_json(rule) else "line"
    return f"{what} {rule.location.line}"


def program(rule: AnyRule) -> str | None:
    """Return the program that wrote a rule, judging by names and comments."""
    return program_of(chain_of(rule), rule.raw, rule.location.table)


def signed_place(rule: AnyRule) -> str:
    """Return where a rule is, and whose it is if not kube-proxy's."""
    written_by = program(rule)
    return place(rule) if written_by in {None, KUBE_PROXY} else f"{place(rule)}, {written_by}"


def _is_json(rule: NftRule) -> bool:
    return rule.raw.startswith("[")  # as no rule of nft's text does


def _shortened(found: re.Match[str]) -> str:
    elements = found[1].split(", ")
    if len(elements) <= 2 * _MOST:
        return found[0]
    return f"{{ {', '.join(elements[:_MOST])}, ... {len(elements) - _MOST} more }}"
