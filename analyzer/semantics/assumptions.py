"""The assumptions that an answer depends on, in words: only those that it used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.model.hooks import TABLES
from analyzer.model.iptables import matches as m
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.nft.statements import SetUpdate
from analyzer.model.packet import NO_DEVICE
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.frames import frame_chains
from analyzer.semantics.situation import FIRST, Situation
from analyzer.semantics.tree import Delivered, Leaf, Tree, every_leaf

#: Tables that have no rules if they are absent.
_TABLES = ("raw", "mangle", "nat", "filter", "security")


def assumptions(
    rulesets: Sequence[Rules], situation: Situation, tree: Tree, evaluated: set[type]
) -> Iterator[str]:
    """Yield what `tree` depends on; `evaluated` are the kinds of matches that were evaluated."""
    if situation.state in FIRST:
        yield f"the packet is the first of its flow, {situation.state} to conntrack"
    elif situation.state == "INVALID":
        yield "the packet is INVALID to conntrack, so it has no entry, and nat does nothing to it"
    else:
        yield (
            f"the packet is {situation.state} to conntrack, so nat's rules are not evaluated "
            "again, and what they did to the flow's first packet is not known"
        )
    if m.MatchTcp in evaluated and situation.state in FIRST:
        yield "a first packet of TCP is a SYN"
    if m.MatchRecent in evaluated and situation.lists is not None:
        held = ", ".join(sorted(situation.lists))
        yield f"the client is in {f'session affinity list {held}' if held else 'no affinity list'}"
    flow = situation.flow
    if m.MatchMark in evaluated and flow is not None:
        yield f"the packet mark starts at {flow.mark.value:#x}"
    if m.MatchConnmark in evaluated and situation.state in FIRST:
        yield "the ctmark starts at 0x0"
    if situation.assumed is not None:
        yield from situation.assumed.sentences()
    if SetUpdate in evaluated:
        yield (
            "sets that packets are added to have room for more, except those that the dump shows "
            "are full"
        )
    if m.MatchNfacct in evaluated:
        yield "nfacct objects have no quota"
    if situation.local_addresses is not None:
        own = ", ".join(sorted(map(str, situation.local_addresses)))
        yield f"the node's addresses are {own} and those of loopback"
        if flow is not None and flow.in_interface == NO_DEVICE:
            yield f"the node sends from {flow.source or 'an address not known'}"
    for ruleset in rulesets:
        yield from _of_iptables(ruleset) if isinstance(ruleset, Ruleset) else _of_nft(ruleset)
    if not any(isinstance(ruleset, Ruleset) for ruleset in rulesets):
        yield "the node has no rules of iptables-legacy, which nft does not list"
    if any(is_forwarded(leaf) for leaf in every_leaf(tree)):
        yield "the node forwards, and has a route to the destination"
    yield (
        "the kernel's own address checks (rp_filter, route_localnet) let the packet pass, and "
        "devices of REDIRECT and MASQUERADE have an address"
    )


def _of_iptables(ruleset: Ruleset) -> Iterator[str]:
    missing = [name for name in _TABLES if name not in ruleset.tables]
    if missing:
        yield f"tables that the dump does not have are empty: {', '.join(missing)}"
    chains = [
        f"{hook} of {name}"
        for name, table in ruleset.tables.items()
        for hook, tables in TABLES.items()
        # What an incomplete dump lacks is not taken to be empty.
        if table.complete
        # Older kernels have no INPUT in nat.
        if name in tables and hook not in table.chains and (name, hook) != ("nat", "INPUT")
    ]
    if chains:
        yield f"base chains that the dump does not have are empty: {', '.join(chains)}"


def _of_nft(ruleset: NftRuleset) -> Iterator[str]:
    below = [
        f"{chain.name} of table {table.family} {table.name}"
        for table, chain in frame_chains(ruleset)
    ]
    if below:
        yield f"chains that see frames, not packets, let it pass: {', '.join(below)}"


def is_forwarded(leaf: Leaf) -> bool:
    """Return whether the packet left the node."""
    return leaf.outcome == Delivered(here=False)
