"""Tasks of somebody who was woken: lines as typed, and what the first screen of 80x24 says."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess  # noqa: TID251  # on a terminal, as a person has it
import sys
import termios
from pathlib import Path

import pytest

from tests.support.commands import CAPTURE
from tests.support.lab.running import environment

pytest.importorskip("rich")

COLUMNS, LINES = 80, 24
_ANSI = re.compile(r"\x1b\[\??[0-9;]*[A-Za-z]")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the dump is, and perhaps an old file of objects."""
    shutil.copy(CAPTURE / "iptables-legacy-save.txt", tmp_path / "dump.txt")
    shutil.copy(CAPTURE / "objects.json", tmp_path)
    return tmp_path


def first_screen(line: str, folder: Path) -> list[str]:
    """Return the lines that a terminal shows of a command, before it would scroll."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    program = folder / "kubeodds"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m analyzer "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    given = {k: v for k, v in environment().items() if k not in {"COLUMNS", "NO_COLOR"}}
    given |= {"PATH": f"{folder}:{os.environ['PATH']}", "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(  # noqa: S603  # our own program
        ["/bin/sh", "-c", line], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=given
    ):
        os.close(theirs)
        written = bytearray()
        try:
            while piece := os.read(ours, 1 << 16):
                written += piece
        except OSError:  # Linux says so where the last writer has gone
            pass
    os.close(ours)
    text = _ANSI.sub("", written.decode("utf-8")).replace("\r\n", "\n")
    # What a bar of progress has shown, which a slow machine draws often, is written over.
    told = [each.rpartition("\r")[2] for each in text.rstrip("\n").split("\n")]
    wrapped = [
        each[at : at + COLUMNS] for each in told for at in range(0, max(1, len(each)), COLUMNS)
    ]
    return [each.rstrip() for each in wrapped[:LINES]]


def test_the_master_is_down_and_there_is_an_old_file_of_objects(folder: Path) -> None:
    shown = first_screen("kubeodds loss dump.txt --objects objects.json --dead-node master", folder)
    # Who is hurt, how badly, what to do.
    assert shown[:5] == [
        "Dead: node master (3 endpoint addresses)",
        "5 ServicePorts: 4 partial loss, 1 total loss.",
        "Total loss: default/kubernetes:https.",
        "Partial loss: default/app, kube-system/kube-dns (3 ports).",
        "Worst: default/kubernetes:https loses 100.0% of new flows, on every route.",
    ]
    assert any(re.match(r"kube-system/kube-dns:dns +udp +1 of 2 +50.0%", line) for line in shown)
    assert "1. No API server left, so nothing heals by itself: kubectl get --raw /readyz" in shown
    assert any(line.startswith("kubeodds repair ") for line in shown)
    assert any("conntrack -D -p udp --reply-src 10.244.0.3 --" in line for line in shown)
    assert any(line.startswith("4. Check again: iptables-legacy-save | kube") for line in shown)


def test_the_master_is_down_and_nobody_has_objects(folder: Path) -> None:
    shown = first_screen(
        "kubeodds loss --dead-node master --node-of 10.244.0.0/24=master "
        "--node-of 10.244.1.0/24=worker1 dump.txt",
        folder,
    )
    assert "Node unknown for 1 endpoint: losses are ranges. Pass --objects or --node-of." in shown
    assert "5 ServicePorts: 4 partial loss, 1 unknown." in shown
    assert any(re.match(r"default/app +tcp +1 of 2 +50.0%  partial loss", line) for line in shown)
    assert any(line.startswith("kubeodds repair ") for line in shown)
    assert any(line.startswith("conntrack -D -p udp --reply-src ") for line in shown)


def test_is_my_dns_at_risk(folder: Path) -> None:
    shown = first_screen("kubeodds dump.txt --objects objects.json --service kube-dns", folder)
    assert "Nothing marked dead." in shown
    for node in ("master", "worker1"):
        line = rf"--dead-node +{node} +1 address +50.0%  kube-system/kube-dns"
        assert any(re.match(line, each) for each in shown), shown
    assert len(shown) < LINES


def test_which_service_is_worst(folder: Path) -> None:
    shown = first_screen(
        "kubeodds loss dump.txt --objects objects.json --dead-node master --summary -q", folder
    )
    assert "Worst: default/kubernetes:https loses 100.0% of new flows, on every route." in shown
    table = shown[shown.index("") + 2 :]
    assert [line.split()[0] for line in table] == [
        "default/kubernetes:https",
        "default/app",
        "kube-system/kube-dns:dns",
        "kube-system/kube-dns:dns-tcp",
        "kube-system/kube-dns:metrics",
    ]


def test_why_does_curl_fail_half_of_the_time(folder: Path) -> None:
    asked = "--objects objects.json --dead-node master"
    shown = first_screen(f"kubeodds trace dump.txt --from pod --to app:80 {asked}", folder)
    assert any(re.match(r" +50.0% +1/2 +10.244.0.7:8080 +master .* DEAD$", line) for line in shown)
    assert any(re.match(r" +50.0% +1/2 +10.244.1.9:8080 +worker1", line) for line in shown)
    shown = first_screen(f"kubeodds tree dump.txt app {asked}", folder)
    assert any(line.endswith("=> 10.244.0.7:8080 on master DEAD") for line in shown)
    assert any(line.startswith("└─ 1/2   50.0%") for line in shown)
    assert len(shown) < LINES


def with_zones(objects: Path) -> None:
    """Put each node of a file of objects in a zone of its own: a, b."""
    held = json.loads(objects.read_text(encoding="utf-8"))
    nodes = [each["metadata"] for each in held["items"] if each["kind"] == "Node"]
    for zone, node in zip("ab", nodes, strict=True):
        node.setdefault("labels", {})["topology.kubernetes.io/zone"] = zone
    objects.write_text(json.dumps(held), encoding="utf-8")


def test_what_does_zone_a_cost(folder: Path) -> None:
    with_zones(folder / "objects.json")
    shown = first_screen("kubeodds loss dump.txt --objects objects.json --dead-zone a", folder)
    assert shown[0] == "Dead: zone a (3 endpoint addresses)"
    assert "5 ServicePorts: 4 partial loss, 1 total loss." in shown
    assert "Total loss: default/kubernetes:https." in shown
    assert any(re.match(r"default/app +tcp +1 of 2 +50.0%  partial loss", line) for line in shown)
    # Beside what another zone would cost.
    shown = first_screen("kubeodds whatif dump.txt --objects objects.json --only zone", folder)
    assert any(re.match(r"zone a +100.0%  default/kubernetes:https +60.0%", e) for e in shown)
    assert any(re.match(r"zone b +50.0%  default/app +40.0%", line) for line in shown)
    assert len(shown) < LINES


def test_three_nodes_dumps_together(folder: Path) -> None:
    dump = (folder / "dump.txt").read_text(encoding="utf-8")
    # worker2 has not yet heard of the second endpoint of the app.
    chain = re.findall(r"-A (KUBE-SVC-\S+) .*default/app -> 10.244.1.9", dump)[0]
    stale = [
        line.replace("-m statistic --mode random --probability 0.50000000000 ", "")
        for line in dump.split("\n")
        if not (line.startswith(f"-A {chain} ") and "10.244.1.9" in line)
    ]
    for name, lines in (("worker1", dump), ("worker2", "\n".join(stale)), ("worker3", dump)):
        (folder / f"{name}.txt").write_text(lines, encoding="utf-8")
    shown = first_screen(
        "kubeodds loss worker1.txt worker2.txt worker3.txt --objects objects.json "
        "--dead 10.244.0.7",
        folder,
    )
    assert "Judged at 3 nodes: worker1, worker2, worker3." in shown
    worst = "Worst: default/app loses 100.0% of new flows, on every route, at worker2."
    assert worst in shown
    assert any(re.match(r"worker2 +1 +0 +0 .*100.0%  default/app$", line) for line in shown)
    assert any(re.match(r"worker1 and 1 more +0 +1 +0 .*50.0%  default/app$", e) for e in shown)


@pytest.mark.lab
def test_prove_it(folder: Path) -> None:
    shown = first_screen(
        "kubeodds lab run dump.txt --objects objects.json --node worker1 --dead-node master "
        "--service app",
        folder,
    )
    assert any(
        re.match(r"10.244.0.7:8080 +master DEAD +.*50.0% .* agrees$", line) for line in shown
    )
    assert any(line.startswith("Verdict: agrees") for line in shown)
    assert len(shown) < LINES
