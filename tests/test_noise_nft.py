"""Nodes on which other programs write rules of nft beside kube-proxy's."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.support.captures import ROOT
from tests.support.commands import Command
from tests.support.json_reader import read
from tests.support.noise import DEAD, KNOWN, NOISE, PODS, REVERSE_PATH, assumed, shares

#: kube-proxy alone.
BASE: Final = ROOT / "fixtures/captures/1.36.2-nftables/two-node@worker1" / "nft-list-ruleset.txt"


def dump(name: str) -> str:
    return str(BASE if name == "base" else NOISE / "nftables" / f"{name}.txt")


def told(command: Command, verb: str, name: str, *more: str) -> Any:
    done = command(verb, dump(name), *more, "--format", "json")
    assert done.status == 0, done.err
    return read(done.out)


def lost(found: Any) -> list[Any]:
    return [route.get("lost") for s in found["services"] for route in s["routes"]]


@pytest.mark.parametrize(("name", "rests_on"), [("calico", [REVERSE_PATH, PODS])])
def test_the_shares_are_those_of_kube_proxy_alone_and_nothing_is_lost(
    command: Command, name: str, rests_on: list[str]
) -> None:
    base, found = (told(command, "services", each, *KNOWN) for each in ("base", name))
    assert shares(found) == shares(base)
    assert lost(found) == lost(base)
    assert assumed(found) == rests_on
    losses = [
        command("loss", dump(each), *KNOWN, *DEAD, "--summary").out.splitlines()
        for each in ("base", name)
    ]
    of_services = [[line for line in loss if "% " in line] for loss in losses]
    assert len(of_services[0]) > len(base["services"])
    assert of_services[0] == of_services[1]


#: ServicePorts that portmap adds, and the pods that they lead to.
HOST_PORTS: Final = {
    "hostPort 80": ("*", 80, "10.244.1.50:8080"),
    "hostPort 192.168.0.11:5353": ("192.168.0.11", 5353, "10.244.1.60:53"),
}


@pytest.mark.parametrize("name", ["portmap", "portmap-1.8"])
def test_host_ports_are_frontends_of_their_own_kind(command: Command, name: str) -> None:
    found = told(command, "services", name, *KNOWN)
    given = {each["name"]: each for each in found["services"] if each["name"] in HOST_PORTS}
    assert given.keys() == HOST_PORTS.keys()
    for each, (address, port, pod) in HOST_PORTS.items():
        (frontend,) = given[each]["frontends"]
        assert frontend["kind"] == "HostPort"
        assert (frontend["address"] or "*", frontend["port"]) == (address, port)
        (endpoint,) = given[each]["endpoints"]
        assert f"{endpoint['address']}:{endpoint['port']}" == pod
        sources = {route["source"] for route in given[each]["routes"]}
        assert sources == {"pod", "pod-elsewhere", "node", "external", "hairpin"}
        drawn = {tuple(e["share"]) for r in given[each]["routes"] for e in r["endpoints"]}
        assert drawn == {(1, 1)}
    lost = told(command, "loss", name, *KNOWN, "--dead-node", "worker1")["services"]
    assert {each["state"] for each in lost if each["name"] in HOST_PORTS} == {"silenced"}


def test_behind_portmap_the_shares_of_services_are_those_of_kube_proxy_alone(
    command: Command,
) -> None:
    base, found = (told(command, "services", each, *KNOWN) for each in ("base", "portmap"))
    of_services = {way: s for way, s in shares(found).items() if way[0] not in HOST_PORTS}
    assert of_services == shares(base)
    assert assumed(found) == []


def test_portmap_before_1_9_takes_flows_to_services_of_the_same_port(command: Command) -> None:
    """CVE-2025-67499: its table, the later one, is evaluated before that of kube-proxy."""
    found = shares(told(command, "services", "portmap-1.8", *KNOWN))
    base = shares(told(command, "services", "base", *KNOWN))
    app = {(way[3], way[-1]): s for way, s in found.items() if way[0] == "default/app"}
    taken = {source for (source, end), share in app.items() if end == "10.244.1.50"}
    assert taken == {"pod", "pod-elsewhere", "external", "hairpin"}
    assert {tuple(s) for (source, _), s in app.items() if source in taken} == {(1, 1)}
    others = {way: s for way, s in found.items() if way[0] not in {"default/app", *HOST_PORTS}}
    assert others == {way: s for way, s in base.items() if way[0] != "default/app"}
    way = "--from", "10.244.1.77", "--to", "default/app"
    rules = told(command, "trace", "portmap-1.8", *KNOWN, *way)["rules"]
    assert {"hostports"} <= {r["chain"] for r in rules if r["program"] == "CNI portmap"}


def test_rules_of_host_ports_alone_are_not_kube_proxy_s(command: Command) -> None:
    text = (NOISE / "nftables" / "portmap.txt").read_text()
    file = command.file("alone.txt", text[text.index("table ip cni_hostport") :])
    done = command("services", file, *KNOWN, "--format", "json")
    found = read(done.out)
    assert "no-kube-proxy-chains" in {each["code"] for each in found["diagnostics"]}
    gate = command("loss", file, *KNOWN, "--dead-node", "master", "--max-loss", "100%")
    assert gate.status != 0


def test_an_interface_that_calico_does_not_know_is_told_from_pods(command: Command) -> None:
    way = "--from", "10.244.1.77", "--to", "10.96.18.52:80"
    for device, ends in (("cali0a1b2c3d4e5", {"endpoint"}), ("cali9", {"drop"})):
        found = told(command, "trace", "calico", *KNOWN, *way, "--in-interface", device)
        assert {end["outcome"] for end in found["outcomes"]} == ends


def test_of_what_crowdsec_bans_only_what_it_may_have_let_go_since_is_not_known(
    command: Command,
) -> None:
    """Its set has timeouts, and no rule adds to it: other sources fare as with kube-proxy alone."""
    found = told(command, "services", "crowdsec-and-others", *KNOWN)
    banned = [r for s in found["services"] for r in s["routes"] if r["network"] is not None]
    assert {route["network"] for route in banned} == {"203.0.113.9/32"}
    assert all(
        (e["lower"]["value"], e["upper"]["value"], e["program"]) == (0, 1, "CrowdSec")
        for route in banned
        for endings in route["lost"]
        for e in endings
    )
    others = [r for s in found["services"] for r in s["routes"] if r["network"] is None]
    assert not any("lost" in route for route in others)


FORWARD = "\t\ttype filter hook forward priority filter; policy accept;"
OUTPUT = """table inet filter {{
	chain output {{
		type filter hook output priority filter; policy drop;
		{} accept
	}}
}}
"""


@pytest.mark.parametrize("match", ['oif "lo"', 'oifname "lo"', 'oifname { "lo", "wg0" }'])
def test_what_the_node_sends_to_services_does_not_leave_by_loopback(
    command: Command, match: str
) -> None:
    file = command.file("lo.txt", OUTPUT.format(match) + BASE.read_text())
    ended = {(0, 1)} if "wg0" in match else {(1, 1)}
    found = read(command("services", file, *KNOWN, "--format", "json").out)
    of_node = [r for s in found["services"] for r in s["routes"] if r["source"] == "node"]
    assert of_node
    for route in of_node:
        ends = {(e["lower"]["value"], e["upper"]["value"]) for w in route["lost"] for e in w}
        assert ends == ended
    done = command("trace", file, *KNOWN, "--from-node", "--to", "default/app", "-o", "json")
    outcomes = {each["outcome"] for each in read(done.out)["outcomes"]}
    assert outcomes == ({"drop", "endpoint"} if "wg0" in match else {"drop"})


@pytest.mark.parametrize(
    ("match", "dropped"),
    [
        ("ct original ip daddr 10.96.18.52 ct original proto-dst 80", {"default/app"}),
        ("ct original ip daddr 10.96.0.0/30", {"default/kubernetes:https"}),
        ("ct original ip daddr 198.51.100.2", set()),
    ],
)
def test_what_flows_were_first_sent_to_counts_after_dnat(
    command: Command, match: str, dropped: set[str]
) -> None:
    table = f"table inet filter {{\n\tchain f {{\n{FORWARD}\n\t\t{match} drop\n\t}}\n}}\n"
    file = command.file("original.txt", table + BASE.read_text())
    found = read(command("services", file, *KNOWN, "--format", "json").out)
    ended = {
        (service["name"], e["lower"]["value"], e["upper"]["value"])
        for service in found["services"]
        for route in service["routes"]
        if route["source"] == "pod"
        for way in route.get("lost") or ()
        for e in way or ()
    }
    assert ended == {(name, 1, 1) for name in dropped}


def test_a_destination_that_a_rule_wrote_before_conntrack_is_not_that_of_the_service(
    command: Command,
) -> None:
    raw = "\t\ttype filter hook prerouting priority raw; policy accept;"
    write = "tcp dport 80 ip daddr set 10.96.18.52"
    chains = f"\tchain p {{\n{raw}\n\t\t{write}\n\t}}\n\tchain f {{\n{FORWARD}\n"
    table = f"table ip mine {{\n{chains}\t\tct original ip daddr 10.96.18.52 drop\n\t}}\n}}\n"
    file = command.file("written.txt", table + BASE.read_text())
    found = read(command("services", file, *KNOWN, "--format", "json").out)
    (app,) = (each for each in found["services"] if each["name"] == "default/app")
    (pods,) = (r for r in app["routes"] if r["source"] == "pod")
    assert {(e["lower"]["value"], e["upper"]["value"]) for w in pods["lost"] for e in w} == {(0, 1)}
