"""The commands that `loss` ends with, run on a real kernel in a namespace of their own."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.support.lab.running import FIXTURES, NFT, in_lab, kubeodds

pytestmark = pytest.mark.lab

PLACES = "10.244.0.0/24=x,10.244.1.0/24=y,10.1.0.1/32=x,10.1.0.2/32=y,192.168.0.0/24=y"
DUMPS = {
    "legacy": FIXTURES / "1.36.2-iptables-legacy/two-node@worker1/iptables-legacy-save.txt",
    "nft": FIXTURES / "1.36.2-iptables-nft/two-node/iptables-nft-save.txt",
    "1.30": NFT / "1.30.3-nftables/seed-dns/nft-list-ruleset.txt",
    "1.36": NFT / "1.36.2-nftables/seed-dns/nft-list-ruleset.txt",
}
#: What loads a dump, and what takes it again.
_PROGRAMS = {
    "legacy": ("iptables-legacy-restore", "iptables-legacy-save"),
    "nft": ("iptables-nft-restore", "iptables-nft-save"),
    "1.30": ("nft -f -", "nft list ruleset"),
    "1.36": ("nft -f -", "nft list ruleset"),
}
_RUN = """
import subprocess, sys
from netns_lab.namespace import leave_host
leave_host()
load, take, dump, *commands = sys.argv[1:]
subprocess.run(load, shell=True, check=True, input=open(dump).read(), text=True)
for command in commands:
    subprocess.run(command, shell=True, check=True)
taken = subprocess.run(take, shell=True, check=True, capture_output=True, text=True)
sys.stdout.write(taken.stdout)
"""


def states(dump: Path | str, *more: str) -> dict[str, str]:
    asked = "--node-of", PLACES, "--dead-node", "x", "-o", "json"
    done = kubeodds("loss", str(dump), *asked, *more)
    assert done.returncode == 0, done.stderr
    return {f"{e['name']}/{e['protocol']}": e["state"] for e in json.loads(done.stdout)["services"]}


@pytest.mark.alike(1)
@pytest.mark.parametrize("kind", DUMPS)
def test_what_takes_dead_endpoints_out_is_taken_by_the_kernel(kind: str, tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    text = DUMPS[kind].read_text(encoding="utf-8")
    # Rules of the filter table ask for objects of nfacct, which a new namespace has not.
    head = text[: text.index("\n") + 1] if "*nat\n" in text else ""
    dump.write_text(head + text[max(0, text.find("*nat\n")) :], encoding="utf-8")
    printed = kubeodds("loss", str(dump), "--node-of", PLACES, "--dead-node", "x").stdout
    (proposed,) = [row for row in printed.splitlines() if row.startswith("kubeodds repair ")]
    made = kubeodds(*shlex.split(proposed)[1:], "--max-age", "999999999")
    assert made.returncode == 0, made.stderr
    patch = tmp_path / "patch"
    patch.write_text(made.stdout, encoding="utf-8")
    before = states(dump)
    hurt = {name for name, state in before.items() if state == "degraded"}
    assert len(hurt) >= 3
    load, take = _PROGRAMS[kind]
    apply = f"{load.replace('-restore', '-restore --noflush')} < {patch}"
    taken = tmp_path / "taken"
    taken.write_text(in_lab(_RUN, load, take, str(dump), apply), encoding="utf-8")
    assert states(taken) == before | dict.fromkeys(hurt, "untouched")


_CONNTRACK = """
import subprocess, sys
from netns_lab.namespace import leave_host
leave_host()
def run(words):
    return subprocess.run(words, shell=True, check=True, capture_output=True, text=True).stdout
ENDS = (1, "10.0.0.1", 53), (2, "10.0.0.2", 53), (3, "10.0.0.1", 53), (4, "10.0.0.1", 54)
for port, end, at in ENDS:
    run(f"conntrack -I -p udp -s 10.9.9.9 -d 10.96.0.10 --sport {port} --dport 53 "
        f"--reply-src {end} --reply-dst 10.9.9.9 --reply-port-src {at} --reply-port-dst {port} "
        f"--dst-nat {end}:{at} -t 60")
run(sys.argv[1])
sys.stdout.write(run("conntrack -L"))
"""


def test_flows_that_are_pinned_to_the_dead_are_freed_and_no_others() -> None:
    folder = FIXTURES / "1.36.2-iptables-legacy/two-node@worker1"
    dump = folder / "iptables-legacy-save.txt"
    printed = kubeodds("loss", str(dump), "--dead", "10.244.0.3").stdout
    (line,) = [each for each in printed.splitlines() if each.startswith("conntrack -D")]
    assert line == "conntrack -D -p udp --reply-src 10.244.0.3 --reply-port-src 53"
    left = in_lab(_CONNTRACK, line.replace("10.244.0.3", "10.0.0.1"))
    assert "sport=2 " in left
    assert "sport=4 " in left  # another port of the dead pod
    assert "sport=1 " not in left
    assert "sport=3 " not in left
