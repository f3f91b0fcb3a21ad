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


def test_every_list_is_emptied_also_one_in_the_place_of_another() -> None:
    assert in_lab(PROGRAM).split() == ["2", "2"]
