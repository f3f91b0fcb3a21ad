from __future__ import annotations

import io
import json
import sys
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analyzer.arguments.command_line import parse
from analyzer.errors import InputError, UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.node_files import node_addresses
from analyzer.inputs.recognised import read_input, read_two
from tests.support.dumps import dump, two_endpoints

NODE: dict[str, Any] = {
    "kind": "Node",
    "metadata": {"name": "worker1"},
    "status": {"addresses": [{"type": "InternalIP", "address": "172.16.0.1"}]},
}
SLICE: dict[str, Any] = {
    "kind": "EndpointSlice",
    "metadata": {"name": "a-x", "namespace": "ns", "labels": {"kubernetes.io/service-name": "a"}},
    "addressType": "IPv4",
    "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": "worker1"}],
}
SERVICE: dict[str, Any] = {
    "kind": "Service",
    "metadata": {"name": "a", "namespace": "ns"},
    "spec": {
        "clusterIP": "10.96.0.1",
        "clusterIPs": ["10.96.0.1"],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dump.txt").write_text(dump(*two_endpoints()), encoding="utf-8")
    (tmp_path / "objects").mkdir()
    for name, each in (("nodes", NODE), ("slices", SLICE), ("services", SERVICE)):
        (tmp_path / "objects" / f"{name}.json").write_text(json.dumps({"items": [each]}))
    return tmp_path


def options(folder: Path, *words: str) -> SimpleNamespace:
    return parse(["services", str(folder / "dump.txt"), *words])


def test_a_dump_alone_gives_services_at_an_unknown_node(folder: Path) -> None:
    found = read_input(options(folder))
    assert [service.name.text for service in found.view.services] == ["ns/a:http"]
    assert found.own == ()
    assert found.services() == ()
    assert found.versions == (4,)
    assert found.ruleset is found.rulesets[0]


def test_objects_of_a_folder_tell_nodes_and_services(folder: Path) -> None:
    words = ("--objects", str(folder / "objects"), "--node", "worker1")
    found = read_input(options(folder, *words))
    assert found.own == (ip_address("172.16.0.1"),)
    assert found.cluster.placement(ip_address("10.0.0.1")).node == "worker1"
    assert [service.name for service in found.services()] == ["ns/a:http"]


def test_addresses_that_are_named_count_more_than_those_of_the_objects(folder: Path) -> None:
    words = ("--objects", str(folder / "objects"), "--node", "worker1", "--node-ip", "172.16.0.9")
    assert read_input(options(folder, *words)).own == (ip_address("172.16.0.9"),)


def test_a_node_that_the_objects_do_not_know_is_told_with_those_they_do(folder: Path) -> None:
    given = options(folder, "--objects", str(folder / "objects"), "--node", "worker2")
    with pytest.raises(UsageError, match="did you mean worker1"):
        node_addresses(given, ApiObjects(given).cluster)


def test_without_objects_a_node_is_a_mere_name(folder: Path) -> None:
    given = options(folder, "--node", "worker2")
    assert node_addresses(given, ApiObjects(given).cluster) == ()


def test_other_files_of_a_folder_of_objects_are_left_alone(folder: Path) -> None:
    (folder / "objects" / "run.json").write_text("{}")
    (folder / "objects" / "notes.txt").write_text("kind")
    assert len(ApiObjects(options(folder, "--objects", str(folder / "objects"))).services(4)) == 1


def test_a_folder_without_objects_is_refused(folder: Path) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: no file \*\.json"):
        ApiObjects(options(folder, "--objects", str(folder / "empty")))


@pytest.mark.parametrize(("listed", "lacking"), [(True, []), (False, ["ns/b:http"])])
def test_a_service_whose_endpoints_nothing_lists_may_be_lacking(
    folder: Path, listed: bool, lacking: list[str]
) -> None:
    """Of a dump without the filter table a Service is expected where it may have endpoints."""
    other = {**SERVICE, "metadata": {"name": "b", "namespace": "ns"}}
    other["spec"] = {**SERVICE["spec"], "clusterIP": "10.96.0.2", "clusterIPs": ["10.96.0.2"]}
    given = [NODE, SERVICE, other, *([SLICE] if listed else [])]
    (folder / "all.json").write_text(json.dumps({"items": given}))
    found = read_input(options(folder, "--objects", str(folder / "all.json")))
    assert found.lists_endpoints is listed
    assert [each.name.text for each in found.absent().lacking] == lacking


def test_of_many_files_an_error_names_the_first(folder: Path) -> None:
    for name in "abcdefg":
        (folder / "empty" / name).mkdir(parents=True)
        (folder / "empty" / name / "x.json").write_text('{"kind": "Event"}')
    with pytest.raises(InputError, match=r"a/x\.json, .*e/x\.json, \.\.\.: it contains none of"):
        ApiObjects(options(folder, "--objects", str(folder / "empty")))


def test_a_network_is_on_the_node_that_is_said(folder: Path) -> None:
    objects = ApiObjects(options(folder, "--node-of", "10.0.0.2/32=worker2"))
    assert objects.cluster.placement(ip_address("10.0.0.2")).node == "worker2"


def test_a_network_is_on_one_node_only(folder: Path) -> None:
    words = ("--node-of", "10.0.0.2/32=worker1", "10.0.0.2/32=worker2")
    with pytest.raises(UsageError, match=r"--node-of 10\.0\.0\.2/32"):
        ApiObjects(options(folder, *words))


def test_what_else_the_node_has_is_read_for_its_rules(folder: Path) -> None:
    (folder / "other.txt").write_text("table inet fw {\n}\n")
    found = read_input(options(folder, "--with", str(folder / "other.txt")))
    assert [ruleset.input_format for ruleset in found.rulesets] == ["iptables-save", "nft"]
    assert len(found.view.services) == 1


def test_a_dump_of_nft_holds_both_ip_versions(folder: Path) -> None:
    (folder / "dump.txt").write_text("table inet fw {\n}\n")
    assert read_input(options(folder)).versions == (4, 6)


def test_a_dump_may_be_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (folder / "dump.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert len(read_input(parse(["services", "-"])).view.services) == 1
    with pytest.raises(UsageError, match="only one dump can be standard input"):
        read_input(parse(["services", "-", "-"]))


def test_of_two_dumps_each_has_its_own_node(folder: Path) -> None:
    name = str(folder / "dump.txt")
    words = ("--node-ip", "172.16.0.1", "--node-ip-b", "172.16.0.2")
    a, b = read_two(parse(["diff", name, name, *words]))
    assert (a.own, b.own) == ((ip_address("172.16.0.1"),), (ip_address("172.16.0.2"),))
    again = read_two(parse(["diff", name, name, "--node-ip", "172.16.0.1"]))
    assert [each.own for each in again] == [(ip_address("172.16.0.1"),)] * 2
