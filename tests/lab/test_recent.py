"""Lists of xt_recent, emptied while rules come and go."""

from __future__ import annotations

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

PROGRAM = """\
from pathlib import Path
from netns_lab.command import run
from netns_lab.namespace import Namespace, leave_host
from netns_lab.recent import RecentLists

FOLDER = Path("/proc/thread-self/net/xt_recent")
leave_host()
node = Namespace("node")
lists = RecentLists(node)
lists.flush()  # of no list at all
rules = ["*filter"] + [f"-A INPUT -m recent --set --name {name}" for name in "ab"] + ["COMMIT", ""]
for _ in range(2):
    run(node, ["iptables-legacy-restore"], "\\n".join(rules))
    with node:
        for each in FOLDER.iterdir():
            each.write_text("+10.0.0.1")
        held = sum(len(each.read_text().splitlines()) for each in FOLDER.iterdir())
    lists.flush()
    with node:
        print(held, *(each.read_text() for each in FOLDER.iterdir()))
    run(node, ["iptables-legacy", "-F"])
lists.flush()
"""


RENEWED = """\
import sys
from pathlib import Path
from netns_lab.command import run
from netns_lab.iptables import LegacyIptables, NftIptables
from netns_lab.namespace import Namespace, leave_host
from analyzer.parsers.iptables_save import parse

FOLDER = Path("/proc/thread-self/net/xt_recent")
DUMP = '''*filter
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:OWN - [0:0]
-A OUTPUT -m recent --rcheck --seconds 60 --name one --mask 255.255.255.255 --rsource
-A OUTPUT -d 127.0.0.1/32 -j OWN
-A OWN -m recent --set --name one --mask 255.255.255.255 --rsource
-A OWN -m recent --set --name two --mask 255.255.255.255 --rsource
-A OWN -p udp -j DROP
COMMIT
'''
leave_host()
node = Namespace("node")
run(node, ["ip", "link", "set", "lo", "up"])
kind = {"legacy": LegacyIptables, "nft": NftIptables}[sys.argv[1]]
rules = kind(node, parse(DUMP, "dump"))

def told():
    saved = run(node, [f"iptables-{kind.variant}-save", "-c"]).stdout
    rows = [each for each in saved.split("\\n") if each.startswith("[")]
    with node:
        lists = {each.name: len(each.read_text().splitlines()) for each in FOLDER.iterdir()}
    return [each.partition(":")[0] + each.partition("]")[2] for each in rows], lists

for _ in range(3):
    run(node, ["bash", "-c", "echo > /dev/udp/127.0.0.1/9"], check=False)
before, held = told()
rules._recent.renew({"one"})
after, empty = told()
assert before == after and before[-1].startswith("[3 "), (before, after)
assert (held, empty) == ({"one": 1, "two": 1}, {"one": 0, "two": 0}), (held, empty)
assert rules.endings() == {"-A OWN -p udp -j DROP": 3}
print("same rules, same counters, empty lists")
"""


@pytest.mark.parametrize("backend", ["legacy", "nft"])
def test_lists_are_made_anew_with_the_rules_that_refer_to_them(backend: str) -> None:
    """What an ordinary user does, who cannot write to the files of the lists."""
    assert in_lab(RENEWED, backend) == "same rules, same counters, empty lists\n"


def test_every_list_is_emptied_also_one_in_the_place_of_another() -> None:
    assert in_lab(PROGRAM).split() == ["2", "2"]
