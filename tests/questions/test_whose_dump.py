"""A dump whose local endpoints are on another node than the one named is not taken in silence."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from analyzer.kubeproxy.generate import FLAGS, RulesLayout, mixed, node_name
from tests.support.captures import FIXTURES, ROOT
from tests.support.clusters import GeneratedCluster
from tests.support.commands import Command

CODE: Final = "dump-of-another-node"
CONNTRACK: Final = str(ROOT / "examples" / "conntrack.txt")
CAPTURE: Final = FIXTURES / "1.36.2-nftables/two-node@worker1"


def codes(command: Command, *words: str) -> list[str]:
    done = command(*words, "--format", "json")
    assert done.status == 0
    return [each["code"] for each in json.loads(done.out)["diagnostics"]]


@pytest.mark.parametrize(
    ("layout", "is_nft"),
    [(RulesLayout.V1_24, False), (RulesLayout.V1_36, False), (RulesLayout.V1_36, True)],
)
def test_only_a_node_of_another_name_is_doubted(
    command: Command, layout: RulesLayout, *, is_nft: bool
) -> None:
    items = mixed(8, 3)
    objects = command.file("objects.json", json.dumps({"kind": "List", "items": items}))
    for at in range(3):
        cluster = GeneratedCluster(items, FLAGS, layout, 4, node_name(at))
        dump = command.file("dump.txt", cluster.nft if is_nft else cluster.dump)
        given = (dump, "--objects", objects, "--dead-node", node_name(2))
        for named in range(3):
            told = codes(command, "loss", *given, "--node", node_name(named))
            assert (CODE in told) is (named != at)


def test_the_warning_names_the_node_and_its_endpoints(command: Command) -> None:
    dump, objects = CAPTURE / "nft-list-ruleset.txt", CAPTURE / "objects.json"
    given = (str(dump), "--objects", str(objects))
    done = command("loss", *given, "--node", "master", "--dead-node", "master")
    assert "this dump seems to be from worker1, not from master" in done.err
    assert "(10.244.1.4, 10.244.1.9)" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ["services"],
        ["whatif"],
        ["timeline", "--dead-node", "worker1"],
        ["client", "--service", "app", "--dead-node", "worker1"],
        ["tree"],
        ["trace", "--from", "pod", "--to", "app"],
        ["suspects", "--conntrack", CONNTRACK],
        ["pinned", "--conntrack", CONNTRACK, "--dead-node", "worker1"],
    ],
    ids=lambda words: words[0],
)
def test_every_verb_that_has_a_node_warns(command: Command, words: list[str]) -> None:
    verb, *others = words
    dump = [str(CAPTURE / "nft-list-ruleset.txt"), *(["app"] if verb == "tree" else [])]
    given = [verb, *dump, "--objects", str(CAPTURE / "objects.json"), *others, "--format", "json"]
    for node, is_told in (
        (["--node", "master"], True),
        (["--node", "worker1"], False),
        ([], False),
    ):
        told = json.loads(command(*given, *node).out)["diagnostics"]
        assert (CODE in {each["code"] for each in told}) is is_told


def test_a_kube_proxy_that_ignores_a_policy_is_of_any_node(command: Command) -> None:
    """1.20 sends flows to the endpoints of all nodes, whatever ``internalTrafficPolicy`` says."""
    items = mixed(8, 3)
    for each in items:
        if each["kind"] == "Service":
            each["spec"].update(internalTrafficPolicy="Local", type="ClusterIP")
            each["spec"].pop("externalTrafficPolicy", None)
        elif each["kind"] == "EndpointSlice":
            ends = each["endpoints"]
            each["endpoints"] = [end for end in ends if end["nodeName"] != node_name(1)]
    cluster = GeneratedCluster(items, FLAGS, RulesLayout.V1_20, 4, node_name(0))
    objects = command.file("objects.json", json.dumps({"kind": "List", "items": items}))
    given = (command.file("dump.txt", cluster.dump), "--objects", objects)
    assert CODE not in codes(command, "services", *given, "--node", node_name(1))


@pytest.mark.parametrize(
    ("layout", "policies"),
    [
        (RulesLayout.V1_20, {"type": "ClusterIP"}),
        (RulesLayout.V1_23, {"type": "NodePort", "externalTrafficPolicy": "Local"}),
    ],
    ids=["no internal policy", "not with an external one"],
)
def test_an_ignored_policy_with_all_endpoints_on_one_node_tells_nothing(
    command: Command, layout: RulesLayout, policies: dict[str, str]
) -> None:
    items = mixed(8, 3)
    for each in items:
        if each["kind"] == "Service":
            each["spec"].pop("externalTrafficPolicy", None)
            each["spec"].update(internalTrafficPolicy="Local", **policies)
        elif each["kind"] == "EndpointSlice":
            ends = each["endpoints"]
            each["endpoints"] = [end for end in ends if end["nodeName"] == node_name(1)]
    cluster = GeneratedCluster(items, FLAGS, layout, 4, node_name(0))
    objects = command.file("objects.json", json.dumps({"kind": "List", "items": items}))
    given = (command.file("dump.txt", cluster.dump), "--objects", objects)
    assert CODE not in codes(command, "services", *given, "--node", node_name(0))


def test_endpoints_of_the_other_ip_version_are_not_left_out(command: Command) -> None:
    """Those of IPv6 are on one node, and a policy that 1.20 ignores would have all of IPv4."""
    meta = {"name": "a", "namespace": "default"}
    port = {"name": "", "protocol": "TCP", "port": 80}
    addresses = {4: {"10.0.0.5": 0, "10.0.0.6": 2}, 6: {"fd00::5": 1}}
    items: list[Any] = [
        {
            "kind": "Node",
            "metadata": {"name": node_name(at), "labels": {}},
            "spec": {},
            "status": {"addresses": [{"type": "InternalIP", "address": f"fd00:168::{at}"}]},
        }
        for at in range(3)
    ]
    spec = {"clusterIP": "fd00:96::1", "clusterIPs": ["fd00:96::1", "10.96.0.1"], "ports": [port]}
    spec |= {"type": "ClusterIP", "internalTrafficPolicy": "Local"}
    items.append({"kind": "Service", "metadata": meta, "spec": spec})
    for family, places in addresses.items():
        ends = [
            {"addresses": [address], "conditions": {}, "nodeName": node_name(at)}
            for address, at in places.items()
        ]
        items.append(
            {
                "kind": "EndpointSlice",
                "addressType": f"IPv{family}",
                "metadata": {
                    "name": f"a-{family}",
                    "namespace": "default",
                    "labels": {"kubernetes.io/service-name": "a"},
                },
                "endpoints": ends,
                "ports": [{**port, "port": 8080}],
            }
        )
    objects = command.file("objects.json", json.dumps({"kind": "List", "items": items}))
    dumps = [
        command.file(
            f"{family}.txt",
            GeneratedCluster(items, (), RulesLayout.V1_20, family, node_name(0)).dump,
        )
        for family in (6, 4)
    ]
    assert CODE not in codes(
        command, "services", *dumps, "--objects", objects, "--node", node_name(0)
    )
