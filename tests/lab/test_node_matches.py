"""What is assumed of the node is what the kernel says where it is so."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from analyzer.model.nft.statements import CtCount, Limit, Match
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.parsers import iptables_save, nft_text
from analyzer.semantics.assumed import DEFAULTS, Assumed
from analyzer.semantics.iptables.matching import match_all
from analyzer.semantics.nft.matching import Lookups
from analyzer.semantics.nft.rule import limited
from analyzer.semantics.situation import Situation
from tests.support.lab.node_matches import IPTABLES, NFT, SENT, rows, ruleset
from tests.support.lab.random_rules import NODE
from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

#: What the reverse-path check makes of each packet.
CHECK: Final = {**dict.fromkeys(SENT, "pass"), "a false source": "fail"}


@pytest.fixture(scope="module")
def seen() -> Any:
    return json.loads(in_lab("from tests.support.lab.node_matches import main; main()"))


def asked(name: str) -> tuple[Packet, Situation]:
    sent = SENT[name]
    packet = Packet(
        protocol="udp",
        source=sent.source,
        destination=sent.destination,
        destination_port=sent.port,
        in_interface=sent.device,
    )
    assumed = Assumed({**DEFAULTS, "reverse-path": CHECK[name]})
    return packet, Situation(local_addresses=frozenset({NODE}), flow=packet, assumed=assumed)


@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize("program", ["iptables-legacy", "iptables-nft"])
def test_matches_of_iptables_are_as_assumed(program: str, name: str, seen: Any) -> None:
    packet, situation = asked(name)
    rules = iptables_save.parse(rows(), "rows").tables["mangle"].chains["PREROUTING"].rules
    wanted = [match_all(rule.matches, packet, situation).known for rule in rules]
    assert Ternary.UNKNOWN not in wanted
    found = dict(zip(IPTABLES, seen[program][name], strict=True))
    assert found == dict(zip(IPTABLES, [known is Ternary.TRUE for known in wanted], strict=True))


@pytest.mark.parametrize("name", SENT)
def test_matches_of_nft_are_as_assumed(name: str, seen: Any) -> None:
    packet, situation = asked(name)
    table = nft_text.parse(ruleset(), "rules").tables["ip", "t"]
    lookups = Lookups(table, "ip", situation)
    wanted = []
    for rule in table.chains["c"].rules:
        match rule.statements[0]:
            case Match() as given:
                wanted.append(lookups.evaluate(given, packet).known)
            case Limit() | CtCount() as given:
                wanted.append(limited(given, situation))
            case other:
                raise AssertionError(other)
    assert Ternary.UNKNOWN not in wanted
    found = dict(zip(NFT, seen["nft"][name], strict=True))
    assert found == dict(zip(NFT, [known is Ternary.TRUE for known in wanted], strict=True))
