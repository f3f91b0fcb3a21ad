"""The command line of `services`, `tree` and `loss`: which Services, where their endpoints are."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import FILTER, cluster_ip, dump, endpoint, two_endpoints
from tests.support.json_reader import read

OBJECTS_FILE = OBJECTS[1]
NODES = ["--node-of", "10.244.0.0/24=master", "10.244.1.0/24=worker1"]
#: Three Services, of one, two and two endpoints.
THREE = FILTER + dump(
    cluster_ip("b/one:http", "10.96.0.2", chain="KUBE-SVC-B"),
    "-A KUBE-SVC-B -j KUBE-SEP-1",
    *two_endpoints(),
    cluster_ip("a/low:http", "10.96.0.3", chain="KUBE-SVC-C"),
    "-A KUBE-SVC-C -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-3",
    "-A KUBE-SVC-C -j KUBE-SEP-4",
    endpoint("KUBE-SEP-3", "10.0.0.3:80"),
    endpoint("KUBE-SEP-4", "10.0.0.4:80"),
)


def told(command: Command, *arguments: str) -> Any:
    done = command(*arguments, "--format", "json")
    assert (done.status, done.err) == (0, "")
    return read(done.out)


def names(command: Command, verb: str, *arguments: str) -> list[str]:
    return [s["name"] for s in told(command, verb, *arguments)["services"]]


def test_networks_say_where_endpoints_are(command: Command) -> None:
    document = told(command, "services", DUMP, *NODES, "--service", "default/app")
    (service,) = document["services"]
    assert {e["address"]: e["node"] for e in service["endpoints"]} == {
        "10.244.0.7": "master",
        "10.244.1.9": "worker1",
    }


def test_a_node_that_only_a_network_names_can_die(command: Command) -> None:
    by_network = told(command, "loss", DUMP, *NODES, "--dead-node", "master")
    by_objects = told(command, "loss", DUMP, *OBJECTS, "--dead-node", "master")
    app = [
        next(s["cluster_ip_loss"] for s in document["services"] if s["name"] == "default/app")
        for document in (by_network, by_objects)
    ]
    assert app[0] == app[1]
    assert app[0]["lower"]["value"] == 0.5


def test_objects_go_before_networks(command: Command) -> None:
    arguments = [*OBJECTS, "--node-of", "10.244.0.0/16=nobody", "--service", "default/app"]
    done = command("services", DUMP, *arguments)
    assert [each in done.out for each in ("master", "worker1", "nobody")] == [True, True, False]
    assert "warning: --node-of does not apply to 4 endpoint addresses" in done.err


def test_the_narrowest_network_says_it(command: Command) -> None:
    arguments = ["--node-of", "10.244.0.0/16=wide", "10.244.1.0/24=narrow"]
    document = told(command, "services", DUMP, *arguments, "--service", "default/app")
    (service,) = document["services"]
    assert {e["address"]: e["node"] for e in service["endpoints"]} == {
        "10.244.0.7": "wide",
        "10.244.1.9": "narrow",
    }


@pytest.mark.parametrize("given", ["10.1.0.0/24", "x=y", "10.1.0.0/24=", "=a", "10.1.0.0/99=a"])
def test_a_network_of_a_node_is_told_with_an_example(command: Command, given: str) -> None:
    done = command("services", DUMP, "--node-of", given)
    assert done.status == 2
    said = f"{given!r} is not CIDR=NODE, for example 10.1.0.0/24=worker1"
    assert done.err.splitlines()[0].endswith(said)


def test_a_network_is_of_one_node_only(command: Command) -> None:
    done = command("services", DUMP, "--node-of", "10.1.0.0/24=a", "10.1.0.0/24=b")
    assert (done.status, done.out) == (2, "")
    assert done.err == "kubeodds: --node-of 10.1.0.0/24: is it a's, or b's?\n"


def test_whose_rules_these_are_needs_no_network_of_its_own(command: Command) -> None:
    done = command("services", DUMP, "--node", "worker1", "--node-of", "10.244.0.0/24=master")
    assert (done.status, done.err) == (0, "")
    assert "at node worker1" in done.out


def test_objects_may_be_a_folder(command: Command) -> None:
    folder = command.folder / "objects"
    folder.mkdir()
    shutil.copy(OBJECTS_FILE, folder / "all.json")
    (folder / "run.json").write_text('{"flags": []}')
    (folder / "notes.txt").write_text("no objects")
    assert told(command, "services", DUMP, "--objects", "objects") == told(
        command, "services", DUMP, *OBJECTS
    )


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({}, "no file *.json or *.yaml in this folder or below holds API objects"),
        ({"a.json": "{}"}, "no file *.json or *.yaml in this folder or below holds API objects"),
    ],
)
def test_a_folder_without_objects_is_named(
    command: Command, files: dict[str, str], error: str
) -> None:
    (command.folder / "objects").mkdir()
    for name, text in files.items():
        (command.folder / "objects" / name).write_text(text)
    done = command("services", DUMP, "--objects", "objects")
    assert (done.status, done.out) == (2, "")
    assert done.err == f"kubeodds: objects: {error}\n"


def test_objects_may_come_from_stdin(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(Path(OBJECTS_FILE).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    found = told(command, "services", DUMP, "--objects", "-", "--check")
    assert found == told(command, "services", DUMP, *OBJECTS, "--check")


# --- which, and in which order -------------------------------------------------


@pytest.mark.parametrize("verb", ["services", "loss"])
def test_a_namespace_is_all_that_is_shown(command: Command, verb: str) -> None:
    file = command.file("dump", THREE)
    dead = ["--dead", "10.0.0.1"] if verb == "loss" else []
    assert names(command, verb, file, *dead, "--namespace", "a") == ["a/low:http"]
    one = names(command, verb, file, *dead, "--namespace", "b", "--service", "one")
    assert one == ["b/one:http"]


@pytest.mark.parametrize("verb", [["services"], ["loss"], ["tree", "a"]])
def test_a_namespace_that_does_not_occur_is_refused_in_one_line(
    command: Command, verb: list[str]
) -> None:
    file = command.file("dump", THREE)
    done = command(verb[0], file, *verb[1:], "--namespace", "nss")
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "in namespace nss of this dump" in done.err
    assert ("did you mean ns?" in done.err) == (verb[0] != "tree")


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("name", ["a/low:http", "b/one:http", "ns/a:http"]),
        ("endpoints", ["a/low:http", "ns/a:http", "b/one:http"]),
        # Of what has lost nothing: the Service that one endpoint's loss would silence.
        ("loss", ["b/one:http", "a/low:http", "ns/a:http"]),
    ],
)
def test_services_are_sorted_as_asked(command: Command, by: str, order: list[str]) -> None:
    assert names(command, "services", command.file("dump", THREE), "--sort", by) == order


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("name", ["a/low:http", "b/one:http", "ns/a:http"]),
        ("endpoints", ["a/low:http", "ns/a:http", "b/one:http"]),
        ("loss", ["ns/a:http", "a/low:http", "b/one:http"]),
    ],
)
def test_losses_are_sorted_as_asked(command: Command, by: str, order: list[str]) -> None:
    file = command.file("dump", THREE)
    assert names(command, "loss", file, "--dead", "10.0.0.2", "--sort", by) == order


def test_the_table_of_losses_keeps_the_order_that_was_asked_for(command: Command) -> None:
    file = command.file("dump", THREE)
    dead = ["--dead", "10.0.0.1", "10.0.0.3"]
    worst = command("loss", file, *dead).out.partition("\n\n")[2]
    named = command("loss", file, *dead, "--sort", "name").out.partition("\n\n")[2]
    assert worst.index("b/one") < worst.index("a/low")
    assert named.index("a/low") < named.index("b/one")


def test_what_could_not_be_known_is_said_with_what_would_tell(command: Command) -> None:
    assert "--node-of" in command("services", DUMP).out
    assert "--node-of" not in command("services", DUMP, *OBJECTS).out


def test_what_the_api_says_of_endpoints_stands_beside_the_rules(command: Command) -> None:
    objects = json.loads(Path(OBJECTS_FILE).read_text())
    for item in objects["items"]:
        if item["kind"] == "EndpointSlice":
            for each in item["endpoints"]:
                if each["addresses"] == ["10.244.1.9"]:
                    each["conditions"] = {"ready": False, "serving": True, "terminating": True}
                    each["hints"] = {"forZones": [{"name": "z"}]}
        if item["kind"] == "Endpoints":
            for subset in item.get("subsets", []):
                alive = [a for a in subset["addresses"] if a["ip"] != "10.244.1.9"]
                subset["addresses"] = alive
        if item["kind"] == "Service" and item["metadata"]["name"] == "app":
            item["spec"]["externalTrafficPolicy"] = "Local"
    file = command.file("changed.json", json.dumps(objects))
    arguments = ["services", DUMP, "--objects", file, "--service", "default/app"]
    (service,) = told(command, *arguments)["services"]
    assert service["api"]["internal_traffic_policy"] == "Cluster"
    assert service["api"]["external_traffic_policy"] == "Local"
    by_address = {each["address"]: each for each in service["api"]["endpoints"]}
    assert by_address["10.244.0.7"]["ready"]
    assert not by_address["10.244.1.9"]["ready"]
    assert by_address["10.244.1.9"]["serving_terminating"]
    assert by_address["10.244.1.9"]["hints"] == {"zones": ["z"], "nodes": []}
    text = command(*arguments).out
    assert text.count("10.244.1.9:8080 not ready") == 1
    assert "10.244.0.7:8080 not ready" not in text


def test_without_objects_the_api_says_nothing(command: Command) -> None:
    assert not any("api" in each for each in told(command, "services", DUMP)["services"])


def test_objects_of_the_other_ip_version_are_named_and_strict_does_not_pass(
    command: Command,
) -> None:
    listed = json.loads(Path(OBJECTS_FILE).read_text(encoding="utf-8"))
    spec = next(e for e in listed["items"] if e["metadata"]["name"] == "app")["spec"]
    spec["clusterIPs"] = [spec["clusterIP"], "fd00:96::77"]
    spec["ipFamilies"] = ["IPv4", "IPv6"]
    objects = command.file("objects.json", json.dumps(listed))
    asked = ("services", DUMP, "--objects", objects, "--check")
    done = command(*asked, "--strict")
    assert (done.status, "1 ServicePort of IPv6 not compared" in done.err) == (3, True)
    assert "check: no finding; not all objects were compared" in done.out
    assert command(*asked).status == 0
    # Losses there are not judged, and no threshold passes.
    for verb in (("loss", "--dead", "10.244.0.3"), ("whatif",)):
        given = (verb[0], DUMP, "--objects", objects, *verb[1:])
        assert command(*given, "--max-loss", "100%").status == 1


def test_objects_without_endpoints_are_not_held_against_the_rules(command: Command) -> None:
    """As `kubectl cluster-info dump` leaves them: no rule is stale because none was listed."""
    items = json.loads(Path(OBJECTS_FILE).read_text(encoding="utf-8"))["items"]
    for kind in ("Node", "Service"):
        listed = [{**item, "kind": None} for item in items if item["kind"] == kind]
        for item in listed:
            del item["kind"]
        place = command.folder / "dump" / f"of-{kind}"
        place.mkdir(parents=True)
        (place / "all.json").write_text(json.dumps({"kind": f"{kind}List", "items": listed}))
    done = command("services", DUMP, "--objects", "dump", "--check", "--format", "json")
    answer = json.loads(done.out)
    assert done.status == 0
    assert [each["code"] for each in answer["diagnostics"]] == ["no-endpointslices"]
    asked = ("services", DUMP, "--objects", "dump", "--check", "--strict")
    done = command(*asked)
    says = "\ncheck: no finding; the rules were not compared with the objects, see the warnings\n"
    assert (done.status, says in done.out) == (3, True)
    # Objects without Services: those of nodes alone.
    nodes = ("--objects", str(Path("dump") / "of-Node"))
    done = command("services", DUMP, *nodes, "--check", "--strict")
    assert (done.status, says in done.out) == (3, True)
    assert "warning: the objects have no Service that kube-proxy writes rules for: " in done.err
    assert command("services", DUMP, "--check", "--strict").status == 0
    # Objects that the rules could be compared with.
    done = command("services", DUMP, "--objects", OBJECTS_FILE, "--check", "--strict")
    assert (done.status, "\ncheck: no finding\n" in done.out) == (0, True)
    assert all("api" not in service for service in answer["services"])
