from __future__ import annotations

import json

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

PROGRAM = "from tests.support.lab.kernel_clusters import main; main(['--examples', '2'])"
LAYOUTS = ("1.20", "1.25", "1.30", "1.36")


def test_generated_rows_are_those_that_the_real_iptables_prints() -> None:
    found = json.loads(in_lab(PROGRAM))
    assert found.keys() == {"legacy", "nft"}
    for backend, trial in found.items():
        assert trial["faults"] == []
        wanted = {f"{p}-{backend} {v}" for p in ("iptables", "ip6tables") for v in LAYOUTS}
        assert trial["restored"].keys() == wanted
