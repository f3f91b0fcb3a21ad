"""Services and their endpoints, as kube-proxy takes them out of API objects."""

from __future__ import annotations

import json
import random
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.services import ApiEndpoint, ApiServicePort
from analyzer.parsers.services import parse_services
from tests.support.check.editing import DUAL
from tests.support.effort import examples

OBJECTS: Any = json.loads((DUAL.parent / "objects.json").read_text())


def services(*items: Any, version: int = 4) -> tuple[ApiServicePort, ...]:
    return parse_services(items, version)


def service(**spec: Any) -> Any:
    port = {"port": 80, "protocol": "TCP"}
    return {
        "kind": "Service",
        "metadata": {"namespace": "ns", "name": "a"},
        "spec": {"clusterIP": "10.96.0.1", "ports": [port], **spec},
    }


def endpoint_slice(*endpoints: Any, **more: Any) -> Any:
    return {
        "kind": "EndpointSlice",
        "metadata": {"namespace": "ns", "labels": {"kubernetes.io/service-name": "a"}},
        "ports": [{"name": "", "port": 8080}],
        "endpoints": list(endpoints),
        **more,
    }


def endpoints_object(ready: list[str], unready: list[str]) -> Any:
    return {
        "kind": "Endpoints",
        "metadata": {"namespace": "ns", "name": "a"},
        "subsets": [
            {
                "addresses": [{"ip": ip} for ip in ready],
                "notReadyAddresses": [{"ip": ip} for ip in unready],
                "ports": [{"port": 8080}],
            }
        ],
    }


def by_address(*items: Any) -> dict[str, ApiEndpoint]:
    (found,) = services(service(), *items)
    return {str(each.address): each for each in found.endpoints}


def test_a_service_port_has_all_its_frontends() -> None:
    item = service(
        ports=[{"name": "http", "port": 80, "nodePort": 30080, "protocol": "UDP"}],
        clusterIPs=["10.96.0.1", "fd00::1"],
        externalIPs=["192.0.2.1", "2001:db8::1"],
    )
    item["status"] = {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}, {"hostname": "x"}]}}
    (found,) = services(item)
    assert (found.name, found.protocol, found.affinity) == ("ns/a:http", "udp", None)
    assert found.frontends == (
        ("ClusterIP", ip_address("10.96.0.1"), 80),
        ("ExternalIP", ip_address("192.0.2.1"), 80),
        ("LoadBalancerIP", ip_address("203.0.113.1"), 80),
        ("NodePort", None, 30080),
    )
    (other,) = services(item, version=6)
    assert [kind for kind, _, _ in other.frontends] == ["ClusterIP", "ExternalIP", "NodePort"]


@pytest.mark.parametrize(
    "spec",
    [{"clusterIP": "None"}, {"clusterIP": ""}, {"clusterIP": None}, {"type": "ExternalName"},
     {"clusterIP": "fd00::1"}, {"ports": []}, {"clusterIP": ["10.96.0.1"]}],
)  # fmt: skip
def test_services_without_a_cluster_ip_of_this_family_are_passed_over(spec: Any) -> None:
    assert services(service(**spec)) == ()


@pytest.mark.parametrize("label", ["service-proxy-name", "headless"])
def test_services_of_another_proxy_are_passed_over(label: str) -> None:
    item = service()
    item["metadata"]["labels"] = {f"service.kubernetes.io/{label}": "x"}
    assert services(item) == ()


def test_a_load_balancer_in_proxy_mode_is_no_frontend() -> None:
    item = service()
    item["status"] = {"loadBalancer": {"ingress": [{"ip": "203.0.113.1", "ipMode": "Proxy"}]}}
    assert [kind for kind, _, _ in services(item)[0].frontends] == ["ClusterIP"]


@pytest.mark.parametrize(
    ("config", "seconds"), [({}, 10800), ({"clientIP": {"timeoutSeconds": 60}}, 60)]
)
def test_session_affinity_has_a_default(config: Any, seconds: int) -> None:
    (found,) = services(service(sessionAffinity="ClientIP", sessionAffinityConfig=config))
    assert found.affinity == seconds


def test_readiness_is_assumed_unless_it_is_denied() -> None:
    found = by_address(
        endpoint_slice(
            {"addresses": ["10.0.0.1"], "nodeName": "n"},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": False}},
            {
                "addresses": ["10.0.0.3"],
                "conditions": {"ready": False, "serving": True, "terminating": True},
                "hints": {"forZones": [{"name": "z"}], "forNodes": [{"name": "m"}]},
            },
        )
    )
    assert {a: (e.is_ready, e.is_certain, e.may_serve) for a, e in found.items()} == {
        "10.0.0.1": (True, True, False),
        "10.0.0.2": (False, False, False),
        "10.0.0.3": (False, False, True),
    }
    assert (found["10.0.0.1"].node, found["10.0.0.1"].port) == ("n", 8080)
    assert (found["10.0.0.3"].zones, found["10.0.0.3"].nodes) == (
        frozenset({"z"}),
        frozenset({"m"}),
    )


def test_an_endpoint_is_certain_only_if_slices_and_endpoints_agree() -> None:
    slices = endpoint_slice({"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]})
    found = by_address(slices, endpoints_object(["10.0.0.1", "10.0.0.3"], ["10.0.0.2"]))
    assert {a: (e.is_ready, e.is_certain) for a, e in found.items()} == {
        "10.0.0.1": (True, True),
        "10.0.0.2": (True, False),
        "10.0.0.3": (True, False),
    }


def test_an_address_keeps_its_spelling_and_another_port_is_another_endpoint() -> None:
    item = service(clusterIP="fd00::1")
    slices = endpoint_slice({"addresses": ["fd00:0::9"]}, ports=[{"port": 1}, {"port": 2}])
    (found,) = services(item, slices, version=6)
    assert [(e.spellings, e.port) for e in found.endpoints] == [
        (("fd00:0::9",), 1),
        (("fd00:0::9",), 2),
    ]


@examples(10, 200)
@given(st.integers(0, 2**32))
def test_odd_objects_are_passed_over(seed: int) -> None:
    """Whatever stands in a field in place of what the API puts there."""
    drawn = random.Random(seed)  # no secrets here
    items = json.loads(json.dumps(OBJECTS["items"]))
    for _ in range(drawn.randrange(1, 30)):
        at: Any = drawn.choice(items)
        while True:
            key = drawn.choice(list(at)) if isinstance(at, dict) else drawn.randrange(len(at))
            if not isinstance(at[key], dict | list) or not at[key] or drawn.random() < 0.2:
                break
            at = at[key]
        if key != "kind":
            at[key] = drawn.choice([None, True, -1, 0.5, "", "10.0.0.1", [], [None], {}, {"a": 1}])
    for version in (4, 6):
        for found in services(*items, version=version):
            assert all(a is None or a.version == version for _, a, _ in found.frontends)
            assert all(each.address.version == version for each in found.endpoints)
