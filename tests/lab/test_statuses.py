"""Each exit status of the verbs of the lab, and the one table that tells of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from netns_lab.arguments import STATUSES
from tests.support.lab.running import FIXTURES, ROOT, SWAPPED, kubeodds, python

pytestmark = pytest.mark.lab

EXAMPLE = [str(ROOT / "examples/dump.txt"), "--objects", str(ROOT / "examples/objects.json")]
EXAMPLE += ["--node", "worker1"]
APP = [*EXAMPLE, "--service", "default/app"]
DUAL = FIXTURES.parent / "check/1.36.2-iptables-legacy/dual-stack"
#: One of the Services has the endpoint of a node, which sends nothing to itself as a pod does.
OWN = [str(DUAL / "iptables-legacy-save.txt"), "--objects", str(DUAL / "objects.json")]
OWN += ["--node", "node-a1", "--service", "default/kubernetes,ds/ep-3", "--from", "pod,hairpin"]
OWN_DEAD = [*OWN, "--dead-node", "node-b1"]
#: A program for which there is no model.
UNKNOWN = ["--client", "true {vip}", "--runs", "2"]


def test_the_documentation_and_the_help_have_the_same_table() -> None:
    text = (ROOT / "docs/reference.md").read_text()
    _, _, section = text.partition("as their help says:\n")
    rows = re.findall(
        r"^\| (\d+) \| (.+) \|$", section.partition("\nWhat was not")[0], re.MULTILINE
    )
    assert [(s, m.replace("`", "")) for s, m in rows] == list(STATUSES)
    for verb in ("run", "verify", "clients", "repair"):
        shown = kubeodds("lab", verb, "--help").stdout.partition("exit status:\n")[2]
        lines = [each.split(maxsplit=1) for each in shown.partition("\n\n")[0].splitlines()]
        assert [tuple(each) for each in lines] == list(STATUSES)
    judge = kubeodds("lab", "judge", "--help").stdout
    assert "--strict" not in judge.partition("exit status:\n")[2]


def _cut(folder: Path) -> list[str]:
    """Return what asks about a capture that ends in the middle of a packet."""
    path = folder / "cut.pcap"
    packets = [
        Ether() / IP(src="10.244.1.7", dst="10.96.18.52") / TCP(sport=4000 + at, dport=80)
        for at in range(20)
    ]
    wrpcap(str(path), packets)
    path.write_bytes(path.read_bytes()[:-10])
    return [*EXAMPLE, "--pcap", str(path)]


def _unknown(folder: Path) -> list[str]:
    """Return what asks about a run in which rules come that do not know the Service."""
    rows = (ROOT / "examples/dump.txt").read_text().splitlines()
    gone = [r for r in rows if "default/app" not in r and "NZGXMBVUFMQ6OBBQ" not in r]
    other = folder / "other.txt"
    other.write_text("\n".join(gone) + "\n")
    return [*APP, "--for", "1.2s", "--replace-rules", f"{other}@0.5s", "--connections", "1"]


@pytest.mark.alike(1)
@pytest.mark.parametrize(
    ("verb", "words", "beside_the_verdict", "on_stderr"),
    [
        ("run", lambda _: [*OWN, "--flows", "300"], "; 1 route not measured", "not replayed"),
        ("run", _unknown, r"; [\d,]+ flows not judged", "not judged"),
        ("run", _cut, "", "read as far as it goes"),
        ("verify", lambda _: [*OWN, "--resolution", "40%"], "", "1 of 4 routes were not"),
        (
            "repair",
            lambda _: [*OWN_DEAD, "--flows", "300"],
            "; 1 route not m",
            "not replayed",
        ),
        ("clients", lambda _: [*APP, *UNKNOWN], "; 1 target not predicted", "is not judged"),
    ],
    ids=["a route", "a phase", "a capture", "a route of all", "a repair", "a program"],
)
def test_what_was_not_judged_is_named_and_is_3_if_strict(
    verb: str, words: Any, beside_the_verdict: str, on_stderr: str, tmp_path: Path
) -> None:
    asked = words(tmp_path)
    done = kubeodds("lab", verb, *asked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert on_stderr in done.stderr
    verdict = done.stdout.splitlines()[-1]
    said = r"Verdict: (agrees|the repair works)"
    assert re.match(rf"{said}.*{beside_the_verdict}.*false-alarm rate 1e-06 for", verdict), verdict
    strict = kubeodds("lab", verb, *asked, "--strict")
    assert strict.returncode == 3, strict.stdout + strict.stderr
    assert on_stderr in strict.stderr


@pytest.mark.deep
def test_what_is_whole_is_0_also_if_strict() -> None:
    done = kubeodds("lab", "run", *APP, "--flows", "300", "--strict")
    assert done.returncode == 0, done.stderr
    assert "not measured" not in done.stdout


@pytest.mark.deep
def test_what_disagrees_is_1_in_each_way_to_measure(tmp_path: Path) -> None:
    program = tmp_path / "swapped.py"
    program.write_text(SWAPPED)
    dead = [*APP, "--dead-node", "master"]
    capture = [*EXAMPLE, "--pcap", str(tmp_path / "flows.pcap")]
    packets = [
        Ether() / IP(src="10.244.1.7", dst="10.96.18.52") / TCP(sport=2000 + at, dport=80)
        for at in range(9000)
    ]
    wrpcap(capture[-1], packets)
    for words in (
        ["run", *dead],
        ["run", *APP, "--for", "1s", "--rate", "9000", "--connections", "0"],
        ["run", *capture],
        ["verify", *dead],
        ["repair", *dead],
        # It succeeds also where it would be lost.
        ["clients", *dead, "--client", "true {vip}", "--like", "tcp", "--runs", "40"],
    ):
        done = python(str(program), *words)
        assert done.returncode == 1, (words, done.stderr)
        assert re.match(
            r"Verdict: DISAGREES \(exact binomial tests.*; false-alarm rate 1e-06 for",
            done.stdout.splitlines()[-1],
        )


@pytest.mark.parametrize(
    ("verb", "words", "judged"),
    [
        ("repair", ["--flows", "300"], lambda found: found["routes"][0]["synced"]),
        (
            "clients",
            ["--client", "true {vip}", "--like", "tcp", "--runs", "2"],
            lambda found: found["trials"][0],
        ),
    ],
)
def test_json_has_the_rate_of_the_run_and_of_each_part(
    verb: str, words: list[str], judged: Any
) -> None:
    done = kubeodds("lab", verb, *APP, "--dead-node", "master", *words, "-o", "json")
    found = json.loads(done.stdout)
    assert (found["agrees"], found["rate"], found["left_out"]) == (True, 1e-06, [])
    parts = 3 if verb == "repair" else 2
    assert judged(found)["false_alarm_rate"] == pytest.approx(1e-06 / parts)


@pytest.mark.deep
def test_what_cannot_be_asked_is_2_and_prints_nothing(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.txt")
    # Nothing that could be replayed.
    by_nodes = [*EXAMPLE, "--rules", f"master={EXAMPLE[0]}", "--service", "default/kubernetes"]
    by_nodes += ["--from", "hairpin"]
    for words in (
        ["run", missing],
        ["run", *APP, "--nonsense"],
        ["run", *APP, "--for", "2s", "--kill", "worker1@1s"],
        ["run", *by_nodes],
        ["verify", *EXAMPLE, "--service", "nobody"],
        ["clients", *EXAMPLE, "--timeout", "1s"],
        ["repair", *APP],
        ["judge", missing],
        ["shell", missing],
    ):
        done = kubeodds("lab", *words)
        assert (done.returncode, done.stdout) == (2, ""), (words, done.stderr)
        assert done.stderr


@pytest.mark.deep
def test_a_measurement_of_nothing_does_not_agree(tmp_path: Path) -> None:
    done = kubeodds("lab", "run", *APP, "--flows", "300", "-o", "json")
    found = json.loads(done.stdout)
    saved = tmp_path / "measured.json"
    saved.write_text(json.dumps(found))
    assert kubeodds("lab", "judge", str(saved)).returncode == 0
    saved.write_text(json.dumps({**found, "measurements": []}))
    assert kubeodds("lab", "judge", str(saved)).returncode in (1, 2)
