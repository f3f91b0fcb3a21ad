"""Each kind of death, seen by a client's own sockets, and counted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.effort import PROFILE
from tests.support.lab.client_plans import cluster
from tests.support.lab.running import ROOT, case, kubeodds, lab_run

pytestmark = pytest.mark.lab

KINDS = ("silent", "drop", "arp", "process", "reject", "unreachable", "slow=300")
#: Connects to each of the addresses at once, and tells of each how that ended and when; behind the
#: name of the error the type and code of ICMP that told it.
CONNECTS = """
import errno, json, select, socket, struct, sys, time
found, waiting, poll = {}, {}, select.poll()
for address in sys.argv[1:]:
    sock = socket.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_IP, 11, 1)  # IP_RECVERR
    began = time.monotonic()
    sock.connect_ex((address, 80))
    waiting[sock.fileno()] = sock, address, began
    poll.register(sock, select.POLLOUT)
deadline = time.monotonic() + 4.5
while waiting and time.monotonic() < deadline:
    for number, _ in poll.poll(100):
        sock, address, began = waiting.pop(number)
        poll.unregister(sock)
        took, told = time.monotonic() - began, None
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        try:
            for _, kind, data in sock.recvmsg(512, 512, 0x2000)[1]:  # MSG_ERRQUEUE
                if kind == 11:
                    _, origin, type_, code = struct.unpack_from("=IBBB", data)
                    told = [type_, code] if origin == 2 else None
        except OSError:
            pass
        found[address] = [errno.errorcode.get(error, "connected"), told, took]
for sock, address, _ in waiting.values():
    found[address] = ["timed out", None, 4.5]
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Given:
    words: tuple[str, ...]
    dead: tuple[str, ...]

    def address(self, kind: str) -> str:
        return f"10.244.{KINDS.index(kind) + 1}.3"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """A Service with an endpoint of each kind of death, and one that lives."""
    folder = tmp_path_factory.mktemp("deaths")
    made = cluster(len(KINDS) + 1)
    dump, objects = folder / "dump.txt", folder / "objects.json"
    dump.write_text(made.dump)
    objects.write_text(json.dumps({"kind": "List", "items": made.items}))
    dead = [f"10.244.{at}.3:{kind}" for at, kind in enumerate(KINDS, 1)]
    return Given(
        (str(dump), "--objects", str(objects), "--node", "node0"), ("--dead", ",".join(dead))
    )


@pytest.fixture(scope="module")
def seen(given: Given) -> dict[str, Any]:
    addresses = [f"10.244.{at}.3" for at in range(1, len(KINDS) + 2)]
    words = ["lab", "shell", *given.words, *given.dead, "--", "python3", "-c", CONNECTS]
    done = kubeodds(*words, *addresses)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.deep
@pytest.mark.parametrize(
    ("kind", "error", "told", "least", "most"),
    [
        ("silent", "timed out", None, 4.5, 4.5),
        ("drop", "timed out", None, 4.5, 4.5),
        ("process", "ECONNREFUSED", None, 0, 0.9),
        ("reject", "ECONNREFUSED", [3, 3], 0, 1.9),
        ("unreachable", "EHOSTUNREACH", [3, 1], 0, 1.9),
        ("arp", "EHOSTUNREACH", [3, 1], 2.5, 4.4),
        ("slow=300", "connected", None, 0.3, 0.9),
    ],
)
def test_a_client_sees_each_kind_as_what_it_is(
    given: Given,
    seen: dict[str, Any],
    kind: str,
    error: str,
    told: object,
    least: float,
    most: float,
) -> None:
    how, by, took = seen[given.address(kind)]
    assert (how, by) == (error, told)
    assert least <= took <= most


def test_who_lives_is_not_touched_by_the_deaths_of_others(seen: dict[str, Any]) -> None:
    how, by, took = seen[f"10.244.{len(KINDS) + 1}.3"]
    assert (how, by) == ("connected", None)
    assert took < 0.3


def test_flows_to_each_kind_are_counted_and_told_apart(given: Given) -> None:
    asked = ["--service", "default/shop", "--flows", "2000"]
    status, found, _ = lab_run(*given.words, *given.dead, *asked)
    assert (status, found["agrees"]) == (0, True)
    (measured,) = found["measurements"]
    assert (measured["unaccounted"], measured["counter_difference"]) == (0, 0)
    ends = {e["death"]: e for e in measured["endpoints"]}
    assert set(ends) == {*KINDS, None}
    for kind, end in ends.items():
        assert end["dead"] == (kind not in {"slow=300", None})
        assert end["landed"] > 0
        assert end["answered"] == (0 if end["dead"] else end["landed"])
    for kind in ("process", "reject", "unreachable"):
        assert ends[kind]["refused"] == ends[kind]["landed"]
    for kind in ("silent", "drop"):
        assert ends[kind]["refused"] == 0


@pytest.mark.skipif(PROFILE == "quick", reason="how nodes die is CI's: as their pods")
def test_a_whole_node_dies_in_a_way_of_its_own() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1").given
    asked = ["--dead-node", "master:reject", "--service", "kube-dns:dns", "--flows", "500"]
    status, found, _ = lab_run(*given, *asked)
    assert status == 0
    dead = next(e for e in found["measurements"][0]["endpoints"] if e["dead"])
    assert (dead["death"], dead["refused"]) == ("reject", dead["landed"])
    assert found["dead"] == "node master (reject)"


def test_of_a_single_port_the_process_is_gone_and_other_ports_answer() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1").given
    asked = ["--dead", "10.244.0.3:53:process", "--service", "kube-system/kube-dns"]
    status, found, errors = lab_run(*given, *asked, "--flows", "200")
    assert (status, found["agrees"]) == (0, True), errors
    ends = {
        (m["service"].partition(":")[2], m["protocol"], e["death"]): e
        for m in found["measurements"]
        for e in m["endpoints"]
        if e["address"] == "10.244.0.3"
    }
    assert set(ends) == {
        ("dns", "udp", "process"),
        ("dns-tcp", "tcp", "process"),
        ("metrics", "tcp", None),
    }
    for (_, _, death), end in ends.items():
        assert end["refused" if death else "answered"] == end["landed"] > 0


def test_a_pod_of_the_node_refuses_by_icmp_of_either_ip_version() -> None:
    """AnyIP gives a kernel no address of IPv6 to send errors from."""
    folder = ROOT / "fixtures/check/1.36.2-iptables-legacy/dual-stack"
    given = [str(folder / f"{each}-legacy-save.txt") for each in ("iptables", "ip6tables")]
    given += ["--objects", str(folder / "objects.json"), "--node", "node-a1"]
    dead = ["--dead", "10.244.0.15:reject,fd00:10:244::10:unreachable"]
    status, found, errors = lab_run(*given, *dead, "--service", "ds/ep-2", "--flows", "200")
    assert (status, found["agrees"]) == (0, True), errors
    gone = [e for m in found["measurements"] for e in m["endpoints"] if e["dead"]]
    assert sorted(each["death"] for each in gone) == ["reject", "unreachable"]
    assert all(each["refused"] == each["landed"] > 0 for each in gone)
