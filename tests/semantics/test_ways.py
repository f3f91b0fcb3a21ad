"""Whole ways of packets, against a naive interpreter with the hooks written out."""

from __future__ import annotations

import pytest
from hypothesis import given

from analyzer.model.addresses import Address
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.probability import ALWAYS, NEVER
from analyzer.parsers.iptables_save import parse
from analyzer.semantics.tree import Leaf
from tests.support.agreement.iptables_hooks import check_bounds, check_exactly, told, way
from tests.support.effort import examples
from tests.support.naive import hooks as naive
from tests.support.odds import bounds
from tests.support.strategies.iptables_tables import (
    NODE,
    POD,
    SERVICE,
    open_questions,
    questions,
)


@examples(40, 2_000)
@given(questions)
def test_ways_of_nothing_unknown_agree_exactly(question: tuple[Ruleset, Address, bool]) -> None:
    ruleset, destination, made_here = question
    check_exactly(ruleset, destination, made_here=made_here)


@given(open_questions)
def test_whatever_the_unknown_does_lies_within_the_bounds(
    question: tuple[Ruleset, Address, bool],
) -> None:
    ruleset, destination, made_here = question
    check_bounds(ruleset, destination, made_here=made_here)


FILTERED = """*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
{raw}
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d 10.2.3.4/32 -p tcp -j DNAT --to-destination 10.1.0.9:80
-A OUTPUT -d 10.2.3.4/32 -p tcp -j DNAT --to-destination 172.16.0.1:80
-A POSTROUTING -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
{filter}
COMMIT
"""


@pytest.mark.parametrize(
    ("raw", "rules", "made_here", "want"),
    [
        ("", "", False, naive.Fate("drop")),
        # Filter sees the address behind DNAT.
        ("", "-A FORWARD -d 10.1.0.9/32 -j ACCEPT", False, naive.Fate("sent", POD, True)),
        ("", "-A FORWARD -d 10.2.3.4/32 -j ACCEPT", False, naive.Fate("drop")),
        ("", "-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT", False, ("sent", POD, True)),
        ("", "-A FORWARD -m conntrack --ctorigdst 10.2.3.4 -j ACCEPT", False, ("sent", POD, True)),
        ("", "-A FORWARD -j REJECT", False, naive.Fate("reject")),
        # What conntrack does not see is neither sent on nor masqueraded.
        ("-A PREROUTING -j NOTRACK", "-A FORWARD -j ACCEPT", False, ("sent", SERVICE, False)),
        (
            "-A PREROUTING -j CT --notrack",
            "-A FORWARD -m conntrack --ctstate UNTRACKED -j ACCEPT",
            False,
            ("sent", SERVICE, False),
        ),
        # From the node to itself: out, masqueraded, and in again by loopback.
        ("", "-A INPUT -i lo -j ACCEPT", True, ("here", NODE, True)),
        ("", "-A INPUT -i eth0 -j ACCEPT", True, naive.Fate("drop")),
        # OUTPUT still has the device of the first routing; nobody said which.
        ("", "-A OUTPUT -o lo -j REJECT\n-A INPUT -i lo -j ACCEPT", True, None),
    ],
)
def test_the_hooks_come_in_the_order_of_the_kernel(
    raw: str, rules: str, made_here: bool, want: naive.Fate | tuple[str, Address, bool] | None
) -> None:
    tree = way(parse(FILTERED.format(raw=raw, filter=rules), "dump"), SERVICE, made_here=made_here)
    if want is None:
        assert bounds(tree, lambda leaf: told(leaf).kind == "reject").lower == NEVER
        assert bounds(tree, lambda leaf: told(leaf).kind == "reject").upper == ALWAYS
        return
    assert isinstance(tree, Leaf)
    assert told(tree).seen == (want if isinstance(want, naive.Fate) else naive.Fate(*want))
