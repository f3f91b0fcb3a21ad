from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lab.running import lab_run
from tests.support.noise import NOISE

pytestmark = pytest.mark.lab


def test_node_ports_of_a_node_that_nobody_named_are_left_out_or_measured_at_its_address(
    captures: Path,
) -> None:
    folder = captures / "1.36.2-nftables/features"
    words = [str(folder / "nft-list-ruleset.txt"), "--service", "feat/nodeport", "--flows", "300"]
    status, found, _ = lab_run(*words, "--objects", str(folder / "objects.json.gz"))
    assert (status, found["agrees"]) == (0, True)
    assert {each["frontend"] for each in found["left_out"]} == {"NodePort *:30301"}
    assert "pass --node node-a1" in found["left_out"][0]["reason"]
    assert not any("NodePort" in each["frontend"] for each in found["measurements"])
    status, found, _ = lab_run(*words)
    assert (status, found["agrees"], found["left_out"]) == (0, True, [])
    assert any("NodePort" in each["frontend"] for each in found["measurements"])


def test_the_node_has_an_address_at_which_node_ports_answer(captures: Path) -> None:
    dump = captures / "1.36.2-nftables/dual-stack/nft-list-ruleset.txt"
    words = [str(dump), "--service", "ds/nodeport", "--from", "external", "--flows", "300"]
    status, found, _ = lab_run(*words, "--node-ip", "192.168.10.99,192.168.10.11")
    assert (status, found["agrees"]) == (0, True), found


def test_the_node_has_the_address_that_is_said() -> None:
    """A hostPort of it is at no other, whatever the objects or the rules know."""
    places = ("--node-of", "10.244.1.0/24=worker1", "--node-of", "10.244.0.0/24=master")
    said = (*places, "--node", "worker1", "--node-ip", "192.168.0.11")
    words = (str(NOISE / "nftables/portmap.txt"), *said, "--service", "hostPort 192.168.0.11:5353")
    status, found, _ = lab_run(*words, "--flows", "40")
    assert (status, found["agrees"], found["left_out"]) == (0, True, [])
