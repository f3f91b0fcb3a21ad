"""``lab shell``: programs in the lab's places, and what is left when they end."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time

import pytest

from tests.support.lab.running import KUBEODDS, ROOT, environment, kubeodds

pytestmark = pytest.mark.lab

EXAMPLE = (
    *("lab", "shell", "examples/dump.txt", "--objects", "examples/objects.json"),
    *("--node", "worker1"),
)
#: Asks app by its ClusterIP, by what every machine has.
ASK = "printf 'GET / HTTP/1.1\\r\\n\\r\\n' | nc -w 2 10.96.18.52 80 | tail -n 1"


def inside(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    return kubeodds(*EXAMPLE, *options, "--", "sh", "-c", script)


def test_endpoints_say_who_they_are_and_names_of_services_lead_to_them() -> None:
    done = inside(f"{ASK}; dig +short +search app; dig nothing.default.svc.cluster.local")
    who, address, *rest = done.stdout.splitlines()
    assert who in {"10.244.0.7:8080 in master", "10.244.1.9:8080 in pods"}
    assert address == "10.96.18.52"
    assert "status: NXDOMAIN" in "".join(rest)


@pytest.mark.alike(2)
@pytest.mark.parametrize(
    ("place", "sees"),
    [
        ("client", "10.244.1.254"),
        ("node", "192.168.0.11"),
        ("worker1", "192.168.0.11"),
        ("pods", "10.244.1.4"),
        ("10.244.1.9", "10.244.1.9"),
        ("10.244.0.7", "10.244.0.7"),
        ("master", "192.168.0.10"),
        ("outside", "203.0.113.254"),
    ],
)
def test_a_program_stands_where_it_is_told(place: str, sees: str) -> None:
    to = "10.244.1.4" if sees != "10.244.1.4" else "10.244.1.9"
    done = inside(f"ip route get {to}; echo x | nc -w 2 {to} {53 if to[-1] == '4' else 8080}",
                  "--in", place)  # fmt: skip
    assert f"src {sees}" in done.stdout.replace(f"local {to}", ""), done
    assert f"{to}:" in done.stdout


def test_other_places_are_a_word_away() -> None:
    script = "lab-map; lab-in node iptables-legacy-save -t nat; lab-in nowhere; ip netns list"
    done = inside(script, "--dead-node", "master")
    assert "10.244.0.7:8080  in master  dead: silent" in done.stdout
    assert "a pod of worker1 that is not an endpoint (you are here)" in done.stdout
    assert "-A KUBE-SERVICES" in done.stdout
    assert done.stderr.startswith("usage: lab-in PLACE")
    names = {line.split()[0] for line in done.stdout.splitlines()[-5:]}
    assert names == {"client", "node", "pods", "master", "world"}


def test_commands_are_also_read_from_a_pipe() -> None:
    done = kubeodds(*EXAMPLE, stdin="exit 3\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("script", "status"), [("exit 7", 7), ("kill -TERM $$", 143), ("nosuch-program", 127)]
)
def test_its_exit_status_is_the_programs(script: str, status: int) -> None:
    assert inside(script).returncode == status


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--in", "nowhere"), "--in nowhere: no such place; there are client, node, pods, master"),
        (("--in", "10.244.0.7"), "--in 10.244.0.7: it is dead and sends nothing; packets for"),
        (("--", "no-such-program"), "no-such-program is not installed\n"),
        (("--dead-node", "worker1"), "this dump is from worker1, which you declared dead"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(options: tuple[str, ...], says: str) -> None:
    done = kubeodds(*EXAMPLE, "--dead-node", "master", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_at_a_terminal_it_says_where_one_is_and_ctrl_c_ends_no_more_than_a_command() -> None:
    child, terminal = pty.fork()
    if not child:
        os.chdir(ROOT)
        os.execve(KUBEODDS[0], [*KUBEODDS, *EXAMPLE], {**environment(), "TERM": "dumb"})  # noqa: S606  # ours
    seen = b""

    def until(what: bytes) -> None:
        nonlocal seen
        deadline = time.monotonic() + 60
        while what not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 65_536)

    until(b"lab:client")
    assert b"nothing is dead" in seen
    assert b"lab-map" in seen
    os.write(terminal, b"echo begun; sleep 600\n")
    until(b"begun\r\n")
    time.sleep(0.2)  # else it falls between the two commands
    os.write(terminal, b"\x03")
    seen = b""
    os.write(terminal, b"echo $((6 * 7)); exit 5\n")
    until(b"42")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    os.close(terminal)
