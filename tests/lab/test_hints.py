"""What may explain a disagreement is named: limits of rules, and a node that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.lab.running import NFT, ROOT, Case, lab_run

pytestmark = pytest.mark.lab

EXAMPLE: Final = (
    *("--objects", str(ROOT / "examples/objects.json"), "--node", "worker1"),
    *("--service", "app", "--flows", "400"),
)
LIMITED: Final = (
    "-A FORWARD -d 10.244.0.0/16 -p tcp -m limit --limit 5/sec -j ACCEPT",
    "-A FORWARD -d 10.244.0.0/16 -p tcp -j DROP",
)
OF_NFT: Final = """
table inet guard {
    chain forward {
        type filter hook forward priority 5; policy accept;
        ip daddr 10.1.0.0/24 udp dport 53 limit rate 5/second accept
        ip daddr 10.1.0.0/24 udp dport 53 drop
    }
}
"""


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """The example's dump, in which a rule lets five connections a second through."""
    text = (ROOT / "examples/dump.txt").read_text()
    head, sign, rest = text.partition("-A KUBE-FORWARD ")
    assert sign
    path = tmp_path / "limited.txt"
    path.write_text("\n".join([*(head + "\0").split("\n")[:-1], *LIMITED, sign + rest]))
    return str(path)


@pytest.mark.alike(1)
@pytest.mark.parametrize("backend", ["legacy", "nft"])
def test_a_rule_whose_limit_is_exceeded_is_named(dump: str, backend: str) -> None:
    status, found, errors = lab_run(dump, *EXAMPLE, "--backend", backend)
    assert (status, found["agrees"]) == (1, False)
    (note,) = (each for each in found["diagnostics"] if each["code"] == "beyond-limits")
    assert f": {LIMITED[0]})" in note["message"]
    assert note["message"] in errors
    # The rule that dropped what was beyond it is another one; no prediction expected it.
    (measured,) = found["measurements"]
    assert measured["ended"]["upper"]["value"] == 0
    assert measured["unaccounted"] > 0
    assert measured["ended_at"] == f"filter: {LIMITED[1]}"


@pytest.mark.deep
def test_nothing_is_named_where_the_prediction_holds(dump: str) -> None:
    status, found, _ = lab_run(dump, *EXAMPLE, "--assume", "limits=unknown")
    assert (status, found["agrees"]) == (0, True)
    assert "beyond-limits" not in {each["code"] for each in found["diagnostics"]}


def test_a_rule_of_nft_is_named_too(tmp_path: Path) -> None:
    given = Case(NFT / "1.36.2-nftables/seed-dns")
    path = tmp_path / "nft.txt"
    path.write_text(Path(given.dump).read_text() + OF_NFT)
    words = ["--service", "kube-dns:dns", "--flows", "400"]
    status, found, _ = lab_run(str(path), *given.given[1:], *words)
    assert (status, found["agrees"]) == (1, False)
    (note,) = (each for each in found["diagnostics"] if each["code"] == "beyond-limits")
    assert "limit rate 5/second" in note["message"]
    (measured,) = found["measurements"]
    assert measured["ended_at"] == "inet guard forward: ip daddr 10.1.0.0/24 udp dport 53 drop"


def test_a_node_that_was_not_named_is_asked_for() -> None:
    noise = ROOT / "fixtures" / "noise"
    words = [str(noise / "aws-vpc-cni.txt"), "--objects", str(noise / "objects.json")]
    words += ["--service", "default/app", "--flows", "200"]
    status, found, errors = lab_run(*words)
    assert (status, found["agrees"]) == (1, False)
    assert "pass --node NAME, one of master, worker1" in errors
    _, found, _ = lab_run(*words, "--node", "worker1")
    assert "node-not-named" not in {each["code"] for each in found["diagnostics"]}
