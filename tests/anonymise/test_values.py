"""Every text in a match or target is something, or the match is not understood afterwards."""

from __future__ import annotations

import types
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import given
from hypothesis import strategies as st

from analyzer.anonymise.naming import Naming
from analyzer.anonymise.values import FIELDS, renamed_matches, renamed_target
from analyzer.model import addresses
from analyzer.model.diagnostics import Location
from analyzer.model.iptables import matches, options, rules, targets
from analyzer.model.iptables.matches import MatchIprange, MatchUnknown
from analyzer.model.iptables.options import AddressRange, Option
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import TargetUnknown
from analyzer.model.value import fields_of
from analyzer.parsers.xt.rule import parse_rule, render_rule
from tests.support.effort import examples
from tests.support.strategies.iptables_rules import matches as any_match
from tests.support.strategies.iptables_rules import targets as any_target

SALT = b"s" * 16
#: Handled by code of their own: what they are tells how.
OTHERWISE = {
    (matches.MatchUnknown, "text"),
    (matches.MatchSet, "match_set"),
    (matches.MatchString, "hexadecimal"),
    (targets.TargetUnknown, "text"),
}


def texts_of(kind: Any) -> bool:
    """Tell whether a type has texts in it."""
    if kind is str:
        return True
    return any(texts_of(each) for each in get_args(kind) if get_origin(kind) is not None)


def test_every_text_of_every_value_is_handled() -> None:
    space = {**vars(addresses), **vars(options), **vars(matches), **vars(targets), **vars(rules)}
    kinds = [*get_args(matches.Match), *get_args(targets.Target)]
    kinds += [options.PolicyElement, options.ChunkTypes, options.TcpFlags]
    wanted = set()
    for kind in kinds:
        if kind is matches.MatchNot:
            continue
        hints = get_type_hints(kind, {**space, "T": str}, {"types": types})
        wanted |= {(kind, name) for name in fields_of(kind) if texts_of(hints[name])}
    assert wanted == set(FIELDS) | OTHERWISE


@given(any_match)
@examples(60, 3000)
def test_a_match_is_one_that_reads_back(match: matches.Match) -> None:
    naming = Naming(SALT)
    for made in renamed_matches(naming, (match,)):
        text = render_rule("X", Rule(made, None, Location("", 1), ""))
        assert parse_rule(text, Location("", 1), ()).matches == made


@given(any_target)
@examples(60, 3000)
def test_a_target_is_one_that_reads_back(target: targets.Target) -> None:
    naming = Naming(SALT)
    made = renamed_target(naming, target)
    text = render_rule("X", Rule((), made, Location("", 1), ""))
    found = parse_rule(text, Location("", 1), ()).target
    assert isinstance(found, TargetUnknown) == isinstance(made, TargetUnknown)


@given(st.ip_addresses(v=4), st.integers(0, 300), st.booleans())
def test_a_range_of_addresses_is_the_addresses_of_the_range(
    first: Any, size: int, negated: bool
) -> None:
    last = type(first)(min(int(first) + size, 0xFFFFFFFF))
    naming = Naming(SALT)
    match = MatchIprange(source=Option(AddressRange(first, last), negated))
    rules_made = renamed_matches(naming, (match,))
    if any(isinstance(each, MatchUnknown) for made in rules_made for each in made):
        return
    inside = {
        number
        for made in rules_made
        for each in made
        if isinstance(each, MatchIprange) and each.source is not None
        for number in range(int(each.source.value.first), int(each.source.value.last) + 1)
    }
    numbers = range(int(first), int(last) + 1)
    assert inside == {int(naming.names.address(type(first)(n))) for n in numbers}
    assert len(rules_made) == 1 or not negated
