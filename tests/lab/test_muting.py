"""What kernels say by themselves while flows are counted, which would pass all rules too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.lab.running import Case, case, in_lab

pytestmark = pytest.mark.lab

#: Measures one route, and prints what TCP of the endpoints' hosts has heard, and the answers.
PROGRAM = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from netns_lab import asked
from netns_lab.arguments import parser
options = parser().parse_args(sys.argv[1:], SimpleNamespace())
((lab, routes),) = asked.set_up(options, options.flows).labs
def heard():
    found = 0
    for host in lab.topology.hosts:
        with host.namespace:
            lines = Path("/proc/self/net/snmp").read_text().splitlines()
        names, values = (each.split() for each in lines if each.startswith("Tcp:"))
        found += int(values[names.index("InSegs")])
    return found
before = heard()
((measured,),) = [list(lab.measure(*each)) for each in routes]
answered = sum(each.answered for each in measured.endpoints)
print(json.dumps({"heard": heard() - before, "answered": answered}))
"""


def heard(given: Case, *words: str) -> Any:
    return json.loads(in_lab(PROGRAM, "run", *given.given, "--flows", "300", *words))


@pytest.mark.parametrize("source", ["pod", "node"])
def test_whoever_asks_resets_no_answer(source: str) -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    found = heard(given, "--service", "default/app", "--from", source)
    assert found == {"heard": 300, "answered": 300}  # a reset would be heard as well
