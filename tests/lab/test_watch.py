"""``watch`` of rules that the kernel holds: what its own programs list is judged as the dump is."""

from __future__ import annotations

import sys

import pytest

from tests.support.lab.running import case, kubeodds

pytestmark = pytest.mark.lab

LISTS = {
    "1.36.2-iptables-legacy/two-node@worker1": "iptables-legacy-save",
    "1.36.2-nftables/two-node@worker1": "nft list ruleset",
}


@pytest.mark.parametrize("name", LISTS)
def test_what_the_kernel_lists_is_judged(name: str) -> None:
    words = ["--command", LISTS[name], "--dead", "10.244.0.7", "--npd"]
    watch = [sys.executable, "-m", "analyzer", "watch", *words]
    done = kubeodds("lab", "shell", *case(name).given, "--in", "node", "--", *watch)
    assert done.stdout == "default/app loses 50.0%\n", done.stderr
    assert done.returncode == 1
