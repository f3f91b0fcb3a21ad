"""The kernel's account of one flow, held against the ways that were predicted."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.model.packet import Packet
from analyzer.parsers.iptables_save import parse
from analyzer.semantics.tree import BySource, Chance, Either, Leaf, Tree
from netns_lab.listening import Matched
from netns_lab.traced import first_difference
from tests.support.captures import ROOT
from tests.support.effort import PROFILE
from tests.support.lab.running import NFT_CASES, Case, case, lab_run

DUMP = parse((ROOT / "examples/dump.txt").read_text(), "dump")
#: A capture of each way to load rules: all in the deep check.
BACKENDS = [
    next(each for each in NFT_CASES if "nftables" in str(each.directory)),
    case("1.36.2-iptables-nft/seed-dns"),
    case("1.36.2-iptables-legacy/seed-dns@worker1"),
]


def tree() -> Tree:
    packet = Packet(
        protocol="tcp",
        source=ip_address("10.244.1.254"),
        source_port=1024,
        destination=ip_address("10.96.18.52"),
        destination_port=80,
        in_interface="vethclient",
    )
    return trace([DUMP], Question(packet=packet), "ip").tree


TREE = tree()
EVERY = [rule for t in DUMP.tables.values() for c in t.chains.values() for rule in c.rules]


def ways(node: Tree) -> Iterator[list[Any]]:
    match node:
        case Leaf():
            yield [*node.rules]
        case Chance() | Either() | BySource():
            for each in node.branches:
                for rest in ways(each[1] if isinstance(each, tuple) else each):
                    yield [*node.rules, *rest]


WAYS = list(ways(TREE))


def matched(rule: Any, *, decides: bool = False) -> Matched:
    return str(rule.location), rule, decides


@settings(max_examples=20)
@given(st.sampled_from(WAYS), st.data())
def test_a_way_with_rules_between_that_decide_nothing_is_one_of_the_trees(
    way: list[Any], data: Any
) -> None:
    between = st.lists(st.sampled_from([r for r in EVERY if r not in way]), max_size=2)
    told: list[Matched] = []
    for rule in way:
        told += [matched(each) for each in data.draw(between)]
        told.append(matched(rule))
    assert first_difference(TREE, told, "dump") is None


@settings(max_examples=20)
@given(st.sampled_from([way for way in WAYS if way]), st.data())
def test_a_rule_that_is_missing_or_decides_besides_is_named(way: list[Any], data: Any) -> None:
    told = [matched(rule) for rule in way]
    at = data.draw(st.integers(0, len(told) - 1))
    other = next(rule for rule in EVERY if not any(rule in each for each in WAYS))
    if data.draw(st.booleans()):
        told.insert(at, matched(other, decides=True))
        says = f"rule {at + 1}: the kernel matched {other.location}; expected "
    else:
        del told[at]
        # Without it, it may be another of the tree's ways.
        if [rule for _, rule, _ in told] in WAYS:
            return
        says = "the kernel matched "
    found = first_difference(TREE, told, "dump")
    assert found is not None
    assert says in found


def test_there_is_more_than_one_way() -> None:
    ends = {str(way[-1].location) for way in WAYS}
    assert len(WAYS) > 1
    assert ends


@pytest.mark.lab
@pytest.mark.parametrize("given", BACKENDS if PROFILE != "quick" else BACKENDS[:1], ids=str)
def test_the_kernel_goes_the_ways_that_trace_tells(given: Case) -> None:
    asked = ["--trace", "--from", "pod,node,external,pod-elsewhere,hairpin", "--flows", "100"]
    status, found, errors = lab_run(*given.given, *asked)
    assert (status, found["agrees"]) == (0, True), (errors, found["traces"])
    of_others = [each for each in found["measurements"] if each["source"] != "hairpin"]
    hairpins = {
        (m["service"], m["frontend"]) for m in found["measurements"] if m["source"] == "hairpin"
    }
    assert len(found["traces"]) == len(of_others) + len(hairpins)
    for each in found["traces"]:
        assert each["differs"] is None
        assert len(each["matched"]) > 3


@pytest.mark.lab
@pytest.mark.skipif(PROFILE == "quick", reason="the ways of IPv6 are CI's")
def test_the_kernel_tells_of_ip6tables_too(captures: Path) -> None:
    folder = captures / "1.36.2-iptables-legacy/dual-stack"
    given = [str(folder / "ip6tables-legacy-save.txt"), "--objects", str(folder / "objects.json")]
    status, found, errors = lab_run(*given, "--node", "node-a1", "--trace", "--flows", "100")
    assert (status, found["agrees"]) == (0, True), (errors, found["traces"])
    assert len(found["traces"]) > 10
    assert all(len(each["matched"]) > 1 for each in found["traces"])
