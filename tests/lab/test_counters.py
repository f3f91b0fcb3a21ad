"""Counters of rules are the same whichever way they are read."""

from __future__ import annotations

import json
from ipaddress import ip_address

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
from netns_lab.iptables import LegacyIptables, NftIptables
from netns_lab.namespace import Namespace, leave_host
from netns_lab.command import run
leave_host()
held = Namespace("counters")
backend = LegacyIptables(held, parse({DUMP!r}, "dump"))
run(held, ["iptables-legacy-restore", "-c"], {DUMP!r})
found = [backend._rule_counters(), backend._saved_counters(), backend._by_python_iptables()]
backend.cross_check()
drawn = [backend.drawn(), backend.drawn()]
more = {DUMP!r}.replace("[1:60]", "[4:240]")
run(held, ["iptables-legacy-restore", "-c"], more)
drawn += [backend.drawn(), backend.counters()]
held = Namespace("counters")
other = NftIptables(held, parse({DUMP!r}, "dump"))
run(held, ["iptables-nft-restore", "-c"], {DUMP!r})
found.append(other._rule_counters())
other.cross_check()
drawn += [other.drawn(), other.drawn()]
run(held, ["iptables-nft-restore", "-c"], more)
drawn += [other.drawn(), other.counters()]
found += [{{("", str(sockaddr[0])): n for sockaddr, n in each.items()}} for each in drawn]
print(json.dumps([[[*key, n] for key, n in each.items()] for each in found]))
"""


#: Those that send somewhere.
WANTED = [("KUBE-SEP-A", 0, 2), ("KUBE-SEP-A", 1, 1), ("KUBE-SEP-B", 1, 0)]


def test_counters_are_read_alike_by_the_kernels_blob_and_by_programs() -> None:
    loaded, saved, by_iptc, of_nft, *drawn = (
        sorted(map(tuple, each)) for each in json.loads(in_lab(PROGRAM))
    )
    assert loaded == of_nft == WANTED
    assert set(WANTED) < set(saved)
    assert by_iptc == saved
    assert ("KUBE-SEP-B", 0, 3) in saved
    # What is new is read once; in all there is what there was at first, and what came.
    one, two = (str(int(ip_address(f"10.0.0.{last}"))) for last in (1, 2))
    at_first, then, after_all = {one: 2, two: 1}, {two: 3}, {one: 2, two: 4}
    told = [{sockaddr: n for _, sockaddr, n in each} for each in drawn]
    assert told == [at_first, {}, then, after_all] * 2


def test_a_counter_that_another_way_reads_differently_is_found_out() -> None:
    wrong = PROGRAM.replace(
        "backend.cross_check()",
        "read = backend._rule_counters\n"
        "backend._rule_counters = lambda: {rule: n + 1 for rule, n in read().items()}\n"
        "try:\n    backend.cross_check()\n    raise SystemExit('not found out')\n"
        "except Exception as error:\n    assert '3 rules differ' in str(error), error",
        1,
    )
    in_lab(wrong)
