from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import ParseError
from analyzer.parsers.objects.tables import parse, sniff
from analyzer.parsers.pod_addresses import pod_addresses
from tests.support.parsed_objects import parse_objects

HEADER = "NAMESPACE     NAME    READY   STATUS    RESTARTS      AGE   IP    NODE"
WIDE = f"{HEADER}   NOMINATED NODE   READINESS GATES\n"
ALL = (
    f"{WIDE}"
    "default       a       1/1     Running   2 (5h ago)    9d    10.1.0.1    n1   <none>  <none>\n"
    "kube-system   p1      1/1     Running   0             9d    172.16.0.1  n1   <none>  <none>\n"
    "kube-system   p2      1/1     Running   0             9d    172.16.0.1  n1   <none>  <none>\n"
    "default       b       1/1     Running   0             9d    10.2.0.1    n2   <none>  <none>\n"
)
ONE_SPACE = (
    "NAME   READY   STATUS    RESTARTS   AGE   IP         NODE   NOMINATED NODE   READINESS GATES\n"
    "pod/a  1/1     Running   0          9d    10.1.0.1   n1     <none>           <none>\n"
)


def pods(text: str) -> dict[str, tuple[Any, ...]]:
    """Return of each pod its address, node, and whether it shares the node's network."""
    found: dict[str, tuple[Any, ...]] = {}
    for each in parse(text, "f"):
        assert isinstance(each, dict)
        spec = each["spec"]
        found[each["metadata"]["name"]] = (
            each["status"]["podIP"],
            spec["nodeName"],
            spec["hostNetwork"],
        )
    return found


def row(name: str, status: str, address: str, node: str) -> str:
    return f"ns   {name}   1/1   {status}   0   9d   {address}   {node}   <none>   <none>\n"


def test_pods_of_all_namespaces() -> None:
    assert sniff(ALL)
    assert sniff(f"    \n\n {ALL}")
    assert pods(ALL) == {
        "a": ("10.1.0.1", "n1", False),
        "p1": ("172.16.0.1", "n1", True),
        "p2": ("172.16.0.1", "n1", True),
        "b": ("10.2.0.1", "n2", True),
    }


def test_pods_of_one_namespace_with_the_kind_before_the_name() -> None:
    assert sniff(ONE_SPACE)
    assert pods(ONE_SPACE.replace("\n", "\r\n")) == {"a": ("10.1.0.1", "n1", True)}


def test_only_a_pod_that_surely_has_its_own_network_owns_its_address() -> None:
    cluster = parse_objects([("f", ALL.encode())])
    assert cluster.pods.of(ip_address("10.1.0.1"), 80) == "default/a"
    assert cluster.pods.of(ip_address("172.16.0.1"), 80) is None
    assert cluster.pods.of(ip_address("10.2.0.1"), 80) is None
    assert cluster.placement(ip_address("10.2.0.1")).node == "n2"
    places = pod_addresses([each for each in parse(ALL, "f") if isinstance(each, dict)])
    assert places["default/a"] == ("10.1.0.1",)
    assert places["kube-system/p1"] == places["default/b"] == ()


@pytest.mark.parametrize(
    "status", ["Completed", "Error", "Evicted", "Failed", "OOMKilled", "Init:0/1", "Unheard-of"]
)
def test_a_pod_that_may_have_ended_has_no_address(status: str) -> None:
    assert pods(WIDE + row("a", status, "10.1.0.1", "n1"))["a"][0] is None
    both = WIDE + row("a", status, "10.1.0.1", "n1") + row("b", "Running", "10.1.0.1", "n2")
    cluster = parse_objects([("f", both.encode())])
    assert cluster.placement(ip_address("10.1.0.1")).node == "n2"


@pytest.mark.parametrize("status", ["Running", "CrashLoopBackOff", "Terminating", "Unknown"])
def test_a_pod_that_has_not_ended_keeps_its_address(status: str) -> None:
    assert pods(WIDE + row("a", status, "fd00::1", "n1"))["a"][:2] == ("fd00::1", "n1")


@pytest.mark.parametrize("other", ["n2", "<none>"])
def test_an_address_of_two_nodes_is_on_none(other: str) -> None:
    text = WIDE + row("a", "Running", "10.1.0.1", "n1") + row("b", "Terminating", "10.1.0.1", other)
    assert [address for address, _, _ in pods(text).values()] == [None, None]


def test_a_pod_without_an_address_or_node_is_nowhere() -> None:
    assert pods(WIDE + row("a", "Running", "<none>", "<none>"))["a"][:2] == (None, None)


def test_empty_cells_of_labels_at_the_end_are_left_out() -> None:
    text = WIDE.replace("\n", "   ZONE   TIER\n") + row("a", "Running", "10.1.0.1", "n1")
    assert pods(text)["a"][:2] == ("10.1.0.1", "n1")


def test_several_tables_one_below_the_other() -> None:
    endpoints = (
        "NAME          ENDPOINTS                         AGE\nendpoints/a   10.1.0.1:80   9d\n"
    )
    assert list(pods(f"{ALL}\n{endpoints}\n{ONE_SPACE}")) == ["a", "p1", "p2", "b"]
    assert len(list(parse(ALL + ONE_SPACE, "f"))) == 5


@pytest.mark.parametrize(
    "cell", ["<none>", "10.1.0.1:53,10.1.0.2:53,10.1.0.1:9153 + 1 more...", "[fd00::1]:80"]
)
def test_endpoints_are_checked_and_place_nothing(cell: str) -> None:
    for before, header in (("", ""), ("ns   ", "NAMESPACE   ")):
        text = f"{header}NAME   ENDPOINTS   AGE\n{before}a   {cell}   9d\n"
        assert sniff(text)
        assert list(parse(text, "f")) == []


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (WIDE + row("a", "Running", "10.1.0", "n1"), 2, 35, "expected an address"),
        (WIDE + row("a", "Running", "10.1.0.1", "N_1"), 2, 46, "expected the name of a node"),
        (WIDE + "ns   a   1/1   Running\n", 2, 1, "expected 10 columns as in the header, not 4"),
        (WIDE + row("a", "Running", "1.1.1.1", "n1  x y  z"), 2, 1, "expected 10 columns"),
        (WIDE + row("a", "Running", "1.1.1.1", "n1") * 2, 3, 1, "the same object a second"),
        (f"{HEADER}\n", 1, 67, "this table is cut off on the right"),
        (f"{WIDE[:-30]}\n", 1, 74, "this table is cut off on the right"),
        ("NAME   READY   STATUS   RESTARTS   AGE\n", 1, 1, "this table has no nodes"),
        ("NAME   TYPE   CLUSTER-IP\n", 1, 1, "not a table of pods or of endpoints"),
        (f"{ALL}\nroot@master:~#\n", 7, 1, "expected the header of a table"),
        ("NAME   ENDPOINTS   AGE\na   10.1.0.1:x   9d\n", 2, 5, "expected endpoints"),
    ],
)
def test_what_is_no_row_is_told_with_its_place(
    text: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(ParseError) as caught:
        list(parse(text, "f"))
    assert caught.value.message.startswith(message)
    assert (caught.value.location.line, caught.value.column) == (line, column)


@given(st.integers(1, len(WIDE + ALL)))
def test_a_table_that_is_cut_at_its_right_edge_places_nothing_wrongly(width: int) -> None:
    cut = "\n".join(line[:width] for line in ALL.split("\n"))
    try:
        found = pods(cut)
    except ParseError:
        return
    whole = pods(ALL)
    assert all(found[name][:2] == whole[name][:2] for name in found)
    assert len(found) == len(whole)


@pytest.mark.parametrize(
    "text", ["", "NAME", "names  of  things", '{"NAME  ": 1}', "kind: NAME  x"]
)
def test_other_text_is_no_table(text: str) -> None:
    assert not sniff(text)
