from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import InputError, ParseError
from analyzer.parsers.objects.json_documents import parse, sniff

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
documents = st.lists(st.dictionaries(st.text(), values, max_size=3), min_size=1, max_size=4)


@given(documents, st.sampled_from(["", "\n", " ", "\r\n\r\n"]), st.sampled_from([None, 2]))
def test_documents_behind_each_other_are_all_read(
    given: list[Any], between: str, indent: int | None
) -> None:
    text = between.join(json.dumps(each, indent=indent) for each in given)
    assert list(parse(f"{between}{text}{between}", "f")) == given
    assert sniff(text)


@pytest.mark.parametrize("text", ["", "kind: Node", "NAME   READY", "7"])
def test_other_text_does_not_begin_as_json(text: str) -> None:
    assert not sniff(text)


def test_a_fault_in_a_later_document_has_its_place_in_the_file() -> None:
    with pytest.raises(ParseError, match="not JSON") as caught:
        list(parse('{"kind": "Node"}\n{"kind": \n', "f"))
    assert (caught.value.location.line, caught.value.column) == (3, 1)


def test_what_is_cut_off_is_refused() -> None:
    with pytest.raises(ParseError):
        list(parse('{"kind": "Node"}\n{"kind": "Po', "f"))


def test_logs_between_objects_are_told_with_the_option_that_keeps_them_apart() -> None:
    with pytest.raises(ParseError, match="--output-directory"):
        list(parse('{"kind": "NodeList"}\n==== START logs for container a of pod b/c ====\n', "f"))


@pytest.mark.parametrize("text", ['{"a":' * 100_000, '{"a": ' + "9" * 5_000 + "}"])
def test_hostile_documents_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^f: "):
        list(parse(text, "f"))
