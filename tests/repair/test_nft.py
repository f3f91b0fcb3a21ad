"""Repairs of nftables mode: the analyzer asked again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers import nft_text
from analyzer.repair.nft import has_repair, repaired_tables, with_table
from analyzer.repair.witness import RepairedOutcome
from tests.support.captures import FIXTURES, ROOT
from tests.support.clusters import clusters
from tests.support.effort import examples
from tests.support.parsed_objects import parse_objects
from tests.support.repairs import held

FOLDERS = [
    path.parent
    for root in (FIXTURES, ROOT / "fixtures" / "nft")
    for path in sorted(root.glob("*-nftables/*/nft-list-ruleset.txt"))
    if (path.parent / "objects.json").exists()
]


def view_of(ruleset: NftRuleset, cluster: Cluster, node: str) -> View:
    addresses = cluster.nodes[node].addresses
    return NftRecogniser(ruleset, cluster, node=node, node_addresses=addresses).view()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda each: "/".join(each.parts[-2:]))
def test_a_node_that_is_dead_gets_no_flows_any_more(folder: Path) -> None:
    cluster = parse_objects([("objects", (folder / "objects.json").read_bytes())])
    node = json.loads((folder / "run.json").read_text())["node"]
    ruleset = nft_text.parse((folder / "nft-list-ruleset.txt").read_text(), "ruleset")
    before = view_of(ruleset, cluster, node)
    fates: Counter[RepairedOutcome] = Counter()
    for victim in cluster.node_names:
        dead = [e for e in before.endpoints if cluster.placement(e.address).node == victim]
        tables, patches = repaired_tables(ruleset, dead)
        assert not any(each.problems for each in patches)
        then = with_table(ruleset, tables)
        fates += held(before, view_of(then, cluster, node), dead)
    assert fates[RepairedOutcome.COVERED]


@pytest.mark.deep
@pytest.mark.parametrize("layout", [RulesLayout.V1_30, RulesLayout.V1_36])
@examples(quick=10, soak=300)
@given(data=st.data())
def test_random_clusters_lose_nothing_more_to_random_dead(
    layout: RulesLayout, data: st.DataObject
) -> None:
    made = data.draw(clusters(layout))
    objects = json.dumps({"kind": "List", "items": made.items}).encode()
    cluster = parse_objects([("objects", objects)])
    ruleset = nft_text.parse(made.nft, "ruleset")
    before = view_of(ruleset, cluster, made.node)
    dead = [each for each in sorted(before.endpoints, key=str) if data.draw(st.booleans())]
    tables, patches = repaired_tables(ruleset, dead)
    assert not any(each.problems for each in patches)
    then = with_table(ruleset, tables)
    held(before, view_of(then, cluster, made.node), dead)
    assert has_repair(then) is any(each.apply for each in patches)
    # What is printed is what was asked about: nft would make the same table of it.
    for table, text in zip(tables, [each.apply for each in patches if each.apply], strict=True):
        assert text.count("add rule ") == table.rules
        assert {line.split()[4] for line in text.splitlines() if line.startswith("add chain")} == {
            *table.chains
        }
