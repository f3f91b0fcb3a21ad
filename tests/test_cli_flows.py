"""The command line of `suspects` and `pinned`: from files, from bundles, and what is refused."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import ROOT
from tests.support.commands import CAPTURE, DUMP, OBJECTS, Command

#: The master is silent: 100 flows each to default/app and kube-system/kube-dns:dns.
CONNTRACK = str(ROOT / "examples" / "conntrack.txt")
ASKED = (DUMP, *OBJECTS, "--node", "worker1", "--conntrack", CONNTRACK)
LOST = '[{"dst":"10.244.0.7","dev":"eth0","state":["FAILED"]}]'


def document(command: Command, *words: str, status: int) -> Any:
    done = command(*words, "--format", "json")
    assert done.status == status, done.err
    return json.loads(done.out)


def counted(packets: int) -> bytes:
    """Return the dump with counters, of which DNAT rules have counted so many more."""
    rows = Path(DUMP).read_text().splitlines()
    told = [
        f"[{100 + packets if ' -j DNAT ' in row else 1}:60] {row}" if row[:3] == "-A " else row
        for row in rows
    ]
    return "\n".join([*told, ""]).encode()


def bundle(command: Command, *, again: bool = False) -> str:
    """Write a bundle with rules, objects and conntrack, that another node has besides."""
    files = {
        "MANIFEST": b"# kubeodds collect 1, format 1\n# node worker1, begun 2026-11-22T10:00:00Z\n",
        "iptables-legacy-save.txt": Path(DUMP).read_bytes(),
        "objects.json": (CAPTURE / "objects.json").read_bytes(),
        "conntrack-ipv4.txt": Path(CONNTRACK).read_bytes(),
        "conntrack-ipv6.txt": b"",
        "neighbours.json": LOST.encode(),
    }
    if again:
        files["again/conntrack-ipv4.txt"] = Path(CONNTRACK).read_bytes()
        files["iptables-legacy-save.txt"] = counted(0)
        files["again/iptables-legacy-save.txt"] = counted(7)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(f"node/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return command.file("node.tar.gz", made.getvalue())


def test_the_dead_are_named_with_the_numbers_and_the_line_to_run(command: Command) -> None:
    found = document(command, "suspects", *ASKED, status=1)
    named = {(e["address"], e["name"]) for e in found["endpoints"] if e["suspect"]}
    assert named == {("10.244.0.7", "default/app"), ("10.244.0.3", "kube-system/kube-dns:dns")}
    asked = f"{DUMP} --objects {OBJECTS[1]} --node worker1"
    assert found["proposal"] == f"kubeodds loss {asked} --dead-node master"
    assert all(e["p_value"] < 1e-6 for e in found["endpoints"] if e["suspect"])


def test_an_entry_counts_once_though_files_overlap(command: Command) -> None:
    once = document(command, "suspects", *ASKED, status=1)
    assert document(command, "suspects", *ASKED, "--conntrack", CONNTRACK, status=1) == once


def test_without_objects_the_line_names_endpoints(command: Command) -> None:
    found = document(command, "suspects", DUMP, "--conntrack", CONNTRACK, status=1)
    assert found["proposal"] == f"kubeodds loss {DUMP} --dead 10.244.0.3:53,10.244.0.7:8080"


def test_what_they_would_cost_is_asked_of_the_same_input(command: Command) -> None:
    places = "--node-of", "10.244.0.0/24=master,10.244.1.0/24=worker1"
    asked = DUMP, *places, "--node-ip", "192.168.0.11"
    found = document(command, "suspects", *asked, "--conntrack", CONNTRACK, status=1)
    words = found["proposal"].split()[1:]
    assert words[-2:] == ["--dead-node", "master"]
    assert words[words.index("--node-ip") + 1] == "192.168.0.11"
    done = command(*words)
    assert done.status == 0, done.err
    assert "Dead: node master (2 endpoint addresses)" in done.out


def test_text_calls_nobody_dead(command: Command) -> None:
    done = command("suspects", *ASKED)
    assert "2 endpoints suspect (exact binomial tests, Holm-corrected" in done.out
    assert "10.244.1.9" not in done.out
    assert "the test cannot say" in done.out
    assert "10.244.1.9" in command("suspects", *ASKED, "--all").out


def test_a_neighbour_that_does_not_answer_is_shown(command: Command) -> None:
    neighbours = command.file("neighbours.json", LOST)
    done = command("suspects", *ASKED, "--neighbours", neighbours)
    assert "suspect, and no neighbour" in done.out


@pytest.mark.parametrize("again", [False, True])
def test_a_bundle_has_all_that_is_asked_for(command: Command, again: bool) -> None:
    name = bundle(command, again=again)
    done = command("suspects", name)
    assert done.status == 1
    assert "conntrack-ipv4.txt" in done.err
    assert ("again/conntrack-ipv4.txt" in done.err) is again
    assert ("DRAWN" in done.out) is again
    drawn = {each["drawn"] for each in document(command, "suspects", name, status=1)["endpoints"]}
    assert drawn == ({7} if again else {None})
    assert "200 flows to Services of 200" in done.out  # the same flows do not count twice
    assert f"What they would cost: kubeodds loss {name} --dead-node master" in done.out
    assert "no neighbour" in done.out
    pinned = command("pinned", name, "--dead-node", "master")
    assert (pinned.status, "flows pinned" in pinned.out) == (1, True)


def test_what_the_rules_drew_between_two_takes_is_told_where_they_count(command: Command) -> None:
    first, second = command.file("one.txt", counted(0)), command.file("two.txt", counted(50))
    asked = ("suspects", first, *ASKED[1:])
    found = document(command, *asked, "--rules-again", second, status=1)
    assert {each["drawn"] for each in found["endpoints"]} == {50}
    # Written anew in between, or without counters: nothing is told.
    for before, after in ((second, first), (DUMP, second)):
        words = ("suspects", before, *ASKED[1:], "--rules-again", after)
        assert {e["drawn"] for e in document(command, *words, status=1)["endpoints"]} == {None}
    done = command(*asked, "--rules-again", OBJECTS[1])
    assert (done.status, "expected the output of `iptables-save -c`" in done.err) == (2, True)


def test_routes_that_are_closed_are_shown(command: Command) -> None:
    routes = command.file("routes.json", '[{"type": "unreachable", "dst": "10.244.0.0/24"}]')
    done = command("suspects", *ASKED, "--routes", routes)
    assert "suspect, and no route: 10.244.0.0/24 is closed" in done.out
    assert command("suspects", *ASKED, "--routes", CONNTRACK).status == 2


def test_loss_of_a_bundle_proposes_who_may_be_dead(command: Command) -> None:
    name = bundle(command)
    done = command("loss", name)
    assert f"to see what they cost: kubeodds loss {name} --dead-node master" in done.err
    assert "speaks against" not in command("loss", name, "--dead", "10.244.0.7").err


def test_pinned_flows_come_with_what_frees_just_them_dns_first(command: Command) -> None:
    found = document(command, "pinned", *ASKED, "--dead-node", "master", status=1)["pinned"]
    assert [(e["name"], e["why"]) for e in found] == [
        ("kube-system/kube-dns:dns", "dead"),
        ("default/app", "dead"),
    ]
    assert found[0]["command"] == (
        "conntrack -D -p udp --orig-dst 10.96.0.10 --orig-port-dst 53 --reply-src 10.244.0.3 "
        "--reply-port-src 53"
    )
    assert sum(e["flows"] for e in found) == sum(e["unanswered"] for e in found)


def test_nobody_dead_and_nothing_stale_is_no_finding(command: Command) -> None:
    done = command("pinned", *ASKED)
    assert done.status == 0
    assert "0 flows pinned" in done.out
    assert "Nothing marked dead" in done.out


def test_an_endpoint_that_a_cut_dump_does_not_show_is_not_stale(command: Command) -> None:
    """To free flows of living endpoints would do harm."""
    text = Path(DUMP).read_text()
    cut = command.file("cut.txt", text[: text.index("-A KUBE-SVC-")])
    done = command("pinned", cut, "--conntrack", CONNTRACK)
    assert done.status == 0
    assert done.out.startswith("0 flows known to be pinned, of 200 to Services")
    assert "conntrack -D" not in done.out
    assert "200 flows to kube-system/kube-dns:dns, default/app not judged: the dump" in done.err
    assert command("pinned", cut, "--conntrack", CONNTRACK, "--strict").status == 3
    # One that is known to be dead is, though only conntrack shows it.
    (found,) = document(
        command, "pinned", cut, "--conntrack", CONNTRACK, "--dead", "10.244.0.7", status=1
    )["pinned"]
    assert (found["endpoint"]["address"], found["why"], found["flows"]) == (
        "10.244.0.7", "dead", 50,
    )  # fmt: skip


def test_flows_that_are_not_tested_are_counted(command: Command) -> None:
    text = Path(DUMP).read_text()
    cut = command.file("cut.txt", text[: text.index("-A KUBE-SVC-")])
    done = command("suspects", cut, "--conntrack", CONNTRACK)
    assert done.status == 0
    assert done.out.startswith("200 flows to Services of 200 that conntrack has; 95 unanswered.")
    assert "200 flows not tested, 95 of them unanswered: they are at endpoints that" in done.out
    told = document(command, "suspects", cut, "--conntrack", CONNTRACK, status=0)
    assert told["not_tested"] == {"flows": 200, "unanswered": 95}
    assert "not tested" not in command("suspects", *ASKED).out


def test_flows_at_endpoints_of_unknown_nodes_are_not_judged(command: Command) -> None:
    asked = DUMP, "--conntrack", CONNTRACK, "--node-of", "10.244.1.0/24=worker1"
    done = command("pinned", *asked, "--dead-node", "worker1")
    assert done.status == 1
    assert done.out.startswith("105 flows known to be pinned")
    assert "95 flows to kube-system/kube-dns:dns, default/app not judged: the node of" in done.err


def test_an_address_that_is_another_pods_is_foreign(command: Command) -> None:
    objects = json.loads((CAPTURE / "objects.json").read_text())
    for item in objects["items"]:
        for each in item.get("endpoints", ()):
            # The API has moved on: nothing of app is at 10.244.1.9 any more.
            each["addresses"] = [a.replace("10.244.1.9", "10.244.1.99") for a in each["addresses"]]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger", "namespace": "shop", "uid": "1"},
        "spec": {"nodeName": "worker1"},
        "status": {"phase": "Running", "podIP": "10.244.1.9", "podIPs": [{"ip": "10.244.1.9"}]},
    }
    objects["items"] = [
        each for each in objects["items"] if each["kind"] not in {"Pod", "Endpoints"}
    ]
    objects["items"].append(pod)
    given = command.file("objects.json", json.dumps(objects))
    words = ("pinned", DUMP, "--conntrack", CONNTRACK, "--objects", given, "--node", "worker1")
    told = document(command, *words, status=1)
    assert told["wrong_doors"] == [
        {"address": "10.244.1.9", "port": 8080, "owner": "shop/stranger"}
    ]
    assert "Wrong pod: 10.244.1.9:8080 now belongs to shop/stranger" in command(*words).out
    found = told["pinned"]
    assert [(e["endpoint"]["address"], e["why"], e["owner"]) for e in found] == [
        ("10.244.1.9", "foreign", "shop/stranger")
    ]


@pytest.mark.parametrize("verb", ["suspects", "pinned"])
def test_the_pod_of_an_endpoint_is_named_where_objects_tell_it(command: Command, verb: str) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "app-1", "namespace": "default", "uid": "1"},
        "spec": {"nodeName": "master"},
        "status": {"phase": "Running", "podIP": "10.244.0.7", "podIPs": [{"ip": "10.244.0.7"}]},
    }
    objects = json.loads((CAPTURE / "objects.json").read_text())
    objects["items"].append(pod)
    given = command.file("objects.json", json.dumps(objects))
    more = ("--dead-node", "master") if verb == "pinned" else ()
    words = verb, DUMP, "--conntrack", CONNTRACK, "--objects", given, *more
    head, row = (
        next(line for line in command(*words).out.splitlines() if text in line)
        for text in ("ENDPOINT", "10.244.0.7:8080")
    )
    assert head.split()[-1] == "POD"
    assert row.index("default/app-1") == head.index("POD")
    rows = document(command, *words, status=1)["pinned" if verb == "pinned" else "endpoints"]
    ends = [each["endpoint"] if verb == "pinned" else each for each in rows]
    told = {each["address"]: each["pod"] for each in ends}
    assert (told["10.244.0.7"], told["10.244.0.3"]) == ("default/app-1", None)
    assert "POD" not in command(verb, *ASKED, *more).out


@pytest.mark.parametrize("verb", ["suspects", "pinned"])
def test_conntrack_is_asked_for(command: Command, verb: str) -> None:
    done = command(verb, DUMP)
    assert (done.status, done.out) == (2, "")
    assert "no conntrack entries: pass --conntrack FILE" in done.err


@pytest.mark.parametrize("verb", ["suspects", "pinned"])
def test_a_file_that_is_none_of_conntrack_is_refused(command: Command, verb: str) -> None:
    done = command(verb, DUMP, "--conntrack", DUMP)
    assert (done.status, done.out) == (2, "")
    assert "it contains no flows; expected the output of `conntrack -L`" in done.err


@pytest.mark.parametrize("rate", ["0%", "100%", "1", "x%", "-1%"])
def test_a_rate_is_a_percentage(command: Command, rate: str) -> None:
    done = command("suspects", *ASKED, f"--error-rate={rate}")
    assert done.status == 2
    assert "is not a percentage between 0% and 100%" in done.err


def test_flows_that_were_not_understood_are_named(command: Command) -> None:
    line = Path(CONNTRACK).read_text().splitlines()[0].replace("src=", "src=x", 1)
    broken = command.file("broken", f"{Path(CONNTRACK).read_text()}{line}\n{line}\n")
    for verb in ("suspects", "pinned"):
        asked = (verb, DUMP, *OBJECTS, "--conntrack", broken)
        done = command(*asked)
        assert "of conntrack not understood: those flows do not count" in done.err
        assert command(*asked, "--strict").status == 3


def test_services_without_any_answer_are_named(command: Command) -> None:
    text = Path(CONNTRACK).read_text()
    file = command.file("silent", text.replace("dport=80 src=", "dport=80 [UNREPLIED] src="))
    says = "No flow was answered to default/app: all endpoints there may be dead, or cut off from"
    asked = "suspects", DUMP, *OBJECTS, "--service", "app", "--conntrack"
    done = command(*asked, file)
    assert done.status == 0
    assert says in done.out
    assert "No flow was answered" not in command(*asked, CONNTRACK).out
