from __future__ import annotations

import json
from ipaddress import ip_address, ip_network

import pytest

from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, Share, Source
from analyzer.model.cluster import Cluster, Node
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.reports import json_values as j
from tests.support.dumps import at, only_service, two_endpoints
from tests.support.dumps import dump as nat

THIRD = Dyadic.of(0x55555555, 32)
FRONTEND = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)


def test_a_document_names_its_schema_first() -> None:
    text = j.document("loss", 1, {"services": []})
    assert list(json.loads(text).items()) == [("schema", "kubeodds/loss/1"), ("services", [])]
    assert text.endswith("}\n")


def test_nothing_of_a_dump_reaches_a_terminal_as_a_control_character() -> None:
    text = j.document("loss", 1, {"name": "\x1b[2J\u202eé"})
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["name"] == "\x1b[2J\u202eé"


@pytest.mark.parametrize("value", [NEVER, ALWAYS, THIRD, Dyadic.of(1, 3_000)])
def test_a_probability_can_be_computed_again_exactly(value: Dyadic) -> None:
    told = json.loads(json.dumps(j.probability(value)))
    assert Dyadic.of(int(told["numerator"], 16), told["exponent"]) == value
    assert told["value"] == float(value)


def test_bounds_have_two_ends() -> None:
    told = j.bounds(Bounds(NEVER, THIRD))
    assert (told["lower"]["numerator"], told["upper"]["numerator"]) == ("0x0", "0x55555555")


def test_a_node_port_has_no_address() -> None:
    node_port = Frontend(FrontendKind.NODE_PORT, None, 30080)
    assert j.frontend(node_port) == {"kind": "NodePort", "address": None, "port": 30080}
    assert j.frontend(FRONTEND)["address"] == "10.96.0.1"


def test_a_share_that_is_not_known_exactly_is_null_beside_its_bounds() -> None:
    cluster = Cluster({"worker1": Node(name="worker1", zone="zone-a")}).with_networks(
        [(ip_network("10.0.0.1/32"), "worker1")]
    )
    exact = j.share(Share(at("10.0.0.1"), Bounds(THIRD, THIRD), masquerade=True), cluster)
    assert exact == {
        "address": "10.0.0.1",
        "port": 80,
        "node": "worker1",
        "zone": "zone-a",
        "share": j.probability(THIRD),
        "masquerade": True,
    }
    wide = Share(at("10.0.0.2"), Bounds(NEVER, THIRD), masquerade=None)
    (told,) = j.shares([wide], cluster)
    assert (told["share"], told["node"], told["masquerade"]) == (None, None, None)
    assert told["bounds"] == j.bounds(Bounds(NEVER, THIRD))


def test_a_service_port_is_named_in_parts() -> None:
    assert j.name(only_service(nat(*two_endpoints()))) == {
        "name": "ns/a:http",
        "namespace": "ns",
        "service": "a",
        "port_name": "http",
        "protocol": "tcp",
    }


def test_a_route_is_a_frontend_and_a_source_and_may_be_of_one_network() -> None:
    network = ip_network("10.0.0.0/8")
    told = j.route(Route(FRONTEND, Source.EXTERNAL, (), NEVER, network))
    assert (told["source"], told["network"]) == ("external", "10.0.0.0/8")
    assert j.route(Route(FRONTEND, Source.POD, (), NEVER))["network"] is None


def test_a_diagnostic_keeps_its_place() -> None:
    given = Diagnostic(
        severity=Severity.WARNING, code="no-commit", message="x", file="dump", line=7, partial=True
    )
    assert j.diagnostics([given]) == [
        {
            "severity": "warning",
            "code": "no-commit",
            "message": "x",
            "file": "dump",
            "line": 7,
            "column": None,
        }
    ]
