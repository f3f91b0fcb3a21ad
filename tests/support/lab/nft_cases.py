"""Small rulesets of nft, a packet, and what the kernel makes of it: facts that were measured.

A program: it leaves the host's network. It prints what happened in each case as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from netns_lab.command import run
from netns_lab.namespace import leave_host
from tests.support.lab.nft_node import NftNode, Went
from tests.support.lab.nodes import NODE6, OUTSIDE, OUTSIDE6, POD6, SERVICE6, Asked
from tests.support.lab.random_rules import NODE, POD, SERVICE

FROM_OUTSIDE: Final = Asked("eth0", OUTSIDE, SERVICE, 53)
FROM_OUTSIDE6: Final = Asked("eth0", OUTSIDE6, SERVICE6, 53)
TO_NODE: Final = Asked("eth0", OUTSIDE, NODE, 53)
TO_ITSELF: Final = Asked(None, NODE, NODE, 53)


@dataclass(frozen=True)
class Case:
    """What is loaded, in this order, and what comes of a packet.

    Attributes:
        chains: family, table, name and head of a base chain, and its rules; without a head, of
            a chain that is jumped to.
        met: as ``chain number verdict``; a policy has no number.
        out: device (``here``: the node itself), source, destination and port; None: nowhere.
        legacy: what iptables-legacy-restore was given before.
    """

    chains: Sequence[tuple[str, str, str, str, Sequence[str]]]
    met: Sequence[str]
    out: str | None
    asked: Asked = FROM_OUTSIDE
    legacy: str | None = None

    @property
    def frames(self) -> list[str]:
        tables = dict.fromkeys(f"add table {family} {table}" for family, table, *_ in self.chains)
        # All chains come first, since rules name them.
        chains = [
            f"add chain {family} {table} {name}" + (f" {{ type {head}; }}" if head else "")
            for family, table, name, head, _ in self.chains
        ]
        rules = [
            f"add rule {family} {table} {name} {rule}"
            for family, table, name, _, held in self.chains
            for rule in held
        ]
        return [*tables, *chains, *rules]


_PASSED: Final = f"eth0 {OUTSIDE} {SERVICE} 53"

CASES: Final[dict[str, Case]] = {
    # Linux, net/netfilter/core.c, nf_hook_entries_grow: a new one goes before its equals.
    "of chains of equal priority the later one is met first": Case(
        [
            ("ip", "t", "one", "filter hook prerouting priority 0", []),
            ("ip", "t", "two", "filter hook prerouting priority 0", []),
            ("ip", "t", "three", "filter hook prerouting priority 0", []),
        ],
        ["three accept", "two accept", "one accept"],
        _PASSED,
    ),
    "so it is across tables and families": Case(
        [
            ("ip", "t", "one", "filter hook forward priority 0", []),
            ("inet", "t", "two", "filter hook forward priority 0", []),
            ("ip", "u", "three", "filter hook forward priority 0", []),
            ("inet", "t", "late", "filter hook forward priority 1", []),
            ("ip", "u", "early", "filter hook forward priority -1", []),
        ],
        ["early accept", "three accept", "two accept", "one accept", "late accept"],
        _PASSED,
    ),
    # Linux, net/netfilter/nf_nat_core.c, nf_nat_register_fn.
    "nat chains run at -100 whatever their own priority, by which they are ordered": Case(
        [
            ("ip", "t", "nat50", "nat hook prerouting priority 50", []),
            ("ip", "t", "after", "filter hook prerouting priority -99", []),
            ("ip", "t", "before", "filter hook prerouting priority -101", []),
            ("inet", "t", "nat_150", "nat hook prerouting priority -150", []),
            ("ip", "t", "nat0", "nat hook prerouting priority 0", []),
        ],
        ["before accept", "nat_150 accept", "nat0 accept", "nat50 accept", "after accept"],
        _PASSED,
    ),
    "nat chains of INPUT and POSTROUTING run at 100": Case(
        [
            ("ip", "t", "nat", "nat hook input priority -150", []),
            ("ip", "t", "after", "filter hook input priority 101", []),
            ("ip", "t", "before", "filter hook input priority 99", []),
        ],
        ["before accept", "nat accept", "after accept"],
        f"here {OUTSIDE} {NODE} 53",
        TO_NODE,
    ),
    "a filter chain of nat's own priority comes first if it is later": Case(
        [
            ("ip", "t", "nat", "nat hook prerouting priority 0", []),
            ("ip", "t", "filter", "filter hook prerouting priority -100", []),
        ],
        ["filter accept", "nat accept"],
        _PASSED,
    ),
    "and comes behind nat if it is earlier": Case(
        [
            ("ip", "t", "filter", "filter hook prerouting priority -100", []),
            ("inet", "t", "nat", "nat hook prerouting priority 0", []),
        ],
        ["nat accept", "filter accept"],
        _PASSED,
    ),
    # Linux, net/netfilter/nf_nat_core.c, nf_nat_register_fn: it registers all hooks of nat.
    "where the first nat chain of any hook settles what is earlier": Case(
        [
            ("ip", "t", "other", "nat hook postrouting priority 0", []),
            ("ip", "t", "filter", "filter hook prerouting priority -100", []),
            ("inet", "t", "nat", "nat hook prerouting priority 0", []),
        ],
        ["filter accept", "nat accept", "other accept"],
        _PASSED,
    ),
    "and nat chains of the other family settle nothing": Case(
        [
            ("ip6", "t", "other", "nat hook postrouting priority 0", []),
            ("ip", "t", "filter", "filter hook prerouting priority -100", []),
            ("inet", "t", "nat", "nat hook prerouting priority 0", []),
        ],
        ["nat accept", "filter accept"],
        _PASSED,
    ),
    "of nat chains of equal priority the later one is met first": Case(
        [
            ("ip", "t", "one", "nat hook prerouting priority -100", ["dnat to 10.1.0.8"]),
            ("inet", "u", "two", "nat hook prerouting priority -100", ["dnat ip to 10.1.0.9"]),
        ],
        ["two 1 accept"],
        f"pod0 {OUTSIDE} {POD} 53",
    ),
    "the first nat chain that translates ends nat, one that accepts does not": Case(
        [
            (
                "ip",
                "t",
                "accepts",
                "nat hook prerouting priority -10",
                ["accept", "dnat to 1.1.1.1"],
            ),
            ("ip", "t", "translates", "nat hook prerouting priority 0", ["dnat to 10.1.0.9"]),
            ("ip", "t", "never", "nat hook prerouting priority 10", ["dnat to 10.1.0.8"]),
            ("ip", "t", "then", "filter hook prerouting priority 10", []),
        ],
        ["accepts 1 accept", "translates 1 accept", "then accept"],
        f"pod0 {OUTSIDE} {POD} 53",
    ),
    "so it is for sources": Case(
        [
            ("ip", "t", "never", "nat hook postrouting priority 100", ["snat to 1.2.3.4"]),
            ("ip", "t", "first", "nat hook postrouting priority 0", ["masquerade"]),
            ("ip", "t", "before", "filter hook postrouting priority 99", []),
        ],
        ["before accept", "first 1 accept"],
        f"eth0 {NODE} {SERVICE} 53",
    ),
    "a source may change in INPUT": Case(
        [("ip", "t", "c", "nat hook input priority 0", ["snat to 10.9.9.9"])],
        ["c 1 accept"],
        f"here 10.9.9.9 {NODE} 53",
        TO_NODE,
    ),
    "an accept ends its own chain only": Case(
        [
            ("ip", "t", "drops", "filter hook forward priority 1; policy drop", []),
            ("ip", "t", "accepts", "filter hook forward priority 0", ["accept", "drop"]),
        ],
        ["accepts 1 accept", "drops drop"],
        None,
    ),
    "a goto goes back to the caller's caller": Case(
        [
            ("ip", "t", "c", "filter hook forward priority 0", ["jump u", "counter", "drop"]),
            ("ip", "t", "u", "", ["goto v", "drop"]),
            ("ip", "t", "v", "", ["counter"]),
        ],
        ["c 1 jump", "u 1 goto", "v 1 continue", "c 2 continue", "c 3 drop"],
        None,
    ),
    "a goto from a base chain goes to its policy": Case(
        [
            ("ip", "t", "c", "filter hook forward priority 0; policy drop", ["goto v", "accept"]),
            ("ip", "t", "v", "", ["return", "accept"]),
        ],
        ["c 1 goto", "v 1 return", "c drop"],
        None,
    ),
    "a map without the key ends its rule": Case(
        [
            (
                *("ip", "t", "c", "nat hook prerouting priority 0"),
                ["dnat to udp dport map { 80 : 10.1.0.9 }", "udp dport vmap { 80 : drop }"],
            ),
            ("ip", "t", "d", "nat hook prerouting priority 1", ["dnat to 10.1.0.9"]),
        ],
        ["c accept", "d 1 accept"],
        f"pod0 {OUTSIDE} {POD} 53",
    ),
    "a reject ends everything": Case(
        [
            ("ip", "t", "c", "filter hook forward priority 0", ["reject", "accept"]),
            ("ip", "t", "d", "filter hook forward priority 1", []),
        ],
        ["c 1 drop"],
        None,
    ),
    # Linux, net/netfilter/nft_nat.c, nft_nat_inet_eval.
    "in family inet a dnat of the other family does nothing": Case(
        [
            (
                *("inet", "t", "c", "nat hook prerouting priority 0"),
                ["dnat ip to 10.1.0.9", f"dnat ip6 to {POD6}"],
            )
        ],
        ["c 1 continue", "c 2 accept"],
        f"pod0 {OUTSIDE6} {POD6} 53",
        FROM_OUTSIDE6,
    ),
    "a table of one family sees no packet of the other": Case(
        [
            ("ip", "t", "four", "filter hook input priority 0", []),
            ("ip6", "t", "six", "filter hook input priority 0", []),
        ],
        ["six accept"],
        f"here {OUTSIDE6} {NODE6} 53",
        Asked("eth0", OUTSIDE6, NODE6, 53),
    ),
    # The conntrack entry is confirmed behind POSTROUTING, and the packet is still its first.
    "what the node sends itself meets no nat when it comes back, confirmed and new": Case(
        [
            ("ip", "t", "out", "nat hook output priority 0", []),
            ("ip", "t", "post", "nat hook postrouting priority 0", []),
            ("ip", "t", "pre", "nat hook prerouting priority 0", []),
            ("ip", "t", "in", "nat hook input priority 0", []),
            (
                *("ip", "t", "back", "filter hook prerouting priority 0"),
                ["ct status confirmed ct state new iifname lo counter"],
            ),
            ("ip", "t", "sent", "filter hook output priority 0", ["ct status confirmed counter"]),
        ],
        ["out accept", "sent accept", "post accept", "back 1 continue", "back accept"],
        f"here {NODE} {NODE} 53",
        TO_ITSELF,
    ),
    "an nft nat chain beside iptables-legacy's, later and of its priority, comes first": Case(
        [("ip", "t", "c", "nat hook prerouting priority -100", ["udp dport 53 dnat to 10.1.0.9"])],
        ["c 1 accept"],
        f"pod0 {OUTSIDE} {POD} 53",
        legacy="*nat\n-A PREROUTING -p udp -j DNAT --to-destination 10.1.0.8\nCOMMIT\n",
    ),
    "one behind iptables-legacy's is not asked where that translates": Case(
        [("ip", "t", "c", "nat hook prerouting priority -99", ["udp dport 53 dnat to 10.1.0.8"])],
        [],
        f"pod0 {OUTSIDE} {POD} 53",
        legacy="*nat\n-A PREROUTING -p udp -j DNAT --to-destination 10.1.0.9\nCOMMIT\n",
    ),
    "one behind iptables-legacy's is asked where that does not": Case(
        [("ip", "t", "c", "nat hook prerouting priority -99", ["udp dport 53 dnat to 10.1.0.9"])],
        ["c 1 accept"],
        f"pod0 {OUTSIDE} {POD} 53",
        legacy="*nat\n-A PREROUTING -p tcp -j DNAT --to-destination 10.1.0.8\nCOMMIT\n",
    ),
}


def told(went: Went) -> tuple[list[str], str | None]:
    met = [
        " ".join(map(str, (each.chain, each.number, each.verdict)))
        if each.number is not None
        else f"{each.chain} {each.verdict}"
        for each in went.told
    ]
    out = went.seen
    if out is None:
        return met, None
    return met, f"{out.device or 'here'} {out.source} {out.destination} {out.port}"


def main() -> None:
    leave_host()
    found = {}
    for name, case in CASES.items():
        node = NftNode()  # hooks that were registered before would come in between
        if case.legacy is not None:
            run(node.namespace, ["iptables-legacy-restore"], case.legacy)
        node.load(case.frames)
        node.listings()
        found[name] = told(node.send(case.asked))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
