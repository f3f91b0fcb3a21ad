"""``lab verify``: every route of a dump, each measured or named, judged as one."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from analyzer.inputs.recognised import read_input
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
from analyzer.kubeproxy.view import Source
from netns_lab.arguments import parser
from netns_lab.errors import LabError
from netns_lab.layout import PacketLayout
from netns_lab.replay import Flows
from tests.support.lab.running import (
    FIXTURES,
    NFT_CASES,
    ROOT,
    SWAPPED,
    case,
    kubeodds,
    python,
    swapped,
)

pytestmark = pytest.mark.lab

SERVICES = 8
#: A resolution that takes few flows.
FLOWS = "20%"


def generated(folder: Path, kind: str) -> list[str]:
    """Write a dump with Services of all kinds, and the objects that they are of."""
    items = mixed(SERVICES, 4, sizes=(1, 2, 3))
    config = proxy_config(items, FLAGS, node=node_name(1), layout=RulesLayout.V1_36)
    ports = list(service_ports(items, RulesLayout.V1_36))
    text = render_nft(ports, config) if kind == "nft" else render_rules(ports, config)
    dump, objects = folder / "dump.txt", folder / "objects.json"
    dump.write_text(text, encoding="ascii")
    objects.write_text(json.dumps({"kind": "List", "items": items}), encoding="ascii")
    return [str(dump), "--objects", str(objects), "--node", node_name(1)]


def verify(*words: str) -> tuple[int, dict[str, Any]]:
    done = kubeodds("lab", "verify", *words, "-o", "json")
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    if not found["agrees"]:  # to be shown with the test that it fails
        sys.stderr.write(f"{[each for each in _judged(found) if not each['agrees']]}\n")
    return done.returncode, found


def _judged(found: Any) -> Iterator[dict[str, Any]]:
    """Give all objects of a document that say whether they agree."""
    if isinstance(found, dict):
        if "agrees" in found:
            yield {key: held for key, held in found.items() if not isinstance(held, list | dict)}
        found = list(found.values())
    for each in found if isinstance(found, list) else []:
        yield from _judged(each)


@pytest.mark.alike(1)
@pytest.mark.parametrize("kind", ["iptables", "nft"])
def test_every_route_of_services_of_all_kinds_is_measured_or_named(
    kind: str, tmp_path: Path
) -> None:
    given = generated(tmp_path, kind)
    status, found = verify(*given, "--resolution", FLOWS)
    assert (status, found["agrees"]) == (0, True)
    options = parser().parse_args(["verify", *given], SimpleNamespace())
    services = read_input(options).view.services
    predicted = sum(1 for s in services for source in Source for _ in s.every_route(source))
    assert found["routes"] + len(found["left_out"]) == predicted
    assert {each["source"] for each in found["measurements"]} == {
        "pod", "pod-elsewhere", "node", "external", "hairpin"
    }  # fmt: skip
    kinds = {each["frontend"].split()[0] for each in found["measurements"]}
    assert kinds >= {"ClusterIP", "NodePort"}
    assert not any(each["strayed"] for each in found["measurements"])


@pytest.mark.parametrize(
    ("name", "dead", "reason"),
    [
        ("two-node@worker1", ["--dead-node", "master"], "dead endpoints send no flows"),
        (
            "two-node",
            [],
            "an endpoint that has the node's own address sends as the node does",
        ),
    ],
)
def test_a_hairpin_route_of_which_no_endpoint_sends_is_named(
    name: str, dead: list[str], reason: str
) -> None:
    """The API server's only endpoint is the control plane's node."""
    given = case(f"1.36.2-iptables-legacy/{name}").given
    status, found = verify(*given, *dead, "--from", "hairpin", "--resolution", FLOWS)
    assert (status, found["agrees"]) == (0, True)
    (left,) = found["left_out"]
    assert (left["service"], left["reason"]) == ("default/kubernetes:https", reason)
    measured = {each["service"] for each in found["measurements"]}
    assert found["routes"] == len(measured) == 4


def test_where_no_endpoint_can_send_nothing_is_judged() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1").given
    asked = ["--service", "default/app", "--from", "hairpin"]
    done = kubeodds("lab", "verify", *given, "--dead", "10.244.0.7,10.244.1.9", *asked)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kubeodds: dead endpoints send no flows\n"


@pytest.mark.deep
def test_both_ip_versions_are_measured_in_one_run() -> None:
    folder = FIXTURES.parent / "check" / "1.36.2-iptables-legacy" / "dual-stack"
    dumps = [str(folder / f"{each}-legacy-save.txt") for each in ("iptables", "ip6tables")]
    given = [*dumps, "--objects", str(folder / "objects.json")]
    dead = ["--node", "node-a1", "--dead-node", "node-b1"]
    status, found = verify(*given, *dead, "--resolution", FLOWS)
    assert (status, found["agrees"]) == (0, True)
    assert {each["source"] for each in found["measurements"]} == {
        "pod", "pod-elsewhere", "node", "external", "hairpin"
    }  # fmt: skip
    assert {each["protocol"] for each in found["measurements"]} == {"tcp", "udp"}
    assert {each["family"] for each in found["measurements"]} == {"ip", "ip6"}
    landed = [
        each
        for measured in found["measurements"]
        for each in measured["endpoints"]
        if each["landed"]
    ]
    # Who lives answers each flow, who is dead none; the rules count what the captures hear.
    assert any(each["dead"] for each in landed)
    for each in landed:
        assert each["answered"] == (0 if each["dead"] else each["landed"])


#: Rules by which what comes from one endpoint is of a zone of its own.
ZONES = {
    "iptables": "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -s {} -j CT --zone 5\nCOMMIT\n",
    "nft": """table ip zones {{
\tchain prerouting {{
\t\ttype filter hook prerouting priority raw; policy accept;
\t\tip saddr {} ct zone set 5
\t}}
}}
""",
}


@pytest.mark.parametrize("kind", ZONES)
def test_answers_whose_addresses_stay_as_they_are_are_no_flows(kind: str, tmp_path: Path) -> None:
    """conntrack of another zone does not know them: they come from the endpoint, to a client."""
    given = NFT_CASES[0] if kind == "nft" else case("1.14.0-iptables-legacy/seed-dns")
    address = "10.1.0.2"
    other = tmp_path / "other.txt"
    other.write_text(ZONES[kind].format(address))
    status, found = verify(*given.given, "--other-rules", str(other), "--resolution", FLOWS)
    assert (status, found["agrees"]) == (0, True)
    for protocol in ("tcp", "udp"):
        for source in ("pod", "node", "external"):
            of = [
                each
                for measured in found["measurements"]
                if (measured["protocol"], measured["source"]) == (protocol, source)
                for each in measured["endpoints"]
            ]
            assert {each["address"] for each in of} > {address}
            for each in of:
                answered = 0 if each["address"] == address else each["landed"]
                assert each["landed"] > 0
                assert each["answered"] == answered


@pytest.mark.parametrize("forwarded", [True, False])
def test_flows_that_pass_by_a_refusal_go_on_unchanged(forwarded: bool, tmp_path: Path) -> None:
    """As of kube-proxy 1.14, whose rules for external addresses INPUT alone leads to.

    What the node itself sends traverses neither INPUT nor FORWARD. Where flows from outside end
    that are forwarded back there is not predicted.
    """
    text = Path(case("1.36.2-iptables-legacy/two-node@worker1").dump).read_text()
    lines = [
        line
        for line in text.splitlines()
        if forwarded or not line.startswith("-A FORWARD") or "EXTERNAL-SERVICES" not in line
    ]
    refusal = (
        '-A KUBE-EXTERNAL-SERVICES -d 198.51.100.3/32 -p tcp -m comment --comment "default/gone '
        'has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable'
    )
    lines.insert(next(at for at, each in enumerate(lines) if each.startswith("-A")), refusal)
    dump = tmp_path / "dump.txt"
    dump.write_text("\n".join([*lines, ""]))
    done = kubeodds("lab", "verify", str(dump), "--service", "default/gone", "-o", "json")
    closed = tmp_path / "closed.txt"
    closed.write_text("\n".join([*lines, ""]).replace(":OUTPUT ACCEPT", ":OUTPUT DROP"))
    assert closed.read_text() != dump.read_text()
    node = kubeodds("lab", "verify", str(closed), "--service", "default/gone", "--from", "node")
    assert (node.returncode, node.stdout) == (2, "")
    assert "how they end is not predicted" in node.stderr
    found = json.loads(done.stdout)
    assert (done.returncode, found["agrees"]) == (0, True)
    measured = {each["source"]: each["rejected"] for each in found["measurements"]}
    left_out = [each["source"] for each in found["left_out"]]
    if forwarded:
        assert measured == {"pod": 20, "pod-elsewhere": 20, "node": 0, "external": 20}
        assert left_out == []
    else:
        assert measured == {"pod": 0, "pod-elsewhere": 0, "node": 0}
        assert left_out == ["external"]
        assert "how they end is not predicted" in json.dumps(found["left_out"])


def test_flows_that_others_send_to_a_port_of_the_node_are_named(tmp_path: Path) -> None:
    """What answers there, if anything does, no dump shows."""
    text = (ROOT / "fixtures/noise/base.txt").read_text()
    row = "-A PREROUTING -d 10.96.18.52/32 -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 15006"
    dump = tmp_path / "dump.txt"
    dump.write_text(text.replace("-A PREROUTING -m comment", f"{row}\n-A PREROUTING -m comment", 1))
    given = ("--objects", str(ROOT / "fixtures/noise/objects.json"), "--node", "worker1")
    asked = ("--service", "default/app", "--resolution", "40%", "-o", "json")
    done = kubeodds("lab", "verify", str(dump), *given, *asked)
    found = json.loads(done.stdout)
    assert (done.returncode, found["agrees"]) == (0, True)
    assert {each["source"] for each in found["measurements"]} == {"node"}
    assert [each["source"] for each in found["left_out"]] == [
        "pod",
        "pod-elsewhere",
        "external",
        "hairpin",
    ]
    assert "how they end is not predicted" in json.dumps(found["left_out"])


REDIRECT = "REDIRECT --to-ports 15006"


def redirected_by_half(folder: Path) -> list[str]:
    """Return what asks about a Service of which others send half of the flows to the node."""
    text = (ROOT / "fixtures/noise/base.txt").read_text()
    row = (
        "-A PREROUTING -d 10.96.18.52/32 -p tcp -m tcp --dport 80 -m statistic --mode random "
        f"--probability 0.50000000000 -j {REDIRECT}"
    )
    dump = folder / "dump.txt"
    dump.write_text(text.replace("-A PREROUTING -m comment", f"{row}\n-A PREROUTING -m comment", 1))
    given = [str(dump), "--objects", str(ROOT / "fixtures/noise/objects.json")]
    return [*given, "--node", "worker1", "--service", "default/app", "--flows", "60", "-o", "json"]


@pytest.mark.parametrize(
    ("to", "source"),
    [("10.244.1.4:53", "pod"), pytest.param("10.244.1.9:81", "hairpin", marks=pytest.mark.deep)],
)
def test_what_lands_on_a_pod_where_the_end_is_not_known_disagrees(
    tmp_path: Path, to: str, source: str
) -> None:
    """A pod of another Service, and another port of the right pod."""
    program = tmp_path / "swapped.py"
    program.write_text(swapped(REDIRECT, f"DNAT --to-destination {to}"))
    done = python(str(program), "run", *redirected_by_half(tmp_path), "--from", source)
    found = json.loads(done.stdout)
    assert (done.returncode, found["agrees"]) == (1, False)
    assert {each["source"] for each in found["measurements"]} == {source}
    for each in found["measurements"]:
        assert re.match(rf"{to} drew [1-9]\d* of \d+ flows", each["faults"][0])


def test_flows_of_which_a_part_goes_to_a_port_of_the_node_are_measured(tmp_path: Path) -> None:
    """No rule ends that part: a device without an address, or the node's kernel."""
    given = redirected_by_half(tmp_path)
    done = kubeodds("lab", "run", *given, "--from", "pod,node,hairpin")
    found = json.loads(done.stdout)
    assert (done.returncode, found["agrees"], found["left_out"]) == (0, True, [])
    for each in found["measurements"]:
        is_own = each["source"] == "node"
        assert each["ended_by"] is None
        gone = each["rejected"] + each["unaccounted"]
        assert gone == 0 if is_own else 0.2 < gone / each["flows"] < 0.8
        assert each["ended"]["upper"]["value"] == (0 if is_own else 0.5)


def test_a_route_without_clients_is_an_error_with_a_message() -> None:
    with pytest.raises(LabError, match="rules tell apart all addresses"):
        Flows(PacketLayout(4, "udp"), (ip_address("10.96.0.10"), 53), (), ("", ""), 1)


def test_text_counts_the_routes_and_judges_them_together() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1").given
    done = kubeodds("lab", "verify", *given, "--resolution", FLOWS, "--service", "default/app")
    assert done.returncode == 0, done.stderr
    assert "5 routes predicted: 5 measured, 0 not." in done.stdout
    assert "false-alarm rate 1e-06 for the whole" in done.stdout


def test_a_dump_that_the_kernel_contradicts_is_found_out(tmp_path: Path) -> None:
    """The prediction is of one dump, the kernel's rules are of another."""
    given = case("1.36.2-iptables-legacy/seed-dns@worker1")
    program = Path(tmp_path, "swap.py")
    program.write_text(SWAPPED)
    words = ["verify", *given.given, "--service", "kube-dns:dns", "-o", "junit"]
    done = python(str(program), *words)
    assert done.returncode == 1, done.stderr
    (suite,) = ET.fromstring(done.stdout)  # noqa: S314  # our own
    assert suite.attrib["name"] == "kube-system/kube-dns:dns/udp"
    assert suite.attrib["tests"] == suite.attrib["failures"] == "6"
    assert suite[0][0].tag == "failure"
    assert len({each.attrib["name"] for each in suite}) == 6  # a hairpin route has two senders


@pytest.mark.parametrize("said", ["0%", "101%", "few"])
def test_a_resolution_that_is_none_is_refused(said: str) -> None:
    done = kubeodds("lab", "verify", "dump.txt", "--resolution", said)
    assert done.returncode == 2
    assert "expected a percentage from 0.1% to 100%, for example 5%" in done.stderr


#: A Service without endpoints, and one that has some.
ENDS = """*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
-A INPUT -m conntrack --ctstate NEW -j KUBE-SERVICES
-A FORWARD -m conntrack --ctstate NEW -j KUBE-SERVICES
-A OUTPUT -m conntrack --ctstate NEW -j KUBE-SERVICES
{reject}
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-A - [0:0]
:KUBE-SEP-A - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.8/32 -p tcp -m comment --comment "ns/it" -m tcp --dport 80 -j KUBE-SVC-A
-A KUBE-SVC-A -m comment --comment "ns/it -> 10.244.1.2:80" -j KUBE-SEP-A
-A KUBE-SEP-A -p tcp -m comment --comment "ns/it" -m tcp -j DNAT --to-destination 10.244.1.2:80
COMMIT
"""


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_flows_that_a_rule_rejects_are_told_and_counted_by_that_rule(
    protocol: str, tmp_path: Path
) -> None:
    reject = (
        f"-A KUBE-SERVICES -d 10.96.0.7/32 -p {protocol} -m comment "
        f'--comment "ns/gone has no endpoints" -m {protocol} --dport 80 '
        "-j REJECT --reject-with icmp-port-unreachable"
    )
    dump = tmp_path / "dump.txt"
    dump.write_text(ENDS.replace("{reject}", reject), encoding="ascii")
    status, found = verify(str(dump), "--service", "ns/gone", "--from", "pod", "node", "external")
    assert (status, found["agrees"]) == (0, True)
    assert len(found["measurements"]) == 3
    for each in found["measurements"]:
        assert each["rejected"] == each["flows"] > 0 == each["unaccounted"]
        (rule,) = each["ended_by"]
        assert rule["packets"] == each["flows"]
        assert "ns/gone has no endpoints" in rule["rule"]
