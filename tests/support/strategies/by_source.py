"""Rulesets that ask for sources and destinations among a few addresses, and do much else."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Final, assert_never

from hypothesis import strategies as st

from analyzer.model.addresses import Address
from analyzer.model.packet import Packet
from analyzer.model.region import Region
from analyzer.model.value import replace
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import AnyRule, BySource, Chance, Either, Leaf, Tree, after_all

#: Addresses that rules tell apart.
FIRST: Final = IPv4Address("10.0.0.0")
ADDRESSES: Final[tuple[Address, ...]] = tuple([FIRST + at for at in range(8)])
OWN: Final = FIRST + 5
_NETWORKS: Final = tuple(
    [f"10.0.0.{at}/{32 - bits}" for bits in range(4) for at in range(0, 8, 1 << bits)]
)
_RANGES: Final = ("10.0.0.1-10.0.0.4", "10.0.0.0-10.0.0.2", "10.0.0.3-10.0.0.7")
#: Chains, each of which leads into later ones only.
CHAINS: Final = ("A", "B", "C")


def everywhere() -> Region:
    """Return all of the addresses."""
    first = int(FIRST)
    return Region(4, ((first, first + len(ADDRESSES) - 1),))


#: What is known of the node.
SITUATION: Final = Situation(local_addresses=frozenset({OWN}))
#: A packet from any of the addresses, and its answer.
CAME: Final = Packet(protocol="tcp", destination=FIRST, destination_port=80, sources=everywhere())
ANSWER: Final = Packet(
    protocol="tcp",
    source=FIRST,
    source_port=80,
    destinations=everywhere(),
    translated=True,
    is_answer=True,
)


def _ends(of: str) -> st.SearchStrategy[str]:
    """Return what iptables asks of one end: ``s`` or ``d``."""
    name = "src" if of == "s" else "dst"
    return st.one_of(
        st.sampled_from([f"-{of} {net}" for net in _NETWORKS]),
        st.sampled_from([f"! -{of} {net}" for net in _NETWORKS]),
        st.sampled_from([f"-m iprange --{name}-range {each}" for each in _RANGES]),
        st.just(f"-m iprange ! --{name}-range {_RANGES[0]}"),
        st.sampled_from([f"-m addrtype --{name}-type LOCAL", f"-m addrtype ! --{name}-type LOCAL"]),
    )


_OTHERS: Final = st.sampled_from(
    [
        "-m mark --mark 0x1/0x1",
        "-m mark ! --mark 0x2/0x2",
        "-m statistic --mode random --probability 0.5",
        "-m statistic --mode random --probability 0.25",
        "-p tcp -m tcp --dport 80",
        "-p tcp -m multiport --dports 80,443",
        "-m conntrack --ctorigdstport 80",
        "-m conntrack --ctreplsrcport 90",
        "-m made-up",
        "",
    ]
)


@st.composite
def iptables(draw: st.DrawFn, *, hook: str, ends: str = "sd") -> str:
    """Return a table that is entered at a hook: nat leads to DNAT or MASQUERADE, filter to ends."""
    asked = st.one_of(*map(_ends, ends), _OTHERS)
    last = {
        "POSTROUTING": ["MASQUERADE", "SNAT --to-source 192.0.2.1"],
        "FORWARD": ["DROP", "REJECT --reject-with icmp-port-unreachable"],
    }.get(hook, [f"DNAT --to-destination 10.0.0.{at}:80" for at in (1, 5, 9)])
    table = "filter" if hook == "FORWARD" else "nat"
    lines = [f"*{table}", f":{hook} {draw(st.sampled_from(['ACCEPT', 'ACCEPT', 'DROP']))} [0:0]"]
    lines += [f":{chain} - [0:0]" for chain in CHAINS]
    for at, chain in enumerate((hook, *CHAINS)):
        leads = [f"{how} {to}" for to in CHAINS[at:] for how in ("-j", "-g")] * 2
        marks = [f"-j MARK --set-xmark {value}" for value in ("0x1/0x1", "0x2/0x3", "0x0/0x1")]
        targets = [*leads, *marks, "-j RETURN", "-j ACCEPT", *(f"-j {each}" for each in last)]
        for _ in range(draw(st.integers(0, 4))):
            matches = draw(st.lists(asked, max_size=2))
            target = draw(st.sampled_from(targets))
            lines.append(" ".join(["-A", chain, *filter(None, matches), target]))
    return "\n".join([*lines, "COMMIT", ""])


def _compared(field: str) -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from([f"ip {field} {net}" for net in _NETWORKS]),
        st.sampled_from([f"ip {field} != {net}" for net in _NETWORKS]),
        st.sampled_from([f"ip {field} {each}" for each in _RANGES]),
        st.sampled_from([f"ip {field} >= 10.0.0.3", f"ip {field} < 10.0.0.2"]),
        st.sampled_from([f"ip {field} @some", f"ip {field} != @some"]),
        st.sampled_from(["ip saddr . ip daddr @pairs", "ip saddr . th dport @ports"]),
        st.sampled_from(
            [
                "ip saddr . ip daddr . th dport @back",
                "ip saddr . ip daddr . th dport != @back",
                "ip daddr . ip saddr @ranges",
            ]
        ),
        st.just(f"ip {field} {{ 10.0.0.1, 10.0.0.4-10.0.0.5 }}"),
        st.just(f"fib {field} type local"),
    )


_NFT_OTHERS: Final = st.sampled_from(
    [
        "meta mark & 0x1 == 0x1",
        "meta mark & 0x2 != 0x2",
        "numgen random mod 2 == 0",
        'xt match "made-up"',
        "th dport 80",
        "ct original proto-dst 80",
        "ct reply proto-src 90",
        "counter",
    ]
)
_SETS: Final = """\
set some { type ipv4_addr; flags interval; elements = { 10.0.0.1, 10.0.0.4-10.0.0.6 }; }
set pairs { type ipv4_addr . ipv4_addr; elements = { 10.0.0.1 . 10.0.0.1, 10.0.0.2 . 10.0.0.5 }; }
set back { type ipv4_addr . ipv4_addr . inet_service;
  elements = { 10.0.0.1 . 10.0.0.1 . 80, 10.0.0.4 . 10.0.0.4 . 90, 10.0.0.5 . 10.0.0.5 . 80 }; }
set ranges { type ipv4_addr . ipv4_addr; flags interval;
  elements = { 10.0.0.0-10.0.0.3 . 10.0.0.2-10.0.0.5, 10.0.0.6 . 10.0.0.6 }; }
set ports { type ipv4_addr . inet_service; elements = { 10.0.0.3 . 80, 10.0.0.1 . 90 }; }
"""


@st.composite
def nft(draw: st.DrawFn, *, hook: str) -> str:
    """Return a table of nft that is entered at a hook, and leads to DNAT, masquerade or reject."""
    asked = st.one_of(_compared("saddr"), _compared("daddr"), _NFT_OTHERS)
    last = {"postrouting": ["masquerade"], "forward": ["reject"]}.get(
        hook, ["dnat to 10.0.0.1:80", "dnat to 10.0.0.9"]
    )
    kind = "filter" if hook == "forward" else "nat"
    lines = ["table ip nat {", _SETS]
    for at, chain in enumerate(("main", *CHAINS)):
        head = f"type {kind} hook {hook} priority 0; policy accept;" if chain == "main" else ""
        leads = [f"{how} {to}" for to in CHAINS[at:] for how in ("jump", "goto")] * 2
        looked_up = [
            f"ip saddr vmap {{ 10.0.0.1 : {to}, 10.0.0.2-10.0.0.3 : return, 10.0.0.6 : drop }}"
            for to in leads
        ]
        marks = [f"meta mark set meta mark {value}" for value in ("| 0x1", "^ 0x2", "& 0xfffffffe")]
        targets = [*leads, *marks, *looked_up, "return", "accept", "drop", *last]
        rules = [
            " ".join([*draw(st.lists(asked, max_size=2)), draw(st.sampled_from(targets))])
            for _ in range(draw(st.integers(0, 4)))
        ]
        lines += [f"chain {chain} {{", head, *rules, "}"]
    return "\n".join([*lines, "}", ""])


def alone(tree: Tree, address: Address) -> Tree:
    """Return the tree of packets from one address, with the rules that decide on them.

    Those that at most mark them are left out: of rules that change nothing some are reported, and
    others not.
    """
    if isinstance(tree, BySource):
        [found] = [each for where, each in tree.branches if address in where]
        return after_all(_deciding(tree), alone(found, address))
    tree = replace(tree, rules=_deciding(tree))
    match tree:
        case Leaf():
            return tree
        case Chance(branches):
            told = tuple([(chance, alone(each, address)) for chance, each in branches])
            return replace(tree, branches=told)
        case Either(_, branches):
            return replace(tree, branches=tuple([alone(each, address) for each in branches]))
        case _:
            assert_never(tree)


def _deciding(tree: Tree) -> tuple[AnyRule, ...]:
    others = ("-j MARK ", "-j LOG", "mark set ", " continue")
    return tuple([rule for rule in tree.rules if not any(each in rule.raw for each in others)])
