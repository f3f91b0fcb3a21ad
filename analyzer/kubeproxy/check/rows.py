"""The rules that invariants look at, parsed from their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.model.iptables.rules import Chain, Table
from analyzer.parsers.rows import Chains, RuleRows
from analyzer.parsers.xt.row_shapes import RowShapes


class Rows:
    """The rules of a table's chains, each parsed on demand."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._shapes = RowShapes()

    def of(self, chain: Chain) -> Iterator[ChainRule]:
        """Yield the rules of a chain.

        Raises:
            ParseError: one is malformed.
        """
        rules = chain.rules
        if isinstance(rules, RuleRows):
            for number, text in rules.rows:
                yield ChainRule(chain.name, rules.understand(number, text, self._shapes))
        else:
            for rule in rules:
                yield ChainRule(chain.name, rule)

    def row(self, chain: str, number: int, text: str) -> ChainRule:
        """Return the rule of one row.

        Raises:
            ParseError: it is malformed.
        """
        rules = self._table.chains[chain].rules
        assert isinstance(rules, RuleRows)  # the caller has the row
        return ChainRule(chain, rules.understand(number, text, self._shapes))

    def of_all(self, wanted: Iterable[str]) -> dict[str, list[ChainRule]]:
        """Return the rules of some chains.

        Raises:
            ParseError: one is malformed.
        """
        chains = self._table.chains
        if isinstance(chains, Chains):
            groups = chains.block.groups
            wanted = sorted(wanted, key=lambda name: groups.get(name, (0, 0)))
        return {name: list(self.of(chains[name])) for name in wanted}
