from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from analyzer.kubeproxy.routes.service_tree import service_tree
from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import Packet
from analyzer.model.probability import Dyadic
from analyzer.model.value import replace
from analyzer.parsers import iptables_save, nft_text
from analyzer.semantics.fate import Fate, fate_of
from analyzer.semantics.tree import Chance, Either, Leaf, Tree, Unresolved, every_leaf
from tests.support.dumps import dump, two_endpoints

NODE, ONE, TWO = map(ip_address, ("172.16.0.1", "10.0.0.1", "10.0.0.2"))
TO_SERVICE: Final = Packet(
    protocol="tcp",
    source=ip_address("203.0.113.7"),
    destination=ip_address("10.96.0.1"),
    destination_port=80,
    in_interface="eth0",
)
#: Everything passes, and some of it is marked and masqueraded.
BEHIND: Final = """*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -p tcp -j ACCEPT
COMMIT
"""


def tree(text: str, packet: Packet = TO_SERVICE) -> Tree:
    return service_tree([iptables_save.parse(text, "dump")], "ip", packet, (NODE,))


def ends(found: Tree) -> list[tuple[Fate, str]]:
    """Each end, and the last rule on the way to it since the fork above."""
    return [(fate_of(leaf), leaf.rules[-1].raw) for leaf in every_leaf(found)]


def test_an_endpoint_that_all_ways_reach_stands_at_its_dnat() -> None:
    found = tree(dump(*two_endpoints()) + BEHIND)
    assert isinstance(found, Chance)
    assert [weight for weight, _ in found.branches] == [Dyadic.of(1, 1)] * 2
    (first, last_rule), (second, _) = ends(found)
    assert (first, second) == (Fate("endpoint", ONE, 80), Fate("endpoint", TWO, 80))
    assert last_rule == "-A KUBE-SEP-1 -p tcp -m tcp -j DNAT --to-destination 10.0.0.1:80"


def test_where_the_flow_is_refused_behind_its_dnat_it_is_told_to_the_end() -> None:
    refused = BEHIND.replace("-A FORWARD", "-A FORWARD -d 10.0.0.1/32 -j DROP\n-A FORWARD", 1)
    found = tree(dump(*two_endpoints()) + refused)
    (first, last_rule), (second, _) = ends(found)
    assert (first, second) == (Fate("drop"), Fate("endpoint", TWO, 80))
    assert last_rule == "-A FORWARD -d 10.0.0.1/32 -j DROP"


def test_where_it_may_be_refused_both_ways_are_told() -> None:
    unread = BEHIND.replace("-A FORWARD", "-A FORWARD -m nonesuch -j DROP\n-A FORWARD", 1)
    found = tree(dump(*two_endpoints()) + unread)
    assert isinstance(found, Chance)
    for _, branch in found.branches:
        assert isinstance(branch, Either)
        assert {type(leaf.outcome) for leaf in every_leaf(branch)} > {Drop}


def test_a_flow_that_no_dnat_took_is_told_to_the_end() -> None:
    elsewhere = replace(TO_SERVICE, destination=ip_address("10.96.0.9"))
    found = tree(dump(*two_endpoints(), masquerades=False) + BEHIND, elsewhere)
    assert isinstance(found, Leaf)
    assert fate_of(found) == Fate("no-service", ip_address("10.96.0.9"), 80)
    assert found.rules[-1].raw == "-A FORWARD -p tcp -j ACCEPT"


def test_a_flow_to_nobodys_own_address_is_not_followed() -> None:
    found = tree(dump(*two_endpoints()), replace(TO_SERVICE, destination=ip_address("224.0.0.1")))
    assert isinstance(found, Leaf)
    assert isinstance(found.outcome, Unresolved)


def test_an_endpoint_of_nftables_mode_stands_at_its_dnat_too() -> None:
    ruleset = nft_text.parse(
        "table ip kube-proxy {\n"
        "\tchain services {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n"
        "\t\tip daddr 10.96.0.1 meta l4proto tcp dnat to 10.0.0.1:80\n\t}\n"
        "\tchain behind {\n\t\ttype filter hook forward priority filter; policy accept;\n"
        "\t\tcounter accept\n\t}\n}\n",
        "dump",
    )
    ((fate, last_rule),) = ends(service_tree([ruleset], "ip", TO_SERVICE, (NODE,)))
    assert fate == Fate("endpoint", ONE, 80)
    assert last_rule.endswith("dnat to 10.0.0.1:80")


def test_one_rule_that_draws_among_endpoints_has_one_branch_for_each() -> None:
    ruleset = nft_text.parse(
        "table ip kube-proxy {\n"
        "\tchain services {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n"
        "\t\tmeta l4proto tcp dnat to numgen random mod 2 map "
        "{ 0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 80 }\n\t}\n}\n",
        "dump",
    )
    found = service_tree([ruleset], "ip", TO_SERVICE, (NODE,))
    assert {fate_of(leaf) for leaf in every_leaf(found)} == {
        Fate("endpoint", ONE, 80),
        Fate("endpoint", TWO, 80),
    }


def test_a_fork_above_the_dnat_stays_though_both_ways_reach_one_endpoint() -> None:
    found = tree(dump(*two_endpoints("10.0.0.1:80", "10.0.0.1:80")))
    assert isinstance(found, Chance)
    assert len(found.branches) == 2
