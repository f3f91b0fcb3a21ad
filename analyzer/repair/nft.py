"""A repair in nftables mode: a table of our own evaluated before kube-proxy's.

Theory of operation
===================

Table ``kubeodds`` has nat chains one priority before those of table ``kube-proxy``. They contain
copies of the chains by which flows reach dead endpoints, under the same names, since another table
is another namespace; of the maps, only the elements that lead to these chains. In the copies dead
endpoints are left out and draws are among the living ones. A flow that finds none is rejected at
once. Once a chain has set up NAT for a flow, later nat chains are not evaluated; a flow that no
copy takes continues in kube-proxy's. kube-proxy touches no table but its own.

Session affinity is kept in sets, which belong to a table too: copies of them begin with the clients
of the dump. ``create`` refuses an existing table, so that a second time is refused as a whole.

Source: nft(8); kubernetes, pkg/proxy/nftables/proxier.go, ``setupNFTables``, ``syncProxyRules``;
Linux, net/netfilter/nft_reject.c, ``nft_reject_validate``: PREROUTING since 5.9.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.nft import statements as st
from analyzer.model.nft.expressions import (
    Accept,
    AnonymousSet,
    Concat,
    Element,
    Goto,
    Jump,
    MapLookup,
    Numgen,
    SetRef,
    Unknown,
)
from analyzer.model.nft.ruleset import Chain, NftRuleset, Rule, Set, Table
from analyzer.model.value import fields_of, is_value, replace
from analyzer.repair.nft_text import transaction
from analyzer.repair.patch import TABLE, NotCopied, RulesPatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.kubeproxy.absent import FrontendMatch
    from analyzer.model.nft.expressions import Expression
    from analyzer.model.nft.statements import Statement

_KUBE_PROXY: Final = "kube-proxy"
_HOOKS: Final = ("prerouting", "output")
_CLUSTER_IPS: Final = "cluster-ips"
_NODE_PORTS: Final = "service-nodeports"
_SERVICES: Final = "service-ips"
_REJECT: Final = st.Reject("icmp", "port-unreachable")
_REJECT_6: Final = st.Reject("icmpv6", "port-unreachable")
#: Chains, one within the other, beyond which nothing is kube-proxy's.
_DEEPEST: Final = 30


def repaired_tables(
    ruleset: NftRuleset, dead: Collection[Endpoint], spared: Collection[FrontendMatch] = ()
) -> tuple[tuple[Table, ...], tuple[RulesPatch, ...]]:
    """Return the table that removes `dead`, for each IP version that has some; and text.

    Flows to one of `spared` continue as before, to the dead too.
    """
    tables: list[Table] = []
    patches: list[RulesPatch] = []
    for family in ("ip", "ip6"):
        table = ruleset.tables.get((family, _KUBE_PROXY))
        if table is None:
            continue
        own, problems = table_of(table, dead, spared)
        text = ""
        if own is not None:
            try:
                text = transaction(own)
                tables.append(own)
            except NotCopied as why:
                problems = (*problems, f"table {family} {_KUBE_PROXY}: {why}")
        patches.append(
            RulesPatch(
                family=family,
                program="nft -f -",
                apply=text,
                undo=f"delete table {family} {TABLE}\n" if text else "",
                problems=problems,
            )
        )
    return tuple(tables), tuple(patches)


def table_of(
    table: Table, dead: Collection[Endpoint], spared: Collection[FrontendMatch] = ()
) -> tuple[Table | None, tuple[str, ...]]:
    """Return the table to put in front, None if there is nothing to repair; and problems."""
    where = f"table {table.family} {table.name}"
    if not table.complete:
        return None, (f"{where} is incomplete in the dump; take it again",)
    maker = _Maker(table, dead, spared)
    try:
        found = maker.table()
    except NotCopied as why:
        return None, (*maker.problems, f"{where}: {why}")
    return found, tuple(dict.fromkeys(maker.problems))


class _Maker:
    """Makes the table of one family."""

    def __init__(
        self, table: Table, dead: Collection[Endpoint], spared: Collection[FrontendMatch]
    ) -> None:
        self._table = table
        self._spared = {
            (by, port) if address is None else (address, by, port) for by, address, port in spared
        }
        self._dead = {(each.address, each.port) for each in dead}
        self._gone: dict[str, bool] = {}
        self._leads: dict[str, bool] = {}
        self._chains: dict[str, Chain] = {}
        self._sets: dict[str, Set] = {}
        self._keys: dict[str, set[Any]] = {}
        self.problems: list[str] = []

    def table(self) -> Table | None:
        """Return the table; None if nothing leads to dead endpoints.

        Raises:
            NotCopied: something on the way is not understood.
        """
        elements = {name: self._led(name) for name in self._table.sets if self._is_vmap(name)}
        affected = {name: found for name, found in elements.items() if found}
        if not affected:
            return None
        for name, found in affected.items():
            self._keys[name] = {each.key for each in found}
        for chain in self._table.chains.values():
            if chain.type == "nat" and chain.hook in _HOOKS:
                if chain.priority is None:
                    raise NotCopied(f"chain {chain.name} has no priority")
                own = replace(chain, priority=chain.priority - 1, comment=None)
                self._chains[own.name] = replace(own, rules=tuple(self._entry(chain)))
        for name, found in affected.items():
            if name in self._sets:
                kept = (*self._guards(name), *found)
                self._sets[name] = replace(self._sets[name], elements=kept)
        return Table(
            family=self._table.family,
            name=TABLE,
            chains=self._chains,
            sets=self._sets,
            objects={},
            flowtables={},
        )

    # --- what is affected ----------------------------------------------------------

    def _is_vmap(self, name: str) -> bool:
        return self._table.sets[name].value == ("verdict",)

    def _led(self, name: str) -> tuple[Element, ...]:
        """Return the elements of a verdict map that lead to the dead."""
        found = []
        for each in self._table.sets[name].elements:
            if isinstance(each.key, Concat) and each.key.parts in self._spared:
                continue
            match each.value:
                case Jump(to) | Goto(to) if self._leads_to_dead(to):
                    try:
                        self._copy(to)
                    except NotCopied as why:
                        self.problems.append(f"{names.name_in_chain(to) or to}: {why}")
                        continue
                    found.append(replace(each, comment=None, counter=None))
                case _:
                    pass
        return tuple(found)

    def _guards(self, name: str) -> Iterator[Element]:
        """Yield what leaves flows to kube-proxy that it takes before it looks at NodePorts."""
        if name != _SERVICES or _NODE_PORTS not in self._keys:
            return
        ports = {key.parts for key in self._keys[_NODE_PORTS] if isinstance(key, Concat)}
        for each in self._table.sets[name].elements:
            key = each.key
            if key in self._keys[name] or not isinstance(key, Concat):
                continue
            if key.parts[1:] in ports:
                yield Element(key=key, value=Accept())

    def _leads_to_dead(self, name: str) -> bool:
        if name not in self._leads:
            self._leads[name] = False  # a chain that leads to itself adds nothing
            chain = self._table.chains.get(name)
            rules: Iterable[Rule] = () if chain is None else chain.rules
            self._leads[name] = any(self._ends_dead(s) for rule in rules for s in rule.statements)
        return self._leads[name]

    def _ends_dead(self, given: Any) -> bool:
        match given:
            case st.Dnat(address=MapLookup(_, AnonymousSet(elements))):
                return any(self._is_dead(each.value) for each in elements)
            case st.Dnat():
                return (given.address, given.port) in self._dead or self._is_dead(given.address)
            case Jump(to) | Goto(to):
                return self._leads_to_dead(to)
            case st.Vmap(_, AnonymousSet(elements)):
                return any(self._ends_dead(each.value) for each in elements)
            case _:
                return False

    def _is_dead(self, to: Expression | None) -> bool:
        return isinstance(to, Concat) and tuple(to.parts) in self._dead

    def _is_gone(self, name: str) -> bool:
        """Return whether a chain is that of a dead endpoint: all that it sends on goes there."""
        if name not in self._gone:
            chain = self._table.chains.get(name)
            every = [s for rule in (() if chain is None else chain.rules) for s in rule.statements]
            ends = [s for s in every if isinstance(s, st.Dnat)]
            single = not any(isinstance(s.address, MapLookup) for s in ends)
            is_endpoint = name.startswith(names.NFT_ENDPOINT_PREFIX) and bool(ends) and single
            self._gone[name] = is_endpoint and all(map(self._ends_dead, ends))
        return self._gone[name]

    # --- copies --------------------------------------------------------------------

    def _entry(self, chain: Chain) -> Iterator[Rule]:
        """Yield the rules by which flows come in, of chains that are entered by any flow."""
        for rule in chain.rules:
            yield self._rule(rule, 0)

    def _copy(self, name: str, depth: int = 0) -> None:
        """Copy a chain, if that is not done.

        Raises:
            NotCopied: something in it is not understood.
        """
        if name in self._chains:
            return
        if name not in self._table.chains or depth > _DEEPEST:
            raise NotCopied(f"chain {name} is not in the dump, or jumps to itself")
        chains, sets = dict(self._chains), dict(self._sets)
        chain = self._table.chains[name]
        self._chains[name] = Chain(name=name, rules=())  # after those that it leads to, by name
        try:
            rules = tuple(self._rules(chain.rules, depth))
        except NotCopied:
            self._chains, self._sets = chains, sets
            raise
        self._chains[name] = Chain(name=name, rules=rules)

    def _rules(self, rules: Sequence[Rule], depth: int) -> Iterator[Rule]:
        for rule in rules:
            match rule.statements[-1:]:
                case (Jump(to) | Goto(to),) if self._is_gone(to):
                    if rule.statements[:-1]:  # a client that was pinned there
                        continue
                    yield replace(rule, statements=(self._reject(),), comment=None)
                case _:
                    yield self._rule(rule, depth)

    def _rule(self, rule: Rule, depth: int) -> Rule:
        statements = tuple(self._statement(each, rule, depth) for each in rule.statements)
        self._need(statements, rule)
        return replace(rule, statements=statements, comment=None)

    def _reject(self) -> st.Reject:
        return _REJECT if self._table.family == "ip" else _REJECT_6

    def _statement(self, given: Statement, rule: Rule, depth: int) -> Statement:
        match given:
            case Jump(to) | Goto(to):
                self._copy(to, depth + 1)
            case st.Vmap(Numgen() as draw, AnonymousSet(elements)):
                living = [e for e in elements if not self._leads_away(e.value)]
                for each in living:
                    self._copy_verdict(each.value, depth)
                return self._drawn(draw, elements, living, rule, st.Vmap)
            case st.Vmap(_, AnonymousSet(elements)):
                for each in elements:
                    self._copy_verdict(each.value, depth)
            case st.Dnat(address=MapLookup(Numgen() as draw, AnonymousSet(elements))):
                living = [e for e in elements if not self._is_dead(e.value)]
                return self._drawn(
                    draw,
                    elements,
                    living,
                    rule,
                    lambda key, held: replace(given, address=MapLookup(key, held)),
                )
            case st.Dnat() if self._ends_dead(given):
                return self._reject()
            case _:
                pass
        return given

    def _leads_away(self, verdict: Expression | None) -> bool:
        match verdict:
            case Jump(to) | Goto(to):
                return self._is_gone(to)
            case _:
                return False

    def _copy_verdict(self, verdict: Expression | None, depth: int) -> None:
        match verdict:
            case Jump(to) | Goto(to):
                self._copy(to, depth + 1)
            case _:
                pass

    def _drawn(
        self,
        draw: Numgen,
        elements: Sequence[Element],
        living: Sequence[Element],
        rule: Rule,
        made: Any,
    ) -> Statement:
        """Return a draw among the living, or a rejection where none is left.

        Raises:
            NotCopied: not every number that is drawn has its element.
        """
        if draw.mode != "random" or [e.key for e in elements] != [
            *range(draw.offset, draw.offset + draw.mod)
        ]:
            raise NotCopied(f"rule {rule.location} draws differently from kube-proxy's")
        if not living:
            return self._reject()
        if len(living) == len(elements):
            anew = tuple(elements)
        else:
            anew = tuple(replace(each, key=at) for at, each in enumerate(living))
            draw = replace(draw, mod=len(anew), offset=0)
        found: Statement = made(draw, AnonymousSet(anew))
        return found

    # --- sets ----------------------------------------------------------------------

    def _need(self, given: Any, rule: Rule) -> None:
        """Copy the sets that a rule names.

        Raises:
            NotCopied: it names what is not there, or holds what is not understood.
        """
        match given:
            case Unknown() | st.Xt() | st.ObjectRef():
                raise NotCopied(f"rule {rule.location} is not understood")
            case SetRef(name):
                self._take(name)
            case st.SetUpdate(set=name):
                self._take(name)
            case tuple():
                for each in given:
                    self._need(each, rule)
            case _ if is_value(given):
                for field in fields_of(type(given)):
                    self._need(getattr(given, field), rule)
            case _:
                pass

    def _take(self, name: str) -> None:
        if name in self._sets:
            return
        held = self._table.sets.get(name)
        if held is None:
            raise NotCopied(f"set {name} is not in the dump")
        elements: Iterable[Element] = held.elements
        if self._is_vmap(name):
            elements = ()  # those that lead to copies come later
        elif name == _CLUSTER_IPS:
            wanted = {
                key.parts[0] for key in self._keys.get(_SERVICES, ()) if isinstance(key, Concat)
            }
            elements = (each for each in elements if each.key in wanted)
        kept = tuple(replace(each, comment=None, counter=None) for each in elements)
        self._sets[name] = replace(held, elements=kept, comment=None)


def with_table(ruleset: NftRuleset, own: Iterable[Table]) -> NftRuleset:
    """Return the ruleset with tables of ours added."""
    tables: Mapping[tuple[str, str], Table] = {
        **ruleset.tables,
        **{(each.family, each.name): each for each in own},
    }
    return replace(ruleset, tables=tables)


def has_repair(ruleset: NftRuleset) -> bool:
    """Return whether the rules contain a repair."""
    return any(name == TABLE for _, name in ruleset.tables)
