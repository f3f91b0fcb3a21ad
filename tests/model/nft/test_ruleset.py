from __future__ import annotations

from analyzer.model.diagnostics import Location
from analyzer.model.nft.ruleset import Chain, NftRuleset, Rule, Table

RULE = Rule((), Location("dump", 1), "accept")


def table(name: str, **chains: int) -> Table:
    return Table(
        family="ip",
        name=name,
        chains={each: Chain(name=each, rules=(RULE,) * count) for each, count in chains.items()},
        sets={},
        objects={},
        flowtables={},
    )


def test_a_ruleset_has_the_rules_of_all_chains_of_all_tables() -> None:
    tables = {("ip", each.name): each for each in (table("a", x=2, y=1), table("b", x=4, z=0))}
    assert [each.rules for each in tables.values()] == [3, 4]
    assert NftRuleset(tables=tables, input_format="nft", file="dump").rules == 7
