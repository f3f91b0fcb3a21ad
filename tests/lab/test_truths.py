"""What clients meet in the lab as they do in life, each truth by itself.

Held elsewhere: who sees what of which death (`test_deaths`), what programs and resolvers see of
one of two endpoints that is silent (`test_clients`, `test_every_client`), connections that hang,
resume and survive (`test_phases`), affinity of as many clients as flows (`test_affinity`), and the
rule that the kernel's trace names (`test_traced`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.lab.running import kubeodds
from tests.support.lab.two_nodes import cluster

pytestmark = pytest.mark.lab

EXAMPLE: Final = ("examples/dump.txt", "--objects", "examples/objects.json", "--node", "worker1")
#: As many sockets ask the ClusterIP of kube-dns as often as that; how many are answered each time.
ASKING: Final = """
import json, socket, sys, time
fresh, count, tries = sys.argv[1] == "fresh", int(sys.argv[2]), int(sys.argv[3])
query = bytes.fromhex("123401000001000000000000016100 00010001".replace(" ", ""))
def opened():
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.connect(("10.96.0.10", 53))
    found.setblocking(False)
    return found
def is_answered(asking):
    try:
        return bool(asking.recv(512))
    except BlockingIOError:
        return False
waiting = [opened() for _ in range(count)]
answered = []
for number in range(tries):
    if fresh and number:
        waiting = [opened() for _ in waiting]
    for each in waiting:
        each.send(query)
    time.sleep(1)
    still = [each for each in waiting if not is_answered(each)]
    answered.append(len(waiting) - len(still))
    waiting = still
print(json.dumps(answered))
"""
#: As many clients connect one after the other, and again; how many land elsewhere then.
RETURNING: Final = """
import socket, sys
def landed(at):
    own = f"198.18.{at // 200}.{at % 200 + 1}", 0
    with socket.create_connection(("10.96.7.7", 80), 5, own) as c:
        c.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        said = b""
        while more := c.recv(4096):
            said += more
    return said.split(b"\\r\\n\\r\\n")[-1]
clients = range(int(sys.argv[1]))
first = [landed(at) for at in clients]
assert len(set(first)) == 2, first
print(sum(landed(at) != before for at, before in enumerate(first)))
"""
#: Addresses of many clients are all those of the client outside; the node sends back to it.
MANY_CLIENTS: Final = (
    "ip route add local 198.18.0.0/16 dev lo; lab-in node ip route add 198.18.0.0/16 dev outside; "
)


def asked(ports: str, before: str, *options: str) -> list[int]:
    script = f'{before}exec "$0" -c "$1" {ports} 100 3'
    command = "sh", "-c", script, sys.executable, ASKING
    done = kubeodds("lab", "shell", *EXAMPLE, *options, "--", *command)
    assert done.returncode == 0, done
    found: list[int] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_retries_from_the_same_source_port_never_help_against_silence() -> None:
    first, *later = asked("same", "", "--dead-node", "master")
    assert 0 < first < 100
    assert later == [0, 0]


@pytest.mark.deep
def test_retries_from_another_source_port_do_help() -> None:
    assert all(asked("fresh", "", "--dead-node", "master"))


@pytest.mark.deep
def test_a_drop_on_the_node_hides_that_flows_are_pinned() -> None:
    """A dropped packet leaves no entry in conntrack, so that the next is drawn anew."""
    drop = "lab-in node iptables-legacy -I FORWARD -d 10.244.0.3 -j DROP; "
    assert all(asked("same", drop))


@pytest.mark.parametrize(
    ("name", "clients", "is_kept"),
    [("dump.txt", 100, True), ("dump.txt", 400, False), ("dump.nft", 400, True)],
)
def test_iptables_mode_forgets_clients_with_affinity_beyond_a_hundred(
    tmp_path: Path, name: str, clients: int, is_kept: bool
) -> None:
    """Of each endpoint: a list of xt_recent holds 100 addresses, a set of nftables all."""
    found = cluster()
    (service,) = (each for each in found.items if each["kind"] == "Service")
    timeout = {"clientIP": {"timeoutSeconds": 10800}}
    service["spec"] |= {"sessionAffinity": "ClientIP", "sessionAffinityConfig": timeout}
    dump, objects = tmp_path / name, tmp_path / "objects.json"
    dump.write_text(found.dump if name.endswith("txt") else found.nft)
    objects.write_text(json.dumps({"kind": "List", "items": found.items}))
    script = f'{MANY_CLIENTS}exec "$0" -c "$1" {clients}'
    given = str(dump), "--objects", str(objects), "--node", "node0", "--in", "outside"
    command = "sh", "-c", script, sys.executable, RETURNING
    done = kubeodds("lab", "shell", *given, "--", *command)
    assert done.returncode == 0, done
    astray = int(done.stdout.splitlines()[-1])
    assert (astray == 0) is is_kept
