"""The same objects in every form give the same cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given

from analyzer.errors import ParseError
from analyzer.kubeproxy.generate import RulesLayout
from analyzer.model.cluster import Cluster
from analyzer.parsers.api_objects import decode
from analyzer.parsers.objects.forms import FORMS, documents
from analyzer.parsers.services import parse_services
from tests.support.clusters import GeneratedCluster, clusters
from tests.support.parsed_objects import parse_objects

Items = list[Any]


def _list(items: Items) -> bytes:
    return json.dumps({"kind": "List", "items": items}).encode()


def _lists_of_kinds(items: Items) -> bytes:
    """What ``kubectl get --raw`` prints of each resource, one behind the other."""
    made = []
    for kind, each in groupby(sorted(items, key=lambda item: item["kind"]), lambda i: i["kind"]):
        bare = [{key: part for key, part in item.items() if key != "kind"} for item in each]
        made.append(json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "items": bare}))
    return "".join(made).encode()


def _yaml(items: Items) -> bytes:
    yaml = pytest.importorskip("yaml")
    plain = [json.loads(json.dumps(item)) for item in items]  # shares nothing: no aliases
    text: str = yaml.safe_dump_all([{"kind": "List", "items": plain[:1]}, *plain[1:]])
    return text.encode()


WRITERS: dict[str, Callable[[Items], bytes]] = {
    "lists of each kind": _lists_of_kinds,
    "a line each": lambda items: b"\n".join(json.dumps(item).encode() for item in items),
    "lists in a list": lambda items: _list([{"kind": "List", "items": items}]),
    "UTF-16 with CRLF": lambda items: (
        json.dumps({"items": items}, indent=1).replace("\n", "\r\n").encode("utf-16")
    ),
    "UTF-8 with a mark": lambda items: b"\xef\xbb\xbf" + _list(items),
    "yaml": _yaml,
}


def _facts(data: bytes, version: int) -> tuple[Any, ...]:
    cluster = parse_objects([("f", data)])
    services = parse_services(decode([("f", data)]), version)
    return cluster.nodes, cluster.placements, cluster.pod_networks, services


@pytest.mark.parametrize("form", WRITERS)
@given(clusters(RulesLayout.V1_36))
def test_the_same_objects_in_every_form_are_the_same(form: str, cluster: GeneratedCluster) -> None:
    written = WRITERS[form](cluster.items)
    assert _facts(written, cluster.family) == _facts(_list(cluster.items), cluster.family)


def test_pods_of_a_table_are_where_those_of_json_are() -> None:
    pods = [(f"p{number}", f"10.0.0.{number}", f"n{number % 3}") for number in range(1, 9)]
    header = "NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES"
    rows = [f"{name}  1/1  Running  0  1d  {ip}  {n}  <none>  <none>" for name, ip, n in pods]
    table = "\n".join([header, *rows])
    objects = [
        {
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"nodeName": node},
            "status": {"podIP": address},
        }
        for name, address, node in pods
    ]
    wanted: Cluster = parse_objects([("f", _list(objects))])
    found = parse_objects([("f", table.encode())])
    assert (found.nodes, found.placements) == (wanted.nodes, wanted.placements)
    assert len(found.placements) == len(pods)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (' \n{"kind": "Node"}', "json"),
        ("NAME  ENDPOINTS  AGE\na  <none>  1d", "table"),
        ("kind: Node", "yaml"),
    ],
)
def test_each_form_is_told_by_its_text_and_no_other_claims_it(text: str, form: str) -> None:
    assert [name for name, each in FORMS.items() if each.sniff(text)] == [form]


def test_text_of_no_form_is_told_as_what_is_expected() -> None:
    with pytest.raises(ParseError, match="expected the output of `kubectl get"):
        list(documents("hello", "f"))
