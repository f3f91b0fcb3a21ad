from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.lab.running import FIXTURES, lab_run, python

pytestmark = pytest.mark.lab

MODES = {
    "1.36.2-iptables-legacy": "iptables-legacy-save.txt.gz",
    "1.36.2-nftables": "nft-list-ruleset.txt",
}


@pytest.mark.parametrize("mode", MODES)
def test_affinity_holds_from_the_node_itself(captures: Path, mode: str) -> None:
    folder = captures / mode / "features"
    words = [str(folder / MODES[mode]), "--objects", str(folder / "objects.json.gz")]
    words += ["--from", "node", "--flows", "500", "--service", "feat/affinity"]
    node = json.loads((folder / "run.json").read_text())["node"]
    status, found, _ = lab_run(*words, "--node", node)
    assert (status, found["agrees"]) == (0, True)
    assert found["measurements"]
    for each in found["measurements"]:
        assert (each["repeated"], each["strayed"], each["unaccounted"]) == (500, 0, 0)
        assert each["counter_difference"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_affinity_holds_from_an_endpoint_to_its_own_service(captures: Path, mode: str) -> None:
    """It is a single client: for each draw the node has to forget it."""
    folder = captures / mode / "features"
    words = [str(folder / MODES[mode]), "--objects", str(folder / "objects.json.gz")]
    words += ["--from", "hairpin", "--flows", "600", "--service", "feat/affinity-600"]
    node = json.loads((folder / "run.json").read_text())["node"]
    status, found, _ = lab_run(*words, "--node", node)
    assert (status, found["agrees"], found["left_out"]) == (0, True, [])
    for each in found["measurements"]:
        arrived = [endpoint["landed"] for endpoint in each["endpoints"]]
        assert (each["repeated"], each["strayed"]) == (each["flows"], 0)
        assert sum(arrived) == each["flows"]
        assert min(arrived) > 0
        assert each["counter_difference"] == 0


#: An endpoint's flows, of which as many as fit are counted together; late ones each by itself.
TURNS = """
import sys
from netns_lab import affinity, cli, count
counted = []
usual = affinity.AffineRun._count_turns
def count_turns(self, sent, packets):
    counted.append(len(sent))
    usual(self, sent, packets)
affinity.AffineRun._count_turns = count_turns
if sys.argv[1] == "late":
    count.Arrivals.waiting = lambda self: 0
status = cli.main(sys.argv[2:])
print(max(counted), sum(counted), file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.parametrize(("way", "together"), [("here", 32), ("late", 1)])
def test_flows_are_counted_together_only_when_they_have_come(way: str, together: int) -> None:
    folder = FIXTURES.parent / "check" / "1.36.2-iptables-legacy" / "dual-stack"
    words = [str(folder / "iptables-legacy-save.txt"), "--objects", str(folder / "objects.json")]
    words += ["--node", "node-a1", "--service", "ds/affinity", "--from", "hairpin"]
    done = python("-c", TURNS, way, "run", *words, "--flows", "200", "-o", "json")
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)["measurements"]
    assert all(each["repeated"] == each["flows"] and not each["strayed"] for each in measured)
    most, turns = map(int, done.stderr.split()[-2:])
    assert (most, turns) == (together, sum(each["flows"] for each in measured))


def test_clients_are_forgotten_where_json_does_not_say_which_sets_rules_fill(
    captures: Path,
) -> None:
    """nft up to 1.0.6 leaves ``dynamic`` out of JSON: each turn of clients must draw anew."""
    folder = captures / "1.36.2-nftables" / "features"
    words = [str(folder / "nft-list-ruleset.json.gz"), "--objects", str(folder / "objects.json.gz")]
    words += ["--from", "pod", "--flows", "5000", "--service", "feat/affinity-600"]
    node = json.loads((folder / "run.json").read_text())["node"]
    status, found, _ = lab_run(*words, "--node", node)
    assert (status, found["agrees"]) == (0, True)
    assert sum(each["repeated"] for each in found["measurements"]) >= 5000


#: Rules of the filter table that end the first packets of flows: all, or each by a draw of its own.
ENDING = {
    "all": ":FORWARD DROP [0:0]\n",
    "half": (
        ":FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m conntrack --ctstate NEW -m statistic "
        "--mode random --probability 0.50000000000 -j DROP\n"
    ),
}


def test_second_flows_that_the_node_refuses_to_send_are_no_first_ones(tmp_path: Path) -> None:
    folder = FIXTURES.parent / "check" / "1.36.2-iptables-legacy" / "dual-stack"
    text = (folder / "iptables-legacy-save.txt").read_text()
    first = text.index("-A ")
    row = (
        "-A OUTPUT -p tcp -m conntrack --ctstate NEW -j REJECT --reject-with icmp-port-unreachable"
    )
    path = tmp_path / "dump.txt"
    path.write_text(f"{text[:first]}{row}\n{text[first:]}")
    words = [str(path), "--objects", str(folder / "objects.json"), "--node", "node-a1"]
    words += ["--service", "ds/affinity", "--from", "node", "--flows", "60"]
    status, found, _ = lab_run(*words)
    assert (status, found["agrees"]) == (0, True)
    assert found["measurements"]
    for each in found["measurements"]:
        assert (each["rejected"], each["unaccounted"], each["repeated_ended"]) == (60, 0, 60)
        assert sum(by["packets"] for by in each["ended_by"]) == 120


@pytest.mark.parametrize("ends", ENDING)
def test_second_flows_that_rules_end_are_no_difference(ends: str, tmp_path: Path) -> None:
    folder = FIXTURES.parent / "check" / "1.36.2-iptables-legacy" / "dual-stack"
    text = (folder / "iptables-legacy-save.txt").read_text()
    head, *rules = ENDING[ends].splitlines(keepends=True)
    old = ":FORWARD ACCEPT [0:0]\n"
    before, there, behind = text.partition(old)
    assert there
    first = behind.index("-A ")
    path = tmp_path / "dump.txt"
    path.write_text(before + head + behind[:first] + "".join(rules) + behind[first:])
    words = [str(path), "--objects", str(folder / "objects.json"), "--node", "node-a1"]
    words += ["--service", "ds/affinity", "--from", "pod,external,hairpin", "--flows", "100"]
    status, found, _ = lab_run(*words)
    assert (status, found["agrees"]) == (0, True)
    for each in found["measurements"]:
        assert each["repeated"] + each["repeated_ended"] == each["flows"]
        assert (each["strayed"], each["counter_difference"]) == (0, 0)
    ended = [each for each in found["measurements"] if each["repeated_ended"]]
    assert {each["source"] for each in ended} >= {"pod", "hairpin"}
    for each in ended:
        arrived = sum(to["landed"] for to in each["endpoints"])
        packets = sum(by["packets"] for by in each["ended_by"])
        assert packets == each["flows"] - arrived + each["repeated_ended"]
