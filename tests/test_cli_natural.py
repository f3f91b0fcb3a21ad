"""Lines as people type them in the middle of the night."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.losses import document

MASTER = ["--dead-node", "master"]
SLICES = {
    "kind": "EndpointSlice",
    "metadata": {"namespace": "kube-system", "labels": {"kubernetes.io/service-name": "kube-dns"}},
    "addressType": "IPv4",
    "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}],
    "endpoints": [
        {
            "addresses": ["10.244.0.3"],
            "targetRef": {"kind": "Pod", "namespace": "kube-system", "name": "coredns-1"},
        }
    ],
}
PODS = [
    {
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": "app-1"},
        "spec": {"nodeName": "master"},
        "status": {"podIP": "10.244.0.7"},
    },
    {
        "kind": "Pod",
        "metadata": {"namespace": "kube-system", "name": "kube-proxy-1"},
        "spec": {"nodeName": "master", "hostNetwork": True},
        "status": {"podIP": "192.168.0.10"},
    },
]


def dead(found: Any) -> set[str]:
    return {
        f"{each['address']}:{each['port']}"
        for service in found["services"]
        for each in service["endpoints"]
        if each["dead"]
    }


def test_a_network_dies_with_all_that_is_in_it(command: Command) -> None:
    found = document(command, DUMP, "--dead", "10.244.0.0/24")
    assert dead(found) == {"10.244.0.7:8080", "10.244.0.3:53", "10.244.0.3:9153"}
    assert "Dead: network 10.244.0.0/24 (2 endpoint addresses)" in (
        command("loss", DUMP, "--dead", "10.244.0.0/24").out
    )
    done = command("loss", DUMP, "--dead", "10.99.0.0/24")
    assert done.status == 2
    assert (
        "--dead 10.99.0.0/24: no Service of this dump has an endpoint in that network" in done.err
    )


def test_a_pod_dies_by_its_name(command: Command) -> None:
    objects = command.file("objects.json", json.dumps({"items": [*PODS, SLICES]}))
    asked = DUMP, "--objects", objects, "--dead"
    assert dead(document(command, *asked, "default/app-1")) == {"10.244.0.7:8080"}
    # Of a pod that only an EndpointSlice names the ports count that are listed.
    assert dead(document(command, *asked, "kube-system/coredns-1")) == {"10.244.0.3:53"}
    shown = command("loss", *asked, "default/app-1,kube-system/coredns-1").out
    assert shown.startswith("Dead: pod default/app-1, pod kube-system/coredns-1 (2 ")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("default/app-2", "the objects have no such pod; did you mean default/app-1"),
        ("kube-system/kube-proxy-1", "has its node's and is not an endpoint; pass IP:PORT"),
    ],
)
def test_a_pod_that_answers_nowhere_is_refused(command: Command, name: str, says: str) -> None:
    objects = command.file("objects.json", json.dumps({"items": PODS}))
    done = command("loss", DUMP, "--objects", objects, "--dead", name)
    assert (done.status, done.out) == (2, "")
    assert f"kubeodds: --dead {name}: " in done.err
    assert says in done.err


def test_where_a_pod_is_takes_objects(command: Command) -> None:
    done = command("loss", DUMP, "--dead", "default/app-1")
    assert done.status == 2
    assert "finding a pod needs --objects" in done.err


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--service", "kube-dns", "--service", "app"], 4),
        (["--service", "kube-dns,app"], 4),
        (["--service", "kube*"], 4),
        (["-n", "kube-system"], 3),
        (["-n", "default,kube-system"], 5),
        (["--service", "svc/app", "-n", "default"], 1),
        (["--service", "10.96.0.10:53"], 2),
        (["--service", "KUBE-SVC-TCOU7JCQXEZGVUNU"], 1),
    ],
)
def test_services_are_named_as_kubectl_and_the_dump_do(
    command: Command, words: list[str], names: int
) -> None:
    found = document(command, DUMP, *OBJECTS, *MASTER, *words)
    assert len(found["services"]) == names
    done = command("services", DUMP, *words, "-o", "json")
    assert len(json.loads(done.out)["services"]) == names


def test_a_trace_marks_what_is_dead(command: Command) -> None:
    asked = "trace", DUMP, *OBJECTS, "--from", "pod", "--to", "kube-dns:53"
    plain, done = command(*asked), command(*asked, *MASTER)
    assert (plain.status, done.status) == (0, 0)
    assert "DEAD" not in plain.out
    assert re.search(r"^ +50.0% +1/2 +10.244.0.3:53 +master +\S+ +DEAD$", done.out, re.MULTILINE)
    assert re.search(r"=> 10.244.0.3:53.* DEAD$", done.out, re.MULTILINE)
    assert re.search(r"=> 10.244.1.4:53(?!.*DEAD)", done.out)
    ends = json.loads(command(*asked, *MASTER, "-o", "json").out)["outcomes"]
    assert {each["address"]: each["dead"] for each in ends} == {
        "10.244.0.3": True,
        "10.244.1.4": False,
    }
    ends = json.loads(command(*asked, "-o", "json").out)["outcomes"]
    assert [each["dead"] for each in ends] == [None, None]


def test_a_trace_marks_what_may_be_dead(command: Command) -> None:
    asked = "trace", DUMP, "--node-of", "10.244.1.0/24=worker1", "--from", "pod", "--to", "app"
    done = command(*asked, "--dead-node", "worker1")
    assert re.search(r"^ +50.0% +1/2 +10.244.0.7:8080 +\S+ +dead\?$", done.out, re.MULTILINE)
    ends = json.loads(command(*asked, "--dead-node", "worker1", "-o", "json").out)["outcomes"]
    assert {each["address"]: each["dead"] for each in ends} == {
        "10.244.0.7": None,
        "10.244.1.9": True,
    }
