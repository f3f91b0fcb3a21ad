from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support.archives import packed
from tests.support.lab.running import case, lab_run

pytestmark = pytest.mark.lab


def test_the_lab_takes_a_bundle_in_place_of_a_dump(tmp_path: Path) -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    files = {
        "n/networking/iptables-save.txt": Path(given.dump).read_bytes(),
        "n/objects.json": (given.directory / "objects.json").read_bytes(),
    }
    (tmp_path / "n.tar.gz").write_bytes(gzip.compress(packed(files)))
    words = (
        "--node",
        given.node,
        "--dead-node",
        given.victim,
        "--service",
        "app",
        "--flows",
        "500",
    )
    status, found, _ = lab_run(str(tmp_path / "n.tar.gz"), *words)
    assert status == 0  # it agrees
    assert found["measurements"]
