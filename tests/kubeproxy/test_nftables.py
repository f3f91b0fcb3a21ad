"""Services of nftables mode in rulesets of other shapes than captured ones, and beside others."""

from __future__ import annotations

import re
from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import FrontendKind, FrontendState, Route, ServicePort, Source, View
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers import nft_text
from analyzer.parsers.iptables_save import parse
from tests.support.captures import FIXTURES
from tests.support.nft.dumps import DRAWS, ELSEWHERE, HALF, PLAIN, base, chain, nat, ruleset


def view(text: str, *others: Ruleset, own: tuple[str, ...] = ()) -> View:
    return NftRecogniser(
        nft_text.parse(text, "dump"),
        Cluster(),
        node_addresses=tuple(map(ip_address, own)),
        others=others,
    ).view()


def from_pod(service: ServicePort) -> Route:
    (route,) = service.routes_from(Source.POD)
    return route


def said(route: Route) -> list[tuple[str, float, float]]:
    return [(str(s.endpoint), float(s.share.lower), float(s.share.upper)) for s in route.shares]


EVEN = [("10.0.0.1:80", 0.5, 0.5), ("10.0.0.2:80", 0.5, 0.5)]
#: One Service, told in several ways.
LAYOUTS = {
    "a map": ruleset(
        nat("ip daddr . meta l4proto . th dport vmap { 10.96.0.1 . tcp . 80 : goto x }"),
        chain("x", DRAWS),
    ),
    "a rule": PLAIN,
    "parts in another order": ruleset(
        nat("th dport . ip daddr . meta l4proto vmap { 80 . 10.96.0.1 . tcp : jump x }"),
        chain("x", DRAWS),
    ),
    "a map behind a map": ruleset(
        nat("ip daddr vmap { 10.96.0.1 : goto dispatch-1, 10.96.0.2 : drop }"),
        chain("dispatch-1", "meta l4proto . th dport vmap { tcp . 80 : goto x }"),
        chain("x", DRAWS),
    ),
    "a map behind a rule": ruleset(
        nat("meta l4proto tcp jump tcp-services"),
        chain("tcp-services", "ip daddr . th dport vmap { 10.96.0.1 . 80 : goto x }"),
        chain("x", DRAWS),
    ),
    "a table of both families": ruleset(
        nat("ip daddr . meta l4proto . th dport vmap { 10.96.0.1 . tcp . 80 : goto x }"),
        chain("x", DRAWS),
        table="inet others",
    ),
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_maps_and_rules_are_followed_from_the_hooks(text: str) -> None:
    (service,) = view(text).services
    (frontend,) = service.frontends
    assert (str(frontend), service.protocol) == ("10.96.0.1:80", "tcp")
    assert said(from_pod(service)) == EVEN
    assert service.state(frontend) is FrontendState.ENDPOINTS


def test_what_no_hook_leads_to_is_no_service() -> None:
    lookup = "ip daddr . meta l4proto . th dport vmap { 10.96.0.1 . tcp . 80 : goto x }"
    found = view(ruleset(chain("services", lookup), chain("x", DRAWS)))
    assert found.services == ()


def test_an_endpoint_that_is_listed_twice_gets_both_shares() -> None:
    three = f"{HALF}, 2 : 10.0.0.1 . 80"
    rule = f"meta l4proto tcp dnat ip to numgen random mod 3 map {{ {three} }}"
    lookup = "ip daddr . meta l4proto . th dport vmap @services"
    held = (
        "map services {\n\t\ttype ipv4_addr . inet_proto . inet_service : verdict\n"
        "\t\telements = { 10.96.0.1 . tcp . 80 : goto x }\n\t}"
    )
    (service,) = view(ruleset(held, nat(lookup), chain("x", rule))).services
    shares = {str(s.endpoint): s.share.lower.as_fraction() for s in from_pod(service).shares}
    assert round(float(shares["10.0.0.1:80"]), 6) == round(2 / 3, 6)
    assert sum(shares.values()) == 1


def test_a_draw_that_may_find_nothing_leaves_the_rest_unsent() -> None:
    rule = "meta l4proto tcp dnat ip to numgen random mod 4 map { 0 : 10.0.0.1 . 80 }"
    text = ruleset(nat("ip daddr 10.96.0.1 tcp dport 80 goto x"), chain("x", rule))
    (service,) = view(text).services
    assert said(from_pod(service)) == [("10.0.0.1:80", 0.25, 0.25)]
    assert from_pod(service).is_exact


def test_a_chain_that_is_missing_or_empty_gives_no_numbers() -> None:
    to_x = nat("ip daddr 10.96.0.1 tcp dport 80 goto x")
    missing = view(ruleset(to_x))
    (service,) = missing.services
    assert not from_pod(service).is_exact
    codes = [each.code for each in missing.diagnostics]
    assert codes == ["missing-chain", "assumed"]  # that nobody on the node has a ClusterIP
    empty = view(ruleset(to_x, chain("x")))
    (service,) = empty.services
    assert service.state(service.frontends[0]) is FrontendState.UNKNOWN
    assert [each.code for each in empty.diagnostics] == ["empty-chain", "assumed"]


def test_refusals_are_what_the_filter_hooks_do_for_certain() -> None:
    refuses = base(
        "filter-forward",
        "filter hook forward priority filter",
        "ip daddr . meta l4proto . th dport vmap { "
        '10.96.0.2 . tcp . 80 comment "ns/b:http" : goto refuse, '
        '10.96.0.3 . udp . 53 comment "ns/c" : drop, '
        '10.96.0.4 . tcp . 80 comment "ns/d" : goto perhaps }',
    )
    text = ruleset(
        refuses, chain("refuse", "reject"), chain("perhaps", "ip saddr 192.0.2.0/24 drop")
    )
    found = {s.name.text: s for s in view(text).services}
    assert {name: how for name, s in found.items() for _, how in s.refusals} == {
        "ns/b:http": "reject",
        "ns/c": "drop",
    }
    assert found["ns/c"].protocol == "udp"


def test_node_ports_are_where_a_named_set_or_the_node_says() -> None:
    held = "set nodeport-ips {\n\t\ttype ipv4_addr\n\t\telements = { 192.168.0.10 }\n\t}"
    for asked in ("ip daddr @nodeport-ips", "fib daddr type local"):
        text = ruleset(
            held,
            nat(
                f"{asked} meta l4proto . th dport vmap "
                "{ tcp . 30080 : goto external-A-ns/a/tcp/ }"
            ),
            chain("external-A-ns/a/tcp/", DRAWS),
        )
        (service,) = view(text).services
        (frontend,) = service.frontends
        assert (frontend.kind, str(frontend)) == (FrontendKind.NODE_PORT, "*:30080")
        assert service.name.text == "ns/a"
        assert said(from_pod(service)) == EVEN


# --- beside other rules --------------------------------------------------------


def test_of_two_rulesets_nobody_tells_whose_nat_is_first() -> None:
    (service,) = view(PLAIN, parse(ELSEWHERE, "legacy")).services
    assert sorted(said(from_pod(service))) == [
        ("10.0.0.1:80", 0.0, 0.5),
        ("10.0.0.2:80", 0.0, 0.5),
        ("10.9.9.9:80", 0.0, 1.0),
    ]


def test_rules_of_another_priority_are_met_in_its_order() -> None:
    drops = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -d 10.96.0.1/32 -j DROP\nCOMMIT\n"
    (service,) = view(PLAIN, parse(drops, "legacy")).services
    assert said(from_pod(service)) == []
    assert from_pod(service).is_exact
    unseen = drops.replace("DROP", "NOTRACK")
    (service,) = view(PLAIN, parse(unseen, "legacy")).services
    assert said(from_pod(service)) == []


def test_the_other_familys_rules_change_nothing() -> None:
    text = "# Generated by ip6tables-save v1.8.9\n" + ELSEWHERE.replace(
        "10.96.0.1/32", "fd00::1/128"
    )
    other = parse(text.replace("10.9.9.9:80", "[fd00::9]:80"), "legacy")
    assert other.family == "ip6"
    (service,) = view(PLAIN, other).services
    assert said(from_pod(service)) == EVEN


def test_a_second_table_of_nft_translates_first_where_it_was_registered_later() -> None:
    later = (
        "table ip later {\n\tchain c {\n\t\ttype nat hook prerouting priority dstnat; "
        "policy accept;\n\t\tip daddr 10.96.0.1 dnat to 10.9.9.9\n\t}\n}\n"
    )
    services = view(PLAIN + later).services
    assert {said(from_pod(s))[0] for s in services} == {("10.9.9.9:80", 1.0, 1.0)}
    sooner = view(later + PLAIN).services
    assert said(from_pod(sooner[0])) == EVEN


def test_a_listing_without_elements_is_not_taken_for_an_empty_cluster() -> None:
    path = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
    terse = re.sub(r"\n\t\telements = \{[^}]*\}", "", path.read_text())
    assert "no map has an element that leads to them" in view(terse).unseen
    # The rules of a cluster without Services, of which nothing is left to tell.
    none = re.sub(r"\tchain [^\n]*/[^\n]*\{\n(?:.*\n)*?\t\}\n", "", terse)
    assert (view(none).services, view(none).unseen) == ((), "")
