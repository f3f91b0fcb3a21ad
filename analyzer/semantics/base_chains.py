"""The chains that a hook calls, in the order in which it calls them.

All tables of a node, whatever has written them, hang their base chains on the same hooks, each
with a priority; those of iptables have fixed ones. Chains of type nat are the exception: whatever
their priorities, they are called together, from where the first of iptables' would be, one after
the other until one of them has changed the flow.

Of two chains of one priority the one that was registered later is called first. Within one
ruleset of nft the order of the listing tells that; between two rulesets nobody does. The chains of
nat count from when the first of them was registered, on whatever hook.

Source: Linux, net/netfilter/core.c, ``nf_hook_entries_grow``; net/netfilter/nf_nat_core.c,
``nf_nat_register_fn``, ``nf_nat_inet_fn``; include/uapi/linux/netfilter_ipv4.h,
``nf_ip_hook_priorities``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, permutations
from typing import Final, Protocol, TypeAlias

from analyzer.model.hooks import PRIORITIES, TABLES
from analyzer.model.nft import NftRuleset
from analyzer.model.nft import Table as NftTable
from analyzer.model.packet import Packet
from analyzer.model.rules import Ruleset
from analyzer.model.value import replace, value
from analyzer.semantics.situation import Situation
from analyzer.semantics.traverse import Traversal
from analyzer.semantics.tree import Tree

Rules: TypeAlias = Ruleset | NftRuleset

#: Of conntrack; what has a lower priority meets packets that it has not seen.
_CONNTRACK: Final = -200
#: Where conntrack sees packets for the first time.
_FIRST: Final = frozenset({"PREROUTING", "OUTPUT"})
#: Of the chains of type nat, by hook.
_NAT: Final = {"PREROUTING": -100, "OUTPUT": -100, "INPUT": 100, "POSTROUTING": 100}
#: The place of nat among the chains of its priority.
_AT_NAT: Final = 1
#: Families of nft whose chains packets of a family meet.
_FAMILIES: Final = {"ip": ("ip", "inet"), "ip6": ("ip6", "inet")}


class Walker(Protocol):
    """Walks packets through the chains of one table."""

    judged: set[type]

    @property
    def visited(self) -> list[str]:
        """The chains that packets came to so far."""

    def tree(self, chain: str, packet: Packet) -> Tree:
        """Return what happens to `packet` from the first rule of `chain` on."""


@value(kw_only=True)
class BaseChain:
    """A chain that a hook calls.

    Attributes:
        ruleset: the number, from 0, of the ruleset that holds it.
        table: as people call it: ``nat``, ``ip kube-proxy``.
        policy: ACCEPT or DROP; None: a fragment that does not say it.
        is_before: whether conntrack has not seen the packet yet.
        is_behind_nat: of a chain with the priority of nat: whether it was registered sooner.
        matters: whether it can do anything to a packet.
        lost: of a table that is not whole: which chain it may have had; the walker is not asked.
        again: walks packets that conntrack knows, which came back by loopback.
    """

    ruleset: int
    table: str
    name: str
    hook: str
    priority: int
    is_nat: bool
    policy: str | None
    walker: Walker
    again: Walker
    is_before: bool = False
    is_behind_nat: bool = False
    matters: bool = True
    lost: str | None = None

    @property
    def rank(self) -> tuple[int, int, int]:
        """Where the hook calls it: the nat chains together, in the order of their own."""
        if self.is_nat:
            return _NAT[self.hook], _AT_NAT, self.priority
        is_behind = self.is_behind_nat and self.priority == _NAT.get(self.hook)
        return self.priority, _AT_NAT + (1 if is_behind else -1), self.priority

    @property
    def lacks_policy(self) -> bool:
        """Whether a fragment does not say a policy; iptables lets nat have ACCEPT only."""
        return self.policy is None and not self.is_nat


@value
class Tie:
    """Chains of one priority, in each of the orders in which they may be called."""

    orders: tuple[tuple[BaseChain, ...], ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """Where the hook calls them."""
        return self.orders[0][0].rank


#: What a hook calls.
Stage: TypeAlias = BaseChain | Tie


def base_chains(
    rulesets: Sequence[Rules], family: str, situation: Situation
) -> dict[str, tuple[Stage, ...]]:
    """Return what each hook calls, by the names that iptables gives to hooks.

    Chains that can do nothing to a packet are left out.
    """
    found: dict[str, list[BaseChain]] = {hook: [] for hook in TABLES}
    for number, ruleset in enumerate(rulesets):
        if isinstance(ruleset, NftRuleset):
            each = _of_nft(number, ruleset, family, situation)
        elif ruleset.family == family:
            each = _of_iptables(number, ruleset, situation)
        else:
            continue
        for chain in each:
            found[chain.hook].append(chain)
    return {hook: tuple(_in_order(chains)) for hook, chains in found.items()}


def before_conntrack(situation: Situation) -> Situation:
    """Return what is so for a packet that conntrack has not seen."""
    return replace(situation, state="INVALID", has_entry=False)


def _of_iptables(number: int, ruleset: Ruleset, situation: Situation) -> Iterator[BaseChain]:
    for name, table in ruleset.tables.items():
        again = Traversal(table, situation)
        is_before = name == "raw"
        walker = Traversal(table, before_conntrack(situation)) if is_before else again
        for hook, tables in TABLES.items():
            if name not in tables:
                continue
            chain = table.chains.get(hook)
            lost = f"{hook} of table {name}"
            if chain is None and table.complete:
                continue
            yield BaseChain(
                ruleset=number,
                table=name,
                name=hook,
                hook=hook,
                priority=PRIORITIES[name, hook],
                is_nat=name == "nat",
                policy=None if chain is None else chain.policy,
                walker=walker,
                again=again,
                is_before=is_before,
                matters=chain is None or len(chain.rules) > 0 or chain.policy != "ACCEPT",
                lost=lost if chain is None else None,
            )


def _of_nft(
    number: int, ruleset: NftRuleset, family: str, situation: Situation
) -> Iterator[BaseChain]:
    tables = [
        table
        for table in ruleset.tables.values()
        if table.family in _FAMILIES[family] and "dormant" not in table.flags
    ]
    sooner = _before_nat(tables)
    # What was registered later is called first.
    for table in reversed(tables):
        yield from _of_nft_table(number, table, family, situation, sooner)


def _before_nat(tables: Iterable[NftTable]) -> frozenset[tuple[str, str, str]]:
    """Return the base chains that were registered before the first one of nat.

    Source: Linux, net/netfilter/nf_nat_core.c, ``nf_nat_register_fn``: that one registers nat on
    all its hooks.
    """
    found: set[tuple[str, str, str]] = set()
    for table in tables:
        for chain in table.chains.values():
            if chain.type == "nat":
                return frozenset(found)
            found.add((table.family, table.name, chain.name))
    return frozenset()  # there is none


def _of_nft_table(
    number: int,
    table: NftTable,
    family: str,
    situation: Situation,
    sooner: frozenset[tuple[str, str, str]],
) -> Iterator[BaseChain]:
    from analyzer.semantics.nft_traverse import NftTraversal  # not for nodes without nft

    again = NftTraversal(table, family, situation)
    before = NftTraversal(table, family, before_conntrack(situation))
    name = f"{table.family} {table.name}"
    if not table.complete:
        for hook in TABLES:
            yield BaseChain(
                ruleset=number,
                table=name,
                name="",
                hook=hook,
                priority=0,
                is_nat=False,
                policy="ACCEPT",
                walker=again,
                again=again,
                lost=f"{hook.lower()} of table {name}",
            )
    for chain in reversed(list(table.chains.values())):
        hook = (chain.hook or "").upper()
        if hook not in TABLES or chain.priority is None:
            continue
        is_before = hook in _FIRST and chain.priority < _CONNTRACK
        yield BaseChain(
            ruleset=number,
            table=name,
            name=chain.name,
            hook=hook,
            priority=chain.priority,
            is_nat=chain.type == "nat",
            policy=(chain.policy or "accept").upper(),
            walker=before if is_before else again,
            again=again,
            is_before=is_before,
            is_behind_nat=(table.family, table.name, chain.name) in sooner,
            matters=len(chain.rules) > 0 or chain.policy == "drop",
        )


def _in_order(chains: Iterable[BaseChain]) -> Iterator[Stage]:
    mattering = sorted((c for c in chains if c.matters), key=lambda c: c.rank)
    for _, group in groupby(mattering, lambda c: c.rank):
        tied = list(group)
        numbers = list(dict.fromkeys(chain.ruleset for chain in tied))
        if len(numbers) == 1:
            yield from tied
            continue
        yield Tie(
            tuple(
                tuple(chain for number in order for chain in tied if chain.ruleset == number)
                for order in permutations(numbers)
            )
        )


def without_nat(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return `stages` without the chains of nat."""
    return tuple(stage for stage in stages if stage.rank[1] != _AT_NAT)


def up_to_nat(stages: Iterable[Stage], hook: str) -> tuple[Stage, ...]:
    """Return what is called before the chains of nat, and those."""
    return tuple(stage for stage in stages if stage.rank[:2] <= (_NAT[hook], _AT_NAT))
