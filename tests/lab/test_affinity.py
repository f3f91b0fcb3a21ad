from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.lab.running import lab_run

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
