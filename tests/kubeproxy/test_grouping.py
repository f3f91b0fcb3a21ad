"""Frontends of one name and protocol are one ServicePort, refused ones included."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from analyzer.kubeproxy.grouping import first_of, grouped, plain_port, service_port
from analyzer.kubeproxy.view import Frontend, FrontendKind


@dataclass(frozen=True)
class Dispatch:
    name: str
    protocol: str
    frontend: Frontend
    chain: str = ""


def cluster_ip(last: int) -> Frontend:
    return Frontend(FrontendKind.CLUSTER_IP, ip_address(f"10.0.0.{last}"), 80)


A, B, C = map(cluster_ip, (1, 2, 3))


def test_frontends_are_grouped_by_name_and_protocol_in_their_order() -> None:
    found = [Dispatch("b", "tcp", B), Dispatch("a", "udp", A), Dispatch("a", "tcp", A)]
    more = Dispatch("b", "tcp", C)
    refused = {("b", "tcp"): [(A, "reject")], ("0", "tcp"): [(C, "drop")]}
    assert list(grouped([*found, more], refused)) == [
        (("0", "tcp"), [], [(C, "drop")]),
        (("a", "tcp"), [found[2]], []),
        (("a", "udp"), [found[1]], []),
        (("b", "tcp"), [found[0], more], [(A, "reject")]),
    ]


def test_of_two_rules_for_a_frontend_the_first_one_counts() -> None:
    found = [Dispatch("a", "tcp", B, "1"), Dispatch("a", "tcp", A), Dispatch("a", "tcp", B, "2")]
    assert first_of(found) == found[:2]


def test_a_service_port_has_each_frontend_once() -> None:
    found = [Dispatch("n/a:p", "tcp", B), Dispatch("n/a:p", "tcp", A), Dispatch("n/a:p", "tcp", B)]
    refused = [(A, "reject"), (C, "drop")]
    made = service_port(("n/a:p", "tcp"), found, (), refused, affinity=7, unfilled=[found[1]])
    assert made.frontends == (B, A, C)
    assert made.refusals == tuple(refused)
    assert made.unfilled == (A,)
    assert (made.name.text, made.protocol, made.affinity) == ("n/a:p", "tcp", 7)


def test_an_only_plain_frontend_is_the_same_service_port() -> None:
    only = Dispatch("n/a:p", "udp", A)
    whole = service_port(("n/a:p", "udp"), [only], (), [], affinity=None, unfilled=[])
    assert plain_port(only, ()) == whole
