"""Which rules make the kernel ask nat; `tests/lab/test_tracking.py` asks the kernel the same."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from analyzer.kubeproxy.matched.conntrack_need import is_tracking
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.model.packet import Packet
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.tree import Either, Leaf
from tests.support.lab.running import FIXTURES
from tests.support.lab.running import NFT as NFT_FIXTURES
from tests.support.lab.tracking import IPTABLES, NFT, NOT_NEEDED, rows, ruleset

NODE = IPv4Address("192.168.0.11")
QUESTION = Question(
    packet=Packet(
        protocol="udp",
        source=NODE,
        destination=IPv4Address("203.0.113.7"),
        destination_port=53,
        in_interface="",
    ),
    addresses=(NODE,),
)
FOR_IPV6 = {
    "conntrack of both families",
    "conntrack of the other family",
    "masquerade of both families",
    "dnat of the other family",
}


@pytest.mark.parametrize("name", IPTABLES)
def test_rows_of_iptables(name: str) -> None:
    read = read_ruleset(rows(name).encode(), "dump")
    assert is_tracking([read], "ip") is (name not in NOT_NEEDED)
    assert not is_tracking([read], "ip6")  # its rules see IPv4 alone
    tree = trace([read], QUESTION, "ip").tree
    assert isinstance(tree, Either if name in NOT_NEEDED else Leaf)


@pytest.mark.parametrize("name", NFT)
def test_rules_of_nft(name: str) -> None:
    read = read_ruleset(ruleset(name).encode(), "dump")
    assert is_tracking([read], "ip") is (name not in NOT_NEEDED)
    assert is_tracking([read], "ip6") is (name in FOR_IPV6)
    tree = trace([read], QUESTION, "ip").tree
    assert isinstance(tree, Either if name in NOT_NEEDED else Leaf)


def test_a_table_that_is_asleep_needs_nothing() -> None:
    text = ruleset("conntrack").replace("table ip t {", "table ip t {\n flags dormant;")
    assert not is_tracking([read_ruleset(text.encode(), "dump")], "ip")


def test_one_dump_may_need_it_for_the_rules_of_another() -> None:
    read = [read_ruleset(rows(name).encode(), "dump") for name in ("nothing", "MASQUERADE")]
    assert is_tracking(read, "ip")


@pytest.mark.parametrize(
    "path",
    [
        *sorted(FIXTURES.glob("*/two-node@worker1/ip*-save.txt")),
        *sorted(FIXTURES.glob("*/two-node@worker1/nft-list*")),
        *sorted(NFT_FIXTURES.glob("*/*/nft-list*")),
    ],
    ids=lambda path: "/".join(path.parts[-3:]),
)
def test_kube_proxy_always_needs_it(path: Path) -> None:
    read = read_ruleset(path.read_bytes(), str(path))
    assert is_tracking([read], "ip6" if "ip6" in path.name else "ip")
