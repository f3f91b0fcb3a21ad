"""Other programs' rules beside kube-proxy's: the kernel does what is predicted, as assumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from scipy.stats import binom

from analyzer.semantics.assumed import BY_NAME
from tests.support.captures import ROOT
from tests.support.effort import PROFILE
from tests.support.lab.running import kubeodds, lab_run

pytestmark = pytest.mark.lab

NOISE: Final = ROOT / "fixtures" / "noise"
OBJECTS: Final = ("--objects", str(NOISE / "objects.json"))
APP: Final = ("--service", "default/app", "--flows", "2000", "--from", "pod,external")
REVERSE_PATH: Final = BY_NAME["reverse-path"].sentences["pass"]
WHY_NOBODY: Final = "the cluster itself uses every address in {}, so that no client can have one"
PODS: Final = BY_NAME["pod-interface"].sentences["usual"]
PORTS: Final = BY_NAME["source-port"].sentences["ephemeral"]
CHECK: Final = """*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -m rpfilter --validmark --invert -j DROP
COMMIT
"""


def agreed(dump: str, *more: str) -> list[str]:
    """Return what was assumed of a run that agrees with its prediction."""
    status, found, _ = lab_run(dump, *OBJECTS, *APP, *more)
    assert status == 0
    assert found["agrees"]
    assert found["measurements"]
    for each in found["measurements"]:
        assert all(e["predicted"]["lower"] == e["predicted"]["upper"] for e in each["endpoints"])
        assert sum(e["landed"] for e in each["endpoints"]) == 2000
    return [each["message"] for each in found["diagnostics"] if each["code"] == "assumed"]


#: Sources of flows, as the lab and as trace are told of them.
SOURCES: Final = {
    "pod": ("--from", "pod"),
    "external": ("--from", "203.0.113.1"),
    "node": ("--from-node",),
}
FLOWS: Final = 200
END: Final = ("lower", "upper")
#: Of one count that is wrongly taken for another share's.
RATE: Final = 1e-7


def ends(dump: str, source: str) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """Return the bounds on each end of a flow through all tables, and what they rest on."""
    way = (*SOURCES[source], "--to", "default/app")
    done = kubeodds("trace", dump, *OBJECTS, "--node", "worker1", *way, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    bounds: dict[str, tuple[float, float]] = {}
    for each in found["outcomes"]:
        if each["outcome"] in {"endpoint", "unanswered"}:
            lower, upper = bounds.get(each["address"], (0.0, 0.0))
            bounds[each["address"]] = lower + each["lower"], min(1.0, upper + each["upper"])
    return bounds, found["assumptions"]


#: Those of other programs that do something of their own each; the soak takes all.
MEASURED: Final = ("calico", "kube-router")
EVERY: Final = tuple(sorted(each.stem for each in NOISE.glob("*.txt")))
EVERY_NFT: Final = tuple(sorted(f"nftables/{x.stem}" for x in NOISE.glob("nftables/*.txt")))


@pytest.mark.alike(1)
@pytest.mark.parametrize("name", EVERY if PROFILE == "soak" else MEASURED)
def test_flows_end_beside_the_rules_of_others_as_all_tables_say(name: str) -> None:
    """The rules are restored, their sets made first, and flows counted where they land."""
    dump = str(NOISE / f"{name}.txt")
    given = ("--node", "worker1", "--service", "default/app", "--flows", str(FLOWS))
    _, found, err = lab_run(dump, *OBJECTS, *given, "--from", ",".join(SOURCES))
    assert {each["source"] for each in found["measurements"]} == {*SOURCES}, err
    for measured in found["measurements"]:
        bounds, _ = ends(dump, measured["source"])
        assert measured["duplicates"] == 0
        for each in measured["endpoints"]:
            lower, upper = bounds.get(each["address"], (0.0, 0.0))
            count = each["landed"]
            assert binom.cdf(count, FLOWS, lower) > RATE, (measured["source"], each, lower)
            assert binom.sf(count - 1, FLOWS, upper) > RATE, (measured["source"], each, upper)


#: Nodes whose rules drop answers: to pods, by the dispatch of devices; to the node, by a policy.
ANSWERS_LOST: Final = frozenset({"calico", "ufw"})
VERIFIED: Final = ("calico", "calico-profiles", "csf", "docker", "libvirt", "ufw")


@pytest.mark.alike(1)
@pytest.mark.parametrize("name", [*EVERY, *EVERY_NFT] if PROFILE == "soak" else VERIFIED)
def test_every_route_beside_the_rules_of_others_agrees(name: str) -> None:
    """From each source, and from endpoints to their own Service, through policies and devices."""
    given = ("--node", "worker1", "--resolution", "20%", "--format", "json")
    some = () if PROFILE == "soak" else ("--service", "default/app")
    done = kubeodds("lab", "verify", str(NOISE / f"{name}.txt"), *OBJECTS, *given, *some)
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert found["measurements"]
    lost = any(
        endpoint["unanswered"]["upper"]["value"] and endpoint["landed"] > endpoint["answered"]
        for each in found["measurements"]
        for endpoint in each["endpoints"]
    )
    assert lost is (name in ANSWERS_LOST)


@pytest.mark.parametrize("objects", [(), OBJECTS], ids=["dump", "objects"])
def test_pods_of_a_node_that_nobody_named_are_in_the_network_of_the_rules(
    objects: tuple[str, ...],
) -> None:
    """flanneld's rules have the node's own network; the objects say which node has it."""
    given = ("--service", "default/app", "--resolution", "30%", "--format", "json")
    done = kubeodds("lab", "verify", str(NOISE / "flannel.txt"), *objects, *given)
    assert done.returncode == 0, done.stderr
    left_out = json.loads(done.stdout)["left_out"]
    reason = "pods in 10.244.1.0/24 are worker1's, which may not be this dump's node; pass --node"
    assert [each["reason"] for each in left_out] == ([reason] if objects else [])


@pytest.mark.parametrize("backend", ["legacy", "nft"])
def test_the_policy_that_drops_flows_has_counted_them(backend: str) -> None:
    given = ("--node", "worker1", "--service", "default/app", "--flows", "300", "--from", "pod")
    dump = str(NOISE / "docker.txt")
    status, found, _ = lab_run(dump, *OBJECTS, *given, "--backend", backend)
    assert status == 0
    ended = [each["ended_by"] for each in found["measurements"]]
    assert ended == [[{"packets": 300, "rule": "-P FORWARD DROP"}]]


@pytest.mark.deep
def test_no_cluster_ip_is_an_address_of_the_lab_s_node() -> None:
    told = BY_NAME["cluster-ip"].sentences["not-local"]
    assert agreed(str(NOISE / "portmap.txt")) == [told]
    run = kubeodds("lab", "run", str(NOISE / "portmap.txt"), *OBJECTS, *APP)
    assert f"Assumed: {told}." in run.stdout.splitlines()


def test_the_reverse_path_check_passes_flows_of_the_lab(tmp_path: Path) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text((NOISE / "base.txt").read_text() + CHECK)
    told = BY_NAME["reverse-path"].sentences["pass"]
    assert agreed(str(dump), "--node", "worker1") == [told]


@pytest.mark.parametrize("name", ["portmap", "nftables/portmap", "nftables/portmap-1.8"])
def test_a_host_port_leads_to_its_pod(name: str) -> None:
    given = (str(NOISE / f"{name}.txt"), *OBJECTS, "--node", "worker1", "--service", "hostPort 80")
    status, found, _ = lab_run(*given, "--flows", "500", "--from", "external,node,pod")
    assert status == 0
    assert found["agrees"]
    assert {each["source"] for each in found["measurements"]} == {"external", "node", "pod"}
    landed = [e["landed"] for each in found["measurements"] for e in each["endpoints"]]
    assert landed == [500] * 3


@pytest.mark.deep
def test_a_host_port_that_takes_the_flows_of_a_service_does_so_in_the_kernel() -> None:
    """CVE-2025-67499; what the node sends is left alone."""
    dump = str(NOISE / "nftables/portmap-1.8.txt")
    given = ("--node", "worker1", "--service", "default/app", "--from", "pod,external,node")
    status, found, _ = lab_run(dump, *OBJECTS, *given, "--flows", "500")
    assert status == 0
    assert found["agrees"]
    ends = {m["source"]: {e["address"] for e in m["endpoints"]} for m in found["measurements"]}
    of_service = {"10.244.0.7", "10.244.1.9"}
    assert ends == {"pod": {"10.244.1.50"}, "external": {"10.244.1.50"}, "node": of_service}


#: Rules that ask for devices of pods: what comes from them is refused, or all else.
DEVICES: Final = """*raw
:PREROUTING ACCEPT [0:0]
{}
COMMIT
"""


@pytest.mark.parametrize("device", ["cali+", "cni0"])
@pytest.mark.parametrize(("negated", "reached"), [("", "external"), ("! ", "pod")])
def test_devices_of_pods_have_the_names_that_rules_know(
    tmp_path: Path, device: str, negated: str, reached: str
) -> None:
    dump = tmp_path / "dump.txt"
    rule = f"-A PREROUTING {negated}-i {device} -p tcp -m tcp --dport 80 -j DROP"
    dump.write_text(DEVICES.format(rule) + (NOISE / "base.txt").read_text())
    given = (*OBJECTS, "--node", "worker1", "--service", "default/app", "--flows", "500")
    status, found, _ = lab_run(str(dump), *given, "--from", reached)
    assert status == 0
    assert found["agrees"]
    assert sum(e["landed"] for each in found["measurements"] for e in each["endpoints"]) == 500
    assert [d["message"] for d in found["diagnostics"] if d["code"] == "assumed"] == [PODS, PORTS]


@pytest.mark.deep
@pytest.mark.parametrize(("port", "hidden"), [(80, True), (81, False)])
def test_sets_are_made_before_the_rules_that_ask_for_them(
    tmp_path: Path, port: int, hidden: bool
) -> None:
    """The node's flows are told by the set, and pass a list of sets that nobody told of."""
    dump, sets = tmp_path / "dump.txt", tmp_path / "sets"
    rules = (
        "-A PREROUTING -m set --match-set lists dst,dst -j NOTRACK\n"
        "-A PREROUTING -p udp -m set --match-set others src -j DROP"
    )
    dump.write_text(DEVICES.format(rules) + (NOISE / "base.txt").read_text())
    sets.write_text(
        "create web hash:net,port family inet\n"
        f"add web 10.96.0.0/16,tcp:{port}\nadd web 10.96.0.0/24,tcp:80 nomatch\n"
        "create lists list:set size 8\nadd lists web\n"
    )
    given = (str(dump), *OBJECTS, "--node", "worker1", "--ipsets", str(sets), *APP)
    done = kubeodds("lab", "run", *given, "--flows", "200", "--from", "pod", "--format", "json")
    assert done.returncode == 0, done.stderr
    if hidden:
        found = json.loads(done.stdout)["measurements"]
        assert [(m["passed"], m["flows"]) for m in found] == [(200, 200)] * len(found)
        assert found
    else:
        landed = [
            e["landed"] for m in json.loads(done.stdout)["measurements"] for e in m["endpoints"]
        ]
        assert sum(landed) == 2 * 200


def test_a_route_from_an_endpoint_s_own_address_is_named(tmp_path: Path) -> None:
    """No client can have that address; the flows of the endpoint to itself are measured."""
    dump = tmp_path / "dump.txt"
    row = "-A FORWARD -s 10.244.1.9/32 -m conntrack --ctstate NEW -j DROP\n-A FORWARD"
    dump.write_text((NOISE / "base.txt").read_text().replace("-A FORWARD", row, 1))
    given = ("--node", "worker1", "--service", "default/app", "--resolution", "20%")
    done = kubeodds("lab", "verify", str(dump), *OBJECTS, *given, "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [(each["source"], each["reason"]) for each in found["left_out"]] == [
        ("pod", WHY_NOBODY.format("10.244.1.9/32"))
    ]
    assert "hairpin" in {each["source"] for each in found["measurements"]}


def test_what_flows_were_first_sent_to_counts_after_dnat(tmp_path: Path) -> None:
    dump = tmp_path / "dump.txt"
    asked = "-A FORWARD -p tcp -m conntrack --ctstate NEW --ctorigdst 10.96.18.52"
    half = "-m statistic --mode random --probability 0.50000000000 -j DROP"
    rows = f"{asked} --ctorigdstport 80 {half}\n{asked} --ctorigdstport 8080 -j DROP\n-A FORWARD"
    dump.write_text((NOISE / "base.txt").read_text().replace("-A FORWARD", rows, 1))
    given = ("--node", "worker1", "--service", "default/app", "--resolution", "20%")
    done = kubeodds("lab", "verify", str(dump), *OBJECTS, *given, "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    for each in found["measurements"]:
        bounds = [e["predicted"][end]["value"] for e in each["endpoints"] for end in END]
        share = 0.5 if each["source"] == "node" else 0.25
        assert each["source"] == "hairpin" or bounds == [share] * 4


MARKS: Final = "-j MARK --set-xmark 0x7/0xff"


@pytest.mark.parametrize(
    ("table", "row", "source", "loses"),
    [
        # The kernel refuses some of what the node sends: each of these is sent once.
        ("filter", "-A OUTPUT -d 10.244.0.7/32 -j DROP", "node", 0.5),
        # How such flows end is not predicted, and no answer to them comes back.
        ("raw", f"-A PREROUTING {MARKS}\n-A PREROUTING -p tcp -j CT --zone mark", "node", None),
        ("mangle", "-A PREROUTING -p tcp -m tcpmss ! --mss 536:65535 -j DROP", "pod", 0.0),
        ("raw", "-A PREROUTING -i cali+ -j CT --zone-orig 5", "pod", 0.0),
    ],
)
def test_flows_end_beside_one_rule_as_predicted(
    tmp_path: Path, table: str, row: str, source: str, loses: float | None
) -> None:
    lines = (NOISE / "base.txt").read_text().splitlines()
    if f"*{table}" not in lines:
        lines += [f"*{table}", ":PREROUTING ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", "COMMIT"]
    at = lines.index(f"*{table}")
    at = next(n for n, line in enumerate(lines) if n > at and not line.startswith(":"))
    dump = tmp_path / "dump.txt"
    dump.write_text("\n".join([*lines[:at], *row.split("\n"), *lines[at:], ""]))
    way = ("--service", "default/app", "--flows", "400", "--from", source, "--node", "worker1")
    status, found, _ = lab_run(str(dump), *OBJECTS, *way)
    assert (status, found["agrees"]) == (0, True)
    (measured,) = found["measurements"]
    answered = sum(each["answered"] for each in measured["endpoints"])
    if loses is None:
        assert answered == 0
    else:
        assert (answered == 400) is (loses == 0.0)
    if loses == 0.5:
        assert answered > 0
        assert measured["rejected"] + measured["unaccounted"] == 400 - answered
