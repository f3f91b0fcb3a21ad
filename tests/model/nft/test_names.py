from __future__ import annotations

from collections.abc import Mapping

import pytest

from analyzer.model.iptables.matches import MatchIcmp
from analyzer.model.nft import names
from analyzer.parsers.words import Words
from analyzer.parsers.xt.matches import MATCHES
from tests.support.naive.values import NUMBERS
from tests.support.strategies.iptables_rules import HERE


@pytest.mark.parametrize(
    ("name", "family", "number"),
    [
        ("raw", "ip", -300),
        ("mangle", "ip6", -150),
        ("dstnat", "inet", -100),
        ("filter", "ip", 0),
        ("security", "ip", 50),
        ("srcnat", "ip", 100),
        ("dstnat", "bridge", -300),
        ("filter", "bridge", -200),
        ("out", "bridge", 100),
        ("srcnat", "bridge", 300),
        ("out", "ip", None),
        ("raw", "bridge", None),
        ("later", "ip", None),
    ],
)
def test_a_priority_has_another_number_in_a_bridge(
    name: str, family: str, number: int | None
) -> None:
    assert names.priority_number(name, family) == number


@pytest.mark.parametrize("bits", [names.CT_STATES, names.CT_STATUSES, names.TCP_FLAGS])
def test_words_for_bits_are_one_bit_each(bits: Mapping[str, int]) -> None:
    assert all(bit > 0 and bit & (bit - 1) == 0 for bit in bits.values())
    assert len(set(bits.values())) == len(bits)


def test_words_have_the_numbers_that_the_naive_interpreter_gives_them() -> None:
    tables = (names.PROTOCOLS, names.CT_STATES, names.CT_STATUSES, names.CT_DIRECTIONS)
    known = {word: number for table in tables for word, number in table.items()}
    known |= names.NF_PROTOCOLS
    shared = known.keys() & NUMBERS.keys()
    assert {word: known[word] for word in shared} == {word: NUMBERS[word] for word in shared}
    assert shared >= {"tcp", "ipv6", "new", "established", "dnat", "reply"}


def test_types_of_icmp_have_the_numbers_that_iptables_gives_them() -> None:
    for word, number in names.ICMP_TYPES.items():
        if word in {"info-request", "info-reply"}:  # iptables has no names for them
            continue
        found = MATCHES["icmp"].parse(Words(f"--icmp-type {word}", HERE))
        assert isinstance(found, MatchIcmp)
        assert found.icmp_type == number, word
