"""The command line of `loss`: the state of a Service, and flows that reach no endpoint anyway."""

from __future__ import annotations

import re
from typing import Any

from tests.support.captures import FIXTURES, ROOT
from tests.support.commands import Command
from tests.support.dumps import chance, cluster_ip, dump, endpoint, two_endpoints
from tests.support.losses import IDLE, document, with_services

DEFECTS = ROOT / "fixtures" / "defects"
DEFECT_OBJECTS = ["--objects", str(DEFECTS / "objects.json"), "--node", "worker1"]


def ends(bounds: Any) -> tuple[float, float]:
    return bounds["lower"]["value"], bounds["upper"]["value"]


def states(command: Command, *arguments: str) -> dict[str, str]:
    found = document(command, *arguments)
    assert sum(found["totals"].values()) == len(found["services"])
    return {each["name"]: each["state"] for each in found["services"]}


def test_a_flow_that_may_be_dead_is_unknown_not_degraded(command: Command) -> None:
    given = with_services(command)
    one = dump(cluster_ip(), "-A KUBE-SVC-A -j KUBE-SEP-1", endpoint("KUBE-SEP-1", "10.0.0.9:80"))
    asked = command.file("dump.txt", one), *given, "--dead-node", "n1"
    done = command("loss", *asked)
    assert (done.status, done.out) == (2, "")  # nothing places its one endpoint
    both = dump(
        cluster_ip(),
        "-A KUBE-SVC-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "10.0.0.9:80"),
        cluster_ip("ns/b:http", "10.96.0.2", chain="KUBE-SVC-B"),
        "-A KUBE-SVC-B -j KUBE-SEP-2",
        endpoint("KUBE-SEP-2", "10.0.0.1:80"),
    )
    asked = command.file("dump.txt", both), *given, "--dead-node", "n1"
    assert states(command, *asked) == {"ns/a:http": "unknown", "ns/b:http": "silenced"}
    assert document(command, *asked)["totals"]["unknown"] == 1
    text = command("loss", *asked).out
    assert "Node unknown for 1 endpoint: losses are ranges. The objects do not have it: " in text
    assert "2 ServicePorts: 1 total loss, 1 unknown." in text


def test_what_is_certainly_lost_in_part_is_degraded_whatever_else_may_be(command: Command) -> None:
    text = dump(*two_endpoints("10.0.0.1:80", "10.0.0.9:80"))
    asked = command.file("dump.txt", text), *with_services(command), "--dead-node", "n1"
    assert states(command, *asked) == {"ns/a:http": "degraded"}
    (found,) = document(command, *asked)["services"]
    assert (
        found["cluster_ip_loss"]["lower"]["value"],
        found["cluster_ip_loss"]["upper"]["value"],
    ) == (0.5, 1)


def test_a_service_whose_chain_is_missing_is_unknown(command: Command) -> None:
    asked = str(DEFECTS / "nosvc.txt"), *DEFECT_OBJECTS
    dead = *asked, "--dead-node", "master"
    assert states(command, *dead)["default/app"] == "unknown"
    text = command("loss", *dead, "--all").out
    assert "5 ServicePorts: 3 partial loss, 1 total loss, 1 unknown." in text
    assert re.search(
        r"^default/app +tcp +endpoints unknown +0.0 to 100.0% +unknown$", text, re.MULTILINE
    )
    assert "no endpoint" not in text
    assert "5 ServicePorts: 4 with endpoints, 1 unknown." in command("loss", *asked).out
    assert command("loss", *dead, "--service", "app", "--max-loss", "99%").status == 1


def test_a_service_whose_chain_is_empty_is_unknown(command: Command) -> None:
    text = dump(*two_endpoints(), cluster_ip("ns/b:http", "10.96.0.2", chain="KUBE-SVC-B"))
    asked = command.file("dump.txt", text), "--dead", "10.0.0.1", "--namespace", "ns"
    assert states(command, *asked)["ns/b:http"] == "unknown"
    (b,) = (s for s in document(command, *asked)["services"] if s["name"] == "ns/b:http")
    assert (b["cluster_ip_loss"]["lower"]["value"], b["cluster_ip_loss"]["upper"]["value"]) == (
        0,
        1,
    )


def test_what_reaches_no_endpoint_is_told_beside_what_dies(command: Command) -> None:
    asked = str(DEFECTS / "nolast.txt"), *DEFECT_OBJECTS, "--dead-node", "master"
    (app,) = (s for s in document(command, *asked)["services"] if s["name"] == "default/app")
    assert app["state"] == "silenced"
    assert ends(app["cluster_ip_no_endpoint"]) == (0.5, 0.5)
    assert ends(app["cluster_ip_loss"]) == (1, 1)
    for route in app["routes"]:
        assert ends(route["on_dead"]) == (0.5, 0.5)
        assert [(each["kind"], *ends(each)) for each in route["otherwise"]] == [
            ("left-over", 0.5, 0.5)
        ]
    done = command("loss", *asked, "--service", "app", "--max-loss", "99%")
    assert done.status == 1  # none of its flows survives
    assert re.search(r"^default/app .* 100.0% +total loss$", done.out, re.MULTILINE)
    assert re.search(r"^ +no endpoint +1/2 +50.0% +lost anyway$", done.out, re.MULTILINE)
    assert (
        "default/app: 50.0% of new flows from everywhere are taken by no draw of the Service's "
        "chain now.\n"
    ) in done.out
    assert "Worst: default/app loses 100.0% of new flows, on every route, 50.0% on dead" in done.out
    counted = document(command, *asked, "--count", "dead")["services"]
    (app,) = (s for s in counted if s["name"] == "default/app")
    assert ends(app["cluster_ip_loss"]) == (0.5, 0.5)


def test_what_reaches_no_endpoint_is_told_where_nothing_dies(command: Command) -> None:
    says = "default/app: 50.0% of new flows from everywhere are taken by no draw"
    asked = str(DEFECTS / "nolast.txt"), *DEFECT_OBJECTS
    assert says in command("loss", *asked, "--dead", "10.244.0.3").out
    assert command("loss", *asked).out.startswith(says)
    alone = *asked, "--service", "app", "--dead", "10.244.0.3"
    done = command("loss", *alone, "--max-loss", "49%")
    assert done.status == 1
    assert says in done.out
    assert command("loss", *alone, "--max-loss", "50%").status == 0
    # Nothing of that is the dead one's doing.
    assert command("loss", *alone, "--max-loss", "0", "--count", "dead").status == 0


def lost_anyway(service: Any) -> set[tuple[str, float]]:
    """What flows to each kind of frontend lose whatever is dead."""
    kinds = [frontend["kind"] for frontend in service["frontends"]]
    return {
        (kinds[route["frontend"]], route["no_endpoint"]["lower"]["value"])
        for route in service["routes"]
    }


def test_a_route_that_loses_flows_anyway_is_told_in_json(command: Command) -> None:
    text = dump(
        cluster_ip(),
        cluster_ip("ns/a:http", "10.96.0.7", chain="KUBE-EXT-A").replace("cluster", "external"),
        chance("0.50000000000", "KUBE-SEP-1", chain="KUBE-EXT-A"),
        "-A KUBE-SVC-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
        endpoint("KUBE-SEP-2", "10.0.0.2:80"),
    )
    found = document(command, command.file("dump.txt", text), *IDLE)
    (told,) = found["services"]
    assert told["state"] == "silenced"
    assert lost_anyway(told) == {("ClusterIP", 0), ("ExternalIP", 0.5)}
    # Where nothing dies too, when all that differs is that.
    (told,) = document(command, "dump.txt", *with_services(command), "--dead-node", "n3")[
        "services"
    ]
    assert told["state"] == "unknown"  # somebody may have the external IP
    assert lost_anyway(told) == {("ClusterIP", 0), ("ExternalIP", 0.5)}


def test_what_perhaps_reaches_no_endpoint_is_not_said_to_be_lost(command: Command) -> None:
    text = dump(*two_endpoints()).replace("-A KUBE-SVC-A -j", "-A KUBE-SVC-A -m nonesuch -j")
    out = command("loss", command.file("dump.txt", text), *IDLE).out
    assert re.search(r"^ +no endpoint +0.0 to 50.0% +possibly lost anyway$", out, re.MULTILINE)


def test_the_help_says_what_the_words_of_an_answer_mean(command: Command) -> None:
    done = command("loss", "--help")
    assert done.status == 0
    words = " ".join(done.out.split())
    assert "Partial loss (degraded in JSON): some new flows are certainly lost." in words
    assert "Total loss (silenced): some are lost, and none reaches a living endpoint." in words
    assert "If nothing is marked dead, an overview shows what could be" in words


def test_a_route_that_loses_nothing_is_untouched_and_not_lost(command: Command) -> None:
    capture = FIXTURES / "1.24.3-iptables-legacy/policies"
    asked = (
        str(capture / "iptables-legacy-save.txt.gz"),
        "--objects",
        str(capture / "objects.json.gz"),
    )
    done = command("loss", *asked, "--dead-node", "node-b1", "--service", "affinity-local")
    assert re.search(r"NodePort \*:31014 +from external +0 +0\.0% +untouched\n", done.out)


def test_a_zone_that_the_objects_do_not_have_is_not_asked_of_them_again(command: Command) -> None:
    ends = [
        {"addresses": ["10.0.0.1"], "nodeName": "n1", "zone": "east"},
        {"addresses": ["10.0.0.2"], "nodeName": "n2"},
    ]
    given = with_services(command, {"kind": "EndpointSlice", "endpoints": ends})
    text = command.file("dump.txt", dump(*two_endpoints("10.0.0.1:80", "10.0.0.2:80")))
    done = command("loss", text, *given, "--dead-zone", "east")
    assert "Zone unknown for 1 endpoint: losses are ranges.\n" in done.out
    assert "not in --objects or have no label topology.kubernetes.io/zone.\n" in done.out
    assert "Node unknown" not in done.out


def test_what_a_rule_of_nat_drops_is_lost_in_kube_proxys_chains_too(command: Command) -> None:
    """It refuses flows in filter: a DROP in nat is none of its own, and no lack of endpoints."""
    service = (
        cluster_ip(),
        "-A KUBE-SVC-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "10.0.0.9:80"),
    )
    for rule in ("-A KUBE-SVC-A -j DROP", "-A KUBE-SERVICES -j DROP"):
        text = command("loss", command.file("dump.txt", dump(rule, *service))).out
        assert f": {rule})" in text
        assert "1 total loss" in text
