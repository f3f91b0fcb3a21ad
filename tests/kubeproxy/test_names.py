from __future__ import annotations

import pytest

from analyzer.kubeproxy.names import (
    ServiceName,
    chain_hash,
    name_and_kind,
    name_in_chain,
    nft_endpoint_name,
    nft_service_name,
    service_name,
)


def test_a_service_chain_ends_in_the_hash_of_its_name_and_protocol() -> None:
    assert chain_hash("ns4/svc4:p80", "tcp") == "4SW47YFZTEDKD3PK"


def test_an_endpoint_chain_ends_in_the_hash_of_its_address_too() -> None:
    assert chain_hash("ns4/svc4:p80", "tcp", "10.180.0.5:80") == "C6EBXVWJJZMIWKLZ"


def test_nftables_mode_names_chains_by_path_and_hash() -> None:
    found = nft_service_name("kube-system/kube-dns:dns", "udp")
    assert found == "FY5PMXPG-kube-system/kube-dns/udp/dns"
    assert name_in_chain(f"service-{found}") == "kube-system/kube-dns:dns"
    assert nft_service_name("count/ep-5", "tcp") == "PD7KNXED-count/ep-5/tcp/"


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        ("10.244.0.51:8080", "77X2M6U2-feat/affinity/tcp/__10.244.0.51/8080"),
        ("[fd00:10:244:0::20]:8080", "RNC2CBXZ-ds/affinity/tcp/__fd00.10.244.0..20/8080"),
    ],
)
def test_nftables_mode_names_endpoints_without_a_colon(endpoint: str, name: str) -> None:
    service = name.split("-", 1)[1].partition("/tcp/")[0]
    assert nft_endpoint_name(service, "tcp", endpoint) == name


def test_a_name_too_long_for_nft_is_cut() -> None:
    long = f"{'n' * 63}/{'s' * 63}:{'p' * 63}"
    assert len(nft_service_name(long, "sctp")) < 240
    endpoint = f"[{':'.join(['ffff'] * 8)}]:65535"
    found = nft_endpoint_name(long, "sctp", endpoint)
    assert len(found) == 240
    assert found.endswith("__ffff.ffff.ffff.ffff.ffff.ffff....")
    assert name_in_chain(f"endpoint-{found}") is None


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
