"""What is read off plain rows of nft is what walks of every flow find."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.plain_shares import PlainRoutes
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.nft import NftRuleset
from analyzer.parsers.formats import read_ruleset
from tests.support.captures import Capture

LARGE = ("scale-1000", "scale-10000", "big-svc")


def view(path: Path, *, plainly: bool, objects: bool) -> View:
    ruleset = read_ruleset(path.read_bytes(), path.name)
    assert isinstance(ruleset, NftRuleset)
    capture = Capture(path)
    cluster = capture.cluster if objects else Cluster()
    own = cluster.nodes[capture.node].addresses if objects else ()
    node = capture.node if objects else None
    return NftRecogniser(ruleset, cluster, node=node, node_addresses=own, plainly=plainly).view()


def check(path: Path) -> int:
    plain = 0
    for objects in (False, True):
        quick, slow = (view(path, plainly=p, objects=objects) for p in (True, False))
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
