"""The base chains registered at each hook, of all tables on the node.

All tables, whatever program wrote them, register their base chains at the same hooks, each with a
priority; those of iptables have fixed ones.

Chains at devices (ingress, egress) see packets before those of PREROUTING and after those of
POSTROUTING, whatever their priorities.

Source: Linux, include/uapi/linux/netfilter_ipv4.h, ``nf_ip_hook_priorities``; net/core/dev.c,
``__netif_receive_skb_core``, ``__dev_queue_xmit``; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from analyzer.model.diagnostics import Location
from analyzer.model.hooks import AT_DEVICES, PRIORITIES, TABLES
from analyzer.model.iptables.rules import Chain, LazyRules, Ruleset
from analyzer.model.value import replace
from analyzer.semantics.calling_order import NAT, BaseChain, Stage, in_order
from analyzer.semantics.effort import Effort
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.situation import FIRST, Situation

TYPE_CHECKING = False
if TYPE_CHECKING:  # not for nodes without nft
    from analyzer.model.nft.ruleset import NftRuleset
    from analyzer.model.nft.ruleset import Table as NftTable

Rules: TypeAlias = "Ruleset | NftRuleset"

#: Below every possible priority, since that of a lost chain is not known: all others may see what
#: it did to a packet.
_LOST: Final = -(2**31) - 1
#: Priority of conntrack; chains with a lower one see packets before it.
_CONNTRACK: Final = -200
#: The hooks where conntrack first sees a packet.
_FIRST: Final = frozenset({"PREROUTING", "OUTPUT"})
#: Families of nft whose chains packets of a family never traverse; others may.
_NOT_MET: Final = {
    "ip": frozenset({"ip6", "arp", "bridge"}),
    "ip6": frozenset({"ip", "arp", "bridge"}),
}


def base_chains(
    rulesets: Sequence[Rules], family: str, situation: Situation, effort: Effort | None = None
) -> dict[str, tuple[Stage, ...]]:
    """Return the base chains of each hook, by iptables' names of the hooks.

    Chains that can have no effect on a packet are left out. All traversals share `effort`.
    """
    effort = effort or Effort()
    found: dict[str, list[BaseChain]] = {hook: [] for hook in TABLES}
    for number, ruleset in enumerate(rulesets):
        if not isinstance(ruleset, Ruleset):
            each = _of_nft(number, ruleset, family, situation, effort)
        elif ruleset.family == family:
            each = _of_iptables(number, ruleset, situation, effort)
        else:
            continue
        for chain in each:
            found[chain.hook].append(chain)
    return in_order(found)


def before_conntrack(situation: Situation) -> Situation:
    """Return the situation of a packet that conntrack has not seen yet."""
    is_first = situation.state in FIRST
    return replace(situation, state="INVALID", has_entry=False, is_first=is_first)


def _of_iptables(
    number: int, ruleset: Ruleset, situation: Situation, effort: Effort
) -> Iterator[BaseChain]:
    for name, table in ruleset.tables.items():
        again = Traversal(table, situation, effort)
        is_before = name == "raw"
        walker = Traversal(table, before_conntrack(situation), effort) if is_before else again
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
                place=_place_of_policy(chain),
            )


def _place_of_policy(chain: Chain | None) -> Location | None:
    """Return where the input has a policy that drops."""
    if chain is None or chain.policy != "DROP" or not isinstance(chain.rules, LazyRules):
        return None
    return chain.rules.declared


def _of_nft(
    number: int, ruleset: NftRuleset, family: str, situation: Situation, effort: Effort
) -> Iterator[BaseChain]:
    registered = 0
    for table in ruleset.tables.values():
        if table.family in _NOT_MET[family] or "dormant" in table.flags:
            continue
        yield from _of_nft_table(number, registered, table, family, situation, effort)
        registered += len(table.chains)


def _of_nft_table(
    number: int,
    registered: int,
    table: NftTable,
    family: str,
    situation: Situation,
    effort: Effort,
) -> Iterator[BaseChain]:
    from analyzer.semantics.nft.traverse import NftTraversal  # not for nodes without nft

    again = NftTraversal(table, family, situation, effort)
    before = NftTraversal(table, family, before_conntrack(situation), effort)
    name = f"{table.family} {table.name}"
    at_devices = AT_DEVICES.get(table.family, {})
    hooks = TABLES if table.family != "netdev" else at_devices.values()
    lost = set() if table.complete else set(hooks)
    for at, chain in enumerate(table.chains.values(), registered):
        if chain.hook is None and not chain.is_unplaced:
            continue  # of a table's chains, nearly all
        beside = at_devices.get(chain.hook or "")
        hook = beside or ("" if table.family == "netdev" else (chain.hook or "").upper())
        if chain.is_unplaced:
            lost.update((hook,) if hook in hooks else hooks)
            continue
        if hook not in hooks or chain.priority is None:
            continue
        is_before = hook in _FIRST and (beside is not None or chain.priority < _CONNTRACK)
        yield BaseChain(
            ruleset=number,
            table=name,
            name=chain.name,
            hook=hook,
            priority=chain.priority,
            registered=at,
            is_nat=chain.type == "nat" and hook in NAT,
            policy=(chain.policy or "accept").upper(),
            walker=before if is_before else again,
            again=again,
            is_before=is_before,
            matters=len(chain.rules) > 0 or chain.policy != "accept",
            devices=None if beside is None else chain.devices,
        )
    for hook in sorted(lost):
        yield BaseChain(
            ruleset=number,
            table=name,
            name="",
            hook=hook,
            priority=_LOST,
            registered=registered,
            is_nat=False,
            policy="ACCEPT",
            walker=again,
            again=again,
            lost=f"{hook.lower()} of table {name}",
        )
