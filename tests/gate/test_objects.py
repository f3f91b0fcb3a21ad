from __future__ import annotations

from typing import Any

import pytest

from analyzer.gate.nodes import described, scheduling_nodes
from analyzer.gate.objects import IndexedAddresses, alone, completed_service, families_of, slices
from analyzer.gate.ports import ports_of
from analyzer.gate.templates import PodTemplate
from tests.support.gated import service, template


def _template(name: str, **spec: Any) -> PodTemplate:
    made = template(name, **spec)
    labels = made["metadata"]["labels"]
    return PodTemplate(name=name, namespace="default", labels=labels, spec=made["spec"], number=1)


def _addresses(*families: int) -> IndexedAddresses:
    return IndexedAddresses(scheduling_nodes(described(["2xzone=a", "1xzone=b"])), families or (4,))


@pytest.mark.parametrize(
    ("port", "number"),
    [
        ({"port": 80}, 80),
        ({"port": 80, "targetPort": 9}, 9),
        ({"port": 80, "targetPort": "http"}, 8080),
        ({"port": 80, "targetPort": "none"}, None),
        ({"port": 80, "targetPort": "http", "protocol": "UDP"}, None),
    ],
)
def test_a_port_leads_to_a_number_or_to_a_name(port: Any, number: int | None) -> None:
    found = dict(ports_of(service("a", ports=[port]), template("a")["spec"]))
    assert found.get("") == number


def test_pods_with_other_numbers_are_in_slices_of_their_own() -> None:
    other = _template("a")
    other.spec["containers"][0]["ports"][0]["containerPort"] = 9090
    one, two = slices(
        service("a"), [_template("a"), other], {0: [1, 0, 1], 1: [0, 1, 0]}, _addresses()
    )
    assert [one["ports"][0]["port"], two["ports"][0]["port"]] == [8080, 9090]
    assert [e["nodeName"] for e in one["endpoints"]] == ["a-1", "b-1"]
    assert [e["zone"] for e in one["endpoints"]] == ["a", "b"]
    assert "hints" not in one["endpoints"][0]


def test_hints_are_those_that_the_controller_gives() -> None:
    near = service("a", trafficDistribution="PreferClose")
    (found,) = slices(near, [_template("a")], {0: [1, 0, 0]}, _addresses())
    assert found["endpoints"][0]["hints"] == {"forZones": [{"name": "a"}]}


def test_no_two_pods_have_one_address_but_those_of_the_hosts_network() -> None:
    given = _addresses()
    found = [given.of_pod(v, number, 4) for v in range(3) for number in range(400)]
    assert len(set(found)) == len(found)
    assert found == [given.of_pod(v, number, 4) for v in range(3) for number in range(400)]
    (made,) = slices(service("a"), [_template("a", hostNetwork=True)], {0: [1, 0, 0]}, given)
    assert made["endpoints"][0]["addresses"] == [given.of_node(0, 4)]


def test_a_service_gets_what_an_api_server_would_give_it() -> None:
    both = service("a", ipFamilies=["IPv4", "IPv6"], type="NodePort")
    assert families_of(both) == [4, 6]
    spec = completed_service(both, 3)["spec"]
    assert len(spec["clusterIPs"]) == 2
    assert spec["ports"][0]["nodePort"] >= 30_000
    given = service("a", clusterIP="10.96.0.10")
    assert completed_service(given, 1)["spec"]["clusterIPs"] == ["10.96.0.10"]
    assert families_of(service("a", clusterIP="fd00::1")) == [6]


def test_services_of_different_numbers_share_no_address() -> None:
    given = service("a", clusterIP="10.96.0.10", externalIPs=["192.0.2.1"])
    one, two = (completed_service(alone(given, n), n)["spec"] for n in (0, 1))
    assert one["clusterIP"] != two["clusterIP"]
    assert one["externalIPs"] != two["externalIPs"]
