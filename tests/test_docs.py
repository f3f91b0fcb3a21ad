"""Every row of every table of extensions has its line in the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.models import MODELS
from analyzer.model.diagnostics import Location
from analyzer.model.iptables.matches import Match
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER
from analyzer.model.ternary import Ternary
from analyzer.parsers.formats import FORMATS
from analyzer.parsers.objects.forms import FORMS
from analyzer.parsers.words import Words
from analyzer.parsers.xt.matches import MATCH_NAMES, MATCHES
from analyzer.parsers.xt.targets import TARGETS
from analyzer.reports.renderers import RENDERERS
from analyzer.semantics.assumed import ASSUMPTIONS, DEFAULTS, Assumed
from analyzer.semantics.iptables.matching import evaluate_match
from analyzer.semantics.situation import Situation
from tests.support import properties
from tests.support.documents import rows
from tests.support.strategies.iptables_matches import MATCHES as VALUES

FIXTURES = Path(__file__).parents[1] / "fixtures" / "xt"


@pytest.mark.parametrize(
    ("section", "table"),
    [
        ("Input", FORMATS),
        ("API objects", FORMS),
        ("Failure models", MODELS),
        ("Output", RENDERERS),
    ],
)
def test_the_reference_lists_just_what_there_is(section: str, table: dict[str, object]) -> None:
    assert rows(section).keys() == set(table)


@pytest.mark.parametrize(("section", "table"), [("Matches", MATCHES), ("Targets", TARGETS)])
def test_the_semantics_list_just_what_is_read(section: str, table: dict[str, object]) -> None:
    assert rows(section, "semantics.md").keys() == set(table)


def test_the_semantics_list_each_assumption_and_what_it_may_be() -> None:
    told = rows("Assumptions", "semantics.md")
    assert [*told] == [each.name for each in ASSUMPTIONS]
    for each in ASSUMPTIONS:
        assert told[each.name].startswith(", ".join(f"`{of}`" for of in each.values) + " | ")


def values(name: str) -> Iterator[Match]:
    """Give the values of a match that its fixture has, and that can be read."""
    for line in (FIXTURES / f"{name}.t").read_text(encoding="utf-8").splitlines():
        given, separator, wanted = line.partition(" ; ")
        if separator and not line.startswith("#") and not wanted.startswith("FAIL "):
            yield MATCHES[name].parse(Words(given, Location("fixture", 1)))


@pytest.mark.parametrize("name", MATCHES)
def test_a_match_is_decided_just_where_the_semantics_say_so(name: str) -> None:
    """Unknown is what no value of the match decides; assumed, what another assumption changes."""
    told = rows("Matches", "semantics.md")[name].split(" ")[0]
    kinds = set()
    for match in values(name):
        here, there = (evaluate_match(match, FULL, situation) for situation in ASSUMED)
        if here.known is not there.known:
            kinds.add("assumed")
        elif here.known is not Ternary.UNKNOWN:
            kinds.add("decided")
        if here.chance not in (ALWAYS, NEVER):
            kinds.add("drawn")
    if told == "unknown":
        assert kinds == set()
    elif name == "nfacct":  # it holds, whatever is assumed of anything else
        assert (told, kinds) == ("assumed", {"decided"})
    else:
        assert told in kinds
        assert told != "decided" or "assumed" not in kinds


@given(st.one_of([VALUES[kind] for kind in MATCH_NAMES]))
def test_no_value_does_what_the_semantics_do_not_say(match: Match) -> None:
    name = MATCH_NAMES[type(match)]
    told = rows("Matches", "semantics.md")[name].split(" ")[0]
    here, there = (evaluate_match(match, FULL, situation) for situation in ASSUMED)
    if told == "unknown":
        assert here.known is there.known is Ternary.UNKNOWN
    if told == "decided":
        assert here.known is there.known


#: A packet of which all is known, and what may be assumed of its flow, this way and that.
FULL = Packet(
    protocol="tcp",
    source=ip_address("10.1.0.9"),
    source_port=40_000,
    destination=ip_address("10.2.3.4"),
    destination_port=53,
    icmp=(8, 0),
    in_interface="eth0",
    out_interface="eth1",
    bridge_port=False,
)
BY_DEFAULT = Assumed(DEFAULTS)
ASSUMED = (
    Situation(local_addresses=frozenset(), flow=FULL, affinity_lists=("",), assumed=BY_DEFAULT),
    Situation(local_addresses=frozenset(), flow=FULL, affinity_lists=("",), lists=None),
)


def test_the_reference_lists_the_formats_of_each_verb() -> None:
    for verb, told in rows("Output").items():
        assert re.findall(r"`(\w+)`", told) == list(RENDERERS[verb])


def test_the_reference_lists_the_clients_of_the_lab() -> None:
    clients = pytest.importorskip("netns_lab.clients", reason="scapy is not installed")
    assert rows("Clients of `lab clients`").keys() == set(clients.CLIENTS)


def test_each_property_is_listed_with_how_many_examples_it_gets() -> None:
    """``python -m tests.support.properties`` writes the table anew."""
    assert properties.written() == properties.table()
