"""Which ServicePort clients connect to where none is named: the one that loses most for them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from analyzer.clients.connectors import CONNECTORS
from tests.support.captures import FIXTURES
from tests.support.client_documents import document, fails, number, point
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import FILTER, chance, cluster_ip, dump, endpoint, two_endpoints

POLICIES = FIXTURES / "1.30.3-iptables-legacy" / "policies"
GIVEN = (
    str(POLICIES / "iptables-legacy-save.txt.gz"),
    *("--objects", str(POLICIES / "objects.json.gz")),
)


@pytest.mark.parametrize(
    ("source", "node", "service"),
    [("pod", "node-a1", "pol/hints-ext-local"), ("external", "node-b1", "pol/int-local")],
)
def test_it_loses_most_on_the_clients_own_route(
    command: Command, source: str, node: str, service: str
) -> None:
    # Others lose as much or more on the routes of other clients, by Local policies.
    given = (*GIVEN, "--dead-node", node)
    found = document(command, *given, "--client", "tcp", "--from", source)
    assert [each["target"] for each in found["operations"]] == [service]
    every = [
        _fraction(route["loss"]["upper"])
        for each in json.loads(command("loss", *given, "--format", "json").out)["services"]
        for route in each["routes"]
        if route["source"] == source
        and (source != "external" or each["frontends"][route["frontend"]]["kind"] != "ClusterIP")
    ]
    assert fails(found)["tcp"][1] == max(every)


def _fraction(given: Any) -> Fraction:
    return Fraction(int(given["numerator"], 16), 1 << given["exponent"])


def test_a_client_whom_rules_single_out_may_lose_more_of_another(command: Command) -> None:
    rule = "-s 10.244.1.77/32 -p tcp -m tcp --dport 9153 -j DROP"
    text = Path(DUMP).read_text().replace("-A FORWARD ", f"-A FORWARD {rule}\n-A FORWARD ", 1)
    given = (command.file("edited.txt", text), *OBJECTS, "--node", "worker1", "--client", "tcp")
    found = document(command, *given, "--max-failure", "10%", status=1)
    assert [each["target"] for each in found["operations"]] == ["default/app"]
    networks = {"name": "kube-system/kube-dns:metrics", "networks": ["10.244.1.77/32"]}
    assert found["singled_out"] == [networks]


def _most(found: Any) -> dict[str, tuple[Fraction, Fraction]]:
    """Return for each client the greatest chance to fail, by its upper bound."""
    every: dict[str, tuple[Fraction, Fraction]] = {}
    for each in found["operations"]:
        of = number(each["fails"]["upper"]), number(each["fails"]["lower"])
        every[each["client"]] = max(every.get(each["client"], of), of)
    return every


@pytest.mark.parametrize(
    ("source", "fate"), [("pod", "refused"), ("node", "silent"), ("external", "refused")]
)
def test_each_client_connects_where_it_fails_most(command: Command, source: str, fate: str) -> None:
    dead = ("--dead-node", "node-a1,node-b2", "--fate", f"node-b2={fate}")
    given = (*GIVEN, *dead, "--from", source)
    services = json.loads(command("loss", *GIVEN, *dead[:2], "--format", "json").out)["services"]
    wanted = [
        each["name"]
        for each in services
        if each["state"] != "no-endpoints"
        and each["protocol"] == "tcp"
        and (source != "external" or {f["kind"] for f in each["frontends"]} != {"ClusterIP"})
    ]
    clients = ("--client", ",".join(CONNECTORS))
    every = document(command, *given, *clients, "--service", ",".join(wanted))
    chosen = document(command, *given, *clients)
    assert [each["client"] for each in chosen["operations"]] == [*CONNECTORS]
    assert _most(chosen) == _most(every)


def test_retries_decide_where_a_client_fails_most(command: Command) -> None:
    rows = (
        *two_endpoints(),
        cluster_ip("ns/b:http", "10.96.0.2", chain="KUBE-SVC-B"),
        chance("0.25000000000", "KUBE-SEP-3", chain="KUBE-SVC-B"),
        "-A KUBE-SVC-B -j KUBE-SEP-4",
        endpoint("KUBE-SEP-3", "10.0.1.1:80"),
        endpoint("KUBE-SEP-4", "10.0.1.2:80"),
    )
    text = dump(*rows) + FILTER
    given = command.file("dump.txt", text), "--dead", "10.0.0.1,10.0.1.1"
    asked = (*given, "--fate", "10.0.1.1=refused", "--client", "tcp,http-retry")
    found = document(command, *asked)
    assert [each["target"] for each in found["operations"]] == ["ns/a:http", "ns/b:http"]
    assert fails(found) == {"tcp": point(1, 2), "http-retry": point(1, 4)}
    # One that fails at neither waits longest where an endpoint is silent.
    (headless,) = document(command, *asked[:-1], "headless")["operations"]
    assert headless["target"] == "ns/a:http"
    assert number(headless["fails"]["upper"]) == Fraction(0)
    one = asked[:-1]
    assert command("client", *one, "http-retry", "--max-failure", "20%").status == 1
    assert command("client", *one, "http-retry", "--max-failure", "25%").status == 0


def test_clusterips_that_are_left_out_are_named(command: Command) -> None:
    asked = (*GIVEN, "--dead-node", "node-a1", "--from", "external", "--client", "tcp")
    assumed = document(command, *asked)["assumed"]
    (told,) = (each for each in assumed if "ClusterIPs" in each)
    assert told.startswith("clients outside do not use ClusterIPs, and ")
    assert told.endswith("; --service judges them")
    assert not any("ClusterIPs" in each for each in document(command, *asked[:-4])["assumed"])


def test_look_ups_that_are_left_out_are_named(command: Command) -> None:
    given = command.file("dump.txt", dump(*two_endpoints()) + FILTER), "--dead", "10.0.0.2"
    done = command("client", *given, "--max-failure", "100%")
    assert "warning: look-ups are not judged: the dump shows no kube-dns" in done.err
    assert (done.status, "Not everything was judged" in done.out) == (1, True)
    done = command("client", *given, "--max-failure", "100%", "--client", "tcp")
    assert (done.status, done.err.count("look-ups")) == (0, 0)


def test_of_many_pods_it_is_assumed_that_rules_let_clients_reach_them(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (*GIVEN, "--dead-node", "node-a1", "--client", "tcp,headless")
    whole = document(command, *asked)
    monkeypatch.setattr("analyzer.clients.losing._MOST_WALKED", 1)
    found = document(command, *asked)
    (told,) = set(found["assumed"]) - set(whole["assumed"])
    assert told.startswith("rules that let flows of a Service pass let those pass too that clients")
    assert found["operations"] == whole["operations"]
