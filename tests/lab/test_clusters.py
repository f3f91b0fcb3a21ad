from __future__ import annotations

import json

import pytest

from analyzer.kubeproxy.generate import RulesLayout
from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

PROGRAM = "from tests.support.lab.kernel_clusters import main; main(['--examples', '1'])"
LAYOUTS = tuple(layout.value for layout in RulesLayout)


@pytest.mark.deep
def test_generated_rows_are_those_that_the_real_iptables_prints() -> None:
    found = json.loads(in_lab(PROGRAM))
    assert found.keys() == {"legacy", "nft"}
    for backend, trial in found.items():
        assert trial["faults"] == []
        wanted = {f"{p}-{backend} {v}" for p in ("iptables", "ip6tables") for v in LAYOUTS}
        assert trial["restored"].keys() == wanted
