"""What a node's own commands print: addresses and routes, and what follows for any verb."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analyzer.arguments.command_line import parse
from analyzer.errors import InputError, UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.files import Member
from analyzer.inputs.node_files import node_addresses, routes_of, told_by_routes
from tests.support.commands import Command
from tests.support.noise import DEAD, KNOWN, NOISE, dump

LINKS = [
    {"ifname": "lo", "addr_info": [{"local": "127.0.0.1"}, {"local": "::1"}]},
    {"ifname": "cni0", "addr_info": [{"local": "fe80::1"}, {"local": "10.244.1.1"}]},
    {"ifname": "eth0", "addr_info": [{"local": "192.168.0.11"}, {"local": "fd00::b"}]},
]
ROUTES = [
    {"dst": "default", "gateway": "192.168.0.1", "dev": "eth0", "flags": []},
    {"dst": "10.244.0.0/24", "gateway": "192.168.0.10", "dev": "eth0", "flags": []},
    {"dst": "10.244.1.0/24", "dev": "br-pods", "scope": "link", "prefsrc": "10.244.1.1"},
]


def file(folder: Path, name: str, what: Any) -> str:
    path = folder / name
    path.write_text(json.dumps(what))
    return str(path)


def both(options: SimpleNamespace) -> None:
    node_addresses(options, ApiObjects(options).cluster)
    routes_of(options)


def own(*words: str) -> list[str]:
    options = parse(["services", dump("base"), *words])
    return [str(each) for each in node_addresses(options, ApiObjects(options).cluster)]


def test_all_addresses_of_the_node_are_told_and_its_name_puts_one_first(tmp_path: Path) -> None:
    told = file(tmp_path, "addresses.json", LINKS)
    assert own("--addresses", told) == ["10.244.1.1", "192.168.0.11", "fd00::b", "fe80::1"]
    of_node = own(*KNOWN, "--addresses", told)
    assert of_node == ["192.168.0.11", "10.244.1.1", "fd00::b", "fe80::1"]
    assert own("--node-ip", "10.9.9.9", "--addresses", told)[0] == "10.9.9.9"
    assert own(*KNOWN) == ["192.168.0.11"]


def test_an_address_of_the_api_that_the_node_does_not_have_is_not_its_own(tmp_path: Path) -> None:
    """A cloud may translate what the API calls a node's address."""
    told = file(tmp_path, "addresses.json", LINKS[:2])
    assert own(*KNOWN, "--addresses", told) == ["10.244.1.1", "fe80::1"]


def test_routes_of_several_files_are_those_of_one_node(tmp_path: Path) -> None:
    six = file(tmp_path, "six.json", [])
    options = parse(
        ["services", "d", "--routes", file(tmp_path, "four.json", ROUTES), "--routes", six]
    )
    assert routes_of(options).device(ip_address("10.244.1.9")) == "br-pods"


def test_a_node_whose_own_file_has_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it contains no address"):
        own("--addresses", file(tmp_path, "none.json", [{"ifname": "lo", "addr_info": []}]))


def test_routes_tell_no_devices_where_any_network_may_be_the_nodes(tmp_path: Path) -> None:
    """Endpoints with the node's network have its addresses, which nothing tells apart then."""
    direct = [{"dst": "192.168.0.0/24", "dev": "eth1"}, *ROUTES[:1]]
    words = "--routes", file(tmp_path, "routes.json", direct)
    placed = "--node-of", "192.168.0.0/24=worker1", "--node", "worker1"
    options = parse(["services", dump("base"), *words, *placed])
    cluster = ApiObjects(options).cluster
    assert told_by_routes(options, cluster, ()) is options
    told = told_by_routes(options, cluster, (ip_address("192.168.0.11"),))
    assert told.assumed["pod-interface"] == "eth1"


@pytest.mark.parametrize("option", ["--routes", "--addresses"])
def test_what_is_something_else_is_refused(tmp_path: Path, option: str) -> None:
    wrong = file(tmp_path, "wrong.json", [{"a": 1}])
    with pytest.raises(InputError, match=r"wrong\.json: .*expected the output of `ip -j"):
        both(parse(["services", "d", option, wrong]))
    with pytest.raises(UsageError, match=f"{option} -: only a dump can be standard input"):
        both(parse(["services", "d", option, "-"]))


#: By what comes in from pods' devices a rule in front of kube-proxy's drops.
RAW = "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING {} -j DROP\nCOMMIT\n"
TOLD = "pods of this node, and nothing else, are behind devices br-pods"


@pytest.mark.parametrize(
    "words",
    [
        ("services",),
        ("loss", "--dead-node", "master"),
        ("whatif",),
        ("timeline", "--dead-node", "master"),
        ("trace", "--from", "10.244.1.9", "--to", "10.96.0.10:53", "--protocol", "udp"),
    ],
)
def test_every_verb_knows_pods_devices_by_routes(
    tmp_path: Path, command: Command, words: tuple[str, ...]
) -> None:
    base = (NOISE / "base.txt").read_text()
    rules = command.file("rules.txt", RAW.format("-i br-pods") + base)
    files = "--routes", file(tmp_path, "routes.json", ROUTES)
    verb, *rest = words
    told = command(verb, rules, *KNOWN, *files, *rest)
    assert TOLD in told.out + told.err
    # Who names devices, or assumes nothing, is believed.
    for more in (("--pod-interface", "cali+"), ("--assume-nothing",)):
        done = command(verb, rules, *KNOWN, *files, *rest, *more)
        assert TOLD not in done.out + done.err


def test_rules_for_a_device_of_pods_drop_what_pods_send(tmp_path: Path, command: Command) -> None:
    base = (NOISE / "base.txt").read_text()
    rules = command.file("rules.txt", RAW.format("-i br-pods") + base)
    files = "--routes", file(tmp_path, "routes.json", ROUTES)
    asked = "loss", rules, *KNOWN, *DEAD, "--service", "default/app"
    text = "100.0% of new flows from pod are dropped now"
    assert text in command(*asked, *files).out
    assert text not in command(*asked).out


def test_of_several_nodes_files_of_one_are_refused(tmp_path: Path, command: Command) -> None:
    base = (NOISE / "base.txt").read_text()
    dumps = [command.file(name, base) for name in ("a.txt", "b.txt")]
    given = "--routes", file(tmp_path, "routes.json", ROUTES)
    done = command("loss", *dumps, "--node", "master,worker1", *KNOWN[:2], *given)
    assert done.status == 2
    assert "--routes: of which node? There are dumps of 2 nodes" in done.err


def test_a_bundle_of_a_namespace_without_addresses_tells_none() -> None:
    member = Member("node.tar.gz:addresses.json")
    member.data = b'[{"ifname": "lo", "addr_info": []}]'
    options = parse(["services", dump("base")])
    options.addresses = member
    assert node_addresses(options, ApiObjects(options).cluster) == ()
    member.data = b"[{}]"
    with pytest.raises(InputError, match="expected the output of `ip -j address`"):
        node_addresses(options, ApiObjects(options).cluster)
