from __future__ import annotations

import pickle
from typing import Any

import pytest

from analyzer.model.value import fields_of, replace, required_fields_of, value

#: More values of a class than are made without compiling what makes them.
_MANY = 100


@value
class Point:
    x: int
    y: int = 0

    def moved(self) -> Point:
        return replace(self, x=self.x + 1)


@value(kw_only=True)
class Named:
    name: str
    size: int = 1


@value
class Nothing:
    pass


def test_values_are_equal_when_their_class_and_fields_are() -> None:
    assert Point(1, 2) == Point(1, y=2)
    assert hash(Point(1)) == hash(Point(1, 0))
    assert Point(1) != Point(2)
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1


def test_types_refuse_a_change_and_slots_another_field() -> None:
    point = Point(1)
    # mypy refuses an ignored error that is none (warn_unused_ignores): so it sees a frozen field.
    point.x = 2  # type: ignore[misc]  # that is what is tried
    with pytest.raises(AttributeError):
        point.z = 2  # type: ignore[attr-defined]  # that is what is tried


def test_some_values_are_made_by_name_only() -> None:
    assert Named(name="a").size == 1
    with pytest.raises(TypeError):
        Named("a")  # type: ignore[call-arg]  # that is what is tried


@pytest.mark.parametrize("arguments", [(), (1, 2, 3)])
def test_a_value_needs_its_fields_and_no_others(arguments: tuple[int, ...]) -> None:
    with pytest.raises(TypeError):
        Point(*arguments)


def test_classes_of_as_many_fields_are_told_apart() -> None:
    @value
    class Span:
        first: int
        last: int = 9

    @value
    class Named:
        name: str
        text: str = "none"

    assert (Span(1).last, Named("a").text) == (9, "none")
    assert Span(last=2, first=1) == Span(1, 2)
    make: Any = Named  # to try what the types forbid
    for name in ("first", "last"):
        with pytest.raises(TypeError, match=rf"Named.__init__\(\) .* '{name}'"):
            make(**{name: "a"})


def test_a_field_without_a_default_stands_before_those_that_have_one() -> None:
    class Each:
        x: int = 1
        y: int  # what dataclasses refuse, too

    with pytest.raises(TypeError, match="a field of Each without a default follows"):
        value(Each)


def test_the_first_values_and_later_ones_are_made_alike() -> None:
    @value
    class Each:
        x: int
        y: tuple[int, ...] = ()

    for n in range(_MANY):
        assert (Each(n, (n,)).x, Each(n, (n,)).y) == (n, (n,))
        assert Each(n) == Each(x=n) == Each(y=(), x=n)


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((1, (), 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1})]
)
@pytest.mark.parametrize("made", [0, 1, _MANY])
def test_a_value_is_refused_alike_whenever_it_is_made(
    made: int, arguments: tuple[object, ...], named: dict[str, object]
) -> None:
    @value
    class Each:
        x: int
        y: tuple[int, ...] = ()

    make: Any = Each  # to try what the types forbid
    for n in range(made):
        assert make(n).x == n
    for _ in range(2):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            make(*arguments, **named)


def test_a_value_by_name_is_made_alike_before_and_after_it_is_compiled() -> None:
    @value(kw_only=True)
    class Each:
        x: int = 7

    for n in range(_MANY):
        assert (Each(x=n).x, Each().x) == (n, 7)
    make: Any = Each  # to try what the types forbid
    with pytest.raises(TypeError):
        make(1)


def test_a_value_that_checks_itself_does_so_from_the_first_on() -> None:
    @value
    class Each:
        x: int

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("below zero")

    for n in range(_MANY):
        assert Each(n).x == n
        with pytest.raises(ValueError, match="below zero"):
            Each(-1)


def test_a_value_of_a_subclass_is_made_like_one_of_its_class() -> None:
    @value
    class Each:
        x: int

    class More(Each):
        def __post_init__(self) -> None:
            raise AssertionError("its class has none")

    for n in range(_MANY):
        assert (More(n).x, Each(n).x) == (n, n)


def test_a_changed_copy_keeps_the_other_fields() -> None:
    assert Point(1, 2).moved() == Point(2, 2)
    with pytest.raises(TypeError):
        replace(Point(1), z=3)


def test_a_value_is_taken_apart_by_position() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_a_value_shows_its_fields() -> None:
    assert repr(Named(name="a")) == "Named(name='a', size=1)"
    assert (fields_of(Named), required_fields_of(Named)) == (("name", "size"), ("name",))


@value(kw_only=True, slots=False)
class Wide:
    x: int = 0
    y: str = "y"


def test_a_value_without_slots_behaves_like_others() -> None:
    wide = Wide(x=1)
    assert (wide.x, wide.y, fields_of(Wide), required_fields_of(Wide)) == (1, "y", ("x", "y"), ())
    assert replace(wide, y="z") == Wide(y="z", x=1) != wide
    assert wide.y == "y"
    assert hash(replace(wide)) == hash(wide)
    assert repr(wide).endswith("Wide(x=1, y='y')")
    assert pickle.loads(pickle.dumps(wide)) == wide  # noqa: S301  # our own
    other: object = Named(name="a")
    assert wide != other
    make: Any = Wide  # to try what the types forbid
    with pytest.raises(TypeError, match="Wide has no field z"):
        make(z=1)
    with pytest.raises(TypeError, match="Wide has no field z"):
        replace(wide, z=1)
    with pytest.raises(TypeError):
        make(1)
