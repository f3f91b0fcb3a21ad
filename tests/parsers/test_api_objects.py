from __future__ import annotations

import gzip
import json
from ipaddress import ip_address
from typing import Any

import pytest

from analyzer.errors import InputError, ParseError
from analyzer.parsers.api_objects import addresses, at, decode, elements, holds_objects, text

NODE = {"kind": "Node", "metadata": {"name": "n1"}}
POD = {"kind": "Pod", "metadata": {"name": "p1"}}


def file(given: Any, name: str = "objects.json") -> tuple[str, bytes]:
    return name, json.dumps(given).encode()


def test_a_list_or_a_single_object_is_decoded() -> None:
    assert decode([file({"kind": "List", "items": [NODE, POD]})]) == [NODE, POD]
    assert decode([file(NODE)]) == [NODE]
    assert decode([file({"kind": "List", "items": []})]) == []


def test_the_objects_of_all_files_are_put_together() -> None:
    assert decode([file(NODE, "a.json"), file({"items": [POD]}, "b.json")]) == [NODE, POD]


def test_packed_files_are_unpacked() -> None:
    name, data = file(NODE)
    assert decode([(name, gzip.compress(data))]) == [NODE]


@pytest.mark.parametrize(
    "given", [[NODE], {"items": NODE}, {"items": [NODE, 1]}, {"items": [{"name": "x"}]}, {}, 7]
)
def test_other_json_is_no_list_of_objects(given: Any) -> None:
    with pytest.raises(InputError, match=r"^objects\.json: not a list of API objects"):
        decode([file(given)])


def test_what_is_no_json_is_told_with_its_line_and_column() -> None:
    with pytest.raises(ParseError) as caught:
        decode([("objects.json", b'{\n "items": [},\n}')])
    assert (caught.value.location.line, caught.value.column) == (2, 12)
    assert caught.value.line == ' "items": [},'


def test_items_have_the_kind_of_their_list() -> None:
    bare = {"metadata": {"name": "p1"}}
    for kind, item in (("PodList", bare), ("PodList", POD), ("List", POD)):
        assert decode([file({"kind": kind, "items": [item]})]) == [POD]
    assert decode([file({"kind": "PodList", "items": None})]) == []
    # Of other kinds a field may have that name.
    assert decode([file({"kind": "Odd", "items": 1})]) == [{"kind": "Odd", "items": 1}]


def test_a_list_in_a_list_is_taken_apart_in_order() -> None:
    inner = {"kind": "PodList", "items": [{"name": "a"}, {"name": "b"}]}
    found = decode([file({"kind": "List", "items": [NODE, inner, POD]})])
    assert found == [NODE, {"kind": "Pod", "name": "a"}, {"kind": "Pod", "name": "b"}, POD]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "Status", "status": "Failure", "message": "no"}, "the API answered .*: no$"),
        ({"kind": "Table", "rows": []}, "a Table, as the API prints it for kubectl"),
        ({"kind": "List", "items": [{"kind": 1}]}, "not a list of API objects"),
        ({"kind": "List", "items": [{"metadata": {}}]}, "not a list of API objects"),
        ({"items": None}, "not a list of API objects"),
    ],
)
def test_what_the_api_answers_instead_of_objects_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"^objects\.json: {message}"):
        decode([file(given)])


@pytest.mark.parametrize(
    "data",
    [b"[" * 100_000, b'{"kind": ' + b"9" * 5_000 + b"}", gzip.compress(b"{}")[:-6]],
    # Of packed data the name would hold the second: each process would have a test of its own.
    ids=["nested", "a long number", "cut"],
)
def test_hostile_files_are_refused_by_name(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^objects\.json: "):
        decode([("objects.json", data)])


def test_files_without_a_kind_hold_no_objects() -> None:
    assert holds_objects(b'{"kind": "Node"}')
    assert holds_objects(gzip.compress(b'{"kind": "Node"}'))
    assert holds_objects('{"kind": "Node"}'.encode("utf-16"))
    assert holds_objects(b"apiVersion: v1\nkind: Node\n")
    assert not holds_objects(b'{"schema": "other"}')
    assert not holds_objects(b"jobs:\n  kind: Node\n")
    # Who reads it says that it is damaged.
    assert holds_objects(gzip.compress(b"{}")[:-6])


def test_a_step_that_is_missing_or_odd_leads_to_nothing() -> None:
    given = {"spec": {"ports": [1], "none": None, "text": "x"}}
    assert at(given, "spec", "text") == "x"
    for path in (("spec", "none", "x"), ("spec", "text", "x"), ("status",), ("spec", "ports", "0")):
        assert at(given, *path) is None
    assert elements(given, "spec", "ports") == [1]
    assert elements(given, "spec", "text") == elements(given, "status", "x") == []


def test_an_empty_text_is_none() -> None:
    assert [text(each) for each in ("x", "", 1, None)] == ["x", None, None, None]


def test_what_is_no_address_is_left_out() -> None:
    found = addresses(["10.0.0.1", "10.0.0.256", None, 7, "fd00::1"])
    assert found == (ip_address("10.0.0.1"), ip_address("fd00::1"))
