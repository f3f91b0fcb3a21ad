"""A pod answers no packet from its own address: its kernel, and the lab's pods like it.

Held elsewhere: how the flows of endpoints are sent and counted (`test_every_client`,
`test_affinity`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from analyzer.kubeproxy.generate import RulesLayout
from tests.support.captures import ROOT
from tests.support.clusters import one_service
from tests.support.lab.running import in_lab, kubeodds, lab_run

pytestmark = pytest.mark.lab

#: A pod behind a device, with servers as any program has them, or as the lab does; how many flows
#: from another address, and from its own, are answered by what leaves it.
PROGRAM: Final = """
import json, socket, time
from ipaddress import ip_address
from netns_lab import filters
from netns_lab.layout import ANSWER, MARK, PacketLayout
from netns_lab.namespace import Namespace, leave_host
from netns_lab.netlink import Netlink
from netns_lab.ready import wait_until_ready
from netns_lab.replay import Flows
from netns_lab.ring import Ring
from netns_lab.servers import FAMILIES, Echoes, datagrams, listener
leave_host()
MACS = "02:00:00:00:00:01", "02:00:00:00:00:02"
ADDRESSES = {4: ("10.0.0.2", "10.0.0.3"), 6: ("fd00::2", "fd00::3")}
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
COUNT = 20
def plain(pod, protocol, version):
    found = pod.socket(FAMILIES[version], KINDS[protocol])
    found.bind(("", 80))
    if protocol == "tcp":
        found.listen(100)
    found.setblocking(False)
    return found
def served(sock, protocol, is_of_lab, echoes):
    if protocol == "udp" and is_of_lab:
        echoes.serve([sock])
    elif protocol == "udp":
        try:
            while True:
                data, client = sock.recvfrom(2048)
                sock.sendto(data[:MARK] + bytes([ANSWER]) + data[MARK + 1 :], client)
        except BlockingIOError:
            pass
def pod_behind(name, is_of_lab):
    node, pod = Namespace(f"node {name}"), Namespace(f"pod {name}")
    asked = Netlink(node)
    asked.veth("eth0", 11, MACS[0], (pod, "eth0", 2, MACS[1]))
    asked.up(11)
    asked.send()
    if is_of_lab:  # all pods of a node are in one namespace, and one sends to another
        for scope in ("all", "default", "eth0"):
            pod.set(f"net/ipv4/conf/{scope}/accept_local", 1)
    asked = Netlink(pod)
    asked.up(1)
    asked.up(2)
    for own, other in ADDRESSES.values():
        asked.address(2, ip_address(own))
        asked.default_route(2, ip_address(other), MACS[0])
    asked.send()
    wait_until_ready([node, pod])
    return node, pod
def answered(name, is_of_lab, version, protocol):
    node, pod = pod_behind(name, is_of_lab)
    layout = PacketLayout(version, protocol)
    opens = {"tcp": listener, "udp": datagrams}[protocol] if is_of_lab else None
    sock = opens(pod, 80, version) if opens else plain(pod, protocol, version)
    program = filters.answers(layout, MACS[0])
    ring = Ring(node, "eth0", layout.ethertype, program, slot=128, most=512)
    link = node.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind(("eth0", 0))
    own, other = map(ip_address, ADDRESSES[version])
    echoes, found = Echoes(1024, 64), []
    for client in (other, own):
        flows = Flows(layout, (own, 80), (client,), (MACS[1], MACS[0]), COUNT)
        flows.send(link.fileno(), 0, COUNT)
        deadline = time.monotonic() + (2 if client == other else 0.2)
        heard = 0
        while time.monotonic() < deadline and heard < COUNT:
            served(sock, protocol, is_of_lab, echoes)
            heard += sum(last - first for first, last in ring.take())
            time.sleep(0.01)
        found.append(heard)
    return found
print(json.dumps({
    f"{name} {protocol} {version}": answered(f"{name} {protocol} {version}", name == "lab",
                                             version, protocol)
    for name in ("kernel", "lab") for protocol in KINDS for version in ADDRESSES
}))
"""


def test_neither_a_kernel_nor_a_pod_of_the_lab_answers_its_own_address() -> None:
    found = json.loads(in_lab(PROGRAM))
    assert len(found) == 8
    assert {key: each for key, each in found.items() if each != [20, 0]} == {}


NOISE: Final = ROOT / "fixtures" / "noise"
GIVEN: Final = ("--objects", str(NOISE / "objects.json"), "--node", "worker1")
ASKED: Final = ("--service", "default/app", "--from", "hairpin", "--flows", "400")
JUMP: Final = '-A POSTROUTING -m comment --comment "kubernetes postrouting rules"'
#: Rules before KUBE-POSTROUTING that keep the source of flows between pods.
KEEPING: Final = f"-A POSTROUTING -s 10.244.0.0/16 -d 10.244.0.0/16 -j RETURN\n{JUMP}"


@pytest.mark.parametrize(("rules", "unanswered"), [(JUMP, 0), (KEEPING, 1)])
def test_a_pod_of_the_node_gets_no_answer_from_itself_if_its_source_is_kept(
    tmp_path: Path, rules: str, unanswered: int
) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text((NOISE / "base.txt").read_text().replace(JUMP, rules))
    status, found, err = lab_run(str(dump), *GIVEN, *ASKED)
    assert status == 0, err
    assert found["agrees"]
    _, measured = found["measurements"]  # one endpoint after the other sends
    answered = {
        each["address"]: each["answered"] / each["landed"] for each in measured["endpoints"]
    }
    assert answered == {"10.244.0.7": 1, "10.244.1.9": 1 - unanswered}
    predicted = {each["address"]: each["unanswered"] for each in measured["endpoints"]}
    assert predicted["10.244.1.9"]["lower"]["value"] == unanswered


def written(
    folder: Path,
    networks: Callable[[int], str],
    *,
    at_node: bool = False,
    flags: tuple[str, ...] = ("--cluster-cidr=10.244.0.0/16",),
) -> list[str]:
    """Write a Service's dump and objects, and return what names them; nodes have `networks`.

    With `at_node`, one more endpoint has the address of the second node.
    """
    made = replace(one_service(RulesLayout.V1_36, endpoints=3, plain=True), flags=flags)
    for number, node in enumerate(each for each in made.items if each["kind"] == "Node"):
        node["spec"]["podCIDRs"] = [networks(number)]
    if at_node:
        (slice_,) = (each for each in made.items if each["kind"] == "EndpointSlice")
        slice_["endpoints"].append({**slice_["endpoints"][1], "addresses": ["192.168.0.11"]})
    dump, objects = folder / "dump.txt", folder / "objects.json"
    dump.write_text(made.dump)
    objects.write_text(json.dumps({"kind": "List", "items": made.items}))
    return [str(dump), "--objects", str(objects), "--node", made.node, "--from", "hairpin"]


@pytest.mark.parametrize(
    "networks",
    [lambda at: f"10.244.{16 * ((at + 1) % 3)}.0/20", lambda _: "10.244.0.0/16"],
    ids=["another node's", "all nodes'"],
)
def test_pods_have_addresses_of_any_nodes_network(
    tmp_path: Path, networks: Callable[[int], str]
) -> None:
    """As some network plugins give them; no node takes another one's pods for its own."""
    done = kubeodds("lab", "verify", *written(tmp_path, networks), "-o", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["agrees"], found["left_out"]) == (0, True, [])


@pytest.mark.parametrize("verb", ["verify", "run"])
@pytest.mark.parametrize("is_masqueraded", [True, False], ids=["masqueraded", "not"])
def test_an_endpoint_at_another_node_is_answered_there_by_pods_beside_it(
    tmp_path: Path, verb: str, *, is_masqueraded: bool
) -> None:
    """Unless masqueraded: these answers do not pass this node, which alone translates them back."""
    flags = ("--cluster-cidr=10.244.0.0/16",) if is_masqueraded else ()
    given = written(tmp_path, lambda at: f"10.244.{16 * at}.0/20", at_node=True, flags=flags)
    done = kubeodds("lab", verb, *given, "-o", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["agrees"]) == (0, True)
    senders = [each["endpoints"][0]["address"] for each in found["measurements"]]
    at_node = ["192.168.0.11"] if is_masqueraded else []
    assert senders == ["10.244.0.0", "10.244.16.0", "10.244.32.0", *at_node]
    assert all(e["answered"] == e["landed"] for m in found["measurements"] for e in m["endpoints"])
    says = "pods of its node answer an endpoint that has another node's address"
    assert (says in done.stderr) is not is_masqueraded
