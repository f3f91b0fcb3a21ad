from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.model.iptables.targets import (
    Accept,
    Dnat,
    Drop,
    Masquerade,
    NatRange,
    Redirect,
    Reject,
)
from analyzer.model.packet import Packet
from analyzer.reports.outcomes import describe
from analyzer.semantics.tree import Delivered, FellThrough, Leaf, Outcome, PolicyDrop, Unresolved
from tests.support.dumps import at

POD = ip_address("10.0.0.1")
SENT = Packet(destination=POD, destination_port=80)
TRANSLATED = Packet(destination=POD, destination_port=80, translated=True)
DNAT = Dnat(NatRange(first_address=POD, last_address=POD, first_port=80, last_port=80))


@pytest.mark.parametrize(
    ("outcome", "packet", "kind", "words"),
    [
        (DNAT, TRANSLATED, "endpoint", "10.0.0.1:80"),
        (DNAT, Packet(translated=True), "unresolved", "range"),
        (Drop(), SENT, "drop", "dropped"),
        (PolicyDrop("filter", "INPUT"), SENT, "drop", "policy of INPUT in table filter"),
        (
            PolicyDrop("filter", "INPUT", is_known=False),
            SENT,
            "drop",
            "the unknown policy of INPUT in table filter",
        ),
        (Reject("tcp-reset"), SENT, "reject", "tcp-reset"),
        (Delivered(here=False), TRANSLATED, "endpoint", "10.0.0.1:80"),
        (Delivered(here=True), TRANSLATED, "endpoint", "10.0.0.1:80"),
        (Delivered(here=True), SENT, "local", "node itself"),
        (Delivered(here=False), SENT, "no-service", ""),
        (Delivered(here=False), Packet(translated=True), "no-service", ""),
        (Redirect(None), SENT, "local", "node itself"),
        (Accept(), SENT, "no-service", ""),
        (Masquerade(), SENT, "no-service", ""),
        (FellThrough(), SENT, "no-service", ""),
        (
            Unresolved("chain X is not in the dump"),
            SENT,
            "unresolved",
            "chain X is not in the dump",
        ),
    ],
)
def test_an_outcome_has_a_kind_and_words(
    outcome: Outcome, packet: Packet, kind: str, words: str
) -> None:
    told = describe(Leaf(outcome, packet))
    assert told.kind == kind
    assert words in told.text
    assert told.endpoint == (at("10.0.0.1") if kind == "endpoint" else None)
