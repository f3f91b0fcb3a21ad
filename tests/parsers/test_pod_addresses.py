from __future__ import annotations

from typing import Any

from analyzer.parsers.pod_addresses import pod_addresses


def pod(name: str, **more: Any) -> dict[str, Any]:
    spec = more.pop("spec", {})
    return {"kind": "Pod", "metadata": {"namespace": "ns", "name": name}, "spec": spec,
            "status": more}  # fmt: skip


def slice_of(*names: str, ips: tuple[str, ...], ports: tuple[Any, ...] = (53,)) -> dict[str, Any]:
    return {
        "kind": "EndpointSlice",
        "metadata": {"namespace": "ns"},
        "ports": [{"port": port} for port in ports],
        "endpoints": [
            {"addresses": [ip], "targetRef": {"kind": "Pod", "namespace": "ns", "name": name}}
            for name, ip in zip(names, ips, strict=True)
        ],
    }


def test_a_pod_answers_at_all_of_its_addresses() -> None:
    listed = [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]
    found = pod_addresses([pod("a", podIPs=listed), pod("b", podIP="10.0.0.2"), pod("c")])
    assert found == {"ns/a": ("10.0.0.1", "fd00::1"), "ns/b": ("10.0.0.2",), "ns/c": ()}


def test_a_pod_with_its_nodes_network_answers_where_it_is_listed() -> None:
    """Whoever else is on the node's address lives on."""
    own = pod("api", podIP="192.168.0.1", spec={"hostNetwork": True})
    assert pod_addresses([own]) == {"ns/api": ()}
    found = pod_addresses([own, slice_of("api", ips=("192.168.0.1",), ports=(6443, "odd"))])
    assert found == {"ns/api": ("192.168.0.1:6443",)}
    six = pod_addresses([slice_of("api", ips=("fd00::1",), ports=(6443,))])
    assert six == {"ns/api": ("[fd00::1]:6443",)}


def test_a_pod_that_has_ended_answers_nowhere() -> None:
    assert pod_addresses([pod("a", podIP="10.0.0.1", phase="Failed")]) == {"ns/a": ()}


def test_endpoints_name_pods_too() -> None:
    entry = {"ip": "10.0.0.1", "targetRef": {"kind": "Pod", "name": "a"}}
    item = {
        "kind": "Endpoints",
        "metadata": {"namespace": "ns"},
        "subsets": [{"notReadyAddresses": [entry], "ports": [{"port": 80}]}],
    }
    assert pod_addresses([item]) == {"ns/a": ("10.0.0.1:80",)}
    assert pod_addresses([{**item, "subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]}]) == {}
