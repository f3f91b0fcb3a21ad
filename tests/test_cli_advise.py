"""`kubeodds advise`: what measures would buy, before and after, held against `whatif`."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analyzer.advice.measures import MEASURES, USUAL
from tests.support.advised import node, service, slice_of
from tests.support.commands import CAPTURE, DUMP, Command
from tests.support.documents import DOCS, schema

_NAME = re.compile(r"`([a-z][a-z-]+)`")
FILE = str(CAPTURE / "objects.json")
FROM = ("--from-objects", FILE, "--seed", "1")
ITEMS: list[Any] = json.loads((CAPTURE / "objects.json").read_text())["items"]
#: Two replicas on one node of three, in two zones, a master with the usual taint.
TAINT: dict[str, Any] = {
    "taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
}
SMALL = [
    node("master0", 0, "a", **TAINT),
    node("worker1", 1, "a"),
    node("worker2", 2, "b"),
    node("worker3", 3, "b"),
    service(),
    slice_of([("worker1", 1), ("worker1", 1)]),
]


def written(command: Command, items: list[Any], name: str = "objects.json") -> tuple[str, ...]:
    file = command.file(name, json.dumps({"kind": "List", "items": items}))
    return "--from-objects", file, "--seed", "1"


def document(command: Command, *words: str) -> Any:
    done = command(*words, "-o", "json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    Draft202012Validator(schema(words[0])).validate(found)
    return found


# --- the same as whatif says of the changed objects ------------------------------------


#: What changes objects of the very Service that is judged, and not what is said of load balancers.
SAME: tuple[str, ...] = tuple(
    name
    for name in (*USUAL, "new-node", "spread+local", "spread+same-node")
    if name not in ("pod-ips", "node-local-dns") and "balancer" not in name
)


@pytest.mark.parametrize("name", SAME)
def test_what_is_told_is_what_whatif_says_of_the_changed_objects(
    command: Command, name: str
) -> None:
    api = "master" in name
    asked = ("--service", "kubernetes" if api else "web")
    given = written(command, ITEMS if api else SMALL)
    found = document(command, "advise", *given, *asked, "--measure", name)
    (judged,) = found["services"][0]["measures"]
    done = command("advise", *given, *asked, "--objects-of", name)
    if judged["refused"]:
        assert done.status == 2
        assert judged["refused"] in done.err
        return
    after = written(command, json.loads(done.out)["items"], "after.json")
    told = document(command, "whatif", *after, *asked)
    (wanted,) = told["services"]
    then = judged["then"]
    assert then["survives"] == wanted["survives"]
    assert then["survives_at_most"] == wanted["survives_at_most"]
    worst = wanted["worst_single"]
    if worst is None:
        assert then["worst_loss"]["upper"]["value"] == 0.0
    else:
        for end in ("lower", "upper"):
            assert then["worst_loss"][end] == worst["loss"][end]
    if name in ("replica", "local", "every-node+same-node", "second-master"):
        average = mean(command, (*after, *asked))
        assert then["mean_loss"]["upper"] == pytest.approx(average, abs=1e-9)


def test_a_cache_on_each_node_stands_for_two_services(command: Command) -> None:
    asked = ("--service", "kube-dns")
    given = (*FROM, *asked, "--measure", "node-local-dns")
    (judged,) = document(command, "advise", *given)["services"][0]["measures"]
    changed = command("advise", *FROM, *asked, "--objects-of", "node-local-dns").out
    after = written(command, json.loads(changed)["items"], "after.json")
    told = {each["name"]: each for each in document(command, "whatif", *after)["services"]}
    assert told["kube-system/kube-dns:dns"]["worst_single"] is None  # as nodes answer themselves
    upstream = told["kube-system/kube-dns-upstream:dns"]
    worst = judged["then"]["worst_loss"]
    assert worst["lower"]["value"] == 0.0
    assert worst["upper"] == upstream["worst_single"]["loss"]["upper"]
    assert judged["then"]["survives"] == upstream["survives"]


def mean(command: Command, given: tuple[str, ...]) -> float:
    """Return the mean of what `loss` says of each node's failure, over the nodes that live."""
    nodes = document(command, "whatif", *given)["vantage"]
    losses: list[float] = []
    for name in nodes:
        done = command("loss", *given, "--dead-node", name, "-o", "json")
        (each,) = json.loads(done.out)["services"]
        losses.append(each["mean_loss"]["upper"])
    return sum(losses) / len(losses)


def test_one_port_is_judged_alone(command: Command) -> None:
    items = copy.deepcopy(SMALL)
    items[-2]["spec"]["ports"].append({"name": "admin", "protocol": "TCP", "port": 81})
    more = slice_of([("worker2", 2), ("worker3", 3)])
    more["metadata"]["name"], more["ports"][0]["name"] = "web-admin", "admin"
    given = written(command, [*items, more])
    survived = {}
    for port in ("http", "admin"):
        asked = ("--service", f"shop/web:{port}", "--measure", "local")
        (web,) = document(command, "advise", *given, *asked)["services"]
        assert web["now_predicted"] is None
        survived[port] = web["now"]["survives"], web["measures"][0]["then"]["survives"]
    assert survived == {"http": (0, 0), "admin": (1, 1)}


def test_worse_measures_stand_below_now(command: Command) -> None:
    found = document(command, "advise", *written(command, SMALL), "--service", "web")
    (web,) = found["services"]
    is_ = {each["measure"]: each["is"] for each in web["measures"]}
    assert is_["spread"] == is_["every-node"] == is_["replica"] == "better"
    assert is_["local"] == "worse"  # three nodes of four drop all flows
    order = [each["is"] for each in web["measures"]]
    assert order == sorted(order, key=["better", "same", "worse", None].index)
    text = command("advise", *written(command, SMALL), "--service", "web").out
    assert "shop/web is worst. Best for it: every-node." in text
    assert "\nWorse: every-node+local, local.\n" in text


def test_a_taint_leaves_fewer_nodes(command: Command) -> None:
    found = document(command, "advise", *written(command, SMALL), "--measure", "every-node")
    (web,) = found["services"]
    then = web["measures"][0]["then"]
    assert then["endpoints"] == ["worker1", "worker2", "worker3"]
    assert then["survives"] == 2


# --- which failures -----------------------------------------------------------------


def test_one_failure_is_judged_alone(command: Command) -> None:
    asked = ("advise", *FROM, "--service", "app", "--dead-node", "master")
    found = document(command, *asked, "--measure", "off-control-plane,on-control-plane")
    (app,) = found["services"]
    assert found["failures"] == {"nodes": ["master"], "depth": 1}
    lost = {m["measure"]: m["then"]["worst_loss"]["upper"]["value"] for m in app["measures"]}
    assert (app["now"]["worst_loss"]["upper"]["value"], lost) == (
        0.5,
        {"off-control-plane": 0.0, "on-control-plane": 1.0},
    )
    assert "if master fails" in command(*asked).out


def test_a_zone_is_all_of_its_nodes(command: Command) -> None:
    given = written(command, SMALL)
    found = document(command, "advise", *given, "--dead-zone", "b")
    assert found["failures"]["nodes"] == ["worker2", "worker3"]


def test_two_nodes_may_fail_together(command: Command) -> None:
    given = (*written(command, SMALL), "--measure", "every-node")
    one, two = (document(command, "advise", *given, "--depth", k) for k in "12")
    for found, lost in ((one, 1 / 3), (two, 2 / 3)):
        then = found["services"][0]["measures"][0]["then"]
        assert then["worst_loss"]["upper"]["value"] == pytest.approx(lost, abs=1e-8)


# --- dumps, and what the objects do not tell --------------------------------------------


def test_a_dump_is_how_it_is_now(command: Command) -> None:
    items = copy.deepcopy(ITEMS)
    for item in items:
        if item["kind"] == "EndpointSlice" and item["metadata"]["name"].startswith("app"):
            item["endpoints"] = [e for e in item["endpoints"] if e["nodeName"] == "worker1"]
    words = (*written(command, items), "--service", "default/app", "-o", "json")
    done = command("advise", DUMP, *words, "--node", "worker1", "--dead-node", "master")
    assert "default/app: a dump and the objects disagree" in done.err
    (app,) = json.loads(done.out)["services"]
    # worker1 still draws the endpoint that the objects have no more.
    assert app["now"]["worst_loss"]["upper"]["value"] == 0.5
    assert app["now_predicted"]["worst_loss"]["upper"]["value"] == 0.0


def test_pods_that_may_not_move_are_told(command: Command) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {
            "namespace": "shop",
            "name": "web-0",
            "ownerReferences": [{"kind": "StatefulSet", "controller": True}],
        },
        "spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]},
        "status": {"phase": "Running", "podIP": "10.244.1.50"},
    }
    items = copy.deepcopy(SMALL)
    items[-1]["endpoints"][0]["targetRef"] = {"kind": "Pod", "name": "web-0"}
    given = written(command, [*items, pod])
    (web,) = document(command, "advise", *given)["services"]
    assert web["pods"] == {"endpoints": 2, "listed": 1, "owners": ["StatefulSet"], "held": 1}
    assert "may tie 1 pod to their node" in command("advise", *given).out
    items = json.loads(command("advise", *given, "--objects-of", "spread").out)["items"]
    assert [i for i in items if i["kind"] == "Pod"] == [pod]  # the other one has moved


def test_what_is_nowhere_is_not_judged(command: Command) -> None:
    far = slice_of([("x", 9)], ("shop", "far"))
    far["endpoints"] = [{"addresses": ["198.51.100.7"], "conditions": {"ready": True}}]
    items = [*SMALL, service(("shop", "far"), "10.96.0.9"), far]
    items += [service(("shop", "none"), "10.96.0.10")]
    found = document(command, "advise", *written(command, items))
    assert found["not_judged"] == ["shop/far"]
    assert found["no_endpoints"] == ["shop/none"]
    text = command("advise", *written(command, items)).out
    assert "Not judged: shop/far." in text
    assert "Without endpoints, whatever fails: shop/none." in text


def test_as_many_services_are_judged_as_asked_for(command: Command) -> None:
    found = document(command, "advise", *FROM, "--top", "1")
    assert [each["service"] for each in found["services"]] == ["kubernetes"]
    assert found["more_services"] == 2
    assert "2 more Services with endpoints" in command("advise", *FROM, "--top", "1").out


def test_the_control_plane_of_the_options_is_that_of_measures(command: Command) -> None:
    words = ("--control-plane", "master,worker1", "--topology", "one-load-balancer")
    found = document(command, "advise", *FROM, *words, "--service", "kubernetes")
    (api,) = found["services"]
    then = {each["measure"]: each for each in api["measures"]}
    assert api["now"]["api_survives"] == 0
    assert then["third-master"]["then"]["api_survives"] == 1
    assert then["second-master"]["refused"] == "2 nodes already carry the control plane"
    assert "no single node is in front" in then["load-balancer"]["refused"]


@pytest.mark.parametrize(
    ("version", "measure", "why"),
    [
        ("1.20", "local", "kube-proxy 1.20 ignores internalTrafficPolicy: since 1.22"),
        ("1.20", "same-zone", "kube-proxy 1.20 ignores hints for zones: since 1.24"),
        ("1.33", "same-node", "kube-proxy 1.33 ignores hints for nodes: since 1.34"),
        ("1.33", "same-zone", None),
        ("1.30", "same-zone", None),
    ],
)
def test_what_a_kube_proxy_does_not_look_at_is_no_measure(
    command: Command, version: str, measure: str, why: str | None
) -> None:
    items = copy.deepcopy(SMALL)
    items[-1] = slice_of([("worker1", 1), ("worker3", 3)])
    given = (*written(command, items), "--kube-proxy", version, "--measure", measure)
    (judged,) = document(command, "advise", *given)["services"][0]["measures"]
    if why is not None:
        assert judged["refused"].startswith(why)
    else:  # each zone has one endpoint, and asks no other
        assert judged["then"]["worst_loss"]["upper"]["value"] == 1.0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "the following arguments are required: --from-objects"),
        ((*FROM, "--node", "worker1"), "--node: advise covers every node"),
        ((*FROM, "--node-of", "10.0.0.0/8=x"), "--node-of: advise takes nodes from the"),
        ((*FROM, "--measure", "sprea"), "did you mean spread?"),
        ((*FROM, "--measure", "spread+third-master"), "or they cannot be combined"),
        ((*FROM, "--dead-node", "worker9"), "--dead-node worker9: no such node; did you mean wor"),
        ((*FROM, "--dead-zone", "a"), "--dead-zone a: no such zone"),
        ((*FROM, "--dead-node", "master", "--depth", "2"), "--depth: not with --dead-node"),
        ((*FROM, "--depth", "0"), "'0' is not a positive integer"),
        ((*FROM, "--objects-of", "pod-ips"), "it changes clients, not objects"),
        ((*FROM, "--objects-of", "every-node"), "it changes nothing: default/app: every node"),
        (
            (*FROM, "--objects-of", "third-master", "--service", "app"),
            "it applies to none of these Services",
        ),
        ((*FROM, "--control-plane", "worker9"), "--control-plane worker9: no such node is known"),
    ],
)
def test_what_cannot_be_answered_is_said(
    command: Command, words: tuple[str, ...], says: str
) -> None:
    done = command("advise", *words)
    assert (done.status, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err


def test_the_help_names_every_measure(command: Command) -> None:
    shown = "".join(command("advise", "--help").out.split())  # lines end at hyphens, too
    assert f"Measures:{','.join(MEASURES)}." in shown


def test_the_page_describes_every_measure() -> None:
    page = (DOCS / "advice.md").read_text(encoding="utf-8")
    table = page.partition("\n## The measures\n")[2].partition("\n## ")[0]
    told = [
        name for line in table.splitlines() for name in _NAME.findall("".join(line.split("|")[1:2]))
    ]
    assert told == [*MEASURES]


def test_many_sets_of_nodes_are_refused(command: Command) -> None:
    nodes = [node(f"n{number}", number) for number in range(60)]
    given = written(command, [*nodes, service(), slice_of([("n0", 0)])])
    done = command("advise", *given, "--depth", "4")
    assert done.status == 2
    assert "60 nodes have 487,635 sets of that size, and at most 20,000 are judged" in done.err
