from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import InputError, ParseError
from analyzer.parsers.objects.yaml_documents import parse, sniff

POD = """\
apiVersion: v1
items:
- kind: Pod
  metadata: {name: "no", namespace: 'x'}
  spec:
    hostNetwork: true
    nodeName: worker1
  status:
    phase: Running
    podIP: 10.0.0.1
    startTime: 2026-11-22T18:15:28Z
    text: |
      kind: no
    version: 1.10
    none: null
    port: 6443
kind: List
"""
#: Text that PyYAML can write and that is one line or several.
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=20)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def test_values_are_those_of_the_api() -> None:
    pytest.importorskip("yaml")
    (found,) = parse(POD, "f")
    assert found == {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "kind": "Pod",
                "metadata": {"name": "no", "namespace": "x"},
                "spec": {"hostNetwork": True, "nodeName": "worker1"},
                "status": {
                    "phase": "Running",
                    "podIP": "10.0.0.1",
                    "startTime": "2026-11-22T18:15:28Z",
                    "text": "kind: no\n",
                    "version": "1.10",
                    "none": None,
                    "port": 6443,
                },
            }
        ],
    }


@given(st.lists(st.dictionaries(texts, values, min_size=1, max_size=3), min_size=1, max_size=3))
def test_what_the_library_writes_is_read_as_it_was(given: list[Any]) -> None:
    yaml = pytest.importorskip("yaml")

    class Dumper(yaml.SafeDumper):  # type: ignore[name-defined,misc]  # the library is untyped
        def ignore_aliases(self, _data: object) -> bool:
            return True

    assert list(parse(yaml.dump_all(given, Dumper=Dumper, allow_unicode=True), "f")) == given


@st.composite
def shared(draw: st.DrawFn) -> Any:
    """Give values of which some stand at several places."""
    made = [draw(st.dictionaries(texts, values, min_size=1, max_size=2))]
    for _ in range(draw(st.integers(0, 4))):
        some = st.lists(st.sampled_from(made), min_size=1, max_size=3)
        made.append({"a": draw(some), "b": draw(st.sampled_from(made)), "c": draw(values)})
    return made[-1]


@given(shared())
def test_aliases_stand_for_what_the_library_takes_them_for(given: Any) -> None:
    yaml = pytest.importorskip("yaml")
    text = yaml.safe_dump(given, allow_unicode=True)
    assert list(parse(text, "f")) == [given]


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=3))
def test_merged_maps_are_what_the_library_makes_of_them(maps: list[dict[str, int]]) -> None:
    yaml = pytest.importorskip("yaml")
    lines = [f"m{n}: &m{n} {json.dumps(each)}" for n, each in enumerate(maps)]
    named = ", ".join(f"*m{n}" for n in range(len(maps)))
    text = "\n".join([*lines, "one: {<<: *m0, a: 5}", f"all: {{b: 6, <<: [{named}]}}", ""])
    assert list(parse(text, "f")) == [yaml.safe_load(text)]


def test_few_lines_that_stand_for_many_values_are_refused() -> None:
    pytest.importorskip("yaml")
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(ParseError, match="aliases expand to more than 100,000 values"):
        list(parse("\n".join(["kind: Pod", *lines]), "f"))
    deep = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 300))]
    with pytest.raises(InputError, match="nested too deeply"):
        list(parse("\n".join(["kind: Pod", *deep]), "f"))


@given(values)
def test_json_is_yaml_too(given: Any) -> None:
    pytest.importorskip("yaml")
    assert list(parse(json.dumps({"a": given}, indent=1, ensure_ascii=False), "f")) == [
        {"a": given}
    ]


def test_documents_are_apart_and_empty_ones_are_none() -> None:
    pytest.importorskip("yaml")
    assert list(parse("---\n# no more\n---\nkind: Node\n...\n---\nkind: Pod\r\n", "f")) == [
        {"kind": "Node"},
        {"kind": "Pod"},
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("kind: Node\nname: *a\n", 2, 7, "an alias without an anchor &a before it"),
        ("kind: &a [Node, *a]\n", 1, 17, "an alias inside its own anchor"),
        ("kind: &a 7\n*a : b\n", 2, 1, "expected a key that is text"),
        ("kind: Node\n<<: b\n", 2, 5, "expected a map, or a list of maps, to merge"),
        ("kind: Node\n<<: [{a: b}, c]\n", 2, 5, "expected a map, or a list of maps"),
        ("kind: Node\nkind: Pod\n", 2, 7, "the key 'kind' a second time"),
        ("kind: Node\n? [a]\n: b\n", 2, 3, "expected a key that is text"),
        ("kind: Node\n  name: {{ .Values.x }}\n", 2, 7, "not YAML"),
        ("kind: 'Node\n", 2, 1, "not YAML"),
        ("kind: Node\n\tname: x\n", 2, 1, "not YAML"),
    ],
)
def test_what_is_not_taken_is_told_with_its_place(
    text: str, line: int, column: int, message: str
) -> None:
    pytest.importorskip("yaml")
    with pytest.raises(ParseError) as caught:
        list(parse(text, "f"))
    assert caught.value.message.startswith(message)
    assert (caught.value.location.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "text",
    [
        "kind: " + "[" * 900,
        "kind:\n" + "".join(" " * depth + "a:\n" for depth in range(1, 300)),
        "kind: " + "9" * 5_000,
        "kind: \x01",
    ],
    ids=["flow", "block", "a long number", "a control character"],
)
def test_hostile_text_is_refused(text: str) -> None:
    pytest.importorskip("yaml")
    with pytest.raises((InputError, ParseError), match=r"^f:"):
        list(parse(text, "f"))
    with pytest.raises((InputError, ParseError), match=r"^f:"):
        list(parse(text * 200, "f"))


def test_bytes_that_are_no_utf_8_do_no_harm() -> None:
    pytest.importorskip("yaml")
    assert list(parse("kind: Node\nx: \udcff\n", "f")) == [{"kind": "Node", "x": "\ufffd"}]


def test_without_the_library_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InputError, match=r"^f: YAML.*\.\[yaml\].*-o json"):
        list(parse(POD, "f"))


def test_yaml_is_told_by_a_field_at_the_left_edge() -> None:
    assert sniff(POD)
    assert sniff("# a comment\n---\nkind: Node")
    assert not sniff("  kind: Node\n")
    assert not sniff("some text with a kind: of colon")
