"""Nodes on which other programs write rules too: what comes out, and what that rests on."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.commands import Command
from tests.support.json_reader import read
from tests.support.noise import (
    CLUSTER_IP,
    DEAD,
    KNOWN,
    NAMES,
    NOISE,
    OBJECTS,
    OTHERWISE,
    OUTSIDE,
    PODS,
    REVERSE_PATH,
    assumed,
    dump,
    masked,
    shares,
    told,
)


@pytest.mark.parametrize("name", ["calico", "portmap", "flannel", "aws-vpc-cni", "libvirt"])
def test_the_shares_are_those_of_kube_proxy_alone(command: Command, name: str) -> None:
    base, found = (told(command, "services", each, *KNOWN) for each in ("base", name))
    wanted = shares(base)
    assert wanted
    # Their sources may be told apart further: each part has the share of the whole.
    for (*place, address), share in shares(found).items():
        if place[0].startswith("hostPort"):
            continue
        assert share == wanted[*place[:-1], "None", address]
        assert share[0] == share[1]
    losses = [
        command("loss", dump(each), *KNOWN, *DEAD, "--count", "dead", "--summary").out.splitlines()
        for each in ("base", name)
    ]
    lines = [
        [line for line in loss if "/" in line and "Assumed" not in line and " now (" not in line]
        for loss in losses
    ]
    assert len(lines[0]) > len(base["services"])
    assert [line.replace(dump(name), dump("base")) for line in lines[1]] == lines[0]


@pytest.mark.deep
def test_behind_calico_the_reverse_path_check_is_assumed_to_pass(command: Command) -> None:
    assert assumed(told(command, "services", "base", *KNOWN)) == []
    assert assumed(told(command, "services", "calico", *KNOWN)) == [REVERSE_PATH, PODS]
    for verb in (("services",), ("loss", *DEAD), ("whatif",), ("diff", dump("calico"))):
        out = command(verb[0], dump("calico"), *verb[1:], *KNOWN).out
        assert f"Assumed: {REVERSE_PATH}." in out.splitlines()
    out = command("tree", dump("calico"), "default/app", *KNOWN).out
    assert f"Assumed: {REVERSE_PATH}." in out.splitlines()
    pod = "--from", "pod", "--to", "default/app"
    assert f"  {REVERSE_PATH}" in command("trace", dump("calico"), *KNOWN, *pod).out.splitlines()
    assert REVERSE_PATH in told(command, "trace", "calico", *KNOWN, *pod)["assumptions"]


def test_with_nothing_assumed_calico_leaves_bounds_and_prints_nothing(command: Command) -> None:
    found = told(command, "services", "calico", *KNOWN, "--assume-nothing")
    assert assumed(found) == []
    open_ = [share for (*_, source, _, _), share in shares(found).items() if source == "pod"]
    assert open_
    assert all(lower == 0 < upper for lower, upper in open_)
    from_node = [share for (*_, source, _, _), share in shares(found).items() if source == "node"]
    assert from_node
    assert all(lower == upper for lower, upper in from_node)  # raw OUTPUT asks for no route


def test_libvirt_rejects_nothing_from_outside_unless_it_comes_from_its_machines(
    command: Command,
) -> None:
    """``-i virbr0 -j REJECT`` of flows from outside: assumed not to match, or it may."""
    assert assumed(told(command, "services", "libvirt", *KNOWN)) == [PODS, OUTSIDE]
    where = command(
        "trace", dump("libvirt"), *KNOWN, "--from", "203.0.113.5", "--to", "default/app"
    )
    assert f"  {OUTSIDE}" in where.out.splitlines()
    gate = (*DEAD, "--service", "default/app", "--max-loss", "50%")
    assert command("loss", dump("libvirt"), *KNOWN, *gate).status == 0
    unknown = command(
        "loss", dump("libvirt"), *KNOWN, *gate, "--assume", "outside-interface=unknown"
    )
    assert unknown.status == 1
    assert "loses 50.0 to 100.0% of new flows, from external" in unknown.out
    assert "-A LIBVIRT_FWO -i virbr0 -j REJECT" in unknown.out


def test_behind_portmap_no_cluster_ip_is_an_address_of_the_node(command: Command) -> None:
    """Where the node's addresses are known nothing is assumed."""
    assert assumed(told(command, "services", "portmap", *KNOWN)) == []
    found = told(command, "services", "portmap", *OBJECTS)
    assert assumed(found) == [CLUSTER_IP]
    assert all(lower == upper for lower, upper in shares(found).values())
    nothing = told(command, "services", "portmap", *OBJECTS, "--assume-nothing")
    assert assumed(nothing) == []
    ends = {key[-1] for key, _ in shares(nothing).items() if key[0] == "default/app"}
    assert ends == {"10.244.0.7", "10.244.1.9", "10.244.1.50"}  # and the hostPort's pod


def test_where_rules_do_not_name_their_services_nothing_is_assumed_of_cluster_ips(
    command: Command,
) -> None:
    """What is taken for a ClusterIP may then be another address, and the node's own."""
    comment = r' -m comment --comment ("(?:[^"\\]|\\.)*"|\S+)'
    text = re.sub(comment, "", (NOISE / "portmap.txt").read_text())
    file = command.file("nameless.txt", text)
    found = read(command("services", file, "--format", "json").out)
    assert assumed(found) == []
    ends = {e["address"] for s in found["services"] for r in s["routes"] for e in r["endpoints"]}
    assert "10.244.1.50" in ends
    way = "trace", file, "--from", "203.0.113.9", "--to", "10.96.18.52:80", "--format", "json"
    assert CLUSTER_IP not in read(command(*way).out)["assumptions"]


@pytest.mark.parametrize("way", [("--from", "10.244.1.77"), ("--from", "203.0.113.9")])
def test_trace_assumes_the_same_of_cluster_ips(command: Command, way: tuple[str, ...]) -> None:
    to = *way, "--to", "10.96.18.52:80"
    found = told(command, "trace", "portmap", *OBJECTS, *to)
    halves = {"10.244.0.7": (0.5, 0.5), "10.244.1.9": (0.5, 0.5)}
    assert {end["address"]: (end["lower"], end["upper"]) for end in found["outcomes"]} == halves
    assert CLUSTER_IP in found["assumptions"]
    found = told(command, "trace", "portmap", *OBJECTS, *to, "--assume", "cluster-ip=unknown")
    assert "10.244.1.50" in {end["address"] for end in found["outcomes"]}
    assert CLUSTER_IP not in found["assumptions"]


def test_trace_assumes_nothing_of_an_address_that_is_no_cluster_ip(command: Command) -> None:
    to = "--from", "203.0.113.9", "--to", "192.168.0.77:80"
    found = told(command, "trace", "portmap", *OBJECTS, *to)
    assert CLUSTER_IP not in found["assumptions"]
    assert {"10.244.1.50"} < {end["address"] for end in found["outcomes"]}


def test_a_flow_that_conntrack_does_not_see_is_not_translated(command: Command) -> None:
    """NodeLocal DNSCache answers on the address of kube-dns itself."""
    to = "--to", "10.96.0.10:53", "--protocol", "udp"
    for source in (("--from", "10.244.1.77"), ("--from-node",)):
        found = told(command, "trace", "nodelocaldns", *KNOWN, *source, *to)
        assert {end["address"] for end in found["outcomes"]} == {"10.96.0.10"}
    base, found = (told(command, "services", each, *KNOWN) for each in ("base", "nodelocaldns"))
    of_dns = {key for key in shares(base) if key[2] == "10.96.0.10:53"}
    assert of_dns
    assert shares(found) == {k: v for k, v in shares(base).items() if k not in of_dns}


@pytest.mark.parametrize("name", ["flannel", "aws-vpc-cni"])
def test_whether_a_flow_is_masqueraded_is_told_for_certain(command: Command, name: str) -> None:
    found = told(command, "services", name, *KNOWN)
    assert assumed(found) == ([] if name == "flannel" else [PODS])  # AWS marks by device
    if name == "flannel":
        assert set(masked(found)) <= {True, False}
        assert masked(found) != masked(told(command, "services", "base", *KNOWN))


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("known", [(), KNOWN])
def test_each_answer_lies_within_the_bounds_of_nothing_assumed(
    command: Command, name: str, known: tuple[str, ...]
) -> None:
    nothing = told(command, "services", name, *known, "--assume-nothing")
    assert assumed(nothing) == []
    widest = shares(nothing)
    for given in OTHERWISE:
        options = [word for each in given for word in ("--assume", each)]
        found = shares(told(command, "services", name, *known, *options))
        for key, (lower, upper) in found.items():
            least, most = of_part(widest, key)
            assert least <= lower
            assert upper <= most


def of_part(found: dict[tuple[str, ...], Any], key: tuple[str, ...]) -> Any:
    """Return a share of a part of the sources, or of all, where none is told apart."""
    return found.get(key) or found[*key[:-2], "None", key[-1]]
