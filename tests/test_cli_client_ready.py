"""Which endpoints and Services clients know: what is ready, and what is not judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.captures import FIXTURES
from tests.support.commands import CAPTURE, DUMP, OBJECTS, Command

APP = ("--service", "default/app")
BY_POD = ("proxy-by-pod-ip", "headless")
#: The rules draw 10.244.0.7 and 10.244.1.9; one that is ready is in no rule of this node.
READY = {"10.244.0.7": True, "10.244.1.9": False, "10.244.1.77": True}


@pytest.fixture
def objects(command: Command) -> str:
    """Objects with these endpoints of default/app."""
    found = json.loads((CAPTURE / "objects.json").read_text())
    found["items"] = [each for each in found["items"] if each["kind"] != "Endpoints"]
    for item in found["items"]:
        if item["kind"] == "EndpointSlice" and item["metadata"]["name"].startswith("app-"):
            item["endpoints"] = [
                {"addresses": [each], "conditions": {"ready": ready}, "nodeName": "worker1"}
                for each, ready in READY.items()
            ]
    return command.file("ready.json", json.dumps(found))


def fails(command: Command, *asked: str) -> dict[str, float]:
    """Return the chance to fail of each client."""
    names = ",".join(("tcp", *BY_POD))
    done = command("client", DUMP, *asked, *APP, "--client", names, "--format", "json")
    assert done.status == 0, done.err
    found = json.loads(done.out)["operations"]
    for each in found:
        assert each["fails"]["lower"] == each["fails"]["upper"]
    return {each["client"]: each["fails"]["upper"]["value"] for each in found}


def test_they_know_what_the_api_lists_as_ready(command: Command, objects: str) -> None:
    found = fails(command, "--objects", objects, "--dead", "10.244.0.7,10.244.1.77")
    assert found["tcp"] == 0.5  # the rules still draw one that is not ready
    assert {found[each] for each in BY_POD} == {1}


def test_what_no_rule_draws_may_be_dead(command: Command, objects: str) -> None:
    found = fails(command, "--objects", objects, "--dead", "10.244.1.77", "--tries", "1")
    assert found["tcp"] == 0
    assert {found[each] for each in BY_POD} == {0.5}


def test_without_the_api_what_is_taken_for_ready_is_said(command: Command) -> None:
    asked = *APP, "--client", "headless", "--dead", "10.244.0.7"
    says = "Assumed: clients that choose among endpoints themselves know those that the rules draw"
    assert says in command("client", DUMP, *asked).out
    assert says not in command("client", DUMP, *OBJECTS, *asked).out


def test_the_service_that_loses_most_may_be_one_that_is_not_judged(command: Command) -> None:
    rows = Path(DUMP).read_text().splitlines(keepends=True)
    file = command.file("dump.txt", "".join(row for row in rows if "default/app" not in row))
    asked = file, *OBJECTS, "--dead", "10.244.0.3", "--client", "tcp", "--max-failure"
    done = command("client", *asked, "50%")
    assert done.status == 1
    says = "Not everything was judged: that breaks --max-failure; --service names what counts.\n"
    assert says in done.out
    assert command("client", *asked, "50%", "--service", "kube-dns:dns-tcp").status == 0
    both = command("client", *asked, "50%", "--service", "kube-dns:dns-tcp,app")
    assert both.status == 1
    assert "Not everything was judged: that breaks --max-failure.\n" in both.out
    # A look-up needs no other Service than that of DNS.
    assert command("client", *asked[:-2], "glibc", "--max-failure", "75%").status == 0


def test_the_other_ip_version_of_a_named_service_is_not_judged(command: Command) -> None:
    folder = FIXTURES.parent / "check" / "1.36.2-iptables-legacy" / "dual-stack"
    (dump,) = folder.glob("iptables-legacy-save.txt*")
    (objects,) = folder.glob("objects.json*")
    limits = "--client", "tcp", "--max-failure", "50%", "--service", "ds/ep-7"
    asked = str(dump), "--objects", str(objects), "--dead-node", "node-c2", *limits
    done = command("client", *asked)
    assert done.status == 1
    assert "Not judged: 1 ServicePort of IPv6 (ds/ep-7)" in done.out
    # A client of IPv4 needs no rules of IPv6.
    assert command("client", *asked, "--from", "10.244.0.77").status == 0
