"""The end of a traversal, in words."""

from __future__ import annotations

from typing import assert_never

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.iptables.targets import Accept, Dnat, Drop, Masquerade, Redirect, Reject, Snat
from analyzer.model.value import value
from analyzer.semantics.fate import fate_of
from analyzer.semantics.tree import Delivered, FellThrough, Leaf, PolicyDrop, Unanswered, Unresolved


@value
class OutcomePhrase:
    """The kind of an outcome, as JSON names it, and a phrase for people."""

    kind: str
    text: str
    endpoint: Endpoint | None = None


def describe(leaf: Leaf) -> OutcomePhrase:
    """Return the words for the end of a new flow."""
    match leaf.outcome:
        case Dnat() if leaf.packet.destination is not None:
            endpoint = Endpoint(leaf.packet.destination, leaf.packet.destination_port)
            return OutcomePhrase("endpoint", str(endpoint), endpoint)
        case Dnat():
            return OutcomePhrase("unresolved", "one of a range of addresses")
        case Drop():
            return OutcomePhrase("drop", "dropped")
        case PolicyDrop(table, chain, place, is_known):
            line = "" if place is None else f", line {place.line}"
            policy = "policy" if is_known else "unknown policy"
            return OutcomePhrase("drop", f"dropped: the {policy} of {chain} in table {table}{line}")
        case Reject(how):
            return OutcomePhrase("reject", f"rejected with {how}" if how else "rejected")
        case Delivered() if leaf.packet.translated and leaf.packet.destination is not None:
            endpoint = Endpoint(leaf.packet.destination, leaf.packet.destination_port)
            return OutcomePhrase("endpoint", str(endpoint), endpoint)
        case Unanswered():
            fate = fate_of(leaf)
            answering = None if fate.address is None else Endpoint(fate.address, fate.port)
            return OutcomePhrase("unanswered", f"{answering}, and {fate.how}", answering)
        case Delivered(here=True):
            return OutcomePhrase("local", "delivered to the node itself")
        case Delivered():
            return OutcomePhrase("no-service", "forwarded unchanged: no Service matched")
        case Redirect():
            return OutcomePhrase("local", "redirected to the node itself")
        case Accept() | Masquerade() | Snat() | FellThrough():
            return OutcomePhrase("no-service", "no endpoint: forwarded unchanged")
        case Unresolved(text):
            return OutcomePhrase("unresolved", f"unknown: {text}")
        case _:
            assert_never(leaf.outcome)
