from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netns_lab.dns import respond, telling
from tests.support.effort import examples

dns = pytest.importorskip("scapy.layers.dns", reason="scapy is not installed")


def asked(name: str = "kubernetes.default.svc.cluster.local", kind: str = "A") -> bytes:
    return bytes(dns.DNS(id=4711, rd=1, qd=dns.DNSQR(qname=name, qtype=kind)))


def read(data: bytes) -> Any:
    return dns.DNS(data)


def test_a_name_has_an_address() -> None:
    found = read(respond(asked()))
    assert (found.id, found.qr, found.rcode, found.ancount) == (4711, 1, 0, 1)
    assert found.qd[0].qname == found.an[0].rrname == b"kubernetes.default.svc.cluster.local."
    assert (found.an[0].type, found.an[0].rdata) == (1, "203.0.113.53")


@pytest.mark.parametrize("kind", ["AAAA", "SRV", "TXT"])
def test_of_other_types_there_is_nothing_and_that_is_no_error(kind: str) -> None:
    found = read(respond(asked(kind=kind)))
    assert (found.rcode, found.ancount, found.qdcount) == (0, 0, 1)


def test_the_root_has_an_address_too() -> None:
    assert read(respond(asked("."))).an[0].rdata == "203.0.113.53"


@pytest.mark.parametrize("length", [2, 12, 13, 30, -1])
def test_a_query_that_is_cut_off_is_refused(length: int) -> None:
    found = read(respond(asked()[:length]))
    assert (found.id, found.rcode, found.qdcount, found.ancount) == (4711, 5, 0, 0)


def test_who_knows_just_some_names_says_so_of_others() -> None:
    answers = telling({"a.example": {bytes([192, 0, 2, 1])}})
    assert read(answers(asked("A.Example."))).ancount == 1
    found = read(answers(asked("b.a.example")))
    assert (found.id, found.rcode, found.qdcount, found.ancount) == (4711, 3, 1, 0)
    assert read(answers(asked()[:13])).rcode == 5


@examples(60, 2_000)
@given(st.binary(min_size=2, max_size=80))
def test_whatever_arrives_is_answered_under_its_number(query: bytes) -> None:
    for answers in (respond, telling({"a": ()})):
        found = answers(query)
        assert found[:2] == query[:2]
        assert len(found) >= 12


def test_each_type_of_address_is_told_where_it_is_asked_for() -> None:
    address = ip_address("fd00::a")
    answers = telling({"a.example": {bytes([192, 0, 2, 1]), address.packed}})
    (four,) = read(answers(asked("a.example."))).an
    assert (four.type, four.rdata) == (1, "192.0.2.1")
    (six,) = read(answers(asked("a.example.", kind="AAAA"))).an
    assert (six.type, six.rdata) == (28, str(address))
