from __future__ import annotations

import gzip
import json
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError, InputError, ParseError
from analyzer.model.cluster import Cluster, Node, Placement
from tests.support.parsed_objects import parse_objects

POD = ip_address("10.1.0.1")

Object = dict[str, Any]


def read(*objects: Object) -> Cluster:
    return parse_objects([("objects.json", json.dumps({"items": objects}).encode())])


def node(name: str = "n1", **more: Any) -> Object:
    return {"kind": "Node", "metadata": {"name": name}, **more}


def endpoint_slice(**endpoint: Any) -> Object:
    return {"kind": "EndpointSlice", "endpoints": [{"addresses": [str(POD)], **endpoint}]}


def endpoints(node_name: str | None, key: str = "addresses") -> Object:
    return {"kind": "Endpoints", "subsets": [{key: [{"ip": str(POD), "nodeName": node_name}]}]}


def pod(node_name: str | None, ip: str = str(POD), **spec: Any) -> Object:
    return {"kind": "Pod", "spec": {"nodeName": node_name, **spec}, "status": {"podIP": ip}}


def zoned(name: str, zone: str) -> Object:
    labels = {"topology.kubernetes.io/zone": zone}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


def test_a_node_has_addresses_pod_networks_zone_and_role() -> None:
    labels = {
        "topology.kubernetes.io/zone": "a",
        "node-role.kubernetes.io/control-plane": "",
    }
    item = {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels},
        "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00:1::/64"]},
        "status": {
            "addresses": [
                {"type": "Hostname", "address": "n1"},
                {"type": "ExternalIP", "address": "192.0.2.1"},
                {"type": "InternalIP", "address": "172.16.0.1"},
            ]
        },
    }
    assert read(item).nodes == {
        "n1": Node(
            name="n1",
            addresses=(ip_address("172.16.0.1"), ip_address("192.0.2.1")),
            pod_networks=(ip_network("10.1.0.0/24"), ip_network("fd00:1::/64")),
            zone="a",
            is_control_plane=True,
        )
    }


def test_older_labels_and_fields_of_nodes_are_read() -> None:
    labels = {
        "failure-domain.beta.kubernetes.io/zone": "b",
        "node-role.kubernetes.io/master": "",
    }
    item = {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels},
        "spec": {"podCIDR": "10.1.0.0/24"},
    }
    found = read(item).nodes["n1"]
    assert (found.zone, found.is_control_plane) == ("b", True)
    assert found.pod_networks == (ip_network("10.1.0.0/24"),)


def test_a_node_of_which_nothing_is_said_has_nothing() -> None:
    assert read(node()).nodes == {"n1": Node(name="n1")}


@pytest.mark.parametrize(
    ("objects", "name"),
    [
        ([endpoint_slice(nodeName="slice"), endpoints("endpoints"), pod("pod")], "slice"),
        ([pod("pod"), endpoints("endpoints"), endpoint_slice(nodeName="slice")], "slice"),
        ([pod("pod"), endpoints("endpoints")], "endpoints"),
        ([pod("pod"), endpoints("late", "notReadyAddresses")], "late"),
        ([pod("pod"), endpoint_slice(), endpoints(None)], "pod"),
        ([pod(None), endpoint_slice(nodeName="")], None),
    ],
)
def test_slices_go_before_endpoints_and_these_before_pods(
    objects: list[Object], name: str | None
) -> None:
    assert read(*objects).placement(POD) == Placement(name, None)


def test_the_zone_of_an_endpoint_is_its_own_or_that_of_its_node() -> None:
    nodes = (zoned("n1", "a"), zoned("n2", "b"))
    assert read(endpoint_slice(nodeName="n1"), *nodes).placement(POD) == Placement("n1", "a")
    own = endpoint_slice(nodeName="n1", zone="c")
    assert read(own, *nodes).placement(POD) == Placement("n1", "c")


def test_an_endpoint_on_the_host_network_is_on_the_node_with_its_address() -> None:
    addresses = [{"type": "InternalIP", "address": str(POD)}]
    host = zoned("n1", "a") | {"status": {"addresses": addresses}}
    assert read(host).placement(POD) == Placement("n1", "a")
    assert read(host, endpoint_slice(), pod("n1", hostNetwork=True)).placement(POD) == Placement(
        "n1", "a"
    )


def test_every_address_of_a_dual_stack_pod_is_placed() -> None:
    six = ip_address("fd00::1")
    item = pod("n1") | {
        "status": {"podIP": str(POD), "podIPs": [{"ip": str(POD)}, {"ip": str(six)}]}
    }
    cluster = read(item)
    assert cluster.placement(POD) == cluster.placement(six) == Placement("n1", None)


def test_names_instead_of_addresses_are_passed_over() -> None:
    assert read(endpoint_slice(addresses=["example.com", str(POD)])).placements.keys() == {POD}


def test_files_are_read_together_compressed_or_single() -> None:
    files = [
        ("a.json", gzip.compress(json.dumps({"items": [zoned("n1", "a")]}).encode())),
        ("b.json", json.dumps(endpoint_slice(nodeName="n1")).encode()),
    ]
    assert parse_objects(files).placement(POD) == Placement("n1", "a")


def test_json_that_is_malformed_is_refused_at_its_place() -> None:
    with pytest.raises(ParseError) as caught:
        parse_objects([("objects.json", b'{\n "items": [,]\n}')])
    error = caught.value
    assert error.message.startswith("not JSON (Expecting value)")
    assert str(error).startswith("objects.json:2:12: ")
    assert error.line == ' "items": [,]'


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "null",
        "3",
        '"text"',
        "{}",
        '{"items": null}',
        '{"items": {}}',
        '{"items": [null]}',
        '{"items": [{}]}',
        '{"items": [{"kind": 3}]}',
    ],
)
def test_json_that_holds_no_objects_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"objects\.json: not a list of API objects"):
        parse_objects([("objects.json", text.encode())])


@pytest.mark.parametrize("items", [[], [{"kind": "ConfigMap"}]], ids=["none", "of-no-use"])
def test_a_list_without_an_object_that_we_use_is_refused(items: list[Object]) -> None:
    """So the docstring of parse_objects says; a wrong file must not pass for an empty cluster."""
    with pytest.raises(InputError):
        read(*items)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", InputError),
        (b"\xff\xfe", InputError),
        (b"\xef\xbb\xbf{}", InputError),
        (b"hello", ParseError),
        (b"[" * 100_000, InputError),
        (b"\x1f\x8bdamaged", InputError),
    ],
    ids=["empty", "binary", "bom", "text", "deep", "damaged"],
)
def test_other_data_is_refused(data: bytes, error: type[AnalyzerError]) -> None:
    with pytest.raises(error):
        parse_objects([("objects.json", data)])


def test_numbers_of_any_length_are_no_crash() -> None:
    data = b'{"kind": "Node", "metadata": {"name": "n1"}, "x": ' + b"9" * 5_000 + b"}"
    try:
        cluster = parse_objects([("objects.json", data)])
    except AnalyzerError:
        return
    assert set(cluster.nodes) == {"n1"}


def test_a_node_without_a_name_is_passed_over() -> None:
    assert read({"kind": "Node", "metadata": {"name": None}}).nodes == {}


strange = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just(str(POD)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
FULL = [
    zoned("n1", "a")
    | {
        "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]},
        "status": {"addresses": [{"type": "InternalIP", "address": "172.16.0.1"}]},
    },
    endpoint_slice(nodeName="n1", zone="a"),
    endpoints("n1"),
    pod("n1") | {"status": {"podIP": str(POD), "podIPs": [{"ip": str(POD)}]}},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place within the objects, those that hold values and those that hold more."""
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    return [path, *(p for key, child in children for p in places(child, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    items = dict(value) if isinstance(value, dict) else list(value)
    items[path[0]] = replaced(value[path[0]], path[1:], new)
    return items


@pytest.mark.parametrize("path", places(FULL)[1:], ids=lambda p: ".".join(map(str, p)))
@pytest.mark.parametrize("new", [None, 3, "topology.kubernetes.io/zone", [], {}], ids=repr)
def test_a_wrong_kind_of_value_anywhere_is_passed_over_or_refused(
    path: tuple[Any, ...], new: object
) -> None:
    names: set[str] = set()
    with suppress(InputError):
        names = set(read(*replaced(FULL, path, new)).nodes)
    assert names <= {"n1", "topology.kubernetes.io/zone"}


@given(st.sampled_from(places(FULL)[1:]), strange)
def test_any_value_anywhere_is_passed_over_or_refused(path: tuple[Any, ...], new: object) -> None:
    with suppress(InputError):
        read(*replaced(FULL, path, new))
