"""What now: steps that fit the loss, the greatest harm first."""

from __future__ import annotations

import io
import json
import shlex
import tarfile
from pathlib import Path

import pytest

from analyzer.kubeproxy.generate import node_name
from analyzer.parsers.iptables_save import parse, render
from analyzer.repair.applied import applied
from tests.support.commands import DUMP, OBJECTS, Command, Done
from tests.support.dumps import cluster_ip, dump, two_endpoints
from tests.support.mixed_clusters import files
from tests.support.noise import NOISE

MASTER = ["--dead-node", "master"]
SIX = (
    cluster_ip(address="fd00:96::1"),
    *two_endpoints("[fd00::1]:80", "[fd00::2]:80")[1:],
)


def steps(command: Command, *asked: str) -> list[str]:
    done = command("loss", *asked)
    assert done.status == 0, done.err
    return steps_of(done)


def steps_of(done: Done) -> list[str]:
    lines = done.out.splitlines()
    return lines[lines.index("What now") + 1 :] if "What now" in lines else []


def test_without_an_api_server_nothing_heals_by_itself(command: Command) -> None:
    found = steps(command, DUMP, *OBJECTS, *MASTER)
    assert found[0] == (
        "1. No API server left, so nothing heals by itself: kubectl get --raw /readyz"
    )
    assert found[1:4] == [
        "2. API down: remove dead endpoints from each node's rules, using its own dump:",
        f"kubeodds repair {DUMP} --objects {OBJECTS[1]} --dead-node master",
        "   (prints what to apply, and how to undo it)",
    ]
    assert found[4:6] == [
        "3. Free pinned flows on each node (3 more with --all):",
        "conntrack -D -p udp --reply-src 10.244.0.3 --reply-port-src 53",
    ]
    words = f"loss - --objects {OBJECTS[1]} --dead-node master"
    assert found[6] == f"4. Check again: iptables-legacy-save | kubeodds {words}"
    assert len(found) == 7


def test_with_an_api_server_a_dead_nodes_endpoints_leave(command: Command) -> None:
    found = steps(command, DUMP, *OBJECTS, "--dead-node", "worker1")
    assert found[0] == ("1. If the API is up, wait 28.6s to 66s; watch: kubectl get nodes")
    told = command("timeline", DUMP, *OBJECTS, "--dead-node", "worker1").out
    assert "endpoints of dead nodes leave the rules after 28.6s to 66s." in told


def test_a_dead_node_that_may_have_run_the_controllers_takes_longer(command: Command) -> None:
    asked = DUMP, "--node-of", "10.244.0.0/24=master,10.244.1.0/24=worker1"
    found = steps(command, *asked, "--dead-node", "worker1")
    assert " wait 28.6s to 116.4s; watch: " in found[0]


def test_the_api_is_looked_at_though_only_another_service_is_asked_for(command: Command) -> None:
    found = steps(command, DUMP, *OBJECTS, *MASTER, "--service", "app")
    assert found[0].startswith("1. No API server left")


def test_a_dead_pod_is_deleted_by_its_name(command: Command) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": "app-1"},
        "status": {"podIP": "10.244.0.7"},
    }
    objects = command.file("objects.json", json.dumps({"items": [pod]}))
    found = steps(command, DUMP, "--objects", objects, "--dead", "default/app-1")
    assert found[0].endswith("; without one:")
    assert found[1] == "kubectl -n default delete pod app-1"
    for dead in ("10.244.0.7", "10.244.0.0/24"):
        found = steps(command, DUMP, "--dead", dead)
        assert found[0].endswith("; watch:")
        assert found[1] == "kubectl get pods -A -o wide"


def test_what_has_no_living_endpoint_is_named(command: Command) -> None:
    found = steps(command, *files(command), "--dead-node", node_name(1))
    assert found[1:3] == [
        "2. No living endpoint: ns-31/svc-31:http, ns-49/svc-49:http. "
        "Start a pod on another node; where they are now:",
        "kubectl get pods -A -o wide",
    ]


def test_pods_of_one_namespace_are_listed_alone(command: Command) -> None:
    found = steps(command, *files(command), "--dead-node", node_name(1), "--namespace", "ns-31")
    assert "kubectl -n ns-31 get pods -o wide" in found


def test_a_host_port_needs_a_pod_on_its_own_node(command: Command) -> None:
    portmap = str(NOISE / "portmap.txt")
    found = steps(command, portmap, "--dead", "10.244.1.50", "--service", "hostPort 80")
    assert found[:2] == [
        "1. No living endpoint: hostPort 80. Start a pod on the same node; where they are now:",
        "kubectl get pods -A -o wide",
    ]


def test_an_endpoint_that_may_live_is_not_said_to_be_dead(command: Command) -> None:
    asked = DUMP, "--node-of", "10.244.0.0/24=master", "--dead-node", "master"
    found = steps(command, *asked)
    assert not any("No living endpoint" in line for line in found)
    assert "conntrack -D -p udp --reply-src 10.244.0.3 --reply-port-src 53" in found


def test_all_commands_are_shown_where_all_is_asked_for(command: Command) -> None:
    asked = *files(command), "--dead-node", node_name(1)
    brief, whole = steps(command, *asked), steps(command, *asked, "--all")
    assert len(brief) < 12
    freed = [line for line in whole if line.startswith("conntrack")]
    (told,) = [line for line in brief if "Free pinned flows" in line]
    assert told.endswith(f"({len(freed) - 1} more with --all):")
    assert [line for line in brief if line.startswith("conntrack")] == freed[:1]
    document = json.loads(command("loss", *asked, "--format", "json").out)
    dead = {
        (each["protocol"], end["address"], str(end["port"]))
        for each in document["services"]
        if each["state"] == "degraded"
        for end in each["endpoints"]
        if end["dead"]
    }
    words = [line.split() for line in freed]
    assert {(each[3], each[5], each[7]) for each in words} == dead
    protocols = [each[3] for each in words]
    assert protocols == sorted(protocols, key=lambda each: each != "udp")


def test_the_repair_that_is_proposed_can_be_run(command: Command) -> None:
    asked = DUMP, *OBJECTS, *MASTER, "--node-of", "10.9.0.0/24=other", "--service", "app"
    (words,) = [line for line in steps(command, *asked) if line.startswith("kubeodds repair")]
    assert "--node-of 10.9.0.0/24=other" in words
    done = command(*shlex.split(words)[1:], "--max-age", "999999999")
    assert done.status == 0, done.err
    assert "-I PREROUTING 1 -j KODDS-SERVICES" in done.out


def repairs(found: list[str]) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in found if line.startswith("kubeodds repair")]


def test_the_repair_makes_the_same_assumptions(command: Command) -> None:
    asked = "--pod-interface", "cali+,eth9", "--assume", "limits=over", "--max-input", "3G"
    (words,) = repairs(steps(command, DUMP, *OBJECTS, *MASTER, *asked))
    told = " ".join(words)
    assert "--pod-interface cali+,eth9" in told
    assert "--assume limits=over" in told
    assert f"--max-input {3 << 30}" in told
    less = "--assume-nothing", "--assume", "limits=over"
    (words,) = repairs(steps(command, DUMP, *OBJECTS, *MASTER, *less))
    assert "--assume-nothing --assume limits=over --dead-node" in " ".join(words)
    assert command(*words, "--max-age", "999999999").status in {0, 1}


def test_a_bundle_with_dumps_of_both_versions_is_repaired(command: Command) -> None:
    six = command.file("6.txt", "# Generated by ip6tables-save v1.8.9\n" + dump(*SIX))
    with tarfile.open(command.folder / "b.tgz", mode="w:gz") as bundle:
        bundle.add(DUMP, "worker1/iptables-legacy-save.txt")
        bundle.add(command.folder / six, "worker1/ip6tables-legacy-save.txt")
    asked = "--node", "worker1", *OBJECTS
    (words,) = repairs(steps(command, "b.tgz", *asked, "--dead", "10.244.0.7"))
    assert words[:2] == ["repair", "b.tgz"]
    assert words[-2:] == ["--family", "ip"]
    done = command(*words, "--max-age", "999999999")
    assert done.status == 0, done.err
    assert "-I PREROUTING 1 -j KODDS-SERVICES" in done.out


def test_no_repair_is_proposed_that_would_be_refused(command: Command) -> None:
    rules = command("repair", DUMP, "--dead", "10.244.0.7", "--max-age", "999999999").out
    with_it = applied(parse(Path(DUMP).read_text(), "dump"), rules)
    text = command.file("repaired.txt", render(with_it))
    found = steps(command, text, "--dead", "10.244.0.3")
    says = "API down: kubeodds repair needs another dump: these rules already contain a repair"
    assert any(says in line for line in found)
    assert repairs(found) == []
    done = command("repair", text, "--dead", "10.244.0.3")
    assert done.status == 2
    assert "these rules already contain a repair" in done.err


def test_the_rules_of_a_dead_node_are_not_repaired(command: Command) -> None:
    found = steps_of(command("loss", DUMP, *OBJECTS, "--node", "worker1", "--dead-node", "worker1"))
    assert repairs(found) == []
    says = "kubeodds repair needs another dump: this one is from worker1, which you declared dead."
    assert f"2. API down: {says}" in found


def test_dumps_of_both_versions_are_repaired_one_after_the_other(command: Command) -> None:
    dumps = (
        command.file("4.txt", "# Generated by iptables-save v1.8.9\n" + dump(*two_endpoints())),
        command.file("6.txt", "# Generated by ip6tables-save v1.8.9\n" + dump(*SIX)),
    )
    found = repairs(steps(command, *dumps, "--dead", "10.0.0.1,fd00::1"))
    assert [each[-2:] for each in found] == [["--family", "ip"], ["--family", "ip6"]]
    assert all(each[1:3] == [*dumps] for each in found)
    (six,) = repairs(steps(command, *dumps, "--dead", "fd00::1"))
    assert six[-1] == "ip6"


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_nobody_who_is_quiet_is_told(command: Command, option: str) -> None:
    asked = DUMP, *OBJECTS, *MASTER
    whole, quiet = command("loss", *asked), command("loss", *asked, option)
    assert whole.out.startswith(quiet.out)
    assert "What now" in whole.out
    assert "What now" not in quiet.out


def test_where_nothing_is_certainly_lost_nothing_is_to_be_done(command: Command) -> None:
    for words in (["10.244.0.3", "--service", "app"], ["10.244.1.9", "--service", "kubernetes"]):
        assert steps(command, DUMP, "--dead", *words) == []
    open_ = dump(*two_endpoints()).replace("-A KUBE-SVC-A -m", "-A KUBE-SVC-A -m nonesuch -m")
    assert steps(command, command.file("dump.txt", open_), "--dead", "10.0.0.1") == []


def test_who_asks_of_standard_input_knows_how_to_ask_again(command: Command) -> None:
    found = steps(command, DUMP, "--dead", "10.244.0.7", "--service", "app")
    assert found[-1] == (
        "4. Check again: iptables-legacy-save | kubeodds loss - --dead 10.244.0.7 --service app"
    )
    both = steps(command, DUMP, "--with", command.file("raw", "*raw\nCOMMIT\n"), "--dead",
                 "10.244.0.7")  # fmt: skip
    assert not any("Check again" in line for line in both)


def test_addresses_of_ipv6_are_freed_as_such(command: Command) -> None:
    six = "# Generated by ip6tables-save v1.8.9\n" + (
        dump(*two_endpoints("[fd00::1]:80", "[fd00::2]:80")).replace(
            "10.96.0.1/32", "fd00:96::1/128"
        )
    )
    found = steps(command, command.file("six", six), "--dead", "fd00::1")
    at = found.index("3. Free pinned flows on each node:")
    command_ = "conntrack -D -f ipv6 -p tcp --reply-src fd00::1 --reply-port-src 80"
    assert found[at + 1] == command_
    assert any("ip6tables-legacy-save | kubeodds" in line for line in found)


def test_a_dump_from_standard_input_is_saved_for_repair_and_asked_for_again(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(DUMP).read_bytes())))
    found = steps(command, "-", "--dead", "10.244.0.7", "--service", "app")
    words = "--dead 10.244.0.7 --service app"
    assert f"kubeodds repair dump.txt {words}" in found
    assert (
        "   (first save as dump.txt what you passed to standard input; prints what to apply, and "
        "how to undo it)"
    ) in found
    assert found[-1] == f"4. Check again: iptables-legacy-save | kubeodds loss - {words}"


def test_a_bundle_from_standard_input_is_saved_for_repair(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as bundle:
        bundle.add(DUMP, "worker1/iptables-legacy-save.txt")
    packed.seek(0)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(packed)))
    found = steps(command, "-", "--dead", "10.244.0.7", "--service", "app")
    assert "kubeodds repair bundle.tgz --dead 10.244.0.7 --service app" in found
    assert any("first save as bundle.tgz" in line for line in found)
    again = "kubeodds collect | ssh NODE 'sudo sh -s -- -' | kubeodds loss - --dead 10.244.0.7"
    assert found[-2:] == ["4. Check again:", f"{again} --service app"]


def test_a_new_bundle_is_asked_with_the_objects_of_the_old_one(command: Command) -> None:
    with tarfile.open(command.folder / "b.tgz", mode="w:gz") as bundle:
        bundle.add(DUMP, "worker1/iptables-legacy-save.txt")
        bundle.add(OBJECTS[1], "objects.json")
    found = steps(command, "b.tgz", *MASTER, "--node", "worker1", "--service", "app")
    assert found[-1] == (
        "kubeodds collect | ssh worker1 'sudo sh -s -- -' | kubeodds loss - --objects b.tgz "
        "--dead-node master --node worker1 --service app"
    )
    assert any("Check again" in line for line in steps(command, "b.tgz", *MASTER))


@pytest.mark.parametrize(
    ("dead", "told"),
    [
        # Of another Service: nothing that the API or a repair does brings these flows back.
        ("10.244.0.3", []),
        # Half goes to a dead endpoint, and the rest to a living one that no flow reaches.
        ("10.244.0.7", ["If the API is up, a dead pod's readiness probe"]),
    ],
)
def test_flows_that_rules_take_need_other_rules_and_no_pod(
    command: Command, dead: str, told: list[str]
) -> None:
    rules = "".join(f"-A {chain} -p tcp -m tcp --dport 8080 -j DROP\n" for chain in _CHAINS)
    text = Path(DUMP).read_text().replace("-A FORWARD ", f"{rules}-A FORWARD ", 1)
    known = *OBJECTS, "--node", "worker1"
    given = command.file("dump.txt", text), *known, "--dead", dead, "--service", "default/app"
    found = [each.partition(". ")[2] for each in steps(command, *given) if each[:1].isdigit()]
    says = "default/app: flows are lost to the rules named above until these change."
    assert [each[: len(start)] for each, start in zip(found, told, strict=False)] == told
    assert found[len(told)] == says
    assert found[len(told) + 1].startswith("Check again: ")


_CHAINS = ("FORWARD", "OUTPUT")
