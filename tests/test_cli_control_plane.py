"""The control plane on the command line: in `whatif`, and the table of components."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import cluster_ip, dump, endpoint

ASKED = (DUMP, *OBJECTS, "--node", "worker1")
#: A Service with an endpoint on each of three nodes of a control plane and on a worker.
FOUR = dump(
    cluster_ip("ns/a:http"),
    "-A KUBE-SVC-A -m statistic --mode random --probability 0.25000000000 -j KUBE-SEP-1",
    "-A KUBE-SVC-A -m statistic --mode random --probability 0.33333333349 -j KUBE-SEP-2",
    "-A KUBE-SVC-A -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-3",
    "-A KUBE-SVC-A -j KUBE-SEP-4",
    *(endpoint(f"KUBE-SEP-{n}", f"10.0.0.{n}:80") for n in (1, 2, 3, 4)),
)
CONTROL_PLANE = ("--control-plane", "m1,m2,m3")


@pytest.fixture
def four(command: Command) -> tuple[str, ...]:
    """A dump, and which of its endpoints is where."""
    places = [f"--node-of=10.0.0.{n}/32={name}" for n, name in enumerate(("m1", "m2", "m3"), 1)]
    return command.file("dump.txt", FOUR), *places, "--node-of=10.0.0.4/32=w1"


def states(command: Command, *arguments: str) -> dict[str, str | None]:
    done = command("whatif", *arguments, "--format", "json")
    assert done.status == 0, done.err
    return {
        "+".join(each["nodes"]): each["control_plane"] and each["control_plane"]["api"]
        for each in json.loads(done.out)["failures"]
    }


def test_each_set_of_nodes_is_judged(command: Command, four: tuple[str, ...]) -> None:
    found = states(command, *four, *CONTROL_PLANE, "--topology", "client-side-load-balancer")
    assert found["m1"] == found["w1"] == found["m1+w1"] == "up"
    assert found["m1+m2"] == found["m2+m3"] == "read-only"
    assert found["m1+m2+m3"] == "down"  # the control plane as a whole


def test_a_single_load_balancer_is_a_single_point(command: Command, four: tuple[str, ...]) -> None:
    said = ("--topology", "kubeadm-stacked", "--api-load-balancer", "w1")
    found = states(command, *four, *CONTROL_PLANE, *said)
    assert (found["w1"], found["m1"]) == ("down", "up")
    shown = command("whatif", *four, *CONTROL_PLANE, *said).out
    assert "load balancers on w1; it does not survive the loss of w1." in shown


def test_what_nobody_said_is_no_all_clear(command: Command, four: tuple[str, ...]) -> None:
    found = states(command, *four, *CONTROL_PLANE)
    assert (found["m1"], found["m1+m2"], found["w1"]) == ("unknown", "unknown", "up")
    shown = command("whatif", *four, *CONTROL_PLANE).out
    assert "  ? with m1 + m2 + m3 gone" not in shown
    assert (
        "2 of 3 API servers left, and the load balancer in front of them is not known "
        "(--api-load-balancer)" in shown
    )
    assert "it is not known to survive the loss of any node." in shown


def test_without_a_control_plane_it_says_so(command: Command, four: tuple[str, ...]) -> None:
    assert set(states(command, *four).values()) == {None}
    done = command("whatif", *four)
    assert "Control plane: not known, since no node has its role label." in done.out
    assert "API" not in done.out.splitlines()[2]
    refused = command("whatif", *four, "--etcd", "m1")
    assert refused.status == 2
    assert "name them with --control-plane" in refused.err


def test_a_zone_takes_the_control_plane_in_it(command: Command) -> None:
    nodes = [
        {
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "topology.kubernetes.io/zone": zone,
                    **({"node-role.kubernetes.io/control-plane": ""} if name[0] == "m" else {}),
                },
            },
            "status": {"addresses": [{"type": "InternalIP", "address": f"192.0.2.{n}"}]},
        }
        for n, (name, zone) in enumerate((("m1", "a"), ("m2", "b"), ("m3", "b"), ("w1", "c")), 1)
    ]
    pods = [
        {"kind": "Pod", "spec": {"nodeName": name}, "status": {"podIP": f"10.0.0.{n}"}}
        for n, name in enumerate(("m1", "m2", "m3", "w1"), 1)
    ]
    objects = command.file("objects.json", json.dumps({"items": [*nodes, *pods]}))
    file = command.file("dump.txt", FOUR)
    done = command("whatif", file, "--objects", objects, "--topology", "k3s", "-o", "json")
    zones: dict[str, Any] = {
        each["zones"][0]: each["control_plane"]["api"]
        for each in json.loads(done.out)["failures"]
        if each["zones"]
    }
    assert zones == {"a": "up", "b": "read-only", "c": "up"}


def test_the_api_servers_process_alone_costs_its_own_service(command: Command) -> None:
    shown = command("whatif", *ASKED).out
    assert (
        "Losing only the API server's process on master, with its node alive, costs "
        "default/kubernetes:https 100.0%, and no other Service; nothing heals in the meantime."
        in shown
    )
    assert "process" not in command("whatif", *ASKED, "--service", "default/app").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--etcd", "mastr"), "--etcd mastr: no such node is known; did you mean master?"),
        (("--topology", "k4s"), "invalid choice: 'k4s'"),
        (("--api-load-balancer", "lb1"), "--api-load-balancer lb1: no such node is known"),
    ],
)
def test_wrong_names_are_refused(command: Command, words: tuple[str, ...], message: str) -> None:
    done = command("whatif", *ASKED, *words)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


# --- the table of components ---------------------------------------------------


def test_components_take_no_dump(command: Command) -> None:
    done = command("whatif", "--components")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("kube-apiserver down: all of them\n")
    assert "\nkube-proxy down: that of one node\n" in done.out
    refused = command("whatif", "--components", "dump.txt")
    assert (refused.status, refused.out) == (2, "")
    assert "dump.txt: --components prints one table for all clusters" in refused.err


def test_each_number_of_a_source_is_in_the_list(command: Command) -> None:
    table, _, sources = command("whatif", "--components").out.partition("\nSources")
    numbers = [line.split("]")[0].strip(" [") for line in sources.splitlines()[1:]]
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
    assert all(f"[{number}]" in table for number in numbers)


def test_components_as_json(command: Command) -> None:
    document = json.loads(command("whatif", "--components", "-o", "json").out)
    assert document["schema"] == "kubeodds/components/1"
    assert all(each["works"]["sources"] for each in document["components"])


def test_help_tells_of_components(command: Command) -> None:
    assert "--components" in command("whatif", "--help").out
    done = command("whatif", "--components", "--help")
    assert done.status == 0
    assert "usage: kubeodds whatif [-h] --components" in done.out


def tsv(command: Command, *arguments: str) -> list[dict[str, str]]:
    head, *lines = command("whatif", *arguments, "--format", "tsv").out.splitlines()
    return [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]


@pytest.mark.parametrize(
    "said", [(), CONTROL_PLANE, (*CONTROL_PLANE, "--topology", "client-side-load-balancer")]
)
def test_every_format_tells_what_is_left(
    command: Command, four: tuple[str, ...], said: tuple[str, ...]
) -> None:
    failures = json.loads(command("whatif", *four, *said, "--format", "json").out)["failures"]
    rows = tsv(command, *four, *said)
    truth = {None: "unknown", True: "yes", False: "no"}
    assert len(rows) == len(failures)
    gauges = command("whatif", *four, *said, "--format", "prometheus").out
    suites = ET.fromstring(command("whatif", *four, *said, "--format", "junit").out)  # noqa: S314  # our own
    told = {
        (suite.get("name"), case.get("name")): str(case.findtext("system-out"))
        for suite in suites
        for case in suite
    }
    for row, failure in zip(rows, failures, strict=True):
        left, names = failure["control_plane"], ",".join(failure["nodes"])
        assert row["names"] == names
        label = f'{{kind="{row["kind"]}",failure="{names}"}}'
        (says,) = {
            words
            for (_, name), words in told.items()
            if name == names.replace(",", " + ") and "in total loss" in words
        }
        if left is None:
            assert row["api"] == row["heals"] == row["replaces"] == ""
            assert "API" not in says
            continue
        assert row["api"] == left["api"]
        assert (row["heals"], row["replaces"]) == (truth[left["heals"]], truth[left["replaces"]])
        assert f"; API {left['api']}, " in says
        if row["kind"] != "set":
            assert f"kubeodds_whatif_api_up{label} {int(left['api'] == 'up')}\n" in gauges
            assert f"kubeodds_whatif_heals{label} {int(left['heals'] is True)}\n" in gauges
    of_all = told["what the control plane survives", "control plane"]
    assert of_all.startswith("not known" if not said else "3 API servers (m1, m2, m3), ")
    assert ("kubeodds_whatif_control_plane_survives_nodes " in gauges) is bool(said)


def test_programs_are_told_at_which_nodes_most_is_lost(command: Command) -> None:
    given = ("--from-objects", OBJECTS[1], "--seed", "1")
    done = command("whatif", *given, "--format", "prometheus")
    assert "\nkubeodds_whatif_vantage_nodes 2\n" in done.out
    failures = json.loads(command("whatif", *given, "--format", "json").out)["failures"]
    found = [each["at"] for each in tsv(command, *given)]
    assert found == [",".join(each["at"] or ()) for each in failures]
