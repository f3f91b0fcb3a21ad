"""Sources that rules of nft tell apart, for the flows that meet these rules and no others."""

from __future__ import annotations

import pytest

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import ServicePort, View
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers.formats import read_ruleset
from tests.support.defects import told
from tests.support.nft.listing import SERVICES, block, hook, listing
from tests.support.shapes import service

CLIENTS = "192.0.2.0/24"


def view(text: str, *others: str) -> View:
    ruleset, *beside = [read_ruleset(each.encode(), "dump") for each in (text, *others)]
    if isinstance(ruleset, Ruleset):
        return Recogniser(ruleset, Cluster(), others=beside).view()
    assert isinstance(ruleset, NftRuleset)
    return NftRecogniser(ruleset, Cluster(), others=beside).view()


def service_at(text: str, *others: str, address: str = SERVICES[0]) -> ServicePort:
    (found,) = (
        each
        for each in view(text, *others).services
        if address in {str(frontend.address) for frontend in each.frontends}
    )
    return found


def parts(text: str, *others: str, address: str = SERVICES[0]) -> set[str | None]:
    """Return the networks whose flows to a Service have routes of their own."""
    found = service_at(text, *others, address=address)
    return {network for source, network in told(found) if source != "hairpin"}


def test_what_endpoints_of_one_service_ask_parts_no_sources() -> None:
    assert parts(listing()) == {None}


def test_a_service_is_asked_about_what_its_own_rules_ask() -> None:
    rule = f"meta l4proto tcp ip daddr {SERVICES[0]} tcp dport 80 jump MINE"
    text = listing(rule, chains=block("MINE", f"ip saddr {CLIENTS} accept"))
    assert parts(text) == {None, CLIENTS}
    assert parts(text, address=SERVICES[1]) == {None}
    routes = told(service_at(text))
    assert routes["external", CLIENTS].shares == ()
    assert len(routes["external", None].shares) == 3


ODD_MAP = """map odd { type ipv4_addr . inet_proto . inet_service : verdict; flags interval;
    elements = { 10.96.0.0/24 . tcp . 80 : jump MINE } }"""
PORTS = """map ports { type inet_proto . inet_service : verdict
    elements = { tcp . 80 : jump MINE } }"""


@pytest.mark.parametrize(
    ("rule", "sets"),
    [
        ("tcp dport 80 jump MINE", ""),
        ("meta l4proto . th dport vmap @ports", PORTS),
        ("ip daddr . meta l4proto . th dport vmap @odd", ODD_MAP),
        ("ip daddr 10.96.0.0/24 tcp dport 80 jump MINE", ""),
        ("meta l4proto tcp jump MINE", ""),
    ],
)
def test_chains_for_a_port_are_met_by_flows_to_any_address(rule: str, sets: str) -> None:
    mine = block("MINE", f"ip saddr {CLIENTS} accept")
    text = listing(first=[rule], chains=f"{sets}\n{mine}")
    for address in SERVICES:
        assert parts(text, address=address) == {None, CLIENTS}
        routes = told(service_at(text, address=address))
        assert routes["external", CLIENTS].shares == ()


def test_rules_for_another_port_are_not_met() -> None:
    mine = block("MINE", f"ip saddr {CLIENTS} accept")
    assert parts(listing(first=["tcp dport 8080 jump MINE"], chains=mine)) == {None}


OTHERS = (
    "table ip x {\n"
    + block("pre", hook("nat", "prerouting", -110), "tcp dport 80 jump MINE")
    + block("MINE", f"ip saddr {CLIENTS} drop")
    + "\n}\n"
)


@pytest.mark.parametrize("text", [listing(), service(2)])
def test_another_ruleset_is_asked_as_a_whole(text: str) -> None:
    assert parts(text, OTHERS) == {None, CLIENTS}
