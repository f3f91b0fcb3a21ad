from __future__ import annotations

import copy
import json
from typing import Any, Final

import pytest

from analyzer.errors import InputError, ParseError
from analyzer.model.measurement import EndpointCount
from analyzer.model.probability import ALWAYS, Bounds, Dyadic
from analyzer.parsers.measurement import parse_measurements

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


def document(*path: Any, **fields: Any) -> bytes:
    """The document with some fields of what stands at `path` changed."""
    given: dict[str, Any] = {
        "schema": "kubeodds/lab/2",
        "dead": "worker1",
        "measurements": [copy.deepcopy(MEASUREMENT)],
    }
    at: Any = given
    for step in path:
        at = at[step]
    at.update(fields)
    return json.dumps(given).encode()


def test_a_document_of_the_lab_is_read_again() -> None:
    dead, (found,) = parse_measurements(document(), "run.json")
    assert dead == "worker1"
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
    data = document("measurements", 0, "endpoints", 0, counted=0)
    assert parse_measurements(data, "run.json")[1][0].endpoints[0].counted == 0


IN_MEASUREMENT = ("measurements", 0)
IN_ENDPOINT = (*IN_MEASUREMENT, "endpoints", 0)
LOWER = (*IN_ENDPOINT, "predicted", "lower")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ((), {"schema": "kubeodds/loss/2"}),
        ((), {"schema": "kubeodds/lab/1"}),
        ((), {"measurements": []}),
        (IN_MEASUREMENT, {"source": "moon"}),
        (IN_MEASUREMENT, {"flows": 0}),
        # More landed than were sent.
        (IN_MEASUREMENT, {"passed": 41}),
        (IN_MEASUREMENT, {"flows": -1}),
        (IN_MEASUREMENT, {"duplicates": True}),
        (IN_MEASUREMENT, {"endpoints": None}),
        (IN_ENDPOINT, {"landed": 1.5}),
        (IN_ENDPOINT, {"counted": "7"}),
        (IN_ENDPOINT, {"predicted": {}}),
        (LOWER, {"numerator": "0x3"}),
        (LOWER, {"numerator": "half"}),
        (LOWER, {"exponent": 10**12}),
        (LOWER, {"exponent": -1}),
    ],
)
def test_what_the_lab_does_not_write_is_refused(path: tuple[Any, ...], fields: Any) -> None:
    with pytest.raises(InputError, match=r"^run\.json: "):
        parse_measurements(document(*path, **fields), "run.json")


def test_a_field_that_is_missing_is_named() -> None:
    data = document().replace(b'"kernel"', b'"colonel"')
    with pytest.raises(InputError, match="kernel"):
        parse_measurements(data, "run.json")


def test_what_is_no_json_is_told_with_its_line() -> None:
    with pytest.raises(ParseError) as caught:
        parse_measurements(b'{"schema":\n x}', "run.json")
    assert (caught.value.location.line, caught.value.column) == (2, 2)


def test_other_documents_of_the_lab_are_refused_with_the_reason() -> None:
    phases = json.dumps({"schema": "kubeodds/lab-phases/1"}).encode()
    with pytest.raises(InputError, match=r"--for or --pcap cannot be judged again$"):
        parse_measurements(phases, "run.json")
