from __future__ import annotations

import pytest

from analyzer.kubeproxy.between import ANYTHING, NOTHING, Between
from analyzer.kubeproxy.nft_marks import changed_by_all
from analyzer.model.packet import ALL_BITS
from analyzer.parsers import iptables_save, nft_text
from analyzer.semantics.base_chains import Rules

FORWARD = "filter hook forward priority filter"


def nft(rule: str, head: str = FORWARD, family: str = "ip") -> Rules:
    return nft_text.parse(
        f"table {family} t {{\n\tchain c {{\n\t\ttype {head}; policy accept;\n\t\t{rule}\n\t}}\n"
        "\tchain next {\n\t\tmeta mark set meta mark | 0x8\n\t}\n"
        "\tchain idle {\n\t\tmeta mark set 0x0\n\t}\n}\n",
        "dump",
    )


def bits(rule: str, head: str = FORWARD, family: str = "ip") -> int:
    return changed_by_all([nft(rule, head, family)], "ip").mark


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("accept", 0),
        ("meta mark 0x1 accept", 0),
        ("ct mark set 0x1", 0),
        ("meta mark set meta mark | 0x4000", 0x4000),
        ("meta mark set meta mark ^ 0x4000", 0x4000),
        ("meta mark set meta mark & 0xffffbfff", 0x4000),
        ("meta mark set meta mark & 0xfffffff0 | 0x30", 0x3F),
        ("meta mark set meta mark & 0xfffffff0 ^ 0x30", 0x3F),
        ("meta mark set (meta mark | 0x30) & 0xfffffff0", 0x3F),
        ("meta mark set 0x1", ALL_BITS),
        ("meta mark set ct mark", ALL_BITS),
        ("meta mark set meta mark << 1", ALL_BITS),
        ("queue to 0", ALL_BITS),
        ("made up", ALL_BITS),
        ('xt target "MARK"', ALL_BITS),
        ('xt match "comment"', 0),
        ("jump next", 0x8),
        ("meta l4proto vmap { tcp : jump next }", 0x8),
    ],
)
def test_the_bits_that_a_rule_may_change_are_known(rule: str, changed: int) -> None:
    assert bits(rule) == changed


@pytest.mark.parametrize(
    ("head", "is_between"),
    [
        ("filter hook forward priority -300", True),
        ("filter hook output priority -100", True),
        ("route hook output priority mangle", False),
        ("filter hook postrouting priority mangle", True),
        ("filter hook postrouting priority 101", False),
        ("nat hook postrouting priority srcnat", False),
        ("filter hook prerouting priority dstnat", True),
        ("filter hook prerouting priority filter", True),
        ("filter hook prerouting priority -101", False),
        ("filter hook prerouting priority later", True),
        ("nat hook prerouting priority 0", False),
        ("filter hook input priority filter", False),
        ("filter hook prerouting priority raw", False),
    ],
)
def test_only_chains_between_dnat_and_masquerading_matter(head: str, is_between: bool) -> None:
    assert bool(bits("meta mark set 0x1", head)) is is_between


@pytest.mark.parametrize(("family", "matters"), [("ip", True), ("inet", True), ("ip6", False)])
def test_only_tables_that_packets_of_the_family_meet_matter(family: str, matters: bool) -> None:
    assert bool(bits("meta mark set 0x1", family=family)) is matters


def test_what_all_rulesets_may_change_is_put_together() -> None:
    saved = "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j MARK --set-xmark 0x10/0x10\nCOMMIT\n"
    iptables = iptables_save.parse(saved, "dump")
    assert changed_by_all([nft("jump next"), iptables], "ip").mark == 0x18
    assert changed_by_all([iptables], "ip6") == NOTHING


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (
            "table ip t {\n\tchain c {\n\t\ttype filter hook forward priority later;\n\t}\n}\n",
            ANYTHING,
        ),
        ("table ip t {\n\tmeta mark set 0x1\n}\n", ANYTHING),
        ("table ip6 t {\n\tmeta mark set 0x1\n}\n", NOTHING),
    ],
)
def test_what_may_be_called_in_between_may_change_any_bit(text: str, changed: Between) -> None:
    assert changed_by_all([nft_text.parse(text, "dump")], "ip") == changed
