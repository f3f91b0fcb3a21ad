from __future__ import annotations

import pytest

from analyzer.kubeproxy.names import ServiceName, chain_hash, name_and_kind, service_name


def test_a_service_chain_ends_in_the_hash_of_its_name_and_protocol() -> None:
    assert chain_hash("ns4/svc4:p80", "tcp") == "4SW47YFZTEDKD3PK"


def test_an_endpoint_chain_ends_in_the_hash_of_its_address_too() -> None:
    assert chain_hash("ns4/svc4:p80", "tcp", "10.180.0.5:80") == "C6EBXVWJJZMIWKLZ"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ns/name", ServiceName("ns", "name", None, "ns/name")),
        ("ns/name:port", ServiceName("ns", "name", "port", "ns/name:port")),
        ("ns/name:", ServiceName("ns", "name", None, "ns/name")),
        ("10.0.0.1:80", ServiceName(None, None, None, "10.0.0.1:80")),
    ],
)
def test_a_name_is_taken_apart(text: str, name: ServiceName) -> None:
    assert service_name(text) == name


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("ns/a:http cluster IP", ("ns/a:http", "ClusterIP")),
        ("ns/a external IP", ("ns/a", "ExternalIP")),
        ("ns/a: loadbalancer IP", ("ns/a:", "LoadBalancerIP")),
        ("ns/a:http has no endpoints", ("ns/a:http", None)),
        ("ns/a:http has no local endpoints", ("ns/a:http", None)),
        ("ns/a:http", (None, None)),
        ("kubernetes service portals", (None, None)),
        ("see ns/a:http cluster IP", (None, None)),
    ],
)
def test_a_comment_tells_the_name_and_the_kind(
    comment: str, found: tuple[str | None, str | None]
) -> None:
    assert name_and_kind(comment) == found
