from __future__ import annotations

from analyzer.model.iptables.rules import Chain, Rule, Ruleset, Table
from analyzer.model.iptables.targets import Drop
from tests.support.strategies.iptables_rules import HERE

RULE = Rule((), Drop(), HERE, "-A X -j DROP")


def table(**chains: int) -> Table:
    return Table(
        "ip", "nat", {name: Chain(name, (RULE,) * count) for name, count in chains.items()}
    )


def ruleset(*tables: Table, counted: int | None = None) -> Ruleset:
    return Ruleset(
        tables=dict(enumerate_names(tables)),
        family="ip",
        input_format="iptables-save",
        file="dump",
        counted=counted,
    )


def enumerate_names(tables: tuple[Table, ...]) -> list[tuple[str, Table]]:
    return [(f"t{number}", each) for number, each in enumerate(tables)]


def test_a_table_has_the_rules_of_all_its_chains() -> None:
    assert table(A=2, B=0, C=3).rules == 5


def test_a_ruleset_has_the_rules_of_all_its_tables() -> None:
    assert ruleset(table(A=2), table(A=1, B=4)).rules == 7


def test_rules_that_were_counted_while_they_were_read_are_not_counted_again() -> None:
    assert ruleset(table(A=2), counted=9).rules == 9
    assert ruleset(table(A=2), counted=0).rules == 0
