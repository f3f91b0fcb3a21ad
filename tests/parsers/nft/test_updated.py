"""Sets that rules update are dynamic: text and JSON of nft do not always say so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers.formats import read_ruleset

SADDR = {"payload": {"protocol": "ip", "field": "saddr"}}
PLACE = {"family": "ip", "table": "x"}
LISTED = """\
table ip x {
	set held {
		type ipv4_addr
		flags %s
	}
	map kept {
		type ipv4_addr : mark
	}
	set fixed {
		type ipv4_addr
	}
	chain c {
		ip saddr @fixed ip daddr @held drop
		%s
	}
}
"""


def flags(text: str) -> dict[str, tuple[str, ...]]:
    """Return the flags of each set."""
    ruleset = read_ruleset(text.encode(), "dump")
    assert isinstance(ruleset, NftRuleset)
    return {name: held.flags for name, held in ruleset.tables["ip", "x"].sets.items()}


@pytest.mark.parametrize(
    ("rule", "updated"),
    [
        ("add @held { ip saddr }", {"held"}),
        ("tcp dport 22 update @kept { ip saddr : 0x1 }", {"kept"}),
        ("delete @held { ip saddr } update @kept { ip saddr : 0x1 }", {"held", "kept"}),
        ("ip saddr @held drop", set()),
        ("meta mark set ip saddr map @kept", set()),
    ],
)
def test_a_set_that_a_rule_of_text_updates_is_dynamic(rule: str, updated: set[str]) -> None:
    found = flags(LISTED % ("interval", rule))
    assert found.pop("held") == (("dynamic",) * ("held" in updated) + ("interval",))
    assert found == {"kept": ("dynamic",) if "kept" in updated else (), "fixed": ()}
    assert flags(LISTED % ("dynamic,timeout", rule))["held"] == ("dynamic", "timeout")


@pytest.mark.parametrize(
    ("statements", "updated"),
    [
        ([{"set": {"op": "add", "elem": SADDR, "set": "@held"}}], {"held"}),
        ([{"map": {"op": "update", "elem": SADDR, "data": 1, "map": "@kept"}}], {"kept"}),
        ([{"match": {"op": "==", "left": SADDR, "right": "@held"}}, {"drop": None}], set()),
        (["update @kept { ip saddr : 0x00000001 }"], {"kept"}),  # as nft 1.0.6 prints it
        ([{"set": 1}, None, {"map": {"map": {}}}, "@kept"], set()),
    ],
)
def test_so_is_one_that_a_rule_of_json_updates(statements: list[Any], updated: set[str]) -> None:
    given: list[Any] = [
        {"table": {"family": "ip", "name": "x"}},
        {"set": {**PLACE, "name": "held", "type": "ipv4_addr"}},
        {"map": {**PLACE, "name": "kept", "type": "ipv4_addr", "map": "mark"}},
        {"chain": {**PLACE, "name": "c"}},
        {"rule": {**PLACE, "chain": "c", "expr": statements}},
    ]
    found = flags(json.dumps({"nftables": given}))
    assert {name for name, held in found.items() if "dynamic" in held} == updated
