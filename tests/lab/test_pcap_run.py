"""Captures that are made here, replayed through the rules of dumps on the kernel."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.documents import schema
from tests.support.lab.running import ROOT, SWAPPED, Case, judged_again, kubeodds, lab_run, python

inet = pytest.importorskip("scapy.layers.inet")
inet6 = pytest.importorskip("scapy.layers.inet6")
l2 = pytest.importorskip("scapy.layers.l2")
utils = pytest.importorskip("scapy.utils")

pytestmark = pytest.mark.lab

EXAMPLE = [str(ROOT / "examples/dump.txt"), "--objects", str(ROOT / "examples/objects.json")]
EXAMPLE += ["--node", "worker1", "--dead-node", "master"]
APP = "10.96.18.52"
#: With addresses: scapy would ask the host's network for what is left out.
ETHER = l2.Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
DNS = "10.96.0.10"
TCP_FLOWS, UDP_FLOWS = 400, 60
#: Of the capture: a pod here, one of another node, and somebody outside, as the objects say.
CLIENTS = {"pod": "10.244.1.77", "pod-elsewhere": "10.244.0.99", "external": "198.51.100.4"}


def saved(path: Path, packets: list[Any], *, ng: bool = False) -> str:
    for at, packet in enumerate(packets):
        packet.time = 1_700_000_000 + at / 1000
    (utils.wrpcapng if ng else utils.wrpcap)(str(path), packets)
    return str(path)


def tcp(client: str, port: int, to: str, sockaddr: int, flags: str = "S") -> Any:
    return inet.IP(src=client, dst=to) / inet.TCP(sport=port, dport=sockaddr, flags=flags)


def udp(client: str, port: int, to: str, sockaddr: int) -> Any:
    return inet.IP(src=client, dst=to) / inet.UDP(sport=port, dport=sockaddr) / b"query"


def mixed() -> list[Any]:
    """Packets of flows to two Services, and of all else that a capture has."""
    packets = []
    clients = list(CLIENTS.values())
    for at in range(TCP_FLOWS):
        client = clients[at % 2]
        packets.append(tcp(client, 30_000 + at, APP, 80))
        if at % 4 == 0:
            packets.append(tcp(APP, 80, client, 30_000 + at, "SA"))
            packets.append(tcp(client, 30_000 + at, APP, 80, "A"))
        if at % 8 == 0:
            packets.append(tcp(client, 30_000 + at, APP, 80))
    for at in range(UDP_FLOWS):
        packets += [udp(clients[0], 700 + at, DNS, 53)] * 2
    packets.append(inet.IP(src=clients[0], dst=APP) / inet.ICMP())
    part = inet.UDP(sport=5, dport=53) / b"part"
    packets.append(inet.IP(src=clients[0], dst=DNS, flags="MF", id=7) / part)
    packets.append(inet.IP(src=clients[0], dst=DNS, frag=9, id=7, proto=17) / b"the rest of it")
    packets.append(inet.IP(src=clients[0], dst=DNS, frag=9, id=8, proto=17) / b"the rest of it")
    packets.append(udp(clients[0], 5, "9.9.9.9", 53))
    packets.append(tcp(clients[0], 6, "10.244.1.9", 8080))
    return [ETHER / each for each in packets]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a replay of all that found."""
    path = saved(tmp_path_factory.mktemp("pcap") / "mixed.pcap", mixed())
    status, found, errors = lab_run(*EXAMPLE, "--pcap", path)
    assert status == 0, (errors, found)
    return found


def test_the_document_follows_its_schema(found: dict[str, Any]) -> None:
    Draft202012Validator(schema("lab-pcap")).validate(found)


def test_the_document_is_judged_again_as_the_replay_was(
    found: dict[str, Any], tmp_path: Path
) -> None:
    assert judged_again(found, tmp_path) == (0, found)


def test_every_packet_is_a_flow_or_has_a_reason(found: dict[str, Any]) -> None:
    assert found["packets"] == len(mixed())
    passed = {each["reason"]: each["packets"] for each in found["passed_over"]}
    assert len(found["flows"]) + sum(passed.values()) == found["packets"]
    assert len(found["flows"]) == TCP_FLOWS + UDP_FLOWS
    assert sorted(passed.values()) == [1, 1, 1, 1, 2, 50, 100, 160]
    assert passed["ICMP"] == passed["fragments of IP"] == passed["to no Service of the dump"] == 1
    assert found["not_judged"] == 2


def test_every_flow_landed_where_measurements_counted_it(found: dict[str, Any]) -> None:
    flows = Counter((e["service"], e["source"], e["endpoint"]) for e in found["flows"])
    counted = {
        (m["service"], m["source"], f"{e['address']}:{e['port']}"): e["landed"]
        for m in found["measurements"]
        for e in m["endpoints"]
    }
    assert flows == counted
    assert len(found["measurements"]) == 3
    for each in found["flows"]:
        dead = each["endpoint"].startswith("10.244.0.")
        assert each["outcome"] == ("dead-endpoint" if dead else "endpoint")
        assert each["answered"] is (None if dead else True)
        assert each["predicted"]["upper"]["value"] == 0.5


def test_counters_and_conntrack_say_the_same(found: dict[str, Any]) -> None:
    assert found["counter_difference"] == found["conntrack_difference"] == 0


@pytest.mark.parametrize("kind", ["process", pytest.param("reject", marks=pytest.mark.deep)])
def test_what_a_dead_endpoint_resets_conntrack_has_forgotten(tmp_path: Path, kind: str) -> None:
    path = saved(tmp_path / "mixed.pcap", mixed())
    given = [*EXAMPLE[:-1], f"master:{kind}"]
    status, found, errors = lab_run(*given, "--pcap", path)
    assert (status, found["agrees"]) == (0, True), errors
    assert (found["counter_difference"], found["conntrack_difference"]) == (0, 0)
    refused = sum(e["refused"] for m in found["measurements"] for e in m["endpoints"])
    assert (
        refused
        == sum(e["landed"] for m in found["measurements"] for e in m["endpoints"] if e["dead"])
        > 0
    )


def test_clients_keep_an_address_of_their_own_and_their_ports(found: dict[str, Any]) -> None:
    clients = {each["client"]: each["stands_as"] for each in found["clients"]}
    assert set(clients) == {CLIENTS["pod"], CLIENTS["pod-elsewhere"]}
    assert clients[CLIENTS["pod"]].startswith("10.244.1.")
    assert clients[CLIENTS["pod-elsewhere"]].startswith("10.244.0.")
    assert {each["client_port"] for each in found["flows"]} == {
        *range(30_000, 30_000 + TCP_FLOWS),
        *range(700, 700 + UDP_FLOWS),
    }
    assert all(clients[each["client"]] == each["stands_as"] for each in found["flows"])


@pytest.mark.deep
def test_rules_that_draw_otherwise_are_found_out(tmp_path: Path) -> None:
    program = tmp_path / "swap.py"
    program.write_text(SWAPPED)
    packets = [ETHER / tcp(f"10.244.1.{20 + at % 9}", 1024 + at, APP, 80) for at in range(3000)]
    path = saved(tmp_path / "many.pcap", packets)
    done = python(str(program), "run", *EXAMPLE, "--pcap", path)
    assert done.returncode == 1, done.stderr
    assert "DISAGREES" in done.stdout


@pytest.mark.deep
@pytest.mark.parametrize(
    "link",
    [ETHER / l2.Dot1Q(vlan=9), l2.CookedLinux(), l2.CookedLinuxV2(), None],
    ids=lambda link: "raw" if link is None else type(link).__name__,
)
def test_flows_of_any_link_type_and_with_their_timing(tmp_path: Path, link: Any) -> None:
    packets = [udp(CLIENTS["pod"], 4000 + at, DNS, 53) for at in range(300)]
    made = packets if link is None else [link / each for each in packets]
    path = saved(tmp_path / "flows.pcapng", made, ng=True)
    status, found, errors = lab_run(*EXAMPLE, "--pcap", path, "--timing", "kept")
    assert (status, len(found["flows"])) == (0, 300), errors
    assert found["measurements"][0]["seconds"] >= 0.299
    assert found["flows"][-1]["at"] == pytest.approx(0.299)


@pytest.mark.deep
def test_what_is_cut_off_is_read_as_far_as_it_goes_and_said(tmp_path: Path) -> None:
    path = Path(saved(tmp_path / "cut.pcap", mixed()))
    path.write_bytes(path.read_bytes()[:-10])
    status, found, errors = lab_run(*EXAMPLE, "--pcap", str(path))
    assert status == 0
    assert found["cut"] == f"it ends in the middle of packet {len(mixed())}"
    assert "read as far as it goes" in errors


@pytest.mark.alike(2)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--pcap", str(ROOT / "examples/dump.txt")], "not a packet capture"),
        (["--pcap", "/nonexistent"], "/nonexistent"),
        (["--timing", "kept"], "needs --pcap FILE"),
        (["--pcap", "x", "--for", "3s"], "leave out --for"),
        (["--pcap", "x", "--flows", "100"], "--pcap: a capture has its own flows"),
        (["--for", "3s", "--flows", "77"], "--for: sends flows at a steady --rate"),
        (["--pcap", "x", "--trace"], "--trace: only without --pcap"),
    ],
)
def test_what_cannot_be_replayed_is_one_message(words: list[str], says: str) -> None:
    done = kubeodds("lab", "run", *EXAMPLE, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_capture_without_flows_to_services_says_what_is_in_it(tmp_path: Path) -> None:
    path = saved(tmp_path / "none.pcap", [ETHER / udp("10.244.1.7", 5, "9.9.9.9", 53)] * 4)
    done = kubeodds("lab", "run", *EXAMPLE, "--pcap", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "4 packets, and no flow to replay: 4 to no Service of the dump" in done.stderr


@pytest.mark.deep
def test_what_may_be_to_a_nodeport_is_not_passed_over_in_silence(
    captures: Path, tmp_path: Path
) -> None:
    dump = str(captures / "1.36.2-iptables-legacy/features/iptables-legacy-save.txt.gz")
    packets = [tcp("198.51.100.4", 2000 + n, "192.168.10.11", 30702) for n in range(3)]
    packets += [tcp("10.244.0.9", 2000 + n, "10.96.1.3", 80) for n in range(40)]
    path = saved(tmp_path / "ports.pcap", [ETHER / each for each in packets])
    status, found, errors = lab_run(dump, "--pcap", path)
    assert (status, found["agrees"], found["not_judged"]) == (0, True, 3)
    assert "3 not replayed: possibly to a NodePort" in errors
    assert len(lab_run(dump, "--node-ip", "192.168.10.11", "--pcap", path)[1]["flows"]) == 43


@pytest.mark.deep
def test_what_rules_keep_back_at_the_node_is_said_to_be_dropped_or_rejected_as_they_do(
    captures: Path, tmp_path: Path
) -> None:
    folder = captures / "1.36.2-iptables-legacy/features"
    given = [str(folder / "iptables-legacy-save.txt.gz"), "--node", "node-a1"]
    given += ["--objects", str(folder / "objects.json.gz")]
    ends = {"10.96.2.1": "rejected", "10.96.5.2": "dropped", "203.0.113.42": "dropped"}
    clients = ["192.168.10.11", "10.244.0.77"]
    packets = [ETHER / tcp(client, 2000, to, 80) for client in clients for to in ends]
    status, found, _ = lab_run(*given, "--pcap", saved(tmp_path / "kept.pcap", packets))
    assert (status, found["agrees"], len(found["flows"])) == (0, True, 6)
    assert {each["source"] for each in found["flows"]} == {"node", "pod"}
    for each in found["flows"]:
        assert each["outcome"] == ends[each["to"].partition(":")[0]]


@pytest.mark.deep
@pytest.mark.parametrize("own", ["192.168.10.11,192.168.10.99", "192.168.10.99,192.168.10.11"])
def test_flows_to_further_addresses_of_the_node_are_replayed_where_the_rules_answer_alike(
    captures: Path, tmp_path: Path, own: str
) -> None:
    folder, port, client = captures / "1.36.2-nftables/dual-stack", 30301, "203.0.113.9"
    flows = [(client, 4000, "192.168.10.11"), (client, 4000, "192.168.10.99")]
    flows += [(client, 4001, "192.168.10.99"), ("127.0.0.1", 4002, "127.0.0.1")]
    packets = [ETHER / tcp(of, at, to, port) for of, at, to in flows]
    path = saved(tmp_path / "own.pcap", packets)
    given = [str(folder / "nft-list-ruleset.txt"), "--node-ip", own]
    status, found, _ = lab_run(*given, "--pcap", path)
    assert (status, found["agrees"], found["not_judged"]) == (0, True, 0)
    assert [each["to"] for each in found["flows"]] == ["192.168.10.11:30301"]
    (left,) = found["passed_over"]
    assert (left["reason"], left["packets"]) == ("to no Service of the dump", 3)
    # In iptables mode NodePorts answer at every address, that of loopback too.
    folder = captures / "1.36.2-iptables-legacy/dual-stack"
    given[0] = str(folder / "iptables-legacy-save.txt")
    status, found, errors = lab_run(*given, "--pcap", path)
    assert (status, found["agrees"], found["not_judged"]) == (0, True, 2)
    assert [each["packet"] for each in found["flows"]] == [1, 3]
    assert "1 not replayed: whose addresses and ports another flow has in the lab" in errors
    assert "1 not replayed: from or to a loopback address" in errors
    assert kubeodds("lab", "run", *given, "--pcap", path, "--strict").returncode == 3


@pytest.mark.deep
def test_a_client_at_loopback_is_the_node_and_is_not_judged(tmp_path: Path) -> None:
    packets = [ETHER / tcp(of, 4000, APP, 80) for of in ("127.0.0.1", CLIENTS["pod"])]
    path = saved(tmp_path / "loopback.pcap", packets)
    status, found, errors = lab_run(*EXAMPLE, "--pcap", path)
    assert (status, found["not_judged"], len(found["flows"])) == (0, 1, 1)
    assert "1 not replayed: from or to a loopback address" in errors
    packets = [ETHER / tcp(of, 4000, APP, 80) for of in ("169.254.3.4", CLIENTS["pod"])]
    _, found, errors = lab_run(*EXAMPLE, "--pcap", saved(tmp_path / "link-local.pcap", packets))
    assert (found["not_judged"], len(found["flows"])) == (1, 1)
    assert "1 not replayed: from a link-local address" in errors
    _, found, _ = lab_run(*EXAMPLE, "--pcap", path, "--from", "pod")
    (left,) = found["passed_over"]
    assert (left["reason"], left["judged"]) == ("from sources that --from does not name", True)


def test_what_may_begin_a_flow_is_not_judged(tmp_path: Path) -> None:
    client = CLIENTS["pod"]
    whole = [ETHER / tcp(client, 3000 + n, APP, 80) for n in range(4)]
    parts = inet.fragment(udp(client, 4000, DNS, 53) / (b"x" * 3000), 1400)
    packets = [*whole, *(ETHER / each for each in parts)]
    # As far as ports, which are of no Service; as far as addresses.
    cut = [(tcp(client, 3100, APP, 80), 24), (tcp(client, 3100, APP, 81), 24)]
    cut += [(udp(client, 3100, APP, 53), 22), (tcp(client, 3000, APP, 80), 24)]
    cut += [(tcp(client, 3101, APP, 80), 20), (tcp(client, 3101, "9.9.9.9", 80), 20)]
    packets += [ETHER / each.__class__(bytes(each)[:length]) for each, length in cut]
    path = saved(tmp_path / "parts.pcap", packets)
    status, found, errors = lab_run(*EXAMPLE, "--pcap", path)
    passed = {each["reason"]: (each["packets"], each["judged"]) for each in found["passed_over"]}
    assert passed == {
        "fragments of IP that may begin flows to Services": (1, False),
        "fragments of IP": (len(parts) - 1, True),
        "truncated by the capture, so that they may begin flows to Services": (2, False),
        "truncated by the capture, or damaged": (3, True),
        "later packets of flows to Services": (1, True),
    }
    assert (status, found["agrees"], found["not_judged"], len(found["flows"])) == (0, True, 3, 4)
    assert "1 not replayed: fragments of IP that may begin flows to Services" in errors
    assert kubeodds("lab", "run", *EXAMPLE, "--pcap", path, "--strict").returncode == 3
    _, found, _ = lab_run(*EXAMPLE, "--pcap", path, "--service", "default/app")
    of_others = {each["reason"]: each["packets"] for each in found["passed_over"]}
    assert of_others["to Services that --service does not name"] == 1
    assert found["not_judged"] == 2


#: Every route of these is asked for by flows of every source.
FEATURES = [
    Case(ROOT / "fixtures/captures/1.36.2-iptables-legacy/two-node@worker1"),
    Case(ROOT / "fixtures/captures/1.36.2-iptables-nft/two-node"),
    Case(ROOT / "fixtures/captures/1.36.2-nftables/two-node@worker1"),
]


@pytest.mark.deep
@pytest.mark.parametrize("given", FEATURES, ids=str)
def test_flows_of_every_route_that_the_lab_measures(given: Case, tmp_path: Path) -> None:
    every = ["pod", "pod-elsewhere", "node", "external", "hairpin"]
    _, measured, _ = lab_run(*given.given, "--flows", "2", "--from", *every)
    objects = json.loads((given.directory / "objects.json").read_text())["items"]
    nodes = {o["metadata"]["name"]: o for o in objects if o["kind"] == "Node"}
    own = next(a["address"] for a in nodes[given.node]["status"]["addresses"])
    cidrs = {n: o["spec"]["podCIDR"].rpartition(".")[0] for n, o in nodes.items()}
    elsewhere = next(cidr for n, cidr in cidrs.items() if n != given.node)
    clients = {"pod": f"{cidrs[given.node]}.201", "pod-elsewhere": f"{elsewhere}.202"}
    clients |= {"node": own, "external": "198.51.100.7"}
    packets = []
    asked = set()
    for number, each in enumerate(measured["measurements"]):
        host, _, port = each["frontend"].partition(" ")[2].rpartition(":")
        to = own if host == "*" else host
        source = each["source"]
        client = clients.get(source) or each["endpoints"][0]["address"]
        if source != "hairpin":
            asked.add((each["service"], each["frontend"], source))
        make = {"tcp": tcp, "udp": udp}[each["protocol"]]
        packets += [make(client, 20_000 + 100 * number + n, to, int(port)) for n in range(40)]
    path = saved(tmp_path / "every.pcap", packets)
    status, found, errors = lab_run(*given.given, "--dead-node", given.victim, "--pcap", path)
    assert status == 0, (errors, found)
    routes = {(e["service"], e["frontend"], e["source"]) for e in found["measurements"]}
    assert asked <= routes
    assert found["counter_difference"] == found["conntrack_difference"] == 0
    assert sum(e["packets"] for e in found["passed_over"]) + len(found["flows"]) == len(packets)


@pytest.mark.deep
def test_flows_of_ipv6_and_with_affinity_are_replayed_too(captures: Path, tmp_path: Path) -> None:
    folder = captures / "1.36.2-iptables-legacy/dual-stack"
    given = [str(folder / "ip6tables-legacy-save.txt"), "--objects", str(folder / "objects.json")]
    given += ["--node", "node-a1"]
    _, measured, _ = lab_run(*given, "--flows", "2")
    packets = []
    for number, each in enumerate(measured["measurements"]):
        to, _, port = each["frontend"].partition(" ")[2].rpartition(":")
        if to == "*" or each["protocol"] == "sctp":
            continue
        of = inet6.IPv6(src="fd00:10:244::4d", dst=to.strip("[]"))
        layer = inet.TCP if each["protocol"] == "tcp" else inet.UDP
        packets += [
            ETHER / of / layer(sport=20_000 + 100 * number + n, dport=int(port)) for n in range(40)
        ]
    status, found, errors = lab_run(*given, "--pcap", saved(tmp_path / "six.pcap", packets))
    assert (status, found["agrees"]) == (0, True), (errors, found)
    assert {each["protocol"] for each in found["flows"]} <= {"tcp", "udp"}
    # A client that session affinity knows from one frontend is not judged at another.
    assert len(found["flows"]) + found["not_judged"] == len(packets)
    assert len(found["flows"]) > 500
    assert found["counter_difference"] == found["conntrack_difference"] == 0


@pytest.mark.deep
def test_a_client_with_session_affinity_stays(captures: Path, tmp_path: Path) -> None:
    folder = captures / "1.36.2-iptables-legacy/features"
    given = [str(folder / "iptables-legacy-save.txt.gz"), "--node", "node-a1"]
    given += ["--objects", str(folder / "objects.json.gz")]
    clients = [f"10.244.0.{number}" for number in range(120, 230)]
    packets = [tcp(c, 2000 + n, "10.96.7.1", 80) for n in range(3) for c in clients]
    path = saved(tmp_path / "affine.pcap", [ETHER / each for each in packets])
    status, found, _ = lab_run(*given, "--pcap", path)
    assert (status, found["agrees"]) == (0, True)
    (measured,) = found["measurements"]
    assert (measured["flows"], measured["repeated"], measured["strayed"]) == (100, 200, 0)
    assert Counter(each["repeated"] for each in found["flows"]) == {False: 100, True: 200}
    # iptables forgets clients beyond 100: nothing is said of those.
    assert found["not_judged"] == 30
