from __future__ import annotations

from collections.abc import Callable

from analyzer.model.nft.lazy import Lazy


class Counting:
    """Makes words of a text, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, text: str) -> tuple[str, ...]:
        self.times += 1
        return tuple(text.split())


def lazy(text: str, count: Callable[[str], int] | None = None) -> tuple[Lazy[str], Counting]:
    make = Counting()
    return Lazy(text, make, count), make


def test_values_are_made_once_when_they_are_first_looked_at() -> None:
    found, make = lazy("a b c")
    assert make.times == 0
    assert [found[0], *found, *found[1:]] == ["a", "a", "b", "c", "b", "c"]
    assert make.times == 1


def test_a_count_that_is_known_makes_no_values() -> None:
    found, make = lazy("a b c", lambda text: text.count(" ") + 1)
    assert len(found) == 3
    assert make.times == 0


def test_values_that_were_made_are_counted_themselves() -> None:
    found, make = lazy("a b c", lambda _: 7)
    assert list(found) == ["a", "b", "c"]
    assert len(found) == 3
    assert len(lazy("a b")[0]) == 2
    assert make.times == 1


def test_it_equals_any_sequence_of_the_same_values() -> None:
    found, _ = lazy("a b")
    assert found == ("a", "b")
    assert found == ["a", "b"]
    assert found == lazy(" a  b ")[0]
    assert hash(found) == hash(("a", "b"))
    assert found != ("a",)
    assert found != 7
    assert repr(found) == "('a', 'b')"
