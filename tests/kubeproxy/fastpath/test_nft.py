"""What is read off plain rows of nft is what walks of every flow find."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.rows.plain_shares import PlainRoutes
from analyzer.kubeproxy.view import Source, View
from analyzer.model.cluster import Cluster
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers.formats import read_ruleset
from tests.support.captures import FIXTURES, Capture
from tests.support.effort import examples

TWO_NODES = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
LARGE = ("scale-1000", "scale-10000", "big-svc")


def view(path: Path, *, plainly: bool, objects: bool, others: str = "") -> View:
    data = path.read_bytes()
    ruleset = read_ruleset(data + others.encode() if others else data, path.name)
    assert isinstance(ruleset, NftRuleset)
    capture = Capture(path)
    cluster = capture.cluster if objects else Cluster()
    own = cluster.nodes[capture.node].addresses if objects else ()
    node = capture.node if objects else None
    return NftRecogniser(ruleset, cluster, node=node, node_addresses=own, plainly=plainly).view()


def check(path: Path, others: str = "") -> int:
    plain = 0
    for objects in (False, True):
        quick, slow = (view(path, plainly=p, objects=objects, others=others) for p in (True, False))
        assert len(quick.services) == len(slow.services)
        for mine, theirs in zip(quick.services, slow.services, strict=True):
            plain += isinstance(mine.routes, PlainRoutes)
            assert mine == theirs, (path, mine.name)
            for route, other in zip(mine.routes, theirs.routes, strict=True):
                assert route == other
                assert tuple(route.shares) == tuple(other.shares)
                lost = tuple(share.lost for share in other.shares)
                assert tuple(route.losses()) == (lost if any(lost) else ())
                assert [*map(list, route.columns())] == [*map(list, other.columns())]
        assert quick == slow
    return plain


def test_plain_rows_say_what_walks_find(captures: Path) -> None:
    plain = 0
    for path in sorted(captures.glob("*-nftables/*/nft-list-ruleset*")):
        if path.parent.name not in LARGE:
            plain += check(path)
    assert plain > 500


@pytest.mark.parametrize("version", ["1.30.3", "1.36.2"])
def test_most_services_of_a_large_cluster_are_plain(captures: Path, version: str) -> None:
    path = captures / f"{version}-nftables" / "scale-1000" / "nft-list-ruleset.json.gz"
    for objects in (False, True):
        services = view(path, plainly=True, objects=objects).services
        assert sum(isinstance(service.routes, PlainRoutes) for service in services) >= 1000


#: What rules of others may ask of a flow and do with it, before the endpoints and behind them.
ASKED = (
    ["", "ip saddr 10.9.9.9 ", "ip saddr 10.9.9.0/24 ", "ip saddr != 10.9.0.0/16 "],
    ["", "ip daddr 10.244.0.0/24 ", "ip daddr 10.244.1.9 ", "ip daddr != 10.96.18.52 "],
    ["", "tcp dport 8080 ", "meta l4proto udp ", "tcp dport 80 "],
    ["", "meta mark & 0x4000 == 0x4000 ", "ct mark & 0x10 == 0x10 ", "meta mark & 0x10 == 0x0 "],
)
#: Sets and a map of sources with destinations: of what comes back to its endpoint, and of others.
PAIRS = """\
\tset own {
\t\ttype ipv4_addr . ipv4_addr
\t\telements = { 10.244.1.9 . 10.244.1.9,
\t\t\t     10.244.0.7 . 10.244.0.7 }
\t}

\tset any {
\t\ttype ipv4_addr . ipv4_addr . inet_service
\t\telements = { 10.244.1.9 . 10.244.1.9 . 8080,
\t\t\t     10.244.1.4 . 10.244.0.7 . 8080 }
\t}

\tmap end {
\t\ttype ipv4_addr . ipv4_addr : verdict
\t\telements = { 10.244.1.9 . 10.244.1.9 : drop }
\t}

"""
FORWARDED = (
    ["", "ip saddr . ip daddr @own ", "ip saddr . ip daddr != @own ", "ip daddr . ip saddr @own "],
    ["", "ip saddr . ip daddr . th dport @any ", "ip daddr 10.244.0.7 ", "tcp dport 8080 "],
    ["", "ip saddr 10.244.1.0/24 ", "meta mark & 0x4000 == 0x4000 "],
    ["accept", "drop", "reject", "ip saddr . ip daddr vmap @end", "meta mark set 0x4000"],
)
BEFORE = ["accept", "meta mark set meta mark | 0x10", "ct mark set 0x10", "meta mark set 0x4000"]
BEHIND = ["accept", "masquerade", "snat to 192.0.2.1", "meta mark set 0x0", "meta mark set 0x4000"]


def rules(actions: list[str]) -> st.SearchStrategy[list[str]]:
    words = st.tuples(*map(st.sampled_from, (*ASKED, actions)))
    return st.lists(st.builds("".join, words), max_size=2)


def others(early: list[str], late: list[str], forwarded: Sequence[str] = ()) -> str:
    heads = {
        "pre": "type filter hook prerouting priority -150",
        "out": "type filter hook output priority -150",
        "post": "type nat hook postrouting priority 90",
        "fwd": "type filter hook forward priority 0",
    }
    held = {"pre": early, "out": early, "post": late, "fwd": forwarded}
    # As nft lists them: rows of a text that it did not list are not read as plain ones.
    chains = [
        f"\tchain {name} {{\n\t\t{head}; policy accept;\n"
        + "".join(f"\t\t{rule.strip()}\n" for rule in held[name])
        + "\t}\n"
        for name, head in heads.items()
    ]
    joined = "\n".join(chains)
    return f"table ip x {{\n{PAIRS}{joined}}}\n"


def test_beside_rules_of_others_rows_are_plain() -> None:
    assert check(TWO_NODES, others([], []))
    assert check(TWO_NODES, others(["meta mark set 0x4000"], [], ["tcp dport 8080 drop"]))


@pytest.mark.deep
@examples(3, 300)
@given(rules(BEFORE), rules(BEHIND))
@example(["tcp dport 80 ct mark set 0x10"], ["ct mark & 0x10 == 0x10 snat to 192.0.2.1"])
@example([], ["ip saddr 10.9.9.9 meta mark & 0x4000 == 0x4000 accept"])
def test_plain_rows_say_what_walks_find_beside_rules_of_others(
    early: list[str], late: list[str]
) -> None:
    check(TWO_NODES, others(early, late))


@examples(4, 300)
@given(st.lists(st.builds("".join, st.tuples(*map(st.sampled_from, FORWARDED))), max_size=3))
@example(["ip saddr . ip daddr vmap @end"])
@example(
    [
        "ip saddr . ip daddr . th dport @any meta mark & 0x4000 == 0x4000 drop",
        "ip saddr . ip daddr != @own ip saddr 10.244.1.0/24 drop",
    ]
)
def test_plain_rows_say_what_walks_find_of_flows_that_come_back(forwarded: list[str]) -> None:
    check(TWO_NODES, others([], [], forwarded))


@pytest.mark.parametrize("plainly", [True, False])
@pytest.mark.parametrize("rule", ["ip saddr . ip daddr @own drop", "ip saddr . ip daddr vmap @end"])
def test_an_endpoint_whose_own_flows_are_dropped_is_a_source_of_its_own(
    rule: str, plainly: bool
) -> None:
    found = view(TWO_NODES, plainly=plainly, objects=True, others=others([], [], [rule]))
    app = next(each for each in found.services if each.name.text == "default/app")
    route = next(
        each
        for each in app.routes
        if each.source is Source.POD and str(each.network) == "10.244.1.9/32"
    )
    lost = {str(share.endpoint): share.lost for share in route.shares}
    assert lost["10.244.1.9:8080"]
    assert not lost["10.244.0.7:8080"]
