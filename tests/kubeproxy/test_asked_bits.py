from __future__ import annotations

import pytest

from analyzer.kubeproxy.asked_bits import asked_bits
from analyzer.model.packet import ALL_BITS
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
        # What is copied may be matched on as what it becomes.
        (["-A PREROUTING -j CONNMARK --save-mark --nfmask 0x1 --ctmask 0x1"], ALL_BITS),
        (["-A PREROUTING -j CONNMARK --restore-mark --nfmask 0x1 --ctmask 0x1"], ALL_BITS),
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
        ("meta mark set ct mark", ALL_BITS),
        ("ct mark set meta mark", ALL_BITS),
        ("meta mark vmap { 0x00000001 : drop }", ALL_BITS),
    ],
)
def test_bits_are_those_that_rules_of_nft_match_on(rule: str, bits: int) -> None:
    text = f"table ip t {{\n\tchain c {{\n\t\t{rule}\n\t}}\n}}\n"
    assert asked_bits([read_ruleset(text.encode(), "dump")]) == bits
