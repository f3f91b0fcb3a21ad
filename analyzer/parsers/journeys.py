"""Journeys written in TOML.

[[journey]]
name = "order"
steps = [
    { lookup = "payments.shop", client = "glibc" },
    { connect = "shop/payments:https", client = "http-retry" },
]
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.errors import InputError, suggestion
from analyzer.model.journeys import JourneyStep, WrittenJourney

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, NoReturn

KINDS: Final = ("lookup", "connect")
_OF_STEP: Final = (*KINDS, "client")
_OF_JOURNEY: Final = ("name", "steps")


def journeys_from_bytes(content: bytes, file: str) -> tuple[WrittenJourney, ...]:
    """Return the journeys of a file.

    Raises:
        InputError: it is not TOML, or has no journeys; the message says where.
    """
    document = toml_from_bytes(content, file)
    _check_keys(document, ("journey",), file)
    listed = document.get("journey")
    if not isinstance(listed, list) or not listed:
        _refuse(file, "expected one [[journey]] or more, each with a name and steps")
    found = tuple(_journey(each, f"{file}: journey {at}") for at, each in enumerate(listed, 1))
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            _refuse(file, f"two journeys are named {name!r}")
    return found


def weights_from_bytes(content: bytes, file: str) -> dict[str, int]:
    """Return the weight of each node, from lines such as ``worker1 = 3``.

    Raises:
        InputError: it is not TOML, a weight is no whole number, or all are 0.
    """
    document = toml_from_bytes(content, file)
    for node, weight in document.items():
        if type(weight) is not int or weight < 0:
            _refuse(file, f"expected a whole number for {node}, for example {node} = 3")
    if not any(document.values()):
        _refuse(
            file, ("expected a weight for each node, for example worker1 = 3, at least one above 0")
        )
    return document


def toml_from_bytes(content: bytes, file: str) -> dict[str, Any]:
    """Return a TOML document.

    Raises:
        InputError: it is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: it is not TOML: byte {error.start} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: it is not TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{file}: it is nested too deeply") from None


def _journey(given: object, place: str) -> WrittenJourney:
    if not isinstance(given, dict):
        _refuse(place, "expected a table with a name and steps")
    _check_keys(given, _OF_JOURNEY, place)
    name, steps = given.get("name"), given.get("steps")
    if not isinstance(name, str) or not name:
        _refuse(place, "expected a name")
    if not isinstance(steps, list) or not steps:
        _refuse(place, 'expected steps, for example steps = [{ lookup = "app.shop" }]')
    return WrittenJourney(
        name, tuple(_step(each, f"{place}, step {at}") for at, each in enumerate(steps, 1))
    )


def _step(given: object, place: str) -> JourneyStep:
    if not isinstance(given, dict):
        _refuse(place, 'expected a table, for example { lookup = "app.shop", client = "glibc" }')
    _check_keys(given, _OF_STEP, place)
    kinds = [each for each in KINDS if each in given]
    if len(kinds) != 1:
        _refuse(place, "expected either lookup or connect")
    what, client = given[kinds[0]], given.get("client")
    if not isinstance(what, str) or not what:
        _refuse(place, f"expected a name for {kinds[0]}")
    if client is not None and not isinstance(client, str):
        _refuse(place, "expected the name of a client")
    return JourneyStep(kinds[0], what, client)


def _check_keys(given: Mapping[str, object], known: tuple[str, ...], place: str) -> None:
    for key in given:
        if key not in known:
            _refuse(place, f"unknown key {key!r}{suggestion(key, known)}")


def _refuse(place: str, message: str) -> NoReturn:
    raise InputError(f"{place}: {message}")
