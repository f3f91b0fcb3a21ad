from __future__ import annotations

import copy
from typing import Any, Final

import pytest

from analyzer.errors import InputError, ParseError
from analyzer.model.measurement import EndpointCount
from analyzer.model.probability import ALWAYS, Bounds, Dyadic
from analyzer.parsers.measurement import document_of, measurement_of

HALF = Bounds(Dyadic.of(1, 1), ALWAYS)
ENDPOINT: Final[dict[str, Any]] = {
    "address": "10.1.0.1",
    "port": 53,
    "node": "worker1",
    "dead": True,
    "predicted": {
        "lower": {"numerator": "0x1", "exponent": 1, "value": 0.5},
        "upper": {"numerator": "0x1", "exponent": 0, "value": 1.0},
    },
    "landed": 60,
    "counted": None,
    "answered": 50,
    "refused": 10,
}
MEASUREMENT: Final[dict[str, Any]] = {
    "service": "kube-system/kube-dns:dns",
    "protocol": "udp",
    "frontend": "ClusterIP 10.96.0.10:53",
    "source": "pod",
    "node": None,
    "flows": 100,
    "endpoints": [ENDPOINT],
    "passed": 40,
    "duplicates": 1,
    "dropped_by_capture": 2,
    "seconds": 1.5,
    "kernel": "6.18",
    "backend": "nft",
}


def changed(*path: Any, **fields: Any) -> dict[str, Any]:
    """The measurement with some fields of what stands at `path` changed."""
    given = copy.deepcopy(MEASUREMENT)
    at: Any = given
    for step in path:
        at = at[step]
    at.update(fields)
    return given


def test_a_measurement_of_the_lab_is_read_again() -> None:
    found = measurement_of(MEASUREMENT)
    assert (found.service, found.source, found.node) == ("kube-system/kube-dns:dns", "pod", None)
    assert (found.flows, found.passed, found.duplicates) == (100, 40, 1)
    assert (found.seconds, found.kernel, found.backend) == (1.5, "6.18", "nft")
    assert found.dropped_by_capture == 2
    assert found.endpoints == (
        EndpointCount(
            address="10.1.0.1",
            port=53,
            node="worker1",
            dead=True,
            predicted=HALF,
            landed=60,
            counted=None,
            answered=50,
            refused=10,
        ),
    )


def test_counters_that_were_read_are_kept() -> None:
    assert measurement_of(changed("endpoints", 0, counted=0)).endpoints[0].counted == 0


IN_ENDPOINT = ("endpoints", 0)
LOWER = (*IN_ENDPOINT, "predicted", "lower")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ((), {"source": "moon"}),
        ((), {"source": ["pod"]}),
        ((), {"flows": 0}),
        # More landed than were sent.
        ((), {"passed": 41}),
        ((), {"flows": -1}),
        ((), {"duplicates": True}),
        ((), {"endpoints": None}),
        ((), {"seconds": float("nan")}),
        ((), {"seconds": True}),
        (IN_ENDPOINT, {"landed": 1.5}),
        (IN_ENDPOINT, {"counted": "7"}),
        (IN_ENDPOINT, {"predicted": {}}),
        (IN_ENDPOINT, {"dead": 0}),
        (LOWER, {"numerator": "0x3"}),
        (LOWER, {"numerator": "half"}),
        (LOWER, {"exponent": 10**12}),
        (LOWER, {"exponent": -1}),
    ],
)
def test_what_the_lab_does_not_write_is_refused(path: tuple[Any, ...], fields: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        measurement_of(changed(*path, **fields))


def test_what_is_no_json_is_told_with_its_line() -> None:
    with pytest.raises(ParseError) as caught:
        document_of(b'{"schema":\n x}', "run.json")
    assert (caught.value.location.line, caught.value.column) == (2, 2)


@pytest.mark.parametrize("data", [b"[]", b"7", b"[" * 10**6, b'{"flows": ' + b"7" * 5000 + b"}"])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^run\.json: "):
        document_of(data, "run.json")
