"""The command line of `timeline`: what it prints, what it asks for, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from analyzer.outage import timeline
from analyzer.outage.clocks import DURATIONS
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import dump, two_endpoints

ASKED = (DUMP, *OBJECTS, "--node", "worker1")
HEALS = (*ASKED[:-2], "--dead-node", "worker1")
FROZEN = (*ASKED, "--dead-node", "master")


def document(command: Command, *arguments: str) -> Any:
    done = command("timeline", *arguments, "--format", "json")
    assert done.status == 0, done.err
    return json.loads(done.out)


def services(found: Any) -> dict[str, Any]:
    return {each["name"]: each for each in found["services"]}


def exactly(number: Any) -> Fraction:
    value = Fraction(int(number["numerator"], 16), int(number["denominator"], 16))
    assert number["value"] == float(value)
    return value


def test_frozen_the_loss_stays(command: Command) -> None:
    done = command("timeline", *FROZEN)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("Nothing heals: the API server is gone.\n")
    found = document(command, *FROZEN)
    assert found["heals"] is False
    app = services(found)["default/app"]
    assert exactly(app["lost_seconds"]["lower"]) == exactly(app["lost_seconds"]["upper"]) == 1800
    assert app["over"] == {"earliest": None, "latest": None}


def test_healing_it_ends(command: Command) -> None:
    found = document(command, *HEALS, "--node-monitor-grace-period", "40s")
    assert found["heals"] is True
    app = services(found)["default/app"]
    assert exactly(app["over"]["latest"]) == 56
    assert exactly(app["lost_seconds"]["upper"]) == 28
    untouched = services(found)["default/kubernetes:https"]
    assert (untouched["route"], untouched["causes"]) == (None, [])


def test_the_first_share_is_that_of_loss(command: Command) -> None:
    lost = command("loss", *FROZEN, "-o", "json")
    shares = {
        each["name"]: each["worst_loss"]["upper"]["value"]
        for each in json.loads(lost.out)["services"]
    }
    found = services(document(command, *FROZEN))
    assert {name: each["at_once"]["upper"]["value"] for name, each in found.items()} == shares


def test_what_rules_take_is_told_beside_what_the_dead_cost(command: Command) -> None:
    rule = "-A FORWARD -s 10.244.1.77/32 -d 10.244.1.9/32 -j DROP\n-A FORWARD "
    text = Path(DUMP).read_text().replace("-A FORWARD ", rule, 1)
    given = command.file("dump.txt", text), *FROZEN[1:]
    done = command("timeline", *given)
    first, second = done.out.splitlines()[:2]
    assert first.startswith("default/app: 50.0% of new flows from pod 10.244.1.77/32 are dropped")
    assert second.startswith("Below are the losses to dead endpoints alone; ")
    found = services(document(command, *given))
    assert exactly(found["default/app"]["lost_now"]["lower"]) == Fraction(1, 2)
    assert exactly(found["kube-system/kube-dns:dns"]["lost_now"]["upper"]) == 0
    assert "Below are" not in command("timeline", *FROZEN).out


def test_without_objects_all_is_bounds(command: Command) -> None:
    node_of = ("--node-of", "10.244.0.0/24=master", "--node-of", "10.244.1.0/24=worker1")
    asked = (DUMP, *node_of, "--dead-node", "worker1", "--service", "default/app")
    done = command("timeline", *asked)
    assert done.out.startswith(
        "It may or may not heal: it is not known whether the control plane is alive;"
    )
    app = services(document(command, *asked))["default/app"]
    assert [each["cause"] for each in app["causes"]] == ["unknown"]
    assert exactly(app["lost_seconds"]["lower"]) == 0
    assert exactly(app["lost_seconds"]["upper"]) == 3600


def test_failed_flows_and_the_budget_of_an_slo(command: Command) -> None:
    asked = (*FROZEN, "--rate", "200/s", "--slo", "99.9%", "--service", "default/app")
    (app,) = document(command, *asked)["services"]
    assert exactly(app["failed_flows"]["upper"]) == 360_000
    assert exactly(app["budget_used"]["upper"]) == Fraction(1800, 2592)
    shown = command("timeline", *asked).out
    assert "FAILED FLOWS  SLO BUDGET" in shown
    assert "360,000         69%" in shown


def test_a_dead_proxy_a_restart_and_the_return_of_the_api(command: Command) -> None:
    proxy = document(command, *HEALS, "--kube-proxy-dead")
    assert exactly(services(proxy)["default/app"]["lost_seconds"]["lower"]) == 1800
    assert "its rules stay as they are" in command("timeline", *HEALS, "--kube-proxy-dead").out
    restart = document(command, *ASKED, "--frozen", "--reboots-after", "30m")
    lost = services(restart)["default/app"]["lost_seconds"]
    assert exactly(lost["lower"]) == exactly(lost["upper"]) == 1800
    back = document(command, *FROZEN, "--api-back-after", "10m")
    https = services(back)["default/kubernetes:https"]["lost_seconds"]
    assert exactly(https["lower"]) == 600
    assert exactly(https["upper"]) == 631


def test_endpoints_that_die_with_the_api(command: Command) -> None:
    alone = services(document(command, *FROZEN))["kube-system/kube-dns:dns"]
    both = services(document(command, *FROZEN, "--dies-with-api", "10.244.1.4"))
    assert exactly(alone["at_once"]["lower"]) == Fraction(1, 2)
    assert exactly(both["kube-system/kube-dns:dns"]["at_once"]["lower"]) == 1


def test_the_old_reconciler_never_takes_an_api_server_out(command: Command) -> None:
    api = (*ASKED, "--dead", "192.168.0.10:6443", "--control-plane", "worker1")
    (cause,) = services(document(command, *api))["default/kubernetes:https"]["causes"]
    assert exactly(cause["removed"]["latest"]) == 31
    old = (*api, "--endpoint-reconciler-type", "master-count")
    (cause,) = services(document(command, *old))["default/kubernetes:https"]["causes"]
    assert cause["removed"] == {"earliest": None, "latest": None}


@pytest.mark.parametrize("name", DURATIONS)
def test_each_duration_is_an_option(command: Command, name: str) -> None:
    found = document(command, *HEALS, f"--{name}", "7s-9s")
    (told,) = [each for each in found["durations"] if each["option"] == f"--{name}"]
    assert told["said"] is True
    assert exactly(told["earliest"]) == 7
    assert exactly(told["latest"]) == 9
    assert f"--{name} 7s to 9s" in command("timeline", *HEALS, "--all", f"--{name}", "7s-9s").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing is marked dead; add --dead-node, --dead-zone or --dead, or --frozen"),
        (("--dead-node", "mastr"), "no such node is known; did you mean master?"),
        (
            ("--dead-node", "master", "--frozen", "--healing"),
            "--frozen and --healing cannot be combined",
        ),
        (("--dead-node", "master", "--healing"), "--healing: every endpoint of default/kubernetes"),
        (
            ("--dead-node", "worker1", "--api-back-after", "5m"),
            "--api-back-after: the API stays up",
        ),
        (("--dead-node", "master", "--latency", "soon"), "'soon' is not a duration"),
        (("--dead-node", "master", "--latency", "9s-7s"), "'9s-7s' is not a duration"),
        (("--dead-node", "master", "--for", "0s"), "'0s' is not a positive duration"),
        (("--dead-node", "master", "--rate", "many"), "'many' is not a rate"),
        (("--dead-node", "master", "--slo", "100%"), "leaves no budget for losses"),
        (("--dead-node", "master", "--large-cluster-size-threshold", "x"), "not a number of nodes"),
        (("--dead-node", "master", "--dies-with-api", "10.9.9.9"), "no Service of this dump"),
        (("--dead-node", "master", "--etcd", "x"), "--etcd x: no such node is known"),
    ],
)
def test_what_is_refused(command: Command, words: tuple[str, ...], message: str) -> None:
    done = command("timeline", *ASKED, *words)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_a_dump_is_needed(command: Command) -> None:
    done = command("timeline", "--dead-node", "master")
    assert done.status == 2
    assert "required: DUMP" in done.err


def test_an_api_that_is_gone_alone_loses_nothing(command: Command) -> None:
    done = command("timeline", *ASKED, "--frozen")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[1] == "No ServicePort loses a new flow."


def test_ctrl_c_ends_it(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(timeline, "play", interrupted)
    done = command("timeline", *FROZEN)
    assert (done.status, done.out, done.err) == (130, "", "kubeodds: interrupted\n")


def test_the_dumps_own_node_may_be_the_dead_one(command: Command) -> None:
    done = command("timeline", DUMP, *OBJECTS, "--node", "worker1", "--dead-node", "worker1")
    assert done.status == 0
    assert "this dump is from worker1, which you declared dead" in done.err


def test_of_many_services_the_worst_are_shown(command: Command) -> None:
    shown = command("timeline", *FROZEN, "--service", "kube-dns")
    assert "3 ServicePorts at node worker1: 3 may lose new flows.\n" in shown.out
    text = dump(*two_endpoints())
    file = command.file("dump.txt", text)
    placed = ("--node-of", "10.0.0.1/32=n1", "--node-of", "10.0.0.2/32=n2")
    done = command("timeline", file, *placed, "--dead-node", "n1", "--healing")
    assert done.status == 0, done.err


def test_how_fast_nodes_are_given_up_is_told_with_its_source(command: Command) -> None:
    asked = ("timeline", DUMP, *OBJECTS, "--node", "master", "--dead-node", "worker1")
    source = "cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go, AddFlags"
    lines = command(*asked, "--all").out.splitlines()
    for option in (
        "--node-eviction-rate 0.1/s",
        "--secondary-node-eviction-rate 0.01/s",
        "--unhealthy-zone-threshold 55%",
        "--large-cluster-size-threshold 50",
    ):
        (at,) = [n for n, line in enumerate(lines) if line.startswith(f"{option}: ")]
        assert lines[at + 1].strip() == source
    said = ("--node-eviction-rate", "2/s", "--unhealthy-zone-threshold", "40.5%")
    shown = command(*asked, *said, "--all").out
    assert shown.count(source) == 2
    assert "--node-eviction-rate 2/s: " in shown
    assert "--unhealthy-zone-threshold 40.5%: " in shown
    found = json.loads(command(*asked, *said, "--format", "json").out)["eviction"]
    assert found["node_eviction_rate"]["value"] == 2
    assert found["unhealthy_zone_threshold"]["value"] == 0.405
    assert found["large_cluster_size_threshold"] == 50
    assert found["source"] == source
