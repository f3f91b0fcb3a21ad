from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.text import printable


@given(st.text(st.characters()))
def test_nothing_that_is_printed_acts_on_a_terminal(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert not [c for c in shown if unicodedata.category(c)[0] == "C" or c in "\u2028\u2029"]


@pytest.mark.parametrize("text", ["ns/svc:port -> 10.0.0.1:80", "Überfall", "日本", "🙂"])
def test_other_alphabets_stay_as_they_are(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"), [("\x1b[2J", "␛[2J"), ("a\tb", "a␉b"), ("\x7f", "␡"), ("\u202e", "\ufffd")]
)
def test_a_sign_stands_for_each_control_character(text: str, shown: str) -> None:
    assert printable(text) == shown
