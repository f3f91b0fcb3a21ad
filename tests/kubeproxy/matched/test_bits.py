from __future__ import annotations

import pytest

from analyzer.kubeproxy.matched.bits import asked_bits
from analyzer.model.ipsets import Ipset
from analyzer.model.packet import ALL_BITS
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from tests.support.shapes import dump


@pytest.mark.parametrize(
    ("rows", "bits"),
    [
        (["-A PREROUTING -j MARK --set-xmark 0x1/0x1"], 0),
        (["-A PREROUTING -m mark --mark 0x4000/0x4000 -j RETURN"], 0x4000),
        (["-A c -m mark ! --mark 0x10/0x30 -j RETURN", "-A c -m mark --mark 0x1/0x1"], 0x31),
        (["-A PREROUTING -m mark --mark 0x1 -j RETURN"], ALL_BITS),
        (["-A PREROUTING -m connmark --mark 0x2/0x2 -j RETURN"], 2),
        # What is copied stays where it stands.
        (["-A PREROUTING -j CONNMARK --save-mark --nfmask 0x1 --ctmask 0x1"], 0),
        (
            [
                "-A PREROUTING -j CONNMARK --restore-mark --nfmask 0x3 --ctmask 0x3",
                "-A PREROUTING -m mark --mark 0x2/0x2 -j RETURN",
            ],
            2,
        ),
    ],
)
def test_bits_are_those_that_rows_match_on(rows: list[str], bits: int) -> None:
    assert asked_bits([read_ruleset(dump(rows).encode(), "dump")]) == bits
    # A piece without its table is read row by row.
    piece = "\n".join(rows) + "\n"
    assert asked_bits([read_ruleset(piece.encode(), "dump", table="nat")]) == bits


@pytest.mark.parametrize(
    ("rule", "bits"),
    [
        ("meta mark set meta mark | 0x00000001", 0),
        ("meta mark set 0x00000001", 0),
        ("ct mark set ct mark & 0xfffffff0 | 0x00000001", 0),
        ("meta mark & 0x00004000 == 0x00004000 return", 0x4000),
        ("ct mark & 0x00000003 != 0x00000000 return", 3),
        ("meta mark 0x00000001 return", ALL_BITS),
        ("meta mark set ct mark", 0),
        ("ct mark set meta mark & 0x00000003 | 0x00000008", 0),
        ("meta mark set meta mark << 0x00000002", ALL_BITS),
        ("meta mark set meta mark | ct mark", ALL_BITS),
        ("meta mark vmap { 0x00000001 : drop }", ALL_BITS),
    ],
)
def test_bits_are_those_that_rules_of_nft_match_on(rule: str, bits: int) -> None:
    text = f"table ip t {{\n\tchain c {{\n\t\t{rule}\n\t}}\n}}\n"
    assert asked_bits([read_ruleset(text.encode(), "dump")]) == bits


def test_a_set_of_marks_may_match_on_any_bit() -> None:
    rows = ["-A PREROUTING -m set --match-set marked src -j RETURN"]
    ruleset = read_ruleset(dump(rows).encode(), "dump")
    held = Ipset(name="marked", type="hash:ip,mark", kinds=("ip", "mark"), version=4)
    assert asked_bits([ruleset]) == 0
    assert asked_bits([replace(ruleset, ipsets={"marked": held})]) == ALL_BITS
