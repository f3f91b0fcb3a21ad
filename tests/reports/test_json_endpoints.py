from __future__ import annotations

import json
from ipaddress import ip_address, ip_network

import pytest

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.cluster import Cluster, Node, PodNames, Pods
from analyzer.reports.json_endpoints import EndpointTexts
from tests.support.json_reader import rows

FOUR = [Endpoint(ip_address("10.0.0.1"), 80), Endpoint(ip_address("10.0.0.2"), 8080)]
SIX = [Endpoint(ip_address("fd00::1"), 80), Endpoint(ip_address("fd00::2"), None)]


@pytest.mark.parametrize(
    "endpoints",
    [
        FOUR,
        SIX,
        [Endpoint(ip_address("10.0.0.1"), None), *FOUR],
        FOUR[:1],
        SIX[1:],
        [*FOUR, *SIX],
        [],
    ],
)
def test_endpoints_are_written_alike_from_values_and_from_what_is_printed(
    endpoints: list[Endpoint],
) -> None:
    texts = EndpointTexts(Cluster())
    printed = texts.columns_of_printed([str(each) for each in endpoints])
    assert printed == texts.columns(endpoints)
    apart = [json.loads(each) for each in texts.of(endpoints)]
    assert rows(json.loads(printed)) == apart
    nowhere = {"node": None, "zone": None, "pod": None}
    assert apart == [
        {"address": str(each.address), "port": each.port, **nowhere} for each in endpoints
    ]


def test_one_value_stands_for_that_of_all_endpoints() -> None:
    texts = EndpointTexts(Cluster())
    assert json.loads(texts.columns(FOUR))["port"] == [80, 8080]
    assert json.loads(texts.columns([FOUR[0], Endpoint(ip_address("10.0.0.2"), 80)]))["port"] == 80
    assert json.loads(texts.columns(FOUR[:1]))["address"] == ["10.0.0.1"]


def test_an_endpoint_tells_its_pod() -> None:
    found = PodNames({(ip_address("10.0.0.1"), 80): "ns/a"}, {ip_address("10.0.0.2"): "ns/b"})
    pods = Pods(lambda: found)
    told = json.loads(EndpointTexts(Cluster(pods=pods)).columns(FOUR))
    assert told["pod"] == ["ns/a", "ns/b"]


def test_an_endpoint_tells_where_it_is() -> None:
    nodes = {"worker1": Node(name="worker1", zone='z"1')}
    cluster = Cluster(nodes).with_networks([(ip_network("10.0.0.1/32"), "worker1")])
    texts = EndpointTexts(cluster)
    first, second = map(json.loads, texts.of(FOUR))
    assert rows(json.loads(texts.columns(FOUR))) == [first, second]
    assert (first["node"], first["zone"]) == ("worker1", 'z"1')
    assert (second["node"], second["zone"]) == (None, None)
