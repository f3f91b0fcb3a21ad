"""The kernel finds in an ipset what ``ipset save`` is read to hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.parsers import iptables_save
from analyzer.parsers.ipset_save import parse_ipsets
from analyzer.semantics.ipsets import NodeIpsets
from analyzer.semantics.iptables.matching import match_all
from analyzer.semantics.situation import Situation
from tests.support.lab.ipset_matches import MATCHES, SENT, rows
from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def seen() -> Any:
    return json.loads(in_lab("from tests.support.lab.ipset_matches import main; main()"))


def test_a_packet_is_in_a_set_where_the_kernel_finds_it(seen: Any) -> None:
    sets = NodeIpsets(parse_ipsets(seen["saved"].encode(), "ipset save"))
    rules = iptables_save.parse(rows(), "rows").tables["mangle"].chains["PREROUTING"].rules
    wrong, matched = [], 0
    for number, (asked, counted) in enumerate(zip(SENT, seen["matched"], strict=True), 1):
        packet = Packet(
            protocol=asked.protocol,
            source=asked.source,
            source_port=1024 + number,
            destination=asked.destination,
            destination_port=asked.port,
            in_interface=asked.device,
            out_interface="",
        )
        situation = Situation(ipsets=sets)
        for words, rule, is_in in zip(MATCHES, rules, counted, strict=True):
            told = match_all(rule.matches, packet, situation).known
            matched += is_in
            if told is not Ternary.of(is_in):
                wrong.append((str(asked), words, told, is_in))
    assert wrong == []
    assert 500 < matched < len(SENT) * len(MATCHES) - 500
