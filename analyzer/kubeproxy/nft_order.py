"""The order in which flows to a frontend meet chains of nat, by what its rules of nft say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import chain

from analyzer.kubeproxy.chain_order import ChainOrder
from analyzer.kubeproxy.nft_chains import leads_to
from analyzer.kubeproxy.nft_entrances import NAT_HOOKS, base_chains
from analyzer.kubeproxy.nft_places import Place, place_of
from analyzer.kubeproxy.view import Frontend
from analyzer.model.nft import Table
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What leads to the base chains: no chain has this name.
_HOOKS: Final = ""


@value
class _Row:
    """A rule: which packets it is for, and the chains that it sends them to."""

    place: Place
    to: frozenset[str]


def in_table(table: Table, name: str) -> str:
    """Return the name of a chain, and of its table with it."""
    return f"{table.family} {table.name} {name}"


class NftOrder:
    """The chains of nat of some tables, as flows to one frontend or the other meet them."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = tuple(tables)
        self._rows: dict[str, Sequence[_Row]] = {}

    def of(self, protocol: str, frontend: Frontend) -> ChainOrder:
        """Return the order for flows to one frontend; rules for others are left out."""
        rows: dict[str, Sequence[Collection[str]]] = {}
        for table in self._tables:
            rest = base_chains(table, NAT_HOOKS, "nat")
            while rest:
                name = rest.pop()
                if in_table(table, name) in rows or name not in table.chains:
                    continue
                found = [
                    row.to if _may_be_for(row.place, protocol, frontend) else frozenset[str]()
                    for row in self._rows_of(table, name)
                ]
                rows[in_table(table, name)] = [[in_table(table, to) for to in row] for row in found]
                rest += [to for row in found for to in row]
        rows[_HOOKS] = self._bases
        return ChainOrder(rows, [_HOOKS])

    @cached_property
    def _bases(self) -> Sequence[Collection[str]]:
        """What calls base chains: one hook or the other, and there one after the other."""
        hooks = [
            [
                in_table(table, name)
                for table in self._tables
                for name in base_chains(table, {hook}, "nat")
            ]
            for hook in NAT_HOOKS
        ]
        # Of several on one hook it is not looked at which is called first.
        return [set(chain.from_iterable(hooks))] * max(map(len, hooks))

    def _rows_of(self, table: Table, name: str) -> Sequence[_Row]:
        key = in_table(table, name)
        found = self._rows.get(key)
        if found is None:
            rules = table.chains[name].rules
            found = [_Row(place_of(rule), frozenset(leads_to(rule, table))) for rule in rules]
            self._rows[key] = found
        return found


def _may_be_for(place: Place, protocol: str, frontend: Frontend) -> bool:
    """Tell whether flows to a frontend may be ones that a rule is for."""
    address = frontend.address
    return (
        place.protocol in {None, protocol}
        and place.port in {None, frontend.port}
        and (address is None or place.address in {None, address})
    )
