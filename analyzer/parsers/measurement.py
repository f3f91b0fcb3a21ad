"""Reading back what documents of ``kubeodds lab`` have in common: measurements."""

from __future__ import annotations

import json
from typing import Any

from analyzer.errors import InputError, ParseError
from analyzer.model.diagnostics import Location
from analyzer.model.measurement import EndpointCount, Measurement
from analyzer.model.probability import NEVER, Bounds, Dyadic

_SOURCES = ("pod", "pod-elsewhere", "node", "external", "hairpin")
#: A Service of this many endpoints has shares of 31 bits each.
_MOST_BITS = 31 * 100_000
#: Seconds; infinity is above it.
_FOREVER = 1e12


def document_of(data: bytes, file: str) -> dict[str, Any]:
    """Return a JSON document; one of the lab names its schema.

    Raises:
        InputError: it is no JSON object.
        ParseError: it is not JSON, or only a part of it.
    """
    text = data.decode("utf-8", "surrogateescape")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(
            f"not JSON ({error.msg}); expected what `kubeodds lab run --format json` writes",
            location=Location(file, error.lineno),
            line=text.split("\n")[error.lineno - 1],
            span=(error.colno - 1, error.colno),
        ) from None
    except ValueError:  # an integer of thousands of digits
        raise InputError(f"{file}: a number in it is too long") from None
    except RecursionError:
        raise InputError(f"{file}: its lists are nested too deeply") from None
    if not isinstance(value, dict):
        raise InputError(f"{file}: expected a document of the lab, as JSON")
    return value


def measurement_of(value: dict[str, Any]) -> Measurement:
    """Return one entry of ``measurements``.

    Raises:
        KeyError, TypeError, ValueError: it is not in the form that the lab writes.
    """
    found = Measurement(
        service=str(value["service"]),
        protocol=str(value["protocol"]),
        frontend=str(value["frontend"]),
        source=source_of(value["source"]),
        node=text_of(value["node"]),
        flows=count_of(value["flows"]),
        endpoints=tuple(_endpoint(each) for each in value["endpoints"]),
        passed=count_of(value["passed"]),
        duplicates=count_of(value["duplicates"]),
        dropped_by_capture=count_of(value["dropped_by_capture"]),
        seconds=seconds_of(value["seconds"]),
        kernel=str(value["kernel"]),
        backend=str(value["backend"]),
        ended=bounds_of(value["ended"]) if "ended" in value else Bounds(NEVER, NEVER),
        rejected=count_of(value.get("rejected", 0)),
        ended_by=_ended_by(value.get("ended_by")),
        ended_at=text_of(value.get("ended_at")),
        repeated=count_of(value.get("repeated", 0)),
        repeated_ended=count_of(value.get("repeated_ended", 0)),
        strayed=count_of(value.get("strayed", 0)),
    )
    if found.flows < 1 or found.unaccounted < 0:
        raise ValueError("more flows were counted than sent, or none was sent")
    return found


def _endpoint(value: dict[str, Any]) -> EndpointCount:
    counted = value["counted"]
    return EndpointCount(
        address=str(value["address"]),
        port=count_of(value["port"]),
        node=text_of(value["node"]),
        dead=flag_of(value["dead"]),
        predicted=bounds_of(value["predicted"]),
        landed=count_of(value["landed"]),
        counted=None if counted is None else count_of(counted),
        answered=count_of(value["answered"]),
        refused=count_of(value["refused"]),
        in_flight=count_of(value.get("in_flight", 0)),
        death=text_of(value.get("death")),
        lost=bounds_of(value["lost"]) if "lost" in value else Bounds(NEVER, NEVER),
        unanswered=bounds_of(value["unanswered"])
        if "unanswered" in value
        else Bounds(NEVER, NEVER),
    )


def _ended_by(value: list[dict[str, Any]] | None) -> tuple[tuple[int, str], ...] | None:
    if value is None:
        return None
    return tuple((count_of(each["packets"]), str(each["rule"])) for each in value)


def bounds_of(value: dict[str, Any]) -> Bounds:
    """Return bounds on a share.

    Raises:
        KeyError, TypeError, ValueError: as for `measurement_of`.
    """
    return Bounds(_dyadic(value["lower"]), _dyadic(value["upper"]))


def count_of(value: object) -> int:
    """Return a number of flows, packets, runs.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a count, not {value!r}")
    return value


def seconds_of(value: object) -> float:
    """Return a time, or another number that is not negative.

    Raises:
        ValueError: it is none.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not isinstance(value, (int, float)) or not is_number or not 0 <= value <= _FOREVER:
        raise ValueError(f"expected a number of seconds, not {value!r}")
    return float(value)


def source_of(value: object) -> str:
    """Return a kind of source.

    Raises:
        ValueError: there is no such kind.
    """
    if value not in _SOURCES:
        raise ValueError(f"source {value!r} is not one of {', '.join(_SOURCES)}")
    return str(value)


def text_of(value: object) -> str | None:
    """Return a text; None if there is none."""
    return None if value is None else str(value)


def flag_of(value: object) -> bool:
    """Return true or false.

    Raises:
        ValueError: it is neither.
    """
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {value!r}")  # noqa: TRY004  # as others
    return value


def _dyadic(value: dict[str, Any]) -> Dyadic:
    exponent = count_of(value["exponent"])
    if exponent > _MOST_BITS:
        raise ValueError(f"exponent {exponent} is above {_MOST_BITS}")
    return Dyadic.of(int(str(value["numerator"]), 16), exponent)
