from __future__ import annotations

import json
from ipaddress import ip_address, ip_network

import pytest

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.cluster import Cluster, Node
from analyzer.reports.json_endpoints import EndpointTexts

FOUR = [Endpoint(ip_address("10.0.0.1"), 80), Endpoint(ip_address("10.0.0.2"), 8080)]
SIX = [Endpoint(ip_address("fd00::1"), 80), Endpoint(ip_address("fd00::2"), None)]


@pytest.mark.parametrize(
    "endpoints",
    [FOUR, SIX, [Endpoint(ip_address("10.0.0.1"), None), *FOUR], FOUR[:1], SIX[1:], [*FOUR, *SIX]],
)
def test_endpoints_are_written_alike_from_values_and_from_what_is_printed(
    endpoints: list[Endpoint],
) -> None:
    texts = EndpointTexts(Cluster())
    printed = texts.of_printed([str(each) for each in endpoints])
    assert printed == ",".join(texts.of(endpoints))
    assert json.loads(f"[{printed}]") == [
        {"address": str(each.address), "port": each.port, "node": None, "zone": None}
        for each in endpoints
    ]


def test_an_endpoint_tells_where_it_is() -> None:
    nodes = {"worker1": Node(name="worker1", zone='z"1')}
    cluster = Cluster(nodes).with_networks([(ip_network("10.0.0.1/32"), "worker1")])
    first, second = map(json.loads, EndpointTexts(cluster).of(FOUR))
    assert (first["node"], first["zone"]) == ("worker1", 'z"1')
    assert (second["node"], second["zone"]) == (None, None)
