"""What is assumed beyond the rules says the same of plain rows and of walks."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import pytest

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import View, each_network
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.assumed import DEFAULTS, NOTHING
from tests.support.captures import FIXTURES, ROOT

OF_IPTABLES: Final = {
    "reverse-path": ("raw", "PREROUTING", "-m rpfilter --validmark --invert -j DROP"),
    "bridge-port": ("nat", "PREROUTING", "-m physdev ! --physdev-is-in -j ACCEPT"),
    "cluster-ip": ("nat", "PREROUTING", "-m addrtype --dst-type LOCAL -j ACCEPT"),
    "limits": ("raw", "PREROUTING", "-m limit --limit 9/sec -j ACCEPT"),
    "pod-interface": ("filter", "OUTPUT", "-o lo -j DROP"),
    "policy": ("nat", "POSTROUTING", "-m policy --dir out --pol ipsec -j ACCEPT"),
    "socket": ("mangle", "PREROUTING", "-m socket --transparent -j DROP"),
    "source-port": ("raw", "PREROUTING", "-p tcp -m tcp --sport 53 -j DROP"),
}
OF_NFT: Final = {
    "reverse-path": ("prerouting priority -300", "fib saddr . iif oif missing drop"),
    "cluster-ip": ("prerouting priority -300", "fib daddr type local drop"),
    "limits": ("prerouting priority -300", "limit rate over 9/second drop"),
    "pod-interface": ("output priority 0", 'oifname "lo" drop'),
    "policy": ("prerouting priority -300", "meta ipsec exists drop"),
    "socket": ("prerouting priority -300", "socket transparent 1 drop"),
    "source-port": ("prerouting priority -300", "tcp sport 53 drop"),
}
NODE: Final = ip_address("192.168.0.11")
BASE: Final = ROOT / "fixtures" / "noise" / "base.txt"
NFT: Final = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"


def with_row(text: str, table: str, hook: str, row: str) -> str:
    """Return a dump with one more rule at the beginning of a base chain."""
    head = f"*{table}\n"
    if head not in text:
        text += f"{head}:{hook} ACCEPT [0:0]\nCOMMIT\n"
    before, _, rest = text.partition(head)
    inside, _, behind = rest.partition("COMMIT\n")
    chains = re.findall(r"(?m)^:.*\n", inside)
    rules = inside[len("".join(chains)) :]
    return f"{before}{head}{''.join(chains)}-A {hook} {row}\n{rules}COMMIT\n{behind}"


def read(text: str, assumed: Mapping[str, str], own: tuple[Address, ...], *, plainly: bool) -> View:
    ruleset = read_ruleset(text.encode(), "dump")
    known = {"node_addresses": own, "plainly": plainly, "assumed": assumed}
    if isinstance(ruleset, NftRuleset):
        return NftRecogniser(ruleset, Cluster(), **known).view()  # type: ignore[arg-type]  # as named
    assert isinstance(ruleset, Ruleset)
    return Recogniser(ruleset, Cluster(), **known).view()  # type: ignore[arg-type]  # as named


def told(found: View) -> object:
    assumed = {d.message for d in found.diagnostics if d.code == "assumed"}
    return assumed, {
        (s.name.text, s.protocol, s.version): sorted(
            (str(r.frontend), r.source.value, str(r.network), str(tuple(r.shares)), r.unresolved)
            for r in each_network(s.routes)
        )
        for s in found.services
    }


def check_both_ways(text: str) -> bool:
    """Hold both ways against each other; return whether it matters what is assumed."""
    found = []
    for own in ((), (NODE,)):
        for assumed in (DEFAULTS, NOTHING):
            plainly, walked = (told(read(text, assumed, own, plainly=p)) for p in (True, False))
            assert plainly == walked
            found.append(plainly)
    return found[0] != found[1]


def test_nothing_is_assumed_of_rules_of_kube_proxy_alone() -> None:
    assert not check_both_ways(BASE.read_text())


@pytest.mark.parametrize("name", OF_IPTABLES)
def test_both_ways_say_the_same_of_iptables(name: str) -> None:
    assert check_both_ways(with_row(BASE.read_text(), *OF_IPTABLES[name]))


@pytest.mark.deep
@pytest.mark.parametrize("name", OF_NFT)
def test_both_ways_say_the_same_of_nft(name: str) -> None:
    hook, rule = OF_NFT[name]
    chain = f"chain c {{\ntype filter hook {hook}; policy accept;\n{rule}\n}}\n"
    assert check_both_ways(f"{NFT.read_text()}\ntable ip theirs {{\n{chain}}}\n")


@pytest.mark.deep
@pytest.mark.parametrize("hook", ["forward", "output", "postrouting"])
def test_what_is_assumed_behind_nat_of_nft_is_said_before_routes_are_made(hook: str) -> None:
    head = f"type filter hook {hook} priority 0; policy drop;"
    chain = f"chain c {{\n{head}\nlimit rate 10/second accept\n}}\n"
    text = f"{NFT.read_text()}\ntable ip theirs {{\n{chain}}}\n"
    assert check_both_ways(text)
    said = [d.message for d in read(text, DEFAULTS, (NODE,), plainly=True).diagnostics]
    assert any("limits of" in each for each in said)


def test_what_is_assumed_of_cluster_ips_is_not_of_others_that_are_alike(captures: Path) -> None:
    path = captures / "1.20.2-iptables-legacy" / "features" / "iptables-legacy-save.txt.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    hook, rule = OF_NFT["cluster-ip"]
    nft = (captures / "1.36.2-nftables" / "features" / "nft-list-ruleset.txt").read_text()
    chain = f"chain c {{\ntype filter hook {hook}; policy accept;\n{rule}\n}}\n"
    for dump in (
        with_row(text, *OF_IPTABLES["cluster-ip"]),
        f"{nft}\ntable ip theirs {{\n{chain}}}\n",
    ):
        plainly, walked = (told(read(dump, DEFAULTS, (), plainly=p)) for p in (True, False))
        assert plainly == walked
