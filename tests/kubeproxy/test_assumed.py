"""What answers rest on besides the dump: in every report that rests on it, and in no other.

The dumps are of kube-proxy 1.20, whose rules for external IPs match with ``-m physdev``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from analyzer.kubeproxy.assumed import ASSUMED, rests_on
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Severity
from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.assumed import BY_NAME, DEFAULTS
from analyzer.semantics.hooks import Hooks
from tests.support.captures import ROOT
from tests.support.commands import Command
from tests.support.defects import path
from tests.support.json_reader import read

DUAL = ROOT / "fixtures" / "check" / "1.20.2-iptables-legacy" / "dual-stack"
DUMP = str(DUAL / "iptables-legacy-save.txt")
DUMP_6 = str(DUAL / "ip6tables-legacy-save.txt")
KNOWN = ("--objects", str(DUAL / "objects.json"), "--node", "node-a1")
EXTERNAL_IP = "198.51.100.61:80"
OUTSIDE = "203.0.113.9"
HALVES = {"10.244.0.31": (0.5, 0.5), "10.244.2.25": (0.5, 0.5)}
#: To the endpoints, or past all rules.
OPEN = {"10.244.0.31": (0, 0.5), "10.244.2.25": (0, 0.5), "198.51.100.61": (0, 1)}
NO_BRIDGE_PORT = BY_NAME["bridge-port"].sentences["none"]
PRINTED = f"Assumed: {NO_BRIDGE_PORT}."
DROPPED = "-A FORWARD -m physdev --physdev-is-in -j DROP\n"


def told(command: Command, *arguments: str) -> Any:
    done = command(*arguments, "--format", "json")
    assert done.status == 0, done.err
    return read(done.out)


def ends(found: Any) -> dict[str, tuple[float, float]]:
    return {end["address"]: (end["lower"], end["upper"]) for end in found["outcomes"]}


def codes(found: Any) -> list[str]:
    return [each["code"] for each in found["diagnostics"]]


def edited(command: Command, old: str, new: str, most: int = -1) -> str:
    text = Path(DUMP).read_text()
    assert old in text
    return command.file("dump.txt", text.replace(old, new, most))


def test_an_assumption_is_told_and_is_no_gap_in_the_dump() -> None:
    (told,) = rests_on({"bridge-port"}, DEFAULTS, "dump.txt")
    assert (told.severity, told.code, told.file) == (Severity.INFO, ASSUMED, "dump.txt")
    assert not told.partial


def test_services_rest_on_it_where_a_chain_is_walked_for_itself(command: Command) -> None:
    """Of a frontend whose rule has lost its port, only what lies behind is known."""
    text = Path(path("nomangle.txt")).read_text()
    first = "-A KUBE-SVC-NZGXMBVUFMQ6OBBQ -m comment"
    asks = "-A KUBE-SVC-NZGXMBVUFMQ6OBBQ -m physdev --physdev-is-in -j DROP"
    lost = text.replace(" -m tcp --dport 80 -j KUBE-SVC-NZG", " -j KUBE-SVC-NZG")
    way = "--objects", path("objects.json"), "--node", "worker1", "--service", "default/app"
    file = command.file("dump.txt", lost)
    assert "Assumed" not in command("services", file, *way).out
    file = command.file("dump.txt", lost.replace(first, f"{asks}\n{first}", 1))
    assert PRINTED in command("services", file, *way).out.splitlines()


# --- trace ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dump", "source", "to", "endpoints"),
    [
        (DUMP, OUTSIDE, EXTERNAL_IP, ("10.244.0.31", "10.244.2.25")),
        (DUMP_6, "2001:db9::5", "[2001:db8::61]:80", ("fd00:10:244::20", "fd00:10:244:2::1a")),
    ],
)
def test_trace_from_outside_rests_on_what_services_rests_on(
    command: Command, dump: str, source: str, to: str, endpoints: tuple[str, str]
) -> None:
    found = told(command, "trace", dump, *KNOWN, "--from", source, "--to", to)
    assert ends(found) == dict.fromkeys(endpoints, (0.5, 0.5))
    assert NO_BRIDGE_PORT in found["assumptions"]
    (service,) = told(command, "services", dump, *KNOWN, "--service", "ds/affinity")["services"]
    (route,) = [
        each
        for each in service["routes"]
        if (each["frontend"]["kind"], each["source"]) == ("ExternalIP", "external")
    ]
    assert {each["address"]: each["share"] for each in route["endpoints"]} == (
        dict.fromkeys(endpoints, (0.5, 0.5))
    )


def test_trace_prints_what_it_rests_on(command: Command) -> None:
    out = command("trace", DUMP, *KNOWN, "--from", OUTSIDE, "--to", EXTERNAL_IP).out
    listed = out.partition("Assumed:\n")[2].splitlines()
    assert f"  {NO_BRIDGE_PORT}" in listed
    assert "not known" not in out


def test_another_node_is_outside_too(command: Command) -> None:
    found = told(command, "trace", DUMP, *KNOWN, "--from", "192.168.10.12", "--to", EXTERNAL_IP)
    assert ends(found) == HALVES
    assert NO_BRIDGE_PORT in found["assumptions"]


@pytest.mark.parametrize(
    "way",
    [
        ("--from", "10.244.0.99"),  # a pod here
        ("--from", "10.244.3.99"),  # a pod elsewhere
        ("--from", OUTSIDE, "--in-interface", "cni0"),  # what is a bridge nobody says
    ],
)
def test_of_pods_and_of_named_devices_nothing_is_assumed(
    command: Command, way: tuple[str, ...]
) -> None:
    found = told(command, "trace", DUMP, *KNOWN, *way, "--to", EXTERNAL_IP)
    assert ends(found) == OPEN
    assert NO_BRIDGE_PORT not in found["assumptions"]


@pytest.mark.parametrize("way", [("--from-node",), ("--from", "192.168.10.11")])
def test_of_what_has_the_node_s_address_nothing_is_assumed(
    command: Command, way: tuple[str, ...]
) -> None:
    found = told(command, "trace", DUMP, *KNOWN, *way, "--to", EXTERNAL_IP)
    assert ends(found) == {"198.51.100.61": (1, 1)}  # -m addrtype ! --src-type LOCAL
    assert NO_BRIDGE_PORT not in found["assumptions"]


def test_without_the_node_s_name_any_node_may_be_it(command: Command) -> None:
    way = "--from", "192.168.10.12", "--to", EXTERNAL_IP
    assert NO_BRIDGE_PORT not in told(command, "trace", DUMP, *KNOWN[:2], *way)["assumptions"]


def test_nothing_is_assumed_of_rules_that_do_not_ask_for_bridges(command: Command) -> None:
    found = told(command, "trace", DUMP, *KNOWN, "--from", OUTSIDE, "--to", "10.96.7.1:80")
    assert ends(found) == HALVES
    assert NO_BRIDGE_PORT not in found["assumptions"]


def test_where_nobody_says_which_networks_are_pods_an_address_may_be_a_pod_s(
    command: Command,
) -> None:
    way = "--node-ip", "192.168.10.11", "--from", OUTSIDE, "--to", EXTERNAL_IP
    assert ends(told(command, "trace", DUMP, *way)) == HALVES  # the rules spare 10.244.0.0/16
    text = Path(DUMP).read_text()
    assert "! -s 10.244.0.0/16 " in text
    dump = command.file("dump.txt", re.sub(r"(! )?-s 10\.244\.0\.0/16 ", "", text))
    found = told(command, "trace", dump, *way)
    assert ends(found) == OPEN
    assert NO_BRIDGE_PORT not in found["assumptions"]


def test_pods_beside_the_networks_of_pods_leave_it_open_who_is_one(command: Command) -> None:
    objects = json.loads((DUAL / "objects.json").read_text())
    at = {"podIP": "10.99.0.5", "podIPs": [{"ip": "10.99.0.5"}]}
    name = {"name": "stray", "namespace": "ds", "uid": "1"}
    pod = {"kind": "Pod", "metadata": name, "spec": {"nodeName": "node-a1"}, "status": at}
    objects["items"].append(pod)
    file = command.file("objects.json", json.dumps(objects))
    way = "--node", "node-a1", "--from", OUTSIDE, "--to", EXTERNAL_IP
    assert ends(told(command, "trace", DUMP, "--objects", file, *way)) == OPEN


def test_a_rule_that_is_malformed_elsewhere_leaves_it_open_who_is_a_pod(command: Command) -> None:
    row = "-A KUBE-SEP-LSOIKVI6TYFQMVZK -s"  # an endpoint of ds/ep-2
    bad = row.replace("-s", "-m statistic --mode random --probability 1.5 -s")
    dump = edited(command, row, bad)
    assert command("services", dump, *KNOWN).status == 2
    found = told(command, "trace", dump, *KNOWN, "--from", OUTSIDE, "--to", EXTERNAL_IP)
    assert ends(found) == OPEN


def test_all_external_ips_of_captures_have_the_shares_of_services(
    command: Command, captures: Path
) -> None:
    looked_at = 0
    for dump in sorted(captures.glob("1.2[01].*-iptables-*/features*/iptables-*-save.txt*")):
        objects = next(dump.parent.glob("objects.json*"))
        node = json.loads((dump.parent / "run.json").read_text())["node"]
        known = str(dump), "--objects", str(objects), "--node", node
        for service in told(command, "services", *known)["services"]:
            for route in service["routes"]:
                if (route["frontend"]["kind"], route["source"]) != ("ExternalIP", "external"):
                    continue
                to = f"{route['frontend']['address']}:{route['frontend']['port']}"
                way = "--from", OUTSIDE, "--to", to, "--protocol", service["protocol"]
                found = told(command, "trace", *known, *way)
                shares = {each["address"]: each["share"] for each in route["endpoints"]}
                assert ends(found) == shares or (
                    not shares and {end["outcome"] for end in found["outcomes"]} <= {"reject"}
                )
                looked_at += NO_BRIDGE_PORT in found["assumptions"]
    assert looked_at >= 3


# --- tree and diff ----------------------------------------------------------------


def test_a_tree_from_outside_says_what_it_rests_on(command: Command) -> None:
    way = "tree", DUMP, "ds/affinity", *KNOWN, "--from", "external"
    assert command(*way).out.splitlines()[-1] == PRINTED
    assert codes(told(command, *way)) == [ASSUMED]
    assert PRINTED in command(*way, "--format", "dot").out


@pytest.mark.parametrize(
    "way", [("ds/affinity", "--from", "pod"), ("ds/ep-2", "--from", "external")]
)
def test_other_trees_do_not(command: Command, way: tuple[str, ...]) -> None:
    assert "Assumed" not in command("tree", DUMP, *way, *KNOWN).out
    assert codes(told(command, "tree", DUMP, *way, *KNOWN)) == []
    assert "Assumed" not in command("tree", DUMP, *way, *KNOWN, "--format", "dot").out


def test_a_tree_rests_on_it_where_a_rule_behind_nat_asks(command: Command) -> None:
    dump = edited(command, "-A FORWARD", f"{DROPPED}-A FORWARD", 1)
    way = dump, "ds/ep-2", *KNOWN
    assert command("tree", *way, "--from", "external").out.splitlines()[-1] == PRINTED
    assert "dropped" in command("tree", *way, "--from", "pod").out


def test_diff_says_what_it_rests_on(command: Command) -> None:
    out = command("diff", DUMP, DUMP, *KNOWN).out
    assert out.splitlines()[-1] == PRINTED
    plain = path("nomangle.txt"), "--objects", path("objects.json"), "--node", "worker1"
    assert "Assumed" not in command("diff", plain[0], *plain).out


def test_diff_rests_on_it_where_a_rule_behind_nat_asks_what_reaches_no_endpoint(
    command: Command,
) -> None:
    text = Path(path("nolast.txt")).read_text()
    a = command.file("a.txt", text)
    b = command.file("b.txt", text.replace("-A FORWARD", f"{DROPPED}-A FORWARD", 1))
    done = command("diff", a, b, "--objects", path("objects.json"), "--node", "worker1")
    assert PRINTED in done.out.splitlines()


def test_rules_of_iptables_beside_those_of_nft_are_asked_too(command: Command) -> None:
    beside = command.file(
        "beside.txt",
        "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m physdev --physdev-is-in -j ACCEPT\n"
        "COMMIT\n",
    )
    known = "--objects", path("objects.json"), "--node", "worker1"
    way = path("nftboth.txt"), *known, "--service", "default/app"
    assert codes(told(command, "services", *way, "--with", beside)) == [ASSUMED]
    assert codes(told(command, "services", *way)) == []
    tree = path("nftboth.txt"), "default/app", *known, "--with", beside
    assert command("tree", *tree, "--from", "external").out.splitlines()[-1] == PRINTED
    found = told(
        command, "trace", path("nftboth.txt"), *known, "--with", beside,
        "--from", OUTSIDE, "--to", "10.96.18.52:80",
    )  # fmt: skip
    assert NO_BRIDGE_PORT in found["assumptions"]
    assert ends(found) == {"10.244.0.7": (0.5, 0.5), "10.244.1.9": (0.5, 0.5)}


NOISY = sorted((ROOT / "fixtures" / "noise").rglob("*.txt"))


def recognised(file: Path) -> Recogniser | NftRecogniser:
    ruleset = read_ruleset(file.read_bytes(), file.name)
    if isinstance(ruleset, Ruleset):
        return Recogniser(ruleset, Cluster())
    return NftRecogniser(ruleset, Cluster())


def read_routes(view: View) -> None:
    for route in (route for service in view.services for route in service.routes):
        assert len(route.masquerades()) == len(route.shares)
        assert len(route.losses()) in {0, len(route.shares)}


@pytest.mark.parametrize("file", NOISY, ids=lambda file: file.name)
def test_what_routes_rest_on_is_known_before_they_are_read(file: Path) -> None:
    recogniser = recognised(file)
    view = recogniser.view()
    read_routes(view)
    assert set(view.diagnostics) == set(recogniser.view().diagnostics)


@pytest.mark.parametrize("file", NOISY, ids=lambda file: file.name)
def test_no_walk_is_begun_by_what_reads_routes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recogniser = recognised(file)
    if not isinstance(recogniser, Recogniser):
        return  # masquerade in nftables mode is evaluated for one Service of a kind, see `settle`
    view = recogniser.view()
    monkeypatch.setattr(Hooks, "_begin", None)
    read_routes(view)
