"""Repairs on the kernel: applied, measured, synced over and taken back."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from analyzer.kubeproxy.generate import (
    FLAGS,
    RulesLayout,
    mixed,
    node_name,
    proxy_config,
    render_nft,
    render_rules,
    service_ports,
)
from tests.support.effort import PROFILE
from tests.support.lab.running import CASES, NFT_CASES, Case, case, in_lab, judged_again, kubeodds
from tests.support.noise import KNOWN, dump

pytestmark = pytest.mark.lab

SOURCES = "pod,pod-elsewhere,node,external,hairpin"
#: The versions and backends of all captures in the deep check.
EVERY = (*CASES, *NFT_CASES) if PROFILE == "soak" else (case("1.20.2-iptables-nft/two-node"),)
FLOWS = "10000" if PROFILE == "soak" else "300"


def proved(*words: str) -> dict[str, Any]:
    """Return the document of a run that agrees, also when it is judged again."""
    done = kubeodds("lab", "repair", *words, "-o", "json")
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0, [
        *(each for each in found["checks"] if not each["holds"]),
        *(route for route in found["routes"] if not route["after"]["agrees"]),
    ]
    with tempfile.TemporaryDirectory() as folder:
        assert judged_again(found, Path(folder)) == (0, found)
    return found


@pytest.mark.deep
def test_of_ten_thousand_flows_none_is_lost_any_more() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    found = proved(*given.given, "--dead-node", given.victim, "--service", "app,kube-dns:dns")
    assert len(found["routes"]) == 2
    for route in found["routes"]:
        assert route["before"]["flows"] == route["after"]["flows"] == 10_000
        assert route["before"]["on_dead"] > 4_000
        assert route["after"]["on_dead"] == route["synced"]["on_dead"] == 0
        assert route["after"]["unaccounted"] == route["synced"]["unaccounted"] == 0
    says = " ".join(each["says"] for each in found["checks"])
    for each in (
        "byte for byte",
        "applying it twice",
        "continue",
        "conntrack -D",
        "deletes",
        "full sync",
    ):
        assert each in says


@pytest.mark.alike(1)
@pytest.mark.parametrize("kind", ["iptables", "nft"])
def test_services_of_all_kinds_lose_nothing_from_anywhere(kind: str, tmp_path: Path) -> None:
    items = mixed(6, 4, sizes=(1, 2, 3))
    config = proxy_config(items, FLAGS, node=node_name(1), layout=RulesLayout.V1_36)
    ports = list(service_ports(items, RulesLayout.V1_36))
    text = render_nft(ports, config) if kind == "nft" else render_rules(ports, config)
    dump, objects = tmp_path / "dump.txt", tmp_path / "objects.json"
    dump.write_text(text, encoding="ascii")
    objects.write_text(json.dumps({"kind": "List", "items": items}), encoding="ascii")
    given = str(dump), "--objects", str(objects), "--node", node_name(1)
    found = proved(*given, "--dead-node", node_name(0), "--flows", "200", "--from", SOURCES)
    assert {each["source"] for each in found["routes"]} >= {"pod", "node", "external"}
    assert any(route["before"]["on_dead"] for route in found["routes"])
    assert not any(route["after"]["on_dead"] for route in found["routes"])


@pytest.mark.parametrize("capture", EVERY, ids=str)
def test_a_capture_loses_nothing_any_more(capture: Case) -> None:
    words = "--dead-node", capture.victim, "--flows", FLOWS, "--from", SOURCES
    found = proved(*capture.given, *words)
    assert not any(route["after"]["on_dead"] for route in found["routes"])


def test_a_host_port_that_is_not_repaired_is_what_fails() -> None:
    words = dump("portmap"), *KNOWN, "--dead", "10.244.1.50", "--flows", "20", "-o", "json"
    done = kubeodds("lab", "repair", *words)
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert [each["says"] for each in found["checks"] if not each["holds"]] == [
        "dead endpoints are left out of every route: 0 of 1"
    ]
    assert all(route["after"]["agrees"] for route in found["routes"])


@pytest.mark.deep
def test_repairs_of_random_clusters_are_taken_kept_and_taken_back() -> None:
    program = "from tests.support.lab.random_repairs import main; main(%r)"
    words = ["--examples", "20" if PROFILE == "soak" else "2"]
    if PROFILE != "soak":
        words += ["--layouts", "1.20,1.36"]
    found = json.loads(in_lab(program % words))
    assert found.keys() == {"legacy", "nft", "nftables"}
    assert [trial["faults"] for trial in found.values()] == [[], [], []]
    assert sum(sum(trial["applied"].values()) for trial in found.values()) > 0
