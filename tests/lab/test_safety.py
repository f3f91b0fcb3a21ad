"""Whatever happens to a lab, the host that it was started on is as it was.

The "host" of these tests is made for each of them: a network namespace with a default route
through a device of its own, which counts each packet that anything sends by it, and PID and mount
namespaces, so that all processes and namespaces that it sees are those of the one run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.effort import PROFILE
from tests.support.lab.ordinary import ordinary_user, showing
from tests.support.lab.running import (
    FIXTURES,
    KUBEODDS,
    NFT_CASES,
    ROOT,
    case,
    environment,
    kubeodds,
)

pytestmark = pytest.mark.lab

GIVEN = case("1.36.2-iptables-legacy/seed-dns@worker1")
RUN = ["lab", "run", *GIVEN.given, "--dead-node", "master"]
_OF_NFT = NFT_CASES[-1]
RUN_NFT = ["lab", "run", *_OF_NFT.given, "--dead-node", _OF_NFT.victim]

#: Runs a command on a host of its own, and says what the host was like before and after.
HOST = """
import json, os, pathlib, signal, subprocess, sys, time

def namespaces():  # all that a process of this host is in
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(path.stat().st_ino)
        except OSError:  # the process has ended
            continue
    return found

def others():  # processes that run; this one is the parent of those that have ended
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_over = path.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if not is_over and int(path.name) != os.getpid():
                found.append(path.joinpath("cmdline").read_text().replace("\\0", " "))
        except OSError:  # the process has ended
            continue
    return found

def readable(path):
    try:
        return path.is_file() and path.read_text()
    except OSError:  # some can only be written
        return None

# Modules of the kernel that a run loads bring more of them.
SYSCTLS = [path for path in pathlib.Path("/proc/sys/net").rglob("*") if readable(path) is not None]

def sh(*words):
    return subprocess.run(words, capture_output=True, text=True).stdout

def state():
    tables = pathlib.Path("/proc/net/ip_tables_names")
    return {
        "devices": [
            {k: v for k, v in d.items() if k in ("ifname", "operstate", "flags", "address")}
            for d in json.loads(sh("ip", "-j", "link"))
        ],
        "sent": json.loads(sh("ip", "-j", "-s", "link", "show", "host0"))[0]["stats64"]["tx"],
        "routes": sh("ip", "route"),
        "rules": sh("nft", "list", "ruleset"),
        "tables": tables.read_text() if tables.exists() else "",
        "sysctls": {str(path): readable(path) for path in SYSCTLS},
        "named": sh("ip", "netns", "list"),
        "run": sorted(os.listdir("/run")),
        # Python's own find_library() leaves an empty file there, if it is killed.
        "tmp": sorted(n for n in os.listdir(os.environ["TMPDIR"]) if "kubeodds" in n),
        "held": "nsfs" in pathlib.Path("/proc/mounts").read_text(),
    }

# A /run of its own: programs leave locks there.
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
for scope in ("all", "default"):  # else IPv6 sends packets by itself
    pathlib.Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
for line in ("link add host0 type veth peer name peer0", "link set host0 up", "link set peer0 up",
             "link set lo up", "addr add 192.0.2.7/24 dev host0",
             "neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev host0",
             "route add default via 192.0.2.1"):
    subprocess.run(["ip", *line.split()], check=True)
# The kernel tells by and by that a device is up.
deadline = time.monotonic() + 10
while sh("ip", "-j", "link").count('"operstate":"UP"') < 2 and time.monotonic() < deadline:
    time.sleep(0.01)
before = state()
wait, command = float(sys.argv[1]), sys.argv[2:]
child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
if wait >= 0:
    try:
        child.wait(wait)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
said = child.communicate()[1]
mine = {os.stat("/proc/self/ns/net").st_ino}
deadline = time.monotonic() + 10
while (others() or not namespaces() <= mine) and time.monotonic() < deadline:
    time.sleep(0.01)
left = [*sorted(namespaces() - mine), *others()]
found = {"before": before, "after": state(), "status": child.returncode, "said": said, "left": left}
print(json.dumps(found))
"""


def on_a_host(command: list[str], *, kill_after: float = -1) -> dict[str, Any]:
    unshare = shutil.which("unshare") or "unshare"
    mine = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    own = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [unshare, *mine, *own, "--", sys.executable, "-c", HOST, str(kill_after), *command],
            capture_output=True, text=True, cwd=ROOT, env={**environment(), "TMPDIR": folder},
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.alike(1)
@pytest.mark.parametrize("run", [RUN, RUN_NFT], ids=["iptables", "nft"])
def test_a_run_leaves_the_host_untouched(run: list[str]) -> None:
    found = on_a_host([*KUBEODDS, *run, "--flows", "1000"])
    assert found["status"] == 0, found["said"]
    assert found["before"] == found["after"]
    assert found["after"]["sent"]["packets"] == 0
    assert found["left"] == []


@pytest.mark.deep
@pytest.mark.parametrize("wait", [0.2, 0.4, 0.6, 0.8, 1.0, 1.2])
def test_a_run_that_is_killed_at_any_moment_leaves_nothing_behind(wait: float) -> None:
    found = on_a_host([*KUBEODDS, *RUN, "--flows", "1000000"], kill_after=wait)
    assert found["status"] == -signal.SIGKILL
    assert found["before"] == found["after"]
    assert found["left"] == []


@pytest.mark.deep
@pytest.mark.parametrize("wait", [0.9, 1.6] if PROFILE != "quick" else [1.4])
def test_a_run_in_which_things_die_is_killed_and_leaves_nothing_behind(wait: float) -> None:
    happens = ["--dead", "10.1.0.1:flap=0.2s/0.2s", "--resync", "@0.3s,@0.5s,@0.7s"]
    asked = ["--service", "kube-dns:dns", "--for", "60s", *happens]
    run = ["lab", "run", *GIVEN.given, *asked]
    found = on_a_host([*KUBEODDS, *run], kill_after=wait)
    assert found["status"] == -signal.SIGKILL, found["said"]
    assert found["before"] == found["after"]
    assert found["left"] == []


@pytest.mark.deep
def test_clients_die_with_a_lab_that_is_killed() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1").given
    command = [*KUBEODDS, "lab", "clients", *given, "--dead-node", "master", "--runs", "500"]
    found = on_a_host([*command, "--service", "default/app"], kill_after=2.0)
    assert found["status"] == -signal.SIGKILL
    assert found["left"] == []


#: A shell that leaves programs behind, in the lab's namespaces and in its own.
SHELL = (
    *("lab", "shell", *GIVEN.given, "--", "sh", "-c"),
    "setsid sleep 600 & lab-in node setsid sleep 600 & sleep ",
)


@pytest.mark.parametrize(("sleeps", "kill_after"), [("0.2", -1), ("600", 1.5)])
def test_what_was_started_in_a_shell_ends_with_it(sleeps: str, kill_after: float) -> None:
    command = [*KUBEODDS, *SHELL[:-1], SHELL[-1] + sleeps]
    found = on_a_host(command, kill_after=kill_after)
    assert found["status"] == (0 if kill_after < 0 else -signal.SIGKILL), found["said"]
    assert found["before"] == found["after"]
    assert found["left"] == []


@pytest.mark.parametrize("after", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0])
def test_ctrl_c_ends_with_what_was_measured_or_one_line(after: float) -> None:
    process = subprocess.Popen(
        [*KUBEODDS, *RUN, "--flows", "50000000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment(),
    )  # fmt: skip
    own = Path("/proc/self/ns/net").stat().st_ino
    deadline = time.monotonic() + 20
    while Path(f"/proc/{process.pid}/ns/net").stat().st_ino == own:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(after)  # while it reads, imports, builds, replays
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    if out:
        assert "Verdict: agrees; 3 routes not measured" in out
        assert err.endswith("warning: interrupted: 3 routes not measured, or only in part\n")
        assert err.count("\n") == 1
    else:
        assert err == "kubeodds: interrupted\n"


def test_where_no_namespace_can_be_made_the_lab_says_why_in_one_line() -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        pytest.skip("needs root and setpriv, to take root's capabilities away")
    prefix = [setpriv, "--bounding-set=-all", "--inh-caps=-all"]
    done = kubeodds(*RUN, prefix=prefix)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("kubeodds: no network namespace can be made even as root")


def test_the_dead_cannot_be_measured() -> None:
    done = kubeodds("lab", "run", *GIVEN.given, "--dead-node", "worker1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "this dump is from worker1, which you declared dead" in done.stderr


@pytest.mark.parametrize("option", ["--modprobe=", "--modp ", "-M "])
def test_a_command_in_a_dump_is_never_run(tmp_path: Path, option: str) -> None:
    evil, proof = tmp_path / "evil", tmp_path / "proof"
    evil.write_text(f"#!/bin/sh\ntouch {proof}\n")
    evil.chmod(0o755)
    dump = tmp_path / "dump"
    line = f'-A INPUT {option}{evil} -m u32 --u32 "0=0" -j ACCEPT\nCOMMIT\n*mangle'
    dump.write_text(Path(GIVEN.dump).read_text().replace("COMMIT\n", f"{line}\nCOMMIT\n", 1))
    done = kubeodds("lab", "run", str(dump), "--dead", "10.1.0.1", "--flows", "10")
    assert done.returncode == 2
    assert "the lab loads only rules that it understands" in done.stderr
    assert not proof.exists()


@pytest.mark.alike(1)
@pytest.mark.parametrize("run", [RUN, RUN_NFT], ids=["iptables", "nft"])
def test_an_ordinary_user_can_run_the_lab(run: list[str]) -> None:
    prefix = ordinary_user()
    done = kubeodds(*run, "--flows", "2000", prefix=prefix)
    assert done.returncode == 0, done.stderr
    assert "Verdict: agrees" in done.stdout


@pytest.mark.alike(1)
@pytest.mark.parametrize("backend", ["legacy", "nft"])
def test_an_ordinary_user_gets_the_same_verdicts(backend: str) -> None:
    """Also of session affinity, although the kernel's lists of clients belong to root."""
    prefix = ordinary_user()
    folder = FIXTURES / "1.30.3-iptables-legacy/policies"
    given = [str(folder / "iptables-legacy-save.txt.gz"), "--node", "node-a1", "--service"]
    given += ["pol/affinity-unready,pol/int-local", "--objects", str(folder / "objects.json.gz")]
    words = ["lab", "verify", *given, "--resolution", "20%", "--backend", backend, "-o", "json"]

    def judged(prefix: Sequence[str]) -> tuple[list[tuple[Any, ...]], list[Any]]:
        done = kubeodds(*words, prefix=prefix)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        told = ("service", "frontend", "source", "flows", "repeated", "strayed", "agrees")
        differs = ("counter_difference", "unaccounted")
        return [
            tuple(each[name] for name in (*told, *differs)) for each in found["measurements"]
        ], found["left_out"]

    measured, left_out = judged(prefix)
    assert (measured, left_out) == judged(())
    affine = [each for each in measured if each[0] == "pol/affinity-unready"]
    assert affine
    # More clients than one list can hold.
    assert all(each[4] == each[3] > 100 for each in affine)


@pytest.mark.deep
def test_an_ordinary_user_gets_a_shell() -> None:
    script = "id -u; lab-in node ip -brief address; cat /etc/resolv.conf"
    shell = ["lab", "shell", *GIVEN.given, "--", "sh", "-c", script]
    done = kubeodds(*shell, prefix=ordinary_user())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0\n")
    assert "eth0@" in done.stdout
    assert "nameserver 10.2.3.4\n" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="folders that only root may enter take root")
def test_what_only_root_may_enter_is_shown_to_an_ordinary_user() -> None:
    """So that the tests above run where Python or the checkout is in root's own folder."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        hidden = Path(folder, "hidden")
        names = ("one", "two/deeper")
        for name in names:
            (hidden / name).mkdir(parents=True)
            (hidden / name / "file").write_text(f"{name}\n")
        hidden.chmod(0o700)
        becomes = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        shown = showing([hidden / "one", hidden / "two"], hidden / "one")

        def read(*prefix: str) -> str:
            words = [*prefix, *becomes, "cat", *(str(hidden / name / "file") for name in names)]
            return subprocess.run(words, capture_output=True, text=True, check=False).stdout

        assert read() == ""
        assert read(*shown) == "one\ntwo/deeper\n"
        # That was so in the command's own mount namespace alone.
        assert sorted(each.name for each in hidden.iterdir()) == ["one", "two"]
        assert showing([Path("/usr")], Path("/")) == []
