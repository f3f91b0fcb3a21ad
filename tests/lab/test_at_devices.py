"""Chains at devices in the kernel: before all of IP's hooks, and after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.lab.running import FIXTURES, lab_run

pytestmark = pytest.mark.lab

FOLDER = FIXTURES / "1.36.2-nftables" / "two-node@worker1"
AWAY, HERE = "10.244.0.7", "10.244.1.9"
#: The lab calls the devices of the node so.
OUTSIDE, TO_NODES = "outside", "eth0"


def measured(tmp_path: Path, source: str, *chains: tuple[str, str, str]) -> dict[str, Any]:
    """Return what the kernel did to the flows of a source; of a chain hook, device and rule."""
    table = ["table netdev f {"]
    for at, (hook, device, rule) in enumerate(chains):
        head = f"type filter hook {hook} device {device} priority 0; policy accept;"
        table += [f"chain c{at} {{", head, rule, "}"]
    path = tmp_path / "dump.txt"
    dump = (FOLDER / "nft-list-ruleset.txt").read_text()
    path.write_text("\n".join([dump, *table, "}", ""]))
    words = [str(path), "--objects", str(FOLDER / "objects.json"), "--node", "worker1"]
    words += ["--service", "default/app", "--from", source, "--flows", "200"]
    status, found, _ = lab_run(*words)
    assert (status, found["agrees"]) == (0, True)
    (one,) = found["measurements"]
    of = {each["address"]: each for each in one["endpoints"]}
    return {
        "gone": one["unaccounted"],
        "may end": one["ended"]["upper"]["value"],
        "landed": {address: each["landed"] for address, each in of.items()},
        "answered": {address: each["answered"] for address, each in of.items()},
    }


@pytest.mark.parametrize(("source", "gone"), [("external", 200), ("pod", 0)])
def test_ingress_sees_the_frontend_of_what_comes_by_its_device(
    tmp_path: Path, source: str, gone: int
) -> None:
    found = measured(tmp_path, source, ("ingress", OUTSIDE, "ip daddr 10.96.18.52 drop"))
    assert found["gone"] == gone
    assert found["may end"] == (1 if gone else 0)


def test_no_chain_at_a_device_sees_what_hooks_of_ip_do_on_its_other_side(tmp_path: Path) -> None:
    before_dnat = ("ingress", OUTSIDE, f"ip daddr {AWAY} drop")
    behind_dnat = ("egress", TO_NODES, "ip daddr 10.96.18.52 drop")
    of_answers = ("egress", OUTSIDE, "tcp sport 8080 drop")
    found = measured(tmp_path, "external", before_dnat, behind_dnat, of_answers)
    assert found["gone"] == 0
    assert sum(found["answered"].values()) == 200


def test_egress_sees_what_masquerade_and_conntrack_have_made_of_addresses(tmp_path: Path) -> None:
    masqueraded = ("egress", TO_NODES, "tcp dport 8080 ip saddr 192.168.0.11 drop")
    put_back = ("egress", OUTSIDE, "tcp sport 80 drop")
    found = measured(tmp_path, "external", masqueraded, put_back)
    assert found["landed"][AWAY] == found["answered"][HERE] == 0
    assert found["gone"] + found["landed"][HERE] == 200
    assert found["may end"] > 0
