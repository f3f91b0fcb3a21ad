from __future__ import annotations

import json

import pytest

from tests.support.lab.running import case, kubeodds

pytestmark = pytest.mark.lab


@pytest.mark.parametrize(
    ("capture", "service", "program"),
    [
        ("1.36.2-iptables-legacy/two-node@worker1", "default/app", "nc -zv"),
        ("1.20.2-iptables-legacy/seed-dns@worker1", "kube-dns:dns", "dig"),
    ],
)
def test_the_pod_answers_always_and_the_service_half_of_the_time(
    capture: str, service: str, program: str
) -> None:
    given = case(capture)
    done = kubeodds(
        "lab", "clients", *given.given, "--dead-node", "master", "--service", service,
        "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pod, frontend = json.loads(done.stdout)["trials"]
    assert pod["command"].startswith(program)
    assert pod["succeeded"] == pod["runs"] == 60
    assert frontend["succeeds"]["lower"]["value"] == frontend["succeeds"]["upper"]["value"] == 0.5
    assert 0 < frontend["succeeded"] < 60
    assert frontend["agrees"]
    # Silence is a time-out: the client waited as long as it was told to.
    assert min(frontend["failure_seconds"]) >= 2.0


def test_a_service_whose_only_endpoint_is_dead_answers_nobody() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    done = kubeodds(
        "lab", "clients", *given.given, "--dead-node", "master", "--service", "kubernetes:https",
        "--runs", "5", "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (frontend,) = json.loads(done.stdout)["trials"]
    assert frontend["succeeded"] == frontend["succeeds"]["upper"]["value"] == 0
