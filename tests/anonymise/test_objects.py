"""Objects: what is read of them is kept under new names, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

from analyzer.anonymise import objects
from analyzer.anonymise.naming import Naming
from analyzer.kubeproxy.names import chain_hash
from analyzer.parsers.api_objects import decode
from tests.support.captures import FIXTURES

SALT = b"s" * 16
ACME = "acme-inside"


def renamed(*items: Any, naming: Naming | None = None) -> list[Any]:
    found: list[Any] = json.loads(objects.renamed(naming or Naming(SALT), items))["items"]
    return found


def strings_of(value: Any) -> set[str]:
    match value:
        case dict():
            return {s for k, v in value.items() for s in ({k} | strings_of(v))}
        case list():
            return {s for each in value for s in strings_of(each)}
        case str():
            return {value}
        case _:
            return set()


def poisoned(value: Any) -> Any:
    """Return a value with a secret in every object, and in the place of every text."""
    match value:
        case dict():
            made = {key: poisoned(each) for key, each in value.items()}
            keep = {key: value[key] for key in ("kind",) if key in value}
            return {**made, "extra": ACME, ACME: ACME, **keep}
        case list():
            return [*map(poisoned, value), ACME, {ACME: ACME}]
        case str():
            return ACME
        case _:
            return value


def capture(case: str) -> list[Any]:
    path = FIXTURES / case / "objects.json"
    return decode([(path.name, path.read_bytes())])


def test_no_text_is_carried_along_that_is_none_of_the_api() -> None:
    items = capture("1.36.2-iptables-legacy/two-node")
    assert len(items) > 5
    found = renamed(*map(poisoned, items))
    assert len(found) == len(items)
    assert not [each for each in strings_of(found) if ACME in each]


def test_selectors_select_the_pods_that_they_selected() -> None:
    labels = {"app": "web", "component": "etcd", "topology.kubernetes.io/zone": "z1"}
    service = {"kind": "Service", "metadata": {"name": "s", "namespace": "n"}}
    service["spec"] = {"selector": {"app": "web"}}
    pod = {"kind": "Pod", "metadata": {"name": "p", "namespace": "n", "labels": labels}}
    new_service, new_pod = renamed(service, pod)
    selector, told = new_service["spec"]["selector"], new_pod["metadata"]["labels"]
    assert selector.items() <= told.items()
    assert told["component"] == "etcd"
    assert "web" not in strings_of(new_pod) | strings_of(new_service)
    assert told["topology.kubernetes.io/zone"].startswith("zone-")


def test_taints_are_tolerated_as_before() -> None:
    taint = {"key": "acme/only", "value": "yes", "effect": "NoExecute"}
    node = {"kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": [taint]}}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"tolerations": [{**taint, "operator": "Equal", "tolerationSeconds": 30}]},
    }
    new_node, new_pod = renamed(node, pod)
    (told,), (tolerated,) = new_node["spec"]["taints"], new_pod["spec"]["tolerations"]
    assert tolerated == {**told, "operator": "Equal", "tolerationSeconds": 30}
    assert told["key"] != "acme/only"


def test_what_only_has_to_be_there_is_there() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"acme": "acme"},
                    "preferredDuringSchedulingIgnoredDuringExecution": [1],
                }
            },
            "containers": [{"name": "acme", "image": "acme", "env": [{"name": "acme"}]}],
        },
    }
    (made,) = renamed(pod)
    assert "acme" not in strings_of(made)
    assert made["spec"]["affinity"]["nodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {"removed": True}
    }


def test_kinds_that_nobody_reads_are_left_out_and_counted() -> None:
    naming = Naming(SALT)
    assert renamed({"kind": "Secret", "data": {"a": "b"}}, naming=naming) == []
    assert naming.removals == {"object": 1}


def test_addresses_ports_and_versions() -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "acme1"},
        "spec": {"podCIDR": "10.1.2.0/24", "providerID": "acme:///i-1"},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "192.168.3.4"},
                {"type": "Hostname", "address": "acme1"},
            ],
            "nodeInfo": {"kubeletVersion": "v1.30.3-acme.7", "osImage": "Acme Linux"},
            "conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-20T09:00:00Z"}
            ],
        },
    }
    naming = Naming(SALT)
    (made,) = renamed(node, naming=naming)
    name = naming.names.name("node", "acme1")
    assert made["metadata"]["name"] == name
    assert made["status"]["addresses"][1] == {"type": "Hostname", "address": name}
    assert made["status"]["nodeInfo"] == {"kubeletVersion": "v1.30.3"}
    assert made["status"]["conditions"][0]["lastHeartbeatTime"] == "2026-11-20T09:00:00Z"
    assert not [each for each in strings_of(made) if "acme" in each.lower()]
    assert made["spec"]["podCIDR"].endswith("/24")


def test_how_an_object_spells_an_address_explains_a_hash() -> None:
    """kube-proxy hashes an IPv6 address as the EndpointSlice has it."""
    naming = Naming(SALT)
    slice_of = {"kind": "EndpointSlice", "endpoints": [{"addresses": ["fd00:0::7"]}]}
    objects.learn(naming, [slice_of])
    chain = "KUBE-SEP-" + chain_hash("a/b", "tcp", "[fd00:0::7]:80")
    naming.chains.learn_endpoint(chain, ["a/b"], ["[fd00::7]:80"])
    name, place = naming.names.service_port("a/b"), naming.names.endpoint_text("[fd00::7]:80")
    assert name is not None
    assert place is not None
    assert naming.chains.renamed(chain) == "KUBE-SEP-" + chain_hash(name, "tcp", place)
