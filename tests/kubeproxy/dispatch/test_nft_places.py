from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.dispatch.nft_places import PacketPattern, places
from analyzer.model.nft import expressions as e
from analyzer.model.nft.ruleset import Table
from analyzer.model.nft.statements import Reject
from analyzer.parsers.nft_text import parse

SERVICE = ip_address("10.96.0.1")
FRONTEND = PacketPattern(address=SERVICE, protocol="tcp", port=80, verdict=e.Goto("svc"))


def table(*rules: str, more: str = "") -> Table:
    rows = "".join(f"\t\t{rule}\n" for rule in rules)
    text = f"table ip t {{\n{more}\tchain svc {{\n\t}}\n\tchain start {{\n{rows}\t}}\n}}\n"
    return parse(text, "dump").tables["ip", "t"]


def found(*rules: str, more: str = "") -> list[PacketPattern]:
    return list(places(table(*rules, more=more), ["start"]))


MAP = (
    "\tmap m {\n\t\ttype ipv4_addr . inet_proto . inet_service : verdict\n"
    '\t\telements = { 10.96.0.1 . tcp . 80 comment "ns/a:http" : goto svc }\n\t}\n'
)
CHAIN = "\tchain next {\n\t\ttcp dport 80 goto svc\n\t}\n"


@pytest.mark.parametrize(
    ("rules", "more"),
    [
        (("ip daddr 10.96.0.1 tcp dport 80 goto svc",), ""),
        (("ip daddr 10.96.0.1 meta l4proto tcp th dport 80 goto svc",), ""),
        (("ip protocol tcp th dport 80 ip daddr 10.96.0.1 goto svc",), ""),
        (("ip daddr . meta l4proto . th dport vmap { 10.96.0.1 . tcp . 80 : goto svc }",), ""),
        (("meta l4proto tcp th dport . ip daddr vmap { 80 . 10.96.0.1 : goto svc }",), ""),
        (("ip daddr 10.96.0.1 jump next",), CHAIN),
        (("ip daddr vmap { 10.96.0.1 : goto next }",), CHAIN),
    ],
)
def test_a_frontend_is_found_however_its_rules_ask(rules: tuple[str, ...], more: str) -> None:
    assert found(*rules, more=more) == [FRONTEND]


def test_an_element_tells_its_comment() -> None:
    (place,) = found("ip daddr . meta l4proto . th dport vmap @m", more=MAP)
    assert (place.address, place.comment) == (SERVICE, "ns/a:http")


def test_a_map_that_is_taken_gives_no_elements() -> None:
    offered: list[str] = []

    def take(name: str) -> bool:
        offered.append(name)
        return True

    given = table("ip daddr . meta l4proto . th dport vmap @m", more=MAP)
    assert list(places(given, ["start"], take)) == []
    assert offered == ["m"]
    # Where more is asked of a packet, the map alone does not tell what becomes of it.
    given = table("ip daddr 10.96.0.1 ip daddr . meta l4proto . th dport vmap @m", more=MAP)
    assert len(list(places(given, ["start"], take))) == 1
    assert offered == ["m"]


def test_node_ports_are_those_of_any_address_of_the_node() -> None:
    (any_,) = found("fib daddr type local tcp dport 30080 goto svc")
    assert (any_.is_local, any_.address, any_.port) == (True, None, 30080)
    (some,) = found("ip daddr @node-ips tcp dport 30080 goto svc")
    assert (some.among, some.is_local) == ("node-ips", False)


@pytest.mark.parametrize(
    ("verdict", "want"),
    [
        ("drop", e.Drop()),
        ("reject with tcp reset", Reject("tcp reset")),
        ("jump svc", e.Jump("svc")),
    ],
)
def test_what_is_done_with_the_packets_is_told(verdict: str, want: object) -> None:
    (place,) = found(f"ip daddr 10.96.0.1 tcp dport 80 {verdict}")
    assert place.verdict == want


@pytest.mark.parametrize(
    "rule",
    [
        "tcp dport 80 goto svc",
        "ip daddr 10.96.0.1 th dport 80 goto svc",
        "ip daddr 10.96.0.1 meta l4proto tcp goto svc",
        "ip daddr 10.96.0.1 meta l4proto icmp th dport 80 goto svc",
        "ip daddr != 10.96.0.1 tcp dport 80 goto svc",
        "ip daddr 10.96.0.1 tcp sport 80 goto svc",
        "ip daddr 10.96.0.1 tcp dport 80 accept",
        "ip daddr 10.96.0.1 tcp dport 80",
    ],
)
def test_what_names_no_address_and_port_of_a_service_is_none(rule: str) -> None:
    assert [place for place in found(rule) if place.is_of_service] == []


def test_chains_that_loop_or_are_missing_end_the_search() -> None:
    assert found("jump start", "jump gone", "ip daddr 10.96.0.1 tcp dport 80 goto svc") == [
        FRONTEND
    ]
