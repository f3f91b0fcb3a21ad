"""What the real iptables lists of rules that it has restored, held against what it saves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.effort import PROFILE
from tests.support.lab.running import CASES, ROOT, Case, kubeodds, python

pytestmark = pytest.mark.lab

#: All captures are for the deep check.
CHOSEN = [
    case
    for case in CASES
    if PROFILE == "soak"
    or str(case)
    in {
        "1.14.0-iptables-legacy/two-node",
        "1.36.2-iptables-legacy/two-node",
        "1.36.2-iptables-nft/two-node",
    }
]
NOISE = sorted((ROOT / "fixtures" / "noise").glob("*.txt"))[:: 1 if PROFILE == "soak" else 2]
DUMPS = {
    backend: [Path(case.dump) for case in CHOSEN if f"iptables-{backend}" in case.dump]
    for backend in ("legacy", "nft")
}


def list_them(binary: str, *words: str) -> dict[str, dict[str, object]]:
    done = python("-m", "tests.support.lab.kernel_listings", "--binary", binary, *words)
    assert done.stdout, done.stderr
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("backend", DUMPS)
def test_listings_of_all_captures_and_of_other_programs_tell_all_rules(backend: str) -> None:
    dumps = [*DUMPS[backend], *(NOISE if backend == "legacy" else ())]
    assert dumps
    for path, found in list_them(f"iptables-{backend}", *map(str, dumps)).items():
        assert (path, found["faults"], found["unread"]) == (path, [], 0)
        assert isinstance(found["rows"], int)
        assert found["rows"] > 50


@pytest.mark.alike(1)
@pytest.mark.parametrize("case", CHOSEN[1:] if PROFILE == "soak" else CHOSEN[-1:], ids=str)
def test_a_listing_gives_the_losses_of_its_dump(case: Case, tmp_path: Path) -> None:
    backend = "nft" if "iptables-nft" in case.dump else "legacy"
    list_them(f"iptables-{backend}", "--into", str(tmp_path), case.dump)
    files = sorted(map(str, tmp_path.iterdir()))
    words = [*case.given[1:], "--dead-node", case.victim, "--format", "json"]
    listed, dumped = (kubeodds("loss", *each, *words) for each in (files, case.given[:1]))
    assert (listed.returncode, dumped.returncode) == (0, 0), listed.stderr
    one, other = json.loads(listed.stdout), json.loads(dumped.stdout)
    assert one["services"] == other["services"]
    assert one["services"]
    shutil.rmtree(tmp_path)
