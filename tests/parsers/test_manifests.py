from __future__ import annotations

import json

import pytest

from analyzer.errors import InputError, ParseError
from analyzer.parsers.manifests import manifests

TWO = """\
# Source: chart/templates/web.yaml
apiVersion: v1
kind: Service
metadata:
  name: web
---
# nothing but a comment

---
apiVersion: v1
kind: ConfigMap
metadata:
  name: text
  namespace: other
data:
  script: |
    ---
    kind: not an object
"""


def test_each_document_has_the_line_where_it_begins() -> None:
    found = manifests([("m.yaml", TWO.encode())])
    assert [(m.kind, m.key, m.place.line, m.line) for m in found] == [
        ("Service", ("default", "web"), 2, "apiVersion: v1"),
        ("ConfigMap", ("other", "text"), 10, "apiVersion: v1"),
    ]


def test_json_and_lists_are_read_too() -> None:
    item = {"kind": "Pod", "metadata": {"name": "p"}}
    text = json.dumps({"kind": "List", "items": [item, item]})
    assert [m.name for m in manifests([("m.json", text.encode())])] == ["p", "p"]


def test_json_between_document_markers_is_yaml() -> None:
    found = manifests([("m.yaml", b'{"kind": "Pod"}\n---\n{"kind": "Service"}\n')])
    assert [(m.kind, m.place.line) for m in found] == [("Pod", 1), ("Service", 3)]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("kind: Pod\n---\nkind: {{ .Values.kind }}\n", 3, "an unrendered template"),
        ("kind: Pod\n---\n- kind: Pod\n", 3, "expected an object"),
        ("kind: Pod\n---\nname: x\n", 3, "expected an object"),
        ("kind: Pod\n---\nkind: Pod\n  a: b\n", 4, "not YAML"),
        ("kind: &x Pod\n---\nkind: Pod\nb: *x\n", 4, "an alias without an anchor &x before it"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(ParseError, match=says) as refused:
        manifests([("m.yaml", text.encode())])
    assert refused.value.location.line == line


def test_what_an_alias_stands_for_is_each_ones_own() -> None:
    pod = "&p\n  kind: Pod\n  metadata: {name: p}"
    text = f"kind: List\nitems:\n- {pod}\n- *p\n- <<: *p\n  kind: Node\n"
    one, two, three = manifests([("m.yaml", text.encode())])
    assert [(m.kind, m.name) for m in (one, two, three)] == [
        ("Pod", "p"), ("Pod", "p"), ("Node", "p"),
    ]  # fmt: skip
    assert one.item["metadata"] is not two.item["metadata"] is not three.item["metadata"]


@pytest.mark.parametrize("text", ["", "\n\n", "\0"])
def test_what_is_empty_or_no_text_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^m\.yaml: "):
        manifests([("m.yaml", text.encode())])
