"""Reading back a document of ``kubeodds lab run --format json``."""

from __future__ import annotations

import json
from typing import Any

from analyzer.errors import InputError, ParseError
from analyzer.model.diagnostics import Location
from analyzer.model.measurement import EndpointCount, Measurement
from analyzer.model.probability import NEVER, Bounds, Dyadic

_SCHEMA = "kubeodds/lab/2"
_SOURCES = ("pod", "pod-elsewhere", "node", "external", "hairpin")
#: A Service of this many endpoints has shares of 31 bits each.
_MOST_BITS = 31 * 100_000


def parse_measurements(data: bytes, file: str) -> tuple[str, tuple[Measurement, ...]]:
    """Return what was dead, and the measurements.

    Raises:
        InputError: it is no such document.
        ParseError: it is not JSON.
    """
    text = data.decode("utf-8", "surrogateescape")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(
            f"not JSON ({error.msg})",
            location=Location(file, error.lineno),
            line=text.split("\n")[error.lineno - 1],
            span=(error.colno - 1, error.colno),
        ) from None
    except ValueError:  # an integer of thousands of digits
        raise InputError(f"{file}: a number in it is too long") from None
    if not isinstance(value, dict) or value.get("schema") != _SCHEMA:
        raise InputError(
            f"{file}: expected a {_SCHEMA} document of `lab run` or `lab verify` with "
            "--format json; those with --for or --pcap cannot be judged again"
        )
    if not value.get("measurements"):
        raise InputError(f"{file}: it contains no measurement")
    try:
        return str(value["dead"]), tuple(_measurement(each) for each in value["measurements"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file}: not in the form that `lab run` writes: {error!r}") from None


def _measurement(value: dict[str, Any]) -> Measurement:
    if value["source"] not in _SOURCES:
        raise ValueError(f"source {value['source']!r} is not one of {', '.join(_SOURCES)}")
    found = Measurement(
        service=str(value["service"]),
        protocol=str(value["protocol"]),
        frontend=str(value["frontend"]),
        source=str(value["source"]),
        node=None if value["node"] is None else str(value["node"]),
        flows=_count(value["flows"]),
        endpoints=tuple(_endpoint(each) for each in value["endpoints"]),
        passed=_count(value["passed"]),
        duplicates=_count(value["duplicates"]),
        dropped_by_capture=_count(value["dropped_by_capture"]),
        seconds=float(value["seconds"]),
        kernel=str(value["kernel"]),
        backend=str(value["backend"]),
        ended=_bounds(value["ended"]) if "ended" in value else Bounds(NEVER, NEVER),
        rejected=_count(value.get("rejected", 0)),
        ended_by=_ended_by(value.get("ended_by")),
        repeated=_count(value.get("repeated", 0)),
        strayed=_count(value.get("strayed", 0)),
    )
    if found.flows < 1 or found.unaccounted < 0:
        raise ValueError("more flows were counted than sent, or none was sent")
    return found


def _endpoint(value: dict[str, Any]) -> EndpointCount:
    counted = value["counted"]
    return EndpointCount(
        address=str(value["address"]),
        port=_count(value["port"]),
        node=None if value["node"] is None else str(value["node"]),
        dead=bool(value["dead"]),
        predicted=_bounds(value["predicted"]),
        landed=_count(value["landed"]),
        counted=None if counted is None else _count(counted),
        answered=_count(value["answered"]),
        refused=_count(value["refused"]),
        in_flight=_count(value.get("in_flight", 0)),
        death=None if (death := value.get("death")) is None else str(death),
        lost=_bounds(value["lost"]) if "lost" in value else Bounds(NEVER, NEVER),
        unanswered=_bounds(value["unanswered"]) if "unanswered" in value else Bounds(NEVER, NEVER),
    )


def _ended_by(value: list[dict[str, Any]] | None) -> tuple[tuple[int, str], ...] | None:
    if value is None:
        return None
    return tuple((_count(each["packets"]), str(each["rule"])) for each in value)


def _bounds(value: dict[str, Any]) -> Bounds:
    return Bounds(_dyadic(value["lower"]), _dyadic(value["upper"]))


def _dyadic(value: dict[str, Any]) -> Dyadic:
    exponent = _count(value["exponent"])
    if exponent > _MOST_BITS:
        raise ValueError(f"exponent {exponent} is above {_MOST_BITS}")
    return Dyadic.of(int(str(value["numerator"]), 16), exponent)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a count, not {value!r}")
    return value
