"""Validation of API objects: composable checks, which name the field at fault.

A check is given a value and its path, such as ``spec.template.spec.containers[0].ports``. What is
null is as if it were not there, as for the API.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from analyzer.gate.labels import is_integer
from analyzer.gate.quantities import quantity
from analyzer.model.addresses import address_from_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: Looks at a value with its path; adds the paths of unknown fields, with those that are known.
    ShapeCheck: TypeAlias = Callable[[object, str, "UnknownFields"], None]
    UnknownFields: TypeAlias = list[tuple[str, Collection[str]]]

_MOST_SHOWN: Final = 40


class MalformedError(ValueError):
    """A value that the API does not accept; the message begins with its path."""


def fail(path: str, wanted: str, given: object) -> None:
    """Raise an error for a value.

    Raises:
        MalformedError: always.
    """
    raise MalformedError(f"{path}: expected {wanted}, not {shown(given)}")


def shown(given: object) -> str:
    """Return a value in brief: strings quoted, maps and lists by their kind."""
    if isinstance(given, (dict, list)):
        return "a map" if isinstance(given, dict) else "a list"
    if isinstance(given, bool):
        return "true" if given else "false"
    if given is None:
        return "null"
    told = repr(given)
    return told if len(told) <= _MOST_SHOWN else f"{told[:_MOST_SHOWN]}..."


def fields(needed: Collection[str] = (), /, **known: ShapeCheck) -> ShapeCheck:
    """Return the check of a map with these fields; `needed` ones are required."""

    def check(given: object, path: str, unknown: UnknownFields) -> None:
        if not isinstance(given, dict):
            fail(path, "a map", given)
            return
        unknown += [(_below(path, key), known) for key in given if key not in known]
        for key in needed:
            if given.get(key) is None:
                raise MalformedError(f"{_below(path, key)}: missing")
        for key, each in given.items():
            if key in known and each is not None:
                known[key](each, _below(path, key), unknown)

    return check


def list_of(check: ShapeCheck) -> ShapeCheck:
    """Return the check of a list of such values."""

    def check_all(given: object, path: str, unknown: UnknownFields) -> None:
        if not isinstance(given, list):
            fail(path, "a list", given)
            return
        for n, each in enumerate(given):
            check({} if each is None else each, f"{path}[{n}]", unknown)

    return check_all


def map_of(check: ShapeCheck) -> ShapeCheck:
    """Return the check of a map of such values with any keys; null is not allowed."""

    def check_all(given: object, path: str, unknown: UnknownFields) -> None:
        if not isinstance(given, dict):
            fail(path, "a map", given)
            return
        for key, each in given.items():
            check(each, _below(path, key), unknown)

    return check_all


def one_of(*words: str) -> ShapeCheck:
    """Return the check of a string that is one of these."""

    def check(given: object, path: str, _: UnknownFields) -> None:
        if given not in words or not isinstance(given, str):
            fail(path, _either([each for each in words if each]), given)

    return check


def number(least: int, most: int = (1 << 31) - 1) -> ShapeCheck:
    """Return the check of an integer within bounds."""

    def check(given: object, path: str, _: UnknownFields) -> None:
        if type(given) is not int or not least <= given <= most:
            wanted = f"an integer from {least:,}"
            fail(path, wanted if most >= (1 << 31) - 1 else f"{wanted} to {most:,}", given)

    return check


def text(given: object, path: str, _: UnknownFields) -> None:
    """Check that it is a string, which may be empty."""
    if not isinstance(given, str):
        hint = "" if given is None or isinstance(given, (dict, list)) else "; put quotes around it"
        raise MalformedError(f"{path}: expected text, not {shown(given)}{hint}")


def name(given: object, path: str, unknown: UnknownFields) -> None:
    """Check that it is a string that is not empty."""
    text(given, path, unknown)
    if not given:
        raise MalformedError(f"{path}: empty")


def boolean(given: object, path: str, _: UnknownFields) -> None:
    """Check that it is true or false."""
    if not isinstance(given, bool):
        fail(path, "true or false", given)


def amount(given: object, path: str, _: UnknownFields) -> None:
    """Check that it is a quantity of any resource; null is not."""
    if given is None:
        return
    try:
        quantity("", given)
    except ValueError as error:
        raise MalformedError(f"{path}: {error}") from None


def port(given: object, path: str, _: UnknownFields) -> None:
    """Check that it is a port number or a port's name."""
    if isinstance(given, str) or (type(given) is int and 0 <= given <= 65_535):  # noqa: PLR2004  # of a port
        return
    fail(path, "a port's number or name", given)


def address(given: object, path: str, unknown: UnknownFields) -> None:
    """Check that it is an IP address, or a word in place of one: empty, or ``None``."""
    text(given, path, unknown)
    if given not in ("", "None") and address_from_text(str(given)) is None:
        fail(path, "an IP address", given)


def expression(*operators: str) -> ShapeCheck:
    """Return the check of one of ``matchExpressions`` with one of these operators."""
    check_fields = fields(
        ("key", "operator"), key=name, operator=one_of(*operators), values=list_of(text)
    )

    def check(given: object, path: str, unknown: UnknownFields) -> None:
        check_fields(given, path, unknown)
        assert isinstance(given, dict)  # it is a map
        operator, values = given["operator"], given.get("values") or []
        if operator in ("Gt", "Lt"):
            if len(values) != 1 or not is_integer(values[0]):
                raise MalformedError(f"{path}.values: {operator} takes one integer, as text")
        elif bool(values) is not (operator in ("In", "NotIn")):
            wanted = "no value" if values else "at least one value"
            raise MalformedError(f"{path}.values: {operator} takes {wanted}")

    return check


def map_(given: object, path: str, _: UnknownFields) -> None:
    """Check that it is a map of anything."""
    if not isinstance(given, dict):
        fail(path, "a map", given)


def anything(given: object, path: str, unknown: UnknownFields) -> None:
    """Check nothing, for fields that do not affect where pods are."""


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _either(words: Collection[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
