from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from analyzer.parsers.nft import json_values as j
from analyzer.parsers.nft.extension import NotUnderstood


@pytest.mark.parametrize(
    ("reads", "given", "value"),
    [
        (j.mapping, {"a": 1}, {"a": 1}),
        (j.array, [1], [1]),
        (j.integer, 0, 0),
        (j.string, "", ""),
        (j.optional_string, None, None),
        (j.optional_string, "x", "x"),
        (j.optional_integer, None, None),
        (j.optional_integer, 7, 7),
        (j.strings, None, ()),
        (j.strings, "a", ("a",)),
        (j.strings, ["a", "b"], ("a", "b")),
        (j.boolean, None, False),
        (j.boolean, True, True),
    ],
)
def test_a_value_of_the_right_kind_is_given(
    reads: Callable[[Any], Any], given: Any, value: Any
) -> None:
    assert reads(given) == value


@pytest.mark.parametrize(
    ("reads", "given"),
    [
        (j.mapping, []),
        (j.array, {}),
        (j.integer, -1),
        # In Python a truth value is a number.
        (j.integer, True),
        (j.integer, 1.0),
        (j.integer, "1"),
        (j.string, None),
        (j.optional_string, 1),
        (j.optional_integer, "1"),
        (j.strings, [1]),
        (j.strings, {}),
        (j.boolean, 0),
        (j.boolean, "true"),
    ],
)
def test_a_value_of_another_kind_is_not_understood(reads: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(NotUnderstood):
        reads(given)


def test_a_property_that_nobody_reads_may_change_the_meaning() -> None:
    j.known_only({"key": 1}, frozenset({"key", "op"}))
    with pytest.raises(NotUnderstood):
        j.known_only({"key": 1, "inv": True}, frozenset({"key", "op"}))


def test_a_reader_goes_no_deeper_than_nft_nests() -> None:
    def inner(given: Any, read: j.JsonReader) -> Any:
        return read(given - 1) if given else "end"

    reader = j.JsonReader(inner, "ip")
    assert reader(40) == "end"
    with pytest.raises(NotUnderstood, match="too deep"):
        reader(41)
    # What failed leaves nothing behind.
    assert reader(40) == "end"
