from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from types import SimpleNamespace
from typing import Final

import pytest

from analyzer.arguments.command_line import parse
from analyzer.errors import UsageError
from analyzer.kubeproxy.routes.trace import Question
from analyzer.model.packet import Mark, Packet
from analyzer.model.routing import KernelRoute, Routes
from analyzer.model.value import replace
from analyzer.parsers import iptables_save, nft_text
from analyzer.questions.packet import family_of, is_named, question, resolved
from analyzer.semantics.assumed import DEFAULTS
from tests.support.dumps import at, cluster_ip, dump, view_of

NODE, NODE6, OTHER = map(ip_address, ("172.16.0.1", "fd00:172::1", "172.16.0.2"))
CLIENT, SERVICE = map(ip_address, ("203.0.113.7", "10.96.0.1"))
FROM: Final = ("--from", "203.0.113.7", "--to", "10.96.0.1:80")


def options(*words: str) -> SimpleNamespace:
    return parse(["trace", "DUMP", *words])


def asked(
    *words: str, own: tuple[str, ...] = (), family: str = "ip", routes: Routes | None = None
) -> Question:
    return question(options(*words), tuple(map(ip_address, own)), routes or Routes(), family)


def packet(*words: str, own: tuple[str, ...] = ("172.16.0.1",), family: str = "ip") -> Packet:
    return asked(*words, own=own, family=family).packet


def test_a_packet_goes_from_an_address_to_an_address_and_port() -> None:
    assert packet(*FROM, "--protocol", "udp", "--sport", "5", "--in-interface", "eth0") == Packet(
        protocol="udp",
        source=CLIENT,
        source_port=5,
        destination=SERVICE,
        destination_port=80,
        in_interface="eth0",
    )


def test_what_the_node_makes_comes_in_by_no_device() -> None:
    found = packet("--from-node", "--to", "10.96.0.1:80")
    assert (found.in_interface, found.source) == ("", NODE)
    assert packet(*FROM).in_interface is None


@pytest.mark.parametrize(
    ("to", "own", "source"),
    [
        ("10.96.0.1:80", ("172.16.0.1",), NODE),
        # Of several addresses nobody knows which one it takes.
        ("10.96.0.1:80", ("172.16.0.1", "172.16.0.2"), None),
        ("10.96.0.1:80", (), None),
        ("172.16.0.2:80", ("172.16.0.1", "172.16.0.2"), OTHER),
        ("127.0.0.1:80", ("172.16.0.1",), ip_address("127.0.0.1")),
        # Addresses of the other IP version are none of the packet's.
        ("10.96.0.1:80", ("172.16.0.1", "fd00:172::1"), NODE),
    ],
)
def test_the_node_takes_the_source_that_is_certain(
    to: str, own: tuple[str, ...], source: object
) -> None:
    assert packet("--from-node", "--to", to, own=own).source == source


@pytest.mark.parametrize(
    ("words", "family", "protocol", "icmp"),
    [
        ((), "ip", "icmp", (8, 0)),
        ((), "ip6", "ipv6-icmp", (128, 0)),
        (("--icmp-type", "13"), "ip", "icmp", (13, 0)),
        (("--icmp-type", "8/"), "ip", "icmp", (8, 0)),
        (("--icmp-type", "3/1", "--ctstate", "INVALID"), "ip", "icmp", (3, 1)),
    ],
)
def test_a_ping_is_an_echo_request_unless_its_type_is_said(
    words: tuple[str, ...], family: str, protocol: str, icmp: tuple[int, int]
) -> None:
    source, to = ("10.0.0.1", "10.96.0.1") if family == "ip" else ("fd00::1", "fd00::2")
    found = packet("--from", source, "--to", to, "--protocol", "icmp", *words, family=family)
    assert (found.protocol, found.icmp, found.destination_port) == (protocol, icmp, None)


@pytest.mark.parametrize(
    ("text", "mark"), [("0x4000", 0x4000), ("7", 7), ("0xffffffff", 2**32 - 1)]
)
def test_a_mark_is_a_number_of_32_bits(text: str, mark: int) -> None:
    assert packet(*FROM, "--mark", text).mark == Mark(mark)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--to", "10.96.0.1:80"), "--from IP is needed"),
        (("--from-node", "--in-interface", "lo", "--to", "10.96.0.1:80"), "--in-interface"),
        (("--from", "client", "--to", "10.96.0.1:80"), "--from client"),
        (("--from", "10.0.0.1", "--to", "dns:53"), "--to dns:53"),
        (("--from", "10.0.0.1", "--to", "10.96.0.1"), "needs a port"),
        ((*FROM, "--protocol", "icmp"), "icmp has no ports"),
        ((*FROM, "--icmp-type", "8"), "needs --protocol icmp"),
        ((*FROM, "--sport", "65536"), "--sport 65536"),
        ((*FROM, "--mark", "0x100000000"), "--mark"),
        ((*FROM, "--mark", "red"), "--mark red"),
        ((*FROM, "--affinity", "10.1.0.1"), "--affinity 10.1.0.1"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(words: tuple[str, ...], names: str) -> None:
    with pytest.raises(UsageError, match=names):
        asked(*words)


@pytest.mark.parametrize("kind", ["256", "8/256", "/0", "echo", "1/2/3", "-1"])
def test_an_icmp_type_is_one_number_or_two(kind: str) -> None:
    words = ("--from", "10.0.0.1", "--to", "10.96.0.1", "--protocol", "icmp", f"--icmp-type={kind}")
    with pytest.raises(UsageError, match="--icmp-type"):
        asked(*words)


def test_no_flow_begins_with_an_icmp_error() -> None:
    words = ("--from", "10.0.0.1", "--to", "10.96.0.1", "--protocol", "icmp", "--icmp-type", "3")
    with pytest.raises(UsageError, match="--ctstate INVALID"):
        asked(*words)


def test_state_affinity_and_rates_are_passed_on() -> None:
    found = asked(
        *FROM, "--ctstate", "ESTABLISHED", "--affinity", "10.1.0.1:53", "--assume", "limits=over"
    )
    assert (found.state, found.affinity) == ("ESTABLISHED", at("10.1.0.1", 53))
    assert found.assumed["limits"] == "over"
    assert asked(*FROM).assumed == DEFAULTS


def test_the_nodes_routes_and_its_addresses_of_the_ip_version_are_passed_on() -> None:
    routes = Routes((KernelRoute(ip_network("0.0.0.0/0"), "eth9"),))
    found = asked(*FROM, own=("172.16.0.2", "fd00::1"), routes=routes)
    assert found.addresses == (OTHER,)
    assert found.routes.device(SERVICE) == "eth9"


def test_a_node_whose_addresses_nobody_said_has_unknown_ones() -> None:
    assert asked(*FROM).addresses is None
    assert asked(*FROM, own=("fd00:172::1",)).addresses is None
    assert asked(*FROM, own=("172.16.0.1", "fd00:172::1")).addresses == (NODE,)


def test_the_rules_of_iptables_tell_the_ip_version_and_with_nft_the_destination_does() -> None:
    four = iptables_save.parse("*nat\n:A - [0:0]\nCOMMIT\n", "dump")
    six = iptables_save.parse("*nat\n:A - [0:0]\n-A A -d fd00::1/128\nCOMMIT\n", "dump")
    both = nft_text.parse("table inet t {\n}\n", "dump")
    to_six = options("--from-node", "--to", "[fd00::1]:80")
    assert family_of(options(*FROM), [six]) == "ip6"
    assert family_of(options(*FROM), [both]) == "ip"
    assert family_of(to_six, [both]) == "ip6"
    assert family_of(to_six, [four, six]) == "ip6"
    assert family_of(options(*FROM), [four, six]) == "ip"
    assert family_of(to_six, [four]) == "ip"  # which is refused by who walks the packet


PORTS = view_of(
    dump(
        cluster_ip("ns/dns:tcp", "10.96.0.10", 53),
        cluster_ip("ns/dns:metrics", "10.96.0.10", 9153),
        cluster_ip("ns/dns:udp", "10.96.0.10", 53)
        .replace("-p tcp", "-p udp")
        .replace("-m tcp", "-m udp"),
        cluster_ip("ns/log", "10.96.0.11", 514)
        .replace("-p tcp", "-p udp")
        .replace("-m tcp", "-m udp"),
    )
)


@pytest.mark.parametrize(
    ("words", "to", "protocol"),
    [
        (("dns:53",), "10.96.0.10:53", "tcp"),
        (("dns:53", "--protocol", "udp"), "10.96.0.10:53", "udp"),
        (("svc/dns:53",), "10.96.0.10:53", "tcp"),
        (("dns.ns.svc:9153",), "10.96.0.10:9153", "tcp"),
        (("ns/dns:metrics",), "10.96.0.10:9153", "tcp"),
        (("log",), "10.96.0.11:514", "udp"),
    ],
)
def test_a_service_may_be_named_instead_of_its_address(
    words: tuple[str, ...], to: str, protocol: str
) -> None:
    given = options("--from", "10.0.0.1", "--to", *words)
    assert is_named(given)
    found = resolved(given, PORTS)
    assert (found.to, found.protocol) == (to, protocol)
    assert not is_named(found)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("dns",), "this matches several: ns/dns:metrics (tcp), ns/dns:tcp (tcp); name one"),
        (("log", "--protocol", "tcp"), "no such ServicePort with an address and protocol tcp"),
        (
            ("nonesuch",),
            "expected IP:PORT (for example 10.96.0.10:53 or [fd00::1]:53), or a Service",
        ),
        (("10.96.0.10:99999",), "expected IP:PORT"),
    ],
)
def test_a_name_of_none_or_of_several_is_refused(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        resolved(options("--from", "10.0.0.1", "--to", *words), PORTS)


def test_from_a_pod_is_from_the_one_that_stands_for_them() -> None:
    given = options("--from", "pod", "--to", "10.96.0.10:53")
    assert is_named(given)
    pods = ip_address("10.244.0.9"), ip_address("fd00:244::9")
    view = replace(PORTS, pod_sources=pods)
    assert resolved(given, view).source == "10.244.0.9"
    six = options("--from", "pod", "--to", "[fd00:96::a]:53")
    assert resolved(six, view).source == "fd00:244::9"
    with pytest.raises(UsageError, match="does not show what addresses pods have"):
        resolved(given, replace(PORTS, pod_sources=pods[1:]))
