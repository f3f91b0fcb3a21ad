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
lists = RecentLists(node, "nft")
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


REMOVED = """\
import sys
from pathlib import Path
from netns_lab.command import run
from netns_lab.errors import NotMeasuredError
from netns_lab.namespace import Namespace, leave_host
from netns_lab.recent import RecentLists

FOLDER = Path("/proc/thread-self/net/xt_recent")
program, other, loopback = sys.argv[1:]
RULES = '''*raw
:OUTPUT ACCEPT [0:0]
-A OUTPUT -m comment --comment "no packet of the lab"
COMMIT
*filter
:OUTPUT ACCEPT [0:0]
-A OUTPUT -m recent --set --name one
-A OUTPUT -m recent --set --name two
COMMIT
'''
leave_host()
node = Namespace("node")
run(node, ["ip", "link", "set", "lo", "up"])
run(node, [f"{program}-restore"], RULES)

def held():
    with node:
        return {each.name: len(each.read_text().splitlines()) for each in FOLDER.iterdir()}

def told():
    saved = run(node, [f"{program}-save", "-c"]).stdout
    return [each for each in saved.split("\\n") if each.startswith("[")]

def send():
    run(node, ["bash", "-c", f"echo > /dev/udp/{loopback}/9"], check=False)

lists = RecentLists(node, other)
send()
before = told(), held()
assert before[1] == {"one": 1, "two": 1} and not before[0][0].startswith("[0:"), before
lists.remove_clients(["one"])
assert (told(), held()) == (before[0], {"one": 0, "two": 1}), (told(), held())
send()
lists.remove_clients(["two", "one"])
assert held() == {"one": 0, "two": 0}, held()
try:
    send()
    # Where another dump has rules, they are not touched.
    RecentLists(node, "legacy" if other == "nft" else "nft").remove_clients(["one"])
except NotMeasuredError as error:
    print(str(error).rpartition(": ")[2])
"""


@pytest.mark.alike(2)
@pytest.mark.parametrize("program", ["iptables", "ip6tables"])
@pytest.mark.parametrize(("variant", "other"), [("legacy", "nft"), ("nft", "legacy")])
def test_rules_remove_clients_where_files_cannot_be_written(
    program: str, variant: str, other: str
) -> None:
    """What an ordinary user's lab does; the packets that it takes reach no rule of the dump."""
    loopback = "127.0.0.1" if program == "iptables" else "::1"
    said = in_lab(REMOVED, f"{program}-{variant}", other, loopback)
    assert said == f"another dump has rules in the table raw of {program}-{variant}\n"


def test_every_list_is_emptied_also_one_in_the_place_of_another() -> None:
    assert in_lab(PROGRAM).split() == ["2", "2"]
