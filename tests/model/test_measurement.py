from __future__ import annotations

from analyzer.model.measurement import EndpointCount, Measurement
from analyzer.model.probability import ALWAYS, Bounds


def endpoint(landed: int, counted: int | None) -> EndpointCount:
    return EndpointCount(
        address="10.0.0.1",
        port=80,
        node=None,
        dead=False,
        predicted=Bounds(ALWAYS, ALWAYS),
        landed=landed,
        counted=counted,
        answered=landed,
        refused=0,
    )


def measurement(*endpoints: EndpointCount, passed: int = 0) -> Measurement:
    return Measurement(
        service="ns/a:http",
        protocol="tcp",
        frontend="ClusterIP 10.96.0.1:80",
        source="pod",
        node=None,
        flows=100,
        endpoints=endpoints,
        passed=passed,
        duplicates=0,
        dropped_by_capture=0,
        seconds=1.0,
        kernel="6.18",
        backend="nft",
    )


def test_flows_that_neither_landed_nor_passed_are_unaccounted_for() -> None:
    assert measurement(endpoint(60, 60), endpoint(30, 30), passed=7).unaccounted == 3
    assert measurement(endpoint(60, 60), endpoint(40, 40)).unaccounted == 0


def test_counters_above_and_below_the_capture_do_not_cancel_out() -> None:
    assert measurement(endpoint(60, 62), endpoint(40, 38)).counter_difference == 4
    assert measurement(endpoint(60, 60), endpoint(40, 40)).counter_difference == 0


def test_counters_that_were_not_all_read_have_no_difference() -> None:
    assert measurement(endpoint(60, 60), endpoint(40, None)).counter_difference is None
