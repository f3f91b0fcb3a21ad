"""What is read again from JSON is what was written: each route, each share, each bit."""

from __future__ import annotations

import json
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from analyzer.kubeproxy.generate import iptables_save, services
from analyzer.kubeproxy.view import ServicePort, View
from analyzer.model.cluster import Cluster, Node
from analyzer.parsers.formats import read_ruleset
from analyzer.reports import services_json
from analyzer.reports.answers import ServicesAnswer
from tests.support.answers import BEFORE, RICH
from tests.support.captures import FIXTURES, ROOT
from tests.support.dumps import chance, cluster_ip, dump, endpoint
from tests.support.json_reader import read, rows
from tests.support.reading import recogniser

DUMPS = sorted(
    path
    for pattern in ("*/*/iptables-*save.txt", "*/*/nft-list-ruleset.*")
    for path in FIXTURES.glob(pattern)
)
DEFECTS = sorted(path for path in (ROOT / "fixtures" / "defects").glob("mas*.txt"))
NOWHERE = Cluster()
#: Three endpoints of which two are drawn in the other order, and one by one frontend only.
TURNED = dump(
    cluster_ip("ns/a:http"),
    cluster_ip("ns/a:http", "10.96.0.7", chain="KUBE-EXT-A").replace("cluster", "external"),
    chance("0.33333333349", "KUBE-SEP-1"),
    chance("0.25000000000", "KUBE-SEP-2"),
    "-A KUBE-SVC-A -j KUBE-SEP-3",
    chance("0.25000000000", "KUBE-SEP-3", chain="KUBE-EXT-A"),
    chance("0.12500000000", "KUBE-SEP-4", chain="KUBE-EXT-A"),
    *[endpoint(f"KUBE-SEP-{n}", f"10.0.0.{n}:80") for n in (1, 2, 3, 4)],
)


def written(data: bytes, cluster: Cluster = NOWHERE) -> tuple[View, str]:
    ruleset = read_ruleset(data, "dump")
    view = recogniser(ruleset, cluster).view()
    answer = ServicesAnswer(
        ruleset=ruleset, cluster=cluster, view=view, services=view.services, diagnostics=()
    )
    return view, "".join(services_json.render(answer))


def check(data: bytes, cluster: Cluster = NOWHERE) -> list[Any]:
    view, text = written(data, cluster)
    told: list[Any] = read(text)["services"]
    for service, told_of in zip(view.services, told, strict=True):
        assert told_of["name"] == service.name.text
        same(service, told_of)
    document = json.loads(text)
    for each in document["services"]:
        addresses = [(e["address"], e["port"]) for e in rows(each["endpoints"])]
        assert len(addresses) == len(set(addresses))
    for part in (document["routes"], document["distributions"]):
        once = [json.dumps(each) for each in part]
        assert len(once) == len(set(once))
    used = {each["routes"] for each in document["services"]}
    assert used == set(range(len(document["routes"])))
    return told


def same(service: ServicePort, told: Any) -> None:
    assert len(told["routes"]) == len(service.routes)
    for route, found in zip(service.routes, told["routes"], strict=True):
        assert found["source"] == route.source.value
        assert found["network"] == (None if route.network is None else str(route.network))
        assert found["unresolved"] == route.unresolved.as_fraction()
        where = route.frontend.address
        assert found["frontend"]["kind"] == route.frontend.kind.value
        assert found["frontend"]["address"] == (None if where is None else str(where))
        assert found["frontend"]["port"] == route.frontend.port
        wanted = {
            (str(s.endpoint.address), s.endpoint.port): (
                (s.share.lower.as_fraction(), s.share.upper.as_fraction()),
                s.masquerade,
            )
            for s in route.shares
        }
        assert wanted == {
            (e["address"], e["port"]): (e["share"], e["masquerade"]) for e in found["endpoints"]
        }


@pytest.mark.parametrize("dump_file", [*DUMPS, *DEFECTS], ids=lambda path: str(path)[-60:])
def test_every_route_is_read_again_as_it_was(dump_file: Path) -> None:
    check(dump_file.read_bytes())


@pytest.mark.parametrize("text", [RICH, BEFORE, TURNED], ids=["unknown", "known", "turned"])
def test_every_route_of_an_odd_dump_is_read_again_as_it_was(text: str) -> None:
    (first, *_) = check(text.encode())
    assert {route["source"] for route in first["routes"]} >= {"pod", "node", "external"}


def test_every_endpoint_tells_where_it_is() -> None:
    nodes = {"n1": Node(name="n1", zone="z1")}
    cluster = Cluster(nodes).with_networks([(ip_network("10.0.0.1/32"), "n1")])
    service = check(BEFORE.encode(), cluster)[0]
    assert {e["address"]: (e["node"], e["zone"]) for e in service["endpoints"]} == {
        "10.0.0.1": ("n1", "z1"),
        "10.0.0.2": (None, None),
    }


@pytest.mark.parametrize("size", [1, 2, 3, 30])
def test_plain_services_are_read_again_as_they_were(size: int) -> None:
    told = check(iptables_save(list(services(3, endpoints=(size,)))).encode())
    assert [len(each["endpoints"]) for each in told] == [size] * 3


def test_ipv6_is_told_by_its_family() -> None:
    text = iptables_save(list(services(1, endpoints=(2,))))
    (four,) = check(text.encode())
    assert four["family"] == "ip"
    six = dump(
        cluster_ip("ns/a:http", "fd00:10::1"),
        chance("0.50000000000", "KUBE-SEP-1"),
        "-A KUBE-SVC-A -j KUBE-SEP-2",
        endpoint("KUBE-SEP-1", "[fd00::1]:80"),
        endpoint("KUBE-SEP-2", "[fd00::2]:80"),
    )
    (found,) = check(six.replace("/32", "/128").encode())
    assert (found["family"], [e["address"] for e in found["endpoints"]]) == (
        "ip6",
        ["fd00::1", "fd00::2"],
    )


def test_a_service_is_a_line() -> None:
    view, text = written(iptables_save(list(services(5))).encode())
    lines = [line for line in text.splitlines() if line.startswith('{"name":')]
    assert [json.loads(line.rstrip(","))["name"] for line in lines] == [
        service.name.text for service in view.services
    ]


def test_the_document_of_one_service_grows_with_its_endpoints() -> None:
    some, many = (
        len(written(iptables_save(list(services(1, endpoints=(size,)))).encode())[1])
        for size in (200, 1_000)
    )
    assert many < 6 * some


def test_alike_services_share_routes_and_distributions() -> None:
    _, text = written(iptables_save(list(services(5, endpoints=(7, 7, 3)))).encode())
    document = json.loads(text)
    told = {each["name"]: each for each in document["services"]}
    numbers = [told[f"ns{at}/svc-{at}:http"]["routes"] for at in range(5)]
    assert numbers == [numbers[0], numbers[0], numbers[2], numbers[0], numbers[0]]
    assert (len(document["routes"]), len(document["distributions"])) == (2, 2)
    assert len({str(each["endpoints"]) for each in told.values()}) == 5


def test_an_endpoint_of_a_large_document_takes_little() -> None:
    """250,000 endpoints of 25,000 Services are to take 12 MB at most, names and all."""
    _, text = written(iptables_save(list(services(500))).encode())
    assert len(text) < 12_000_000 // 250_000 * 5_000


def test_masquerade_is_a_list_where_endpoints_differ() -> None:
    endpoints = ("10.0.0.1", "10.0.0.2")
    rules = [
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
        "-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE",
        "-A KUBE-SEP-1 -j KUBE-MARK-MASQ",
    ]
    text = dump(
        cluster_ip("ns/a:http"),
        *rules,
        chance("0.50000000000", "KUBE-SEP-1"),
        "-A KUBE-SVC-A -j KUBE-SEP-2",
        *[endpoint(f"KUBE-SEP-{at}", f"{each}:80") for at, each in enumerate(endpoints, 1)],
    )
    check(text.encode())
    document = json.loads(written(text.encode())[1])
    (service,) = document["services"]
    routes = document["routes"][service["routes"]]
    told = {each["source"]: each["masquerade"] for each in routes}
    assert told["node"] == [True, False]
