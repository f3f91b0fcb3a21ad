"""Counters of iptables-legacy are the same by python-iptables and as iptables-legacy-save tells."""

from __future__ import annotations

import json

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

#: Rules that have counted, each something else, in chains with a DNAT, one of them with a comment.
DUMP = """*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SEP-A - [0:0]
:KUBE-SEP-B - [0:0]
[6:360] -A PREROUTING -p tcp -j KUBE-SEP-A
[0:0] -A PREROUTING -p udp -j KUBE-SEP-B
[2:120] -A KUBE-SEP-A -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.1:80
[1:60] -A KUBE-SEP-A -p tcp -j DNAT --to-destination 10.0.0.2:80
[3:180] -A KUBE-SEP-B -m comment --comment "[9:9] -A KUBE-SEP-A"
[0:0] -A KUBE-SEP-B -p udp -j DNAT --to-destination 10.0.0.3:80
COMMIT
"""
PROGRAM = f"""
import json
from analyzer.parsers.iptables_save import parse
from netns_lab.iptables import LegacyIptables
from netns_lab.namespace import Namespace, leave_host
from netns_lab.command import run
leave_host()
held = Namespace("counters")
backend = LegacyIptables(held, parse({DUMP!r}, "dump"))
run(held, ["iptables-legacy-restore", "-c"], {DUMP!r})
found = [backend._rule_counters(), backend._saved_counters()]
print(json.dumps([[[*key, n] for key, n in each.items()] for each in found]))
"""


def test_counters_are_read_alike_with_and_without_python_iptables() -> None:
    loaded, saved = (sorted(map(tuple, each)) for each in json.loads(in_lab(PROGRAM)))
    wanted = [
        ("KUBE-SEP-A", 0, 2),
        ("KUBE-SEP-A", 1, 1),
        ("KUBE-SEP-B", 0, 3),
        ("KUBE-SEP-B", 1, 0),
    ]
    assert saved == wanted
    assert loaded == wanted
