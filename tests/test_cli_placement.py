"""The command line: on which node and in which zone endpoints are, and who says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.captures import ROOT
from tests.support.commands import DUMP, Command
from tests.support.dumps import FILTER, dump, two_endpoints

DEFECTS = ROOT / "fixtures" / "defects"
NODE_OF = ["--node-of", "10.244.0.0/24=master", "10.244.1.0/24=worker1"]
#: A Service of the two endpoints 10.0.0.1 and 10.0.0.2.
TWO = dump(*two_endpoints()) + FILTER

Object = dict[str, Any]


def objects(command: Command, *items: Object) -> list[str]:
    return ["--objects", command.file("objects.json", json.dumps({"items": items}))]


def losses(command: Command, dump_file: str, *arguments: str) -> dict[str, tuple[float, float]]:
    done = command("loss", dump_file, *arguments, "--format", "json")
    assert done.status == 0, done.err
    return {
        service["name"]: tuple(
            service["cluster_ip_loss"][end]["value"] for end in ("lower", "upper")
        )
        for service in json.loads(done.out)["services"]
    }


def loss_of_two(command: Command, *arguments: str) -> tuple[float, float]:
    return losses(command, command.file("dump.txt", TWO), *arguments)["ns/a:http"]


def pod(address: str, node: str, phase: str = "Running") -> Object:
    return {
        "kind": "Pod",
        "spec": {"nodeName": node},
        "status": {"podIP": address, "phase": phase},
    }


def node(name: str, pod_network: str, zone: str | None = None) -> Object:
    labels = {} if zone is None else {"topology.kubernetes.io/zone": zone}
    metadata = {"name": name, "labels": labels}
    return {"kind": "Node", "metadata": metadata, "spec": {"podCIDR": pod_network}}


def endpoint_slice(*endpoints: Object) -> Object:
    return {"kind": "EndpointSlice", "endpoints": list(endpoints)}


# --- who knows nodes -----------------------------------------------------------


@pytest.mark.parametrize(
    "known",
    [
        ["--objects", str(DEFECTS / "obj-nonodes.json"), "--node", "worker1"],
        ["--objects", str(DEFECTS / "obj-v1beta1.json"), "--node", "worker1"],
        [*NODE_OF, "--node", "worker1"],
    ],
    ids=["slices alone", "v1beta1", "networks alone"],
)
def test_a_node_can_die_whatever_knows_it(command: Command, known: list[str]) -> None:
    found = losses(command, DUMP, *known, "--dead-node", "master")
    assert found["default/app"] == found["kube-system/kube-dns:dns"] == (0.5, 0.5)


def test_a_node_that_has_no_endpoints_need_not_be_named(command: Command) -> None:
    given = objects(command, pod("10.0.0.1", "n1"), pod("10.0.0.2", "n2"))
    assert loss_of_two(command, *given, "--node", "n3", "--dead-node", "n1") == (0.5, 0.5)
    named = objects(command, pod("10.0.0.1", "n1"), node("n2", "10.1.0.0/24"))
    done = command("services", "dump.txt", *named, "--node", "n3")
    assert done.err == "kubeodds: --node n3: the objects have no such node; there are n1, n2\n"


def test_a_node_that_only_pods_name_can_die(command: Command) -> None:
    given = objects(command, pod("10.0.0.1", "n1"), pod("10.0.0.2", "n2"))
    assert loss_of_two(command, *given, "--dead-node", "n1") == (0.5, 0.5)
    assert loss_of_two(command, *given, "--dead-node", "n1", "n2") == (1, 1)


def test_a_node_that_nothing_names_is_no_all_clear(command: Command) -> None:
    given = objects(command, pod("10.0.0.1", "n1"))
    done = command("loss", command.file("dump.txt", TWO), *given, "--dead-node", "n2")
    assert (done.status, done.out) == (2, "")
    assert done.err == "kubeodds: --dead-node n2: no such node is known; there are n1\n"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_places_nobody(command: Command, phase: str) -> None:
    given = objects(
        command, pod("10.0.0.1", "n9", phase), pod("10.0.0.1", "n1"), pod("10.0.0.2", "n2")
    )
    assert loss_of_two(command, *given, "--dead-node", "n1") == (0.5, 0.5)
    done = command("loss", "dump.txt", *given, "--dead-node", "n9")
    assert "no such node is known" in done.err


def test_the_topology_of_older_slices_tells_node_and_zone(command: Command) -> None:
    topology = {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a"}
    given = objects(
        command,
        endpoint_slice(
            {"addresses": ["10.0.0.1"], "topology": topology},
            {"addresses": ["10.0.0.2"], "nodeName": "n2", "zone": "b"},
        ),
    )
    assert loss_of_two(command, *given, "--dead-node", "n1") == (0.5, 0.5)
    assert loss_of_two(command, *given, "--dead-zone", "a") == (0.5, 0.5)


# --- where objects do not say --------------------------------------------------


def test_an_endpoint_that_nothing_places_may_be_dead(command: Command) -> None:
    given = objects(command, pod("10.0.0.1", "n1"))
    assert loss_of_two(command, *given, "--dead-node", "n1") == (0.5, 1)


def test_a_pasted_table_of_pods_places_endpoints(command: Command) -> None:
    table = (
        "$ kubectl get pods -A -o wide\r\n"
        "NAMESPACE   NAME   READY   STATUS    RESTARTS     AGE   IP         NODE   "
        "NOMINATED NODE   READINESS GATES\r\n"
        "ns          a1     1/1     Running   1 (5h ago)   9d    10.0.0.1   n1     "
        "<none>           <none>\r\n"
        "ns          a2     0/1     {}   0            9d    10.0.0.2   n2     "
        "<none>           <none>\r\n"
    )
    for status, loss in (("Running", (0.5, 0.5)), ("Evicted", (0.5, 1.0))):
        content = table.format(status).encode("utf-16")
        given = ["--objects", command.file("pods.txt", content)]
        assert loss_of_two(command, *given, "--dead-node", "n1") == loss


def test_networks_and_then_pod_cidrs_place_what_objects_do_not(command: Command) -> None:
    given = objects(
        command,
        node("n1", "10.0.0.0/28", "a"),
        node("n2", "10.0.1.0/28", "b"),
        endpoint_slice({"addresses": ["10.0.0.1", "10.0.0.2"]}),
    )
    assert loss_of_two(command, *given, "--dead-node", "n1") == (1, 1)
    assert loss_of_two(command, *given, "--dead-zone", "a") == (1, 1)
    said = [*given, "--node-of", "10.0.0.2/32=n2"]
    assert loss_of_two(command, *said, "--dead-node", "n1") == (0.5, 0.5)


def test_who_is_placed_by_a_pod_cidr_is_told(command: Command) -> None:
    nodes = node("n1", "10.0.0.0/31"), node("n2", "10.0.0.2/31")
    given = objects(command, *nodes, pod("10.0.0.2", "n2"))
    asked = command.file("dump.txt", TWO), *given, "--dead-node", "n1"
    (told,) = json.loads(command("loss", *asked, "--format", "json").out)["diagnostics"]
    assert (told["severity"], told["code"]) == ("info", "node-by-pod-cidr")
    assert told["message"].startswith("1 endpoint address is assumed to be on the node")
    assert told["message"] in command("loss", *asked, "-v").err
    assert "Node of 1 endpoint address taken from podCIDRs." in command("loss", *asked).out


def test_pod_cidrs_that_some_pod_belies_place_nobody(command: Command) -> None:
    nodes = node("n1", "10.0.0.0/28"), node("n2", "10.0.1.0/28")
    given = objects(command, *nodes, pod("10.0.0.2", "n2"))
    assert loss_of_two(command, *given, "--dead-node", "n1") == (0, 0.5)


# --- the node of the dump ------------------------------------------------------


@pytest.mark.parametrize("dead", [["--dead-node", "n1"], ["--dead-zone", "a"]])
@pytest.mark.parametrize("zoned", ["by its node", "by its endpoints"])
def test_the_death_of_the_dumps_own_node_or_zone_is_warned_of(
    command: Command, dead: list[str], zoned: str
) -> None:
    ends = (
        {"addresses": ["10.0.0.1"], "nodeName": "n1", "zone": "a"},
        {"addresses": ["10.0.0.2"], "nodeName": "n2", "zone": "b"},
    )
    nodes = (node("n1", "10.1.0.0/24", "a"),) if zoned == "by its node" else ()
    given = objects(command, *nodes, endpoint_slice(*ends))
    done = command("loss", command.file("dump.txt", TWO), *given, "--node", "n1", *dead)
    assert done.err == (
        "dump.txt: warning: this dump is from n1, which you declared dead: it sends no flows; the "
        "numbers are what its rules would do\n"
    )
    if not nodes:
        elsewhere = command("loss", "dump.txt", *given, "--node", "n2", *dead)
        assert elsewhere.err == ""


def test_check_knows_the_node_that_slices_alone_name(command: Command) -> None:
    # The rules have lost the endpoint on worker1; under this policy the only one that counts.
    text = (DEFECTS / "obj-nonodes.json").read_text(encoding="utf-8")
    local = text.replace('"internalTrafficPolicy": "Cluster"', '"internalTrafficPolicy": "Local"')
    asked = str(DEFECTS / "nolast.txt"), "--objects", command.file("local.json", local), "--check"
    lacks = "10.96.18.52:80/tcp (default/app) are never sent to 10.244.1.9:8080"
    assert lacks in command("services", *asked, "--node", "worker1").err
    assert lacks not in command("services", *asked).err


# --- objects of another time ---------------------------------------------------


@pytest.mark.parametrize(
    ("heartbeat", "says"),
    [
        ("2026-11-06T06:00:00Z", "3 hours older than the dump"),
        ("2026-11-03T08:00:00Z", "3 days older than the dump"),
        ("2026-11-06T09:40:00Z", "37 minutes newer than the dump"),
        ("2026-11-06T09:00:00Z", None),
        ("2026-11-06T09:10:00Z", None),
        (None, None),
    ],
)
def test_objects_of_another_time_are_told(
    command: Command, heartbeat: str | None, says: str | None
) -> None:
    head = "# Generated by iptables-save v1.8.9 on Fri Nov  6 09:02:47 2026\n"
    worker = node("worker1", "10.0.0.0/24")
    if heartbeat is not None:
        worker["status"] = {"conditions": [{"lastHeartbeatTime": heartbeat}]}
    given = objects(command, worker, pod("10.0.0.1", "worker1"))
    file = command.file("dump.txt", head + TWO)
    for words in (["loss", file, "--dead-node", "worker1"], ["services", file], ["whatif", file]):
        done = command(*words, *given)
        assert done.status == 0, done.err
        assert (f" {says}, if its node's clock is in UTC: " in done.err) is (says is not None)
        assert ("pods may have moved" in done.err) is (says is not None)
    # A dump without a header does not tell when it was taken.
    done = command("loss", command.file("bare.txt", TWO), "--dead-node", "worker1", *given)
    assert "pods may have moved" not in done.err
