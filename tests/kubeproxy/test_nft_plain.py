"""What is read off plain rows of nft is what walks of every flow find."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.plain_shares import PlainRoutes
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.nft import NftRuleset
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
BEFORE = ["accept", "meta mark set meta mark | 0x10", "ct mark set 0x10", "meta mark set 0x4000"]
BEHIND = ["accept", "masquerade", "snat to 192.0.2.1", "meta mark set 0x0", "meta mark set 0x4000"]


def rules(actions: list[str]) -> st.SearchStrategy[list[str]]:
    words = st.tuples(*map(st.sampled_from, (*ASKED, actions)))
    return st.lists(st.builds("".join, words), max_size=2)


def others(early: list[str], late: list[str]) -> str:
    heads = {
        "pre": "type filter hook prerouting priority -150",
        "out": "type filter hook output priority -150",
        "post": "type nat hook postrouting priority 90",
    }
    held = {"pre": early, "out": early, "post": late}
    chains = [
        f"chain {name} {{\n{head}; policy accept;\n" + "\n".join(held[name]) + "\n}\n"
        for name, head in heads.items()
    ]
    return f"table ip x {{\n{''.join(chains)}}}\n"


@pytest.mark.deep
@examples(3, 1_000)
@given(rules(BEFORE), rules(BEHIND))
@example(["tcp dport 80 ct mark set 0x10"], ["ct mark & 0x10 == 0x10 snat to 192.0.2.1"])
@example([], ["ip saddr 10.9.9.9 meta mark & 0x4000 == 0x4000 accept"])
def test_plain_rows_say_what_walks_find_beside_rules_of_others(
    early: list[str], late: list[str]
) -> None:
    check(TWO_NODES, others(early, late))
