"""`--from-objects`: answers without a dump, of one node or of every one."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analyzer.kubeproxy.generate import mixed
from tests.support.commands import CAPTURE, DUMP, Command
from tests.support.documents import schema

FILE = str(CAPTURE / "objects.json")
FROM = ("--from-objects", FILE)
ITEMS: list[Any] = json.loads((CAPTURE / "objects.json").read_text())["items"]


def written(command: Command, items: list[Any], name: str = "objects.json") -> tuple[str, str]:
    return "--from-objects", command.file(name, json.dumps({"kind": "List", "items": items}))


def changed(kind: str, name: str, **spec: Any) -> list[Any]:
    items = copy.deepcopy(ITEMS)
    for item in items:
        if item["kind"] == kind and item["metadata"]["name"] == name:
            item["spec"].update(spec)
    return items


def document(command: Command, *words: str) -> Any:
    done = command(*words, "-o", "json")
    assert done.status in (0, 1), done.err
    return json.loads(done.out)


# --- one node -------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["services", "loss", "whatif"])
def test_one_node_is_answered_as_from_its_dump(command: Command, verb: str) -> None:
    dead = ("--dead-node", "master") if verb == "loss" else ()
    known = ("--objects", FILE, "--node", "worker1", *dead)
    wanted = document(command, verb, DUMP, *known)
    found = document(command, verb, *FROM, "--node", "worker1", *dead)
    for each in (wanted, found):
        each.pop("source", None)
        each.pop("freshness")  # no dump, no time of it
        assert [d["code"] for d in each.pop("diagnostics")] in ([], ["prediction"])
    for each in (wanted, found):
        each["services"].sort(key=lambda entry: (entry["name"], entry["protocol"]))
    assert found == wanted


def test_services_are_of_one_node(command: Command) -> None:
    done = command("services", *FROM)
    assert done.status == 2
    assert done.err == "kubeodds: --from-objects: services is for one node; add --node NAME\n"
    assert command("services", *FROM, "--node", "worker").err.startswith(
        "kubeodds: --node worker: the objects have no such node; did you mean worker1?"
    )


# --- every node -----------------------------------------------------------------


def test_every_node_is_asked(command: Command) -> None:
    found = document(command, "whatif", *FROM, "--seed", "7")
    Draft202012Validator(schema("whatif")).validate(found)
    assert found["vantage"] == ["master", "worker1"]
    assert found["prediction"]["walked"][0]["seed"] == 7
    assert found["prediction"]["walked"][0]["differing"] == []
    worst = {each["name"]: each["worst_single"] for each in found["services"]}
    assert worst["default/app"]["mean_over_nodes"] == {"lower": 0.5, "upper": 0.5, "nodes": 1}


def test_a_local_policy_costs_other_nodes_nothing(command: Command) -> None:
    items = changed("Service", "app", internalTrafficPolicy="Local")
    given = written(command, items)
    found = document(command, "loss", *given, "--dead-node", "worker1", "--service", "default/app")
    Draft202012Validator(schema("loss-cluster")).validate(found)
    (app,) = found["services"]
    assert (app["state"], app["mean_loss"]["upper"], app["nodes"]) == ("untouched", 0.0, None)
    text = command("whatif", *given, "--service", "default/app").out
    assert "losing any one node costs none of 1 ServicePort anything" in text


def test_nodes_without_endpoints_of_their_own_are_named(command: Command) -> None:
    items = mixed(30, 6)
    text = command("whatif", *written(command, items), "--seed", "1").out
    assert "at every one of 6 nodes" in text
    assert "Dropped, whatever fails, at nodes without endpoints of their own: ns-" in text
    assert "Checked: 30 predictions compared with generated rules" in text


def test_a_dump_takes_the_place_of_a_prediction(command: Command) -> None:
    # The objects have lost an endpoint that the node's rules still draw.
    items = copy.deepcopy(ITEMS)
    for item in items:
        if item["kind"] == "EndpointSlice" and item["metadata"]["name"].startswith("app"):
            item["endpoints"] = [e for e in item["endpoints"] if e["nodeName"] == "worker1"]
    given = written(command, items)
    words = ("--dead", "10.244.0.7", "--service", "default/app")
    alone = document(command, "loss", *given, "--dead", "10.244.1.9", "--service", "default/app")
    assert alone["services"][0]["worst_loss"]["lower"]["value"] == 1.0
    both = document(command, "loss", DUMP, *given, "--node", "worker1", *words)
    (app,) = both["services"]
    assert app["nodes"] == ["worker1"]
    assert app["worst_loss"]["lower"]["value"] == 0.5
    assert app["mean_loss"]["upper"] == 0.25
    assert both["prediction"]["dumps"] == ["worker1"]


def test_a_dump_is_of_a_node_of_the_objects(command: Command) -> None:
    done = command("whatif", DUMP, *FROM)
    assert done.status == 2
    assert "which node of the objects is it from? Add --node NAME" in done.err


def test_a_service_that_a_dump_lacks_is_not_whole(command: Command) -> None:
    item = next(i for i in ITEMS if i["kind"] == "Service" and i["metadata"]["name"] == "app")
    more = copy.deepcopy(item)
    more["metadata"]["name"] = "later"
    more["spec"].update(clusterIP="10.96.77.7", clusterIPs=["10.96.77.7"])
    given = written(command, [*ITEMS, more])
    done = command("whatif", DUMP, *given, "--node", "worker1", "--min-survives", "1")
    assert "default/later: the dump of worker1 has no rule for it" in done.err
    assert done.status == 1


def test_thresholds_are_those_of_every_node(command: Command) -> None:
    assert command("whatif", *FROM, "--service", "default/app", "--max-loss", "50%").status == 1
    only = ("--service", "default/app", "--only", "node")
    assert command("whatif", *FROM, *only, "--max-loss", "50%").status == 0
    assert command("whatif", *FROM, *only, "--max-loss", "49%").status == 1
    dead = ("--dead-node", "master", "--service", "default/app")
    assert command("loss", *FROM, *dead, "--max-loss", "50%").status == 0
    assert command("loss", *FROM, *dead, "--max-loss", "49%").status == 1


def test_if_every_node_is_dead_it_is_said(command: Command) -> None:
    done = command("loss", *FROM, "--dead-node", "master,worker1")
    assert done.status == 0
    assert "every node is dead and sends no flows" in done.err
    assert "total loss" in done.out


def test_objects_that_stand_in_two_files_count_once(command: Command) -> None:
    given = written(command, ITEMS)
    again = command.file("again.json", json.dumps({"kind": "List", "items": ITEMS}))
    once = document(command, "whatif", *given, "--seed", "1")
    assert document(command, "whatif", *given, "--seed", "1", "--objects", again) == once


# --- what is assumed, and what is refused ---------------------------------------


def test_the_version_is_that_of_the_kubelets(command: Command) -> None:
    items = copy.deepcopy(ITEMS)
    for item, version in zip(
        (i for i in items if i["kind"] == "Node"), ("v1.29.4", "v1.30.1+k3s1"), strict=True
    ):
        item["status"]["nodeInfo"] = {"kubeletVersion": version}
    text = command("whatif", *written(command, items)).out
    assert "kube-proxy 1.29 (kubelet version on 1 nodes; 1 of 2 report others)" in text
    said = document(command, "whatif", *written(command, items), "--kube-proxy", "v1.36.0")
    assert said["prediction"]["kube_proxy"] == "1.36"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--kube-proxy", "1.13"), "rules of kube-proxy 1.13 are not predicted"),
        (("--kube-proxy", "1.9"), "rules of kube-proxy 1.9 are not predicted"),
        (("--kube-proxy", "30"), "'30' is not a version of kube-proxy"),
        (("--kube-proxy", "1.25", "--mode", "nftables"), "1.25 has no nftables mode"),
        (("--assume", "limits=over"), "only with a dump, or with --node"),
        (("--cluster-cidr", "10.0"), "is not a network"),
        (("--seed", "-1"), "--seed"),
    ],
)
def test_what_cannot_be_predicted_is_said(
    command: Command, words: tuple[str, ...], says: str
) -> None:
    done = command("whatif", *FROM, *words)
    assert done.status == 2
    assert says in done.err
    assert "Traceback" not in done.err


def test_options_of_predictions_go_with_objects(command: Command) -> None:
    done = command("whatif", DUMP, "--mode", "nftables")
    assert done.status == 2
    assert "--mode: only with --from-objects" in done.err
    assert command("loss").status == 2


@pytest.mark.parametrize(
    ("kinds", "lacks"),
    [
        (("Service", "EndpointSlice"), "Nodes"),
        (("Service", "Node"), "EndpointSlices"),
        (("EndpointSlice", "Node"), "Services"),
    ],
)
def test_objects_that_do_not_tell_enough_are_refused(
    command: Command, kinds: tuple[str, ...], lacks: str
) -> None:
    given = written(command, [item for item in ITEMS if item["kind"] in kinds])
    done = command("whatif", *given)
    assert done.status == 2
    assert done.err.startswith(f"kubeodds: objects.json: it contains no {lacks}; take them")


def test_nothing_dead_is_no_question(command: Command) -> None:
    done = command("loss", *FROM)
    assert done.status == 2
    assert "nothing is marked dead" in done.err


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"ports": [{"port": 99_999}]}, "port 99999 is not a port"),
        ({"ports": [{"port": "x"}]}, "port 'x' is not a port"),
        ({"ports": [{"port": 80, "name": 'a"\n-A X'}]}, "is not one that the API allows"),
        ({"clusterIPs": ["nowhere"]}, "clusterIPs 'nowhere' is not an IP address"),
        ({"externalIPs": [7]}, "externalIPs 7 is not an IP address"),
        ({"loadBalancerSourceRanges": ["x"]}, "loadBalancerSourceRanges 'x' is not a network"),
        (
            {
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": "x"}},
            },
            "timeoutSeconds 'x' is not a number of seconds",
        ),
        ({"ports": [{"port": 80, "protocol": "ICMP"}]}, "protocol 'ICMP' is not one of"),
    ],
)
def test_a_malformed_service_is_left_out_and_named(
    command: Command, spec: dict[str, Any], says: str
) -> None:
    given = written(command, changed("Service", "app", **spec))
    done = command("whatif", *given, "--min-survives", "1")
    assert "left out because malformed: 1 Service: default/app: " in done.err
    assert says in done.err
    assert "\nNot judged, since malformed: default/app.\n" in done.out
    one = document(command, "whatif", *given, "--node", "worker1")
    assert "default/app" in one["not_judged"]
    assert done.status == 1
    assert command("whatif", *given, "--strict").status == 3
    one = command("services", *given, "--node", "worker1")
    assert "default/app: " in one.err
    assert one.status == 0


def test_of_1_22_the_patch_release_is_assumed_where_none_is_said(command: Command) -> None:
    def told(version: str) -> str:
        return command(
            "loss", *FROM, "--dead-node", "master", "--kube-proxy", version, "--seed", "1"
        ).out

    assumed = "kube-proxy 1.22.4 or a later patch release"
    assert assumed in told("1.22")
    assert assumed not in told("1.22.9")
    assert assumed not in told("v1.22.1")
    assert "what kube-proxy 1.22.0 in iptables mode writes" in told("v1.22.1")


def test_up_to_1_18_endpoints_are_asked_for(command: Command) -> None:
    asked = ("--dead-node", "master", "--kube-proxy")
    says = (
        "EndpointSlices but no Endpoints, which kube-proxy 1.18 reads: add `kubectl get endpoints`"
    )
    none = [item for item in ITEMS if item["kind"] != "Endpoints"]
    one = [i for i in ITEMS if i["kind"] != "Endpoints" or i["metadata"]["name"] != "kube-dns"]
    for items, status in ((none, 2), (one, 1), (ITEMS, 0)):
        given = written(command, items)
        done = command("loss", *given, *asked, "1.18", "--max-loss", "100%")
        assert done.status == status
        assert (says in done.err + done.out) is (status > 0)
        assert command("loss", *given, *asked, "1.19", "--max-loss", "100%").status == 0


def test_what_the_dump_of_a_node_lacks_is_named(command: Command) -> None:
    text = Path(DUMP).read_text()
    without = "".join(row for row in text.splitlines(keepends=True) if "default/app" not in row)
    table = re.compile(r"^\*filter\n.*?^COMMIT\n", re.MULTILINE | re.DOTALL)
    for dump, says in (
        (without, "\nNot judged at worker1, whose rules do not have it: default/app.\n"),
        (table.sub("", text), "\nNot in the dump: table filter. "),
    ):
        asked = (*FROM, command.file("dump.txt", dump), "--node", "worker1")
        for words in (("loss", *asked, "--dead-node", "master"), ("whatif", *asked)):
            done = command(*words, "--max-loss", "100%")
            assert (done.status, says in done.out) == (1, True)


def test_a_total_loss_at_some_nodes_is_not_one_at_all(command: Command) -> None:
    """Clients of a zone stay with its endpoint: its death is a total loss at the other node."""
    items = [*(_node(name, name[0]) for name in ("a1", "a2", "b1")), *_service()]
    given = (*written(command, items), "--kube-proxy", "1.36", "--mode", "iptables")
    dead = ("--dead-node", "a1")
    told = document(command, "loss", *given, *dead)
    (service,) = told["services"]
    assert (told["totals"]["silenced"], service["silenced_everywhere"]) == (1, False)
    assert [(at["nodes"], at["state"]) for at in service["at"]] == [
        (["a2"], "silenced"),
        (["b1"], "untouched"),
    ]
    every = document(command, "whatif", *given)["failures"]
    found = {tuple(each["nodes"]): each for each in every}
    assert (found["a1",]["silenced"], found["a1",]["degraded"]) == ([], 1)
    assert found["a1", "b1"]["silenced"] == ["default/zonal"]
    told = document(command, "loss", *given, "--dead-node", "a1,b1")
    assert [each["silenced_everywhere"] for each in told["services"]] == [True]
    assert "\nTotal loss at some nodes: default/zonal.\n" in command("loss", *given, *dead).out
    done = command("loss", *given, "--dead-node", "a1,b1")
    assert "\nTotal loss: default/zonal.\n" in done.out
    assert (
        "Total loss: no node's rules lead to a living endpoint.\n" in command("whatif", *given).out
    )


def _node(name: str, zone: str) -> dict[str, Any]:
    number = 1 + ("a1", "a2", "b1").index(name)
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "spec": {"podCIDR": f"10.244.{number}.0/24"},
        "status": {"addresses": [{"type": "InternalIP", "address": f"192.168.0.{number}"}]},
    }


def _service() -> list[dict[str, Any]]:
    named = {"name": "zonal", "namespace": "default"}
    spec = {
        "clusterIP": "10.96.0.10",
        "clusterIPs": ["10.96.0.10"],
        "ipFamilies": ["IPv4"],
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}],
        "trafficDistribution": "PreferClose",
    }
    ends = [
        {
            "addresses": [address],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": node,
            "zone": node[0],
            "hints": {"forZones": [{"name": node[0]}]},
        }
        for address, node in (("10.244.1.5", "a1"), ("10.244.3.5", "b1"))
    ]
    metadata = {**named, "name": "zonal-1", "labels": {"kubernetes.io/service-name": "zonal"}}
    ports = [{"name": "", "port": 8080, "protocol": "TCP"}]
    lists = {"kind": "EndpointSlice", "addressType": "IPv4", "ports": ports, "endpoints": ends}
    return [{"kind": "Service", "metadata": named, "spec": spec}, {**lists, "metadata": metadata}]
