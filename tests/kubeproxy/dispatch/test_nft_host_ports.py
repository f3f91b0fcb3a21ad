from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.dispatch.host_ports import HostPort
from analyzer.kubeproxy.dispatch.nft import NftDispatches
from analyzer.kubeproxy.dispatch.nft_host_ports import host_ports
from analyzer.kubeproxy.view import Frontend, FrontendKind
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers.nft_text import parse

TO = "dnat to 10.244.1.50:8080"
HOOK = "type nat hook prerouting priority dstnat; policy accept;"


JUMP = "fib daddr type local jump hostports"


def ruleset(*rules: str, entry: str = JUMP, family: str = "ip") -> NftRuleset:
    rows = "".join(f"\t\t{rule}\n" for rule in rules)
    text = (
        f"table {family} cni_hostport {{\n\tchain hostports {{\n{rows}\t}}\n"
        f"\tchain prerouting {{\n\t\t{HOOK}\n\t\t{entry}\n\t}}\n}}\n"
    )
    return parse(text, "dump")


def found(*rules: str, entry: str = JUMP) -> list[HostPort]:
    table = ruleset(*rules, entry=entry).tables["ip", "cni_hostport"]
    return list(host_ports(table, ["prerouting"]))


def host_port(port: int, protocol: str = "tcp", address: str | None = None) -> HostPort:
    host = ip_address(address) if address else None
    return HostPort(protocol, Frontend(FrontendKind.HOST_PORT, host, port), "hostports")


@pytest.mark.parametrize(
    "match", ["tcp dport 80", "ip protocol tcp th dport 80", "meta l4proto tcp th dport 80"]
)
def test_each_version_s_rules_are_host_ports(match: str) -> None:
    (given,) = found(f'{match} {TO} comment "0123"')
    assert given == host_port(80)
    assert given.name == "hostPort 80"


def test_one_of_an_address_is_a_frontend_of_that_address() -> None:
    (given,) = found(f"ip daddr 192.168.0.11 udp dport 53 {TO}")
    assert given == host_port(53, "udp", "192.168.0.11")
    assert given.name == "hostPort 192.168.0.11:53"


def test_each_is_found_once_whichever_chain_leads_to_it() -> None:
    rules = f"tcp dport 80 {TO}", f"tcp dport 80 {TO}", f"udp dport 80 {TO}"
    twice = "jump hostports\n\t\tfib daddr type local jump hostports"
    assert found(*rules, entry=twice) == [host_port(80), host_port(80, "udp")]


@pytest.mark.parametrize(
    "rule", [f"tcp dport {{ 80, 443 }} {TO}", TO, "tcp dport 80 accept", f"ip protocol tcp {TO}"]
)
def test_other_rules_are_none(rule: str) -> None:
    assert found(rule) == []


def test_rules_that_no_packet_comes_to_are_none() -> None:
    assert found(f"tcp dport 80 {TO}", entry="accept") == []


@pytest.mark.parametrize(("family", "of"), [("ip", ["ip"]), ("ip6", ["ip6"]), ("inet", [])])
def test_they_are_of_the_family_of_their_table(family: str, of: list[str]) -> None:
    """portmap has a table of each, and none of both."""
    given = ruleset("tcp dport 80 dnat to :8080", family=family)
    read = {each: NftDispatches(given, each, None, plainly=True) for each in ("ip", "ip6")}
    assert [each for each, dispatches in read.items() if dispatches.dispatches] == of
