"""Base chains of which nobody knows when or where they are called."""

from __future__ import annotations

import pytest

from analyzer.model.hooks import TABLES
from analyzer.parsers import nft_text
from analyzer.semantics.base_chains import base_chains
from analyzer.semantics.calling_order import BaseChain
from analyzer.semantics.situation import Situation

FIRST = "chain first {\ntype filter hook input priority -300; policy drop;\n}\n"


def lost(head: str) -> dict[str, list[str | None]]:
    """What each hook calls first to last, by what was lost of it; None: a chain that is known."""
    text = f"table ip t {{\n{FIRST}chain c {{\n{head}\naccept\n}}\n}}\n"
    stages = base_chains([nft_text.parse(text, "dump")], "ip", Situation())
    return {
        hook: [stage.lost for stage in held if isinstance(stage, BaseChain)]
        for hook, held in stages.items()
        if held
    }


def test_a_chain_of_unknown_priority_may_come_first_at_its_hook_and_at_no_other() -> None:
    found = lost("type filter hook input priority later;")
    assert found == {"INPUT": ["input of table ip t", None]}


@pytest.mark.parametrize("head", ["type filter hook inptu priority 0;", "policy drop;"])
def test_a_chain_of_unknown_hook_may_come_first_at_all(head: str) -> None:
    found = lost(head)
    assert found.keys() == TABLES.keys()
    assert found["INPUT"] == ["input of table ip t", None]


def test_packets_may_meet_a_table_of_unknown_family() -> None:
    text = f"table pi t {{\n{FIRST}}}\ntable ip u {{\n}}\n"
    found = nft_text.parse(text, "dump")
    assert [(each.code, each.line) for each in found.diagnostics] == [("unknown-family", 1)]
    for family in ("ip", "ip6"):
        first, *_ = base_chains([found], family, Situation())["INPUT"]
        assert isinstance(first, BaseChain)
        assert first.lost == "input of table pi t"


def test_chains_that_are_known_leave_nothing_open() -> None:
    assert lost("type filter hook input priority 0;") == {"INPUT": [None, None]}
    assert lost("") == {"INPUT": [None]}
