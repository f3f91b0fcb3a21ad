"""iptables mode and nftables mode, of the same objects: what differs is intended, and told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.kubeproxy.diff.beside import NonServiceFlows, Topic
from analyzer.kubeproxy.diff.difference import Conclusion, Difference
from analyzer.kubeproxy.view import Source
from tests.support.captures import Capture, captures_in
from tests.support.comparing import compared, in_any_order, mirrored, side_of_capture

NODE_PORTS = {Topic.NODE_PORT_LOOPBACK, Topic.NODE_PORT_ADDRESS}
#: Of 1.30; later versions know the network of ClusterIPs, and which endpoints are theirs.
FIRST = {Topic.CLUSTER_IP_PORT, Topic.CLUSTER_IP_PING}
LATER = FIRST | {Topic.UNALLOCATED, Topic.HAIRPIN_ELSEWHERE}
INTENDED = {
    ("1.30.3", "features"): FIRST | NODE_PORTS | {Topic.REFUSED_FROM_NODE},
    ("1.36.2", "features"): LATER
    | NODE_PORTS
    | {Topic.REFUSED_FROM_NODE, Topic.HAIRPIN_THROUGH_NODE},
    ("1.36.2", "dual-stack"): LATER | NODE_PORTS | {Topic.HAIRPIN_THROUGH_NODE},
    ("1.30.3", "dual-stack"): FIRST | NODE_PORTS,
}


def nftables_captures(root: Path, version: str, case: str) -> list[Capture]:
    return [
        Capture(dump)
        for dump in sorted(root.glob(f"{version}-nftables/{case}/nft-list-ruleset.txt*"))
    ]


def pairs(root: Path, version: str, case: str) -> Iterator[tuple[Capture, Capture, int]]:
    """Give the dumps of iptables mode with those of nftables mode, and the IP version."""
    (nftables,) = nftables_captures(root, version, case)
    dumps = captures_in(root, case)
    same = [each for each in dumps if str(each).startswith(f"{version}-iptables-legacy")]
    # Of 1.30 not all was captured in iptables mode; 1.36 has the same objects.
    for each in same or [d for d in dumps if str(d).startswith("1.36.2-iptables-legacy")]:
        of_six = each.dump.name.startswith("ip6")
        if not of_six or case == "dual-stack":
            yield each, nftables, 6 if of_six else 4


def topics(found: Difference) -> dict[Topic, NonServiceFlows]:
    return {each.topic: each for each in found.beside}


CASES = ("big-svc", "dual-stack", "features", "scale-100", "seed-dns", "two-node")
EVERY = [
    *[("1.30.3", case) for case in CASES],
    *[("1.36.2", case) for case in (*CASES, "seed-dns@worker1", "two-node@worker1")],
]


@pytest.mark.parametrize(("version", "case"), EVERY)
def test_nothing_differs_that_is_not_intended(captures: Path, version: str, case: str) -> None:
    checked = 0
    for iptables, nftables, number in pairs(captures, version, case):
        found = compared(
            side_of_capture(iptables, number), side_of_capture(nftables, number), number
        )
        assert (found.changes, found.verdict) == ((), Conclusion.INTENDED)
        assert all(each.is_intended and each.is_certain for each in found.beside)
        usual = LATER if version == "1.36.2" else FIRST
        wanted = INTENDED.get((version, case), usual)
        # kube-proxy has no NodePorts at ::1 in either mode.
        wanted = wanted - {Topic.NODE_PORT_LOOPBACK} if number == 6 else wanted
        assert set(topics(found)) == wanted
        checked += found.both
    assert checked


def test_each_intended_difference_is_told_with_its_rules(captures: Path) -> None:
    ((iptables, nftables, _),) = pairs(captures, "1.36.2", "features")
    told = topics(compared(side_of_capture(iptables), side_of_capture(nftables)))
    said = {
        topic: ([kind for kind, _ in each.a], [kind for kind, _ in each.b])
        for topic, each in told.items()
    }
    assert said == {
        Topic.CLUSTER_IP_PORT: (["no-service"], ["reject"]),
        Topic.CLUSTER_IP_PING: (["no-service"], ["reject"]),
        Topic.UNALLOCATED: (["no-service"], ["drop"]),
        Topic.NODE_PORT_LOOPBACK: (["endpoint"], ["no-service"]),
        Topic.NODE_PORT_ADDRESS: (["endpoint"], ["no-service"]),
        Topic.REFUSED_FROM_NODE: (["no-service"], ["reject"]),
        Topic.HAIRPIN_ELSEWHERE: (["masqueraded"], ["not-masqueraded"]),
        Topic.HAIRPIN_THROUGH_NODE: (["masqueraded"], ["not-masqueraded"]),
    }
    last = {topic: each.rules_b[-1].raw for topic, each in told.items() if each.rules_b}
    assert last[Topic.CLUSTER_IP_PORT].startswith("ip daddr @cluster-ips reject")
    assert last[Topic.UNALLOCATED].startswith("ip daddr 10.96.0.0/12 drop")
    assert told[Topic.NODE_PORT_LOOPBACK].sources == (Source.NODE,)
    everybody = (Source.POD, Source.NODE, Source.EXTERNAL)
    assert told[Topic.CLUSTER_IP_PORT].sources == everybody
    # Two Services have external addresses and no endpoints; so have none of the others.
    assert [str(each) for each in told[Topic.REFUSED_FROM_NODE].places] == [
        "198.51.100.3:80",
        "203.0.113.3:80",
    ]


def test_back_from_nftables_mode_it_is_the_same_the_other_way_round(captures: Path) -> None:
    ((iptables, nftables, _),) = pairs(captures, "1.36.2", "features")
    a, b = side_of_capture(iptables), side_of_capture(nftables)
    assert in_any_order(compared(b, a)) == in_any_order(mirrored(compared(a, b)))


def test_two_versions_of_nftables_mode_differ_by_what_the_later_one_knows(captures: Path) -> None:
    a, b = (
        side_of_capture(nftables_captures(captures, version, "features")[0])
        for version in ("1.30.3", "1.36.2")
    )
    found = compared(a, b)
    assert set(topics(found)) == {
        Topic.UNALLOCATED,
        Topic.HAIRPIN_ELSEWHERE,
        Topic.HAIRPIN_THROUGH_NODE,
    }
    assert all(each.is_intended for each in found.beside)
    assert {each.name.text for each in found.changes} == {
        "feat/prefer-close",
        "feat/prefer-same-node",
    }


def test_an_endpoint_of_this_node_must_not_be_forgotten(captures: Path) -> None:
    """That it gets its own flows back unchanged is intended elsewhere only."""
    ((iptables, nftables, _),) = pairs(captures, "1.36.2", "two-node")
    text = nftables.text
    forgetful = text.replace(
        "ip saddr . ip daddr . meta l4proto . th dport @hairpin",
        "ip saddr . ip daddr . meta l4proto . th dport != @hairpin",
    )
    assert forgetful != text
    found = compared(side_of_capture(iptables), side_of_capture(nftables, text=forgetful))
    assert found.verdict is Conclusion.DIFFERENT
    here = {"10.244.0.3:53", "10.244.0.3:9153", "10.244.0.7:8080"}
    told = {
        str(mask.endpoint)
        for change in found.changes
        for route in change.routes
        if {way.source for way in route.ways} == {Source.HAIRPIN}
        for mask in route.change.masquerade
    }
    assert here <= told


def test_where_endpoints_are_must_be_known_for_that(captures: Path) -> None:
    ((iptables, nftables, _),) = pairs(captures, "1.36.2", "two-node")
    found = compared(side_of_capture(iptables, bare=True), side_of_capture(nftables, bare=True))
    told = topics(found)[Topic.HAIRPIN_ELSEWHERE]
    assert (told.is_certain, told.is_intended, found.verdict) == (False, False, Conclusion.UNKNOWN)


def test_a_json_listing_is_the_same_as_the_text(captures: Path) -> None:
    (text,) = nftables_captures(captures, "1.36.2", "features")
    (listing,) = text.dump.parent.glob("nft-list-ruleset.json.gz")
    found = compared(side_of_capture(text), side_of_capture(Capture(listing)))
    assert (found.changes, found.beside, found.verdict) == ((), (), Conclusion.SAME)


def test_a_master_that_is_down_changes_nothing(captures: Path) -> None:
    folder = captures / "1.36.2-nftables" / "master-down"
    before, after = (
        side_of_capture(Capture(folder / name))
        for name in ("nft-list-ruleset.txt", "nft-list-ruleset-after-master-down.txt")
    )
    assert compared(before, after).verdict is Conclusion.SAME
