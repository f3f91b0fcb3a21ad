"""Twenty manifests as people have them, each with the verdict that was reasoned out by hand."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from tests.support.commands import Command
from tests.support.gate_manifests import EXPECTED, FOLDER, NODES, THRESHOLDS


def test_every_manifest_is_expected_to_do_something() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(EXPECTED)
    assert len(EXPECTED) == 20
    assert {each.passes for each in EXPECTED.values()} == {True, False}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_gate_says_of_a_manifest_what_a_person_would(name: str, command: Command) -> None:
    expected, path = EXPECTED[name], FOLDER / f"{name}.yaml"
    words = ("gate", str(path), "--nodes", NODES, *THRESHOLDS, "--seed", "1", "-o", "json")
    result = command(*words)
    assert result.status == int(not expected.passes)
    assert result.err == ""
    found = json.loads(result.out)
    (service,) = found["services"]
    assert f"{service['namespace']}/{service['service']}" == expected.service
    worst = {each["failure"]: each for each in service["worst"]}
    for kind, (lost, whole) in (
        ("node", expected.node),
        ("zone", expected.zone),
        ("control-plane", expected.control_plane),
    ):
        assert worst[kind]["proven"]
        told = worst[kind]["loss"]
        share = float(Fraction(lost, whole))
        assert told["lower"]["value"] == pytest.approx(share, abs=1e-8)
        assert told["upper"]["value"] == pytest.approx(share, abs=1e-8)
    assert service["survives"]["nodes"] == expected.survives
    assert service["survives"]["proven"]
    assert service["pending"]["at_least"] == expected.pending
    assert found["passes"] is expected.passes
    assert bool(service["violations"] or expected.pending) is not expected.passes
