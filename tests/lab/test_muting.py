"""What kernels say by themselves while flows are counted, which would pass all rules too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab.running import FIXTURES, Case, case, in_lab, lab_run

pytestmark = pytest.mark.lab

#: Measures one route, and prints what TCP of the endpoints' hosts has heard, and the answers.
PROGRAM = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from netns_lab import asked
from netns_lab.arguments import FLOWS, parser
options = parser().parse_args(sys.argv[1:], SimpleNamespace())
((lab, routes),) = asked.set_up(options, options.flows or FLOWS).labs
def heard():
    found = 0
    for host in lab.topology.hosts:
        with host.namespace:
            lines = Path("/proc/self/net/snmp").read_text().splitlines()
        names, values = (each.split() for each in lines if each.startswith("Tcp:"))
        found += int(values[names.index("InSegs")])
    return found
before = heard()
((measured,),) = [lab.measure(*each) for each in routes]
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


def test_a_flow_that_the_node_sends_from_the_node_port_itself_is_answered(tmp_path: Path) -> None:
    # As many ports to masquerade with as flows: the kernel tries them in turn, so takes each.
    ports = range(30290, 30310)
    folder = FIXTURES.parent / "check/1.36.2-iptables-legacy/dual-stack"
    text = (folder / "iptables-legacy-save.txt").read_text(encoding="ascii")
    chain = 'KUBE-SVC-EMDR7L2MNAG3KY74 -m comment --comment "ds/nodeport'
    for old, new in (
        (r"(-A KUBE-POSTROUTING)( .* -j MASQUERADE) --random-fully", r"\1 -p tcp\2 --to-ports "),
        (rf"-A {chain} -> 10\.244\.[24]\..*\n", ""),
        (rf"(-A {chain} .*) -m statistic .* (-j .*)", r"\1 \2"),
    ):
        text, changed = re.subn(old, new, text)
        assert changed
    text = text.replace("--to-ports ", f"--to-ports {ports[0]}-{ports[-1]}")
    dump = tmp_path / "dump.txt"
    dump.write_text(text, encoding="ascii")
    given = str(dump), "--objects", str(folder / "objects.json"), "--node", "node-a1"
    words = "--service", "ds/nodeport", "--from", "hairpin", "--flows", str(len(ports))
    status, found, told = lab_run(*given, *words)
    assert status == 0, told
    of_node_port = found["measurements"][-1]
    assert of_node_port["frontend"].startswith("NodePort *:30301")
    assert 30301 in ports
    assert [e["answered"] for e in of_node_port["endpoints"]] == [len(ports)]
