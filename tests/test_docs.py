"""Every row of every table of extensions has its line in the reference."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from analyzer.failure.models import MODELS
from analyzer.model.matches import Match
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER
from analyzer.model.ternary import Ternary
from analyzer.parsers.formats import FORMATS
from analyzer.parsers.xt.matches import MATCH_NAMES, MATCHES
from analyzer.parsers.xt.targets import TARGETS
from analyzer.reports.renderers import RENDERERS
from analyzer.semantics.matching import judge
from analyzer.semantics.situation import Situation
from tests.support import properties
from tests.support.strategies.iptables_rules import MATCHES as VALUES

DOCS = Path(__file__).parents[1] / "docs"


def rows(section: str, page: str = "reference.md") -> dict[str, str]:
    """Return the first cell of each row below a heading, and the rest of the row."""
    text = (DOCS / page).read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n## {section}\n")
    body = rest.partition("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", body, re.MULTILINE))


@pytest.mark.parametrize(
    ("section", "table"),
    [
        ("Input", FORMATS),
        ("What kills endpoints", MODELS),
        ("Output", RENDERERS),
    ],
)
def test_the_reference_lists_just_what_there_is(section: str, table: dict[str, object]) -> None:
    assert rows(section).keys() == set(table)


@pytest.mark.parametrize(("section", "table"), [("Matches", MATCHES), ("Targets", TARGETS)])
def test_the_semantics_list_just_what_is_read(section: str, table: dict[str, object]) -> None:
    assert rows(section, "semantics.md").keys() == set(table)


@pytest.mark.parametrize("name", MATCHES)
def test_a_match_is_decided_just_where_the_semantics_say_so(name: str) -> None:
    """Unknown is what no value of the match decides; assumed, what another assumption changes."""
    told = rows("Matches", "semantics.md")[name].split(" ")[0]
    values = [VALUES[kind] for kind, known in MATCH_NAMES.items() if known == name]
    found = dict.fromkeys(("decided", "assumed", "drawn"), False)

    @settings(max_examples=300, phases=[Phase.generate], database=None, deadline=None)
    @given(st.one_of(values))
    def look(match: Match) -> None:
        here, there = (judge(match, FULL, situation) for situation in ASSUMED)
        found["decided"] |= here.known is not Ternary.UNKNOWN and here.known is there.known
        found["assumed"] |= here.known is not there.known
        found["drawn"] |= here.chance not in (ALWAYS, NEVER)

    look()
    kinds = {kind for kind, happens in found.items() if happens}
    if told == "unknown":
        assert kinds == set()
    elif name == "nfacct":  # it holds, whatever is assumed of anything else
        assert (told, kinds) == ("assumed", {"decided"})
    else:
        assert told in kinds
        assert told != "decided" or "assumed" not in kinds


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
)
ASSUMED = (
    Situation(local_addresses=frozenset(), flow=FULL, affinity_lists=("",), under_limits=True),
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
