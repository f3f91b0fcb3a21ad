"""Clients are forgotten in nftables mode: sets emptied, or a few clients deleted by rules."""

from __future__ import annotations

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

PROGRAM = """\
import sys
from ipaddress import ip_address
from netns_lab.command import run
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace, leave_host
from netns_lab.nft import Nft
from netns_lab.nft_clients import ClientSet, ClientSets

TYPES = {"ip": "ipv4_addr", "ip6": "ipv6_addr"}
leave_host()
node = Namespace("node")
run(node, ["ip", "link", "set", "lo", "up"])
nft = Nft(node)
sets = []
for place in sys.argv[1].split(","):
    family, table = place.split()
    nft.run(f"add table {place}")
    for kind in ("ip", "ip6") if family == "inet" else (family,):
        name = f"affinity-{kind}/tcp/__1"
        flags = "size 65535; flags dynamic,timeout; timeout 1h;"
        nft.run(f"add set {place} {name} {{ type {TYPES[kind]}; {flags} }}")
        sets.append(ClientSet(family, table, name, (TYPES[kind],), is_map=False))
clients = ClientSets(node, nft, sets)
addresses = [ip_address(each) for each in sys.argv[2].split(",")]
before = nft.run("list ruleset")

def held():
    found = 0
    for each in sets:
        listed = nft.run(f"list set {each.family} {each.table} {each.name}")
        found += listed.count("expires")
    return found

def fill(some):
    for each in sets:
        mine = [str(a) for a in some if TYPES["ip" if a.version == 4 else "ip6"] == each.key[0]]
        if mine:
            what = f"{each.family} {each.table} {each.name}"
            nft.run(f"add element {what} {{ {', '.join(mine)} }}")
    return held()

other = [ip_address("192.0.2.9"), ip_address("2001:db8::9")]
assert fill(other) > 0
with clients.forgetting(addresses) as forget:
    assert held() == 0
    turns = [(fill(addresses) > 0, forget(), held()) for _ in range(40)]
    chains = nft.run("list ruleset").count("kubeodds-lab-forget")
fits = any(each.key[0] == f"ipv{a.version}_addr" for a in addresses for each in sets)
assert set(turns) == {(fits, None, 0)}, turns
# Nothing is left of it.
assert nft.run("list ruleset") == before
nft.run("flush ruleset")
try:
    clients.flush()
    print("nothing refused")
except LabError as error:
    assert str(error).endswith(" in node: No such file or directory"), error
print(chains)
"""


@pytest.mark.parametrize(
    ("tables", "clients", "chains"),
    [
        ("ip kube-proxy", "127.0.0.1", 1),
        ("ip kube-proxy,ip6 kube-proxy", "127.0.0.1,::1", 2),
        ("inet one,ip kube-proxy", "127.0.0.1", 2),
        ("ip kube-proxy,inet one", "127.0.0.1,::1", 2),
        # No rule of these sees such a packet.
        ("ip kube-proxy", "::1", 0),
        # They are more than rules are made for.
        ("ip kube-proxy", "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5", 0),
    ],
)
def test_a_few_clients_are_deleted_by_rules_and_more_with_the_whole_set(
    tables: str, clients: str, chains: int
) -> None:
    assert in_lab(PROGRAM, tables, clients) == f"{chains}\n"
