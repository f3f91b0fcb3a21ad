"""Statements of nft that make sense to walk: over few values, so that they often hold.

They are written out as lists to draw from, which is quicker than a strategy for each part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from hypothesis import strategies as st

from analyzer.model.addresses import Address
from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import Set

SERVICE, POD, NODE = map(IPv4Address, ("10.2.3.4", "10.1.0.9", "172.16.0.1"))
SERVICE6, POD6, NODE6 = map(IPv6Address, ("fd00:2::4", "fd00:1::9", "fd00::1"))
ADDRESSES: Final[dict[str, tuple[Address, ...]]] = {
    "ip": (SERVICE, POD, NODE),
    "ip6": (SERVICE6, POD6, NODE6),
}
NETWORKS: Final = {
    "ip": (e.Prefix(IPv4Address("10.1.0.0"), 16), e.Range(IPv4Address("10.2.3.0"), SERVICE)),
    "ip6": (e.Prefix(IPv6Address("fd00:1::"), 32), e.Range(IPv6Address("fd00:2::"), SERVICE6)),
}
PORTS: Final = (53, 80)
AFFINITY: Final = "affinity-POD"


@dataclass(frozen=True)
class Kinds:
    """What rules may hold.

    Random draws; what is not known of a packet on each hook; numbers counted up. With `about`
    only matches in whose groups that word stands.
    """

    draws: bool = True
    all: bool = True
    counts: bool = False
    about: str = ""


_MARK: Final = e.Meta("mark")
_COUNTED: Final = e.Numgen("inc", 3)
_STATE: Final = e.Ct("state")
_STATUS: Final = e.Ct("status")
_EQUAL: Final = ("==", "!=")
_TO_PORT: Final = (e.Payload("tcp", "dport"), e.Payload("udp", "dport"), e.Payload("th", "dport"))


def group(*keys: Any) -> e.AnonymousSet:
    """``{ a, b }``."""
    return e.AnonymousSet(tuple(e.Element(key=key) for key in keys))


def mapping(*pairs: tuple[Any, Any]) -> e.AnonymousSet:
    """``{ a : x, b : y }``."""
    return e.AnonymousSet(tuple(e.Element(key=key, value=value) for key, value in pairs))


def numgen(modulus: int, offset: int = 0) -> e.Numgen:
    """``numgen random mod N``."""
    return e.Numgen("random", modulus, offset)


def _compared(
    lefts: Iterable[Any], rights: Iterable[Any], operators: Sequence[str] = _EQUAL
) -> list[s.Match]:
    kept = list(rights)
    return [s.Match(op, left, right) for left in lefts for op in operators for right in kept]


def _matches(family: str) -> list[list[s.Match]]:
    """Matches that ask of one thing each, in groups that are drawn alike."""
    addresses, networks = ADDRESSES[family], NETWORKS[family]
    service, pod, _ = addresses
    masked = [e.Binary("&", left, bits) for left in (_MARK, e.Ct("mark")) for bits in (1, 2)]
    return [
        _compared(
            [e.Payload(family, "daddr")],
            [*addresses, *networks, group(service, pod), group(*networks), e.SetRef(family)],
        ),
        _compared(_TO_PORT, [*PORTS, e.Range(53, 60), e.Range(80, 53), group(53, e.Range(70, 80))]),
        _compared(_TO_PORT[:1], [53, 80], ("<", "<=", ">", ">=")),
        _compared([e.Meta("l4proto")], ["tcp", "udp", group("tcp", "udp")]),
        _compared([e.Meta("nfproto")], ["ipv4", "ipv6"]),
        _compared(
            [_MARK, e.Ct("mark")],
            [0, 1, e.Range(1, 2), e.Range(3, 1), group(0, 3), e.SetRef("marks")],
        ),
        _compared([_MARK], [1, 2], ("<", "<=", ">", ">=")),
        _compared(masked, [0, 1, 2]),
        _compared([_STATE], ["new", e.Flags(("established", "new")), "untracked"], ("in", "!")),
        _compared([_STATE], ["new", "invalid", group("new", "invalid")]),
        _compared([_STATUS], ["dnat", e.Flags(("assured", "dnat"))], ("in", "!")),
        _compared([e.Ct("direction")], ["original", "reply"]),
        _compared([e.Ct(f"{family} daddr", "original")], [service, pod]),
        _compared([e.Ct("proto-dst", "original"), e.Ct("proto-src", "reply")], PORTS),
        _compared([e.Fib("type", ("daddr",))], ["local"]),
        _compared([e.Concat((e.Meta("l4proto"), _TO_PORT[2]))], [e.SetRef("services")]),
        _compared(
            [e.Concat((e.Payload(family, "daddr"), _TO_PORT[0]))],
            [group(e.Concat((networks[0], e.Range(50, 53))), e.Concat((service, 80)))],
        ),
    ]


def _asking_more(family: str) -> list[list[s.Match]]:
    """Matches of what is not known on each hook: sources behind nat, devices."""
    _, pod, node = ADDRESSES[family]
    networks = NETWORKS[family]
    return [
        _compared([e.Payload(family, "saddr")], [pod, *networks, e.SetRef(AFFINITY)]),
        _compared([e.Payload("tcp", "sport")], [40_000, 40_001]),
        _compared([e.Ct(f"{family} daddr", "reply")], [pod, node]),
        _compared([e.Meta("iifname"), e.Meta("oifname")], ["eth0", "eth*", "lo"]),
        _compared([e.Fib("type", ("saddr",))], ["local"]),
        _compared([_STATUS], ["snat"], ("in", "!")),
    ]


_DRAWS: Final = [
    *_compared(
        [numgen(2), numgen(3), numgen(5, 1)], [0, 1, e.Range(4, 0), group(0, e.Range(2, 3))]
    ),
    *_compared([numgen(3), numgen(6)], [1, 2, 3], ("<", "<=", ">", ">=")),
    *_compared([e.Binary("&", e.Meta("random"), 3)], [0, 1, group(1, 2)]),
    *_compared([e.Binary("&", e.Meta("random"), 0x7FFFFFFF)], [1 << 29, 858993459], ("<", ">=")),
    *_compared([e.Meta("random")], [1 << 31, 1431655765], ("<", ">")),
]


@cache
def matches(families: tuple[str, ...], kinds: Kinds) -> st.SearchStrategy[s.Match]:
    """Matches of packets of these families."""
    held = [each for family in families for each in _matches(family)]
    if kinds.all:
        held += [each for family in families for each in _asking_more(family)]
    if kinds.counts:
        held.append(_compared([_COUNTED], [0, 1, group(0, 2)]))
    sampled = [st.sampled_from(each) for each in held if kinds.about in repr(each)]
    return st.one_of(*sampled, *([st.sampled_from(_DRAWS)] * (4 if kinds.draws else 0)))


def _lookups(family: str, values: Sequence[Any], kinds: Kinds) -> list[tuple[Any, Any]]:
    """Keys and anonymous maps to `values`, some of which miss."""
    one, other = values[0], values[-1]
    service, pod, node = ADDRESSES[family]
    counted = [(_COUNTED, mapping((0, one), (1, other)))] * 2
    drawn = [
        (numgen(2), mapping((0, one), (1, other))),
        (numgen(3), mapping((0, one), (1, other), (2, one))),
        (numgen(3), mapping((0, one), (e.Wildcard(), other))),
        (numgen(4, 1), mapping((e.Range(1, 2), one), (4, other))),
    ]
    return [
        *(counted if kinds.counts else ()),
        *(drawn if kinds.draws else ()),
        (e.Payload(family, "daddr"), mapping((service, one), (pod, other))),
        (e.Payload(family, "daddr"), mapping((node, one), (e.Wildcard(), other))),
        (_TO_PORT[0], mapping((e.Range(54, 79), one), (80, other))),
        (_TO_PORT[2], mapping((80, one))),
        (_MARK, mapping((0, one), (e.Range(1, 2), other))),
        (e.Meta("l4proto"), mapping(("tcp", one), ("udp", other))),
    ]


@cache
def vmaps(
    families: tuple[str, ...], chains: tuple[str, ...], kinds: Kinds
) -> st.SearchStrategy[s.Vmap]:
    """Verdict maps, anonymous and named, that lead into `chains`."""
    jumps = [kind(chain) for chain in chains for kind in (e.Goto, e.Jump)]
    ends = [e.Accept(), e.Drop(), e.Return(), e.Continue()]
    held = [
        s.Vmap(key, where)
        for family in families
        for one in (*jumps, *ends)
        for key, where in _lookups(family, (one, ends[0] if one in jumps else ends[3]), kinds)
    ]
    held.append(
        s.Vmap(_STATE, mapping(("new", ends[3]), ("invalid", ends[1]), ("untracked", ends[0])))
    )
    if "last" in chains:
        to_last = s.Vmap(e.Concat((e.Meta("l4proto"), _TO_PORT[2])), e.SetRef("verdicts"))
        held += [to_last] * 10
    return st.sampled_from(held)


@cache
def changes(
    families: tuple[str, ...], kinds: Kinds, *, early: bool
) -> st.SearchStrategy[s.Statement]:
    """Statements that change marks; `early`: where conntrack has not looked yet."""
    marks: list[Any] = [
        1,
        3,
        e.Binary("|", _MARK, 1),
        e.Binary("&", _MARK, 2),
        e.Binary("^", _MARK, 3),
        e.Binary("|", e.Binary("&", _MARK, 1), 2),
        e.Binary("<<", _MARK, 1),
        e.Ct("mark"),
        e.Binary("|", e.Ct("mark"), 1),
        *[
            e.MapLookup(key, where)
            for family in families
            for key, where in _lookups(family, (1, 2), kinds)
        ],
    ]
    if kinds.draws:
        marks += [numgen(3), e.Binary("&", e.Meta("random"), 1)]
    held: list[s.Statement] = [
        made for mark in marks for made in (s.MetaSet("mark", mark), s.CtSet("mark", mark))
    ]
    passing = [
        s.Counter(),
        s.Limit(rate=3, per="second"),
        s.CtCount(3, over=True),
        s.MetaSet("priority", e.MapLookup(_TO_PORT[0], mapping((80, 1)))),
        *[
            s.SetUpdate(
                operation="update",
                set=AFFINITY,
                element=e.Element(key=e.Payload(family, "saddr"), timeout=60),
            )
            for family in families
        ],
    ]
    sampled = [st.sampled_from(held), st.sampled_from(held), st.sampled_from(passing)]
    return st.one_of(*sampled, *([st.just(s.Notrack())] * (3 if early else 0)))


def destinations(families: tuple[str, ...], kinds: Kinds) -> list[s.Statement]:
    """Translations of PREROUTING and OUTPUT."""
    found: list[s.Statement] = []
    for family in families:
        service, pod, node = ADDRESSES[family]
        to = [(pod, 53), (node, 80), (service, None), (pod, None)]
        maps = [
            e.MapLookup(key, where)
            for key, where in _lookups(family, (e.Concat((pod, 53)), e.Concat((node, 80))), kinds)
        ]
        found += [s.Dnat(address=a, port=p, family=family) for a, p in to]
        found += [s.Dnat(address=each, family=family) for each in maps]
        ports = mapping((0, 53), (1, 80))
        by_draw = mapping((0, pod), (e.Range(1, 2), node))
        found.append(
            s.Dnat(
                address=e.MapLookup(numgen(3), by_draw),
                port=e.MapLookup(numgen(2), ports),
                family=family,
            )
        )
    return found


def sources(families: tuple[str, ...], _: Kinds) -> list[s.Statement]:
    """Translations of POSTROUTING."""
    snats = [s.Snat(address=ADDRESSES[family][2], family=family) for family in families]
    return [s.Masquerade(), *snats]


def rejects(families: tuple[str, ...]) -> list[s.Statement]:
    """Answers that say by themselves whom they are for; for others nft lists too little."""
    either = s.Reject("icmpx", "port-unreachable")
    if len(families) > 1:
        return [either]
    of = {"ip": "icmp", "ip6": "icmpv6"}
    return [either, s.Reject(of[families[0]], "admin-prohibited")]


def sets(families: tuple[str, ...]) -> dict[str, Set]:
    """The named sets and maps of each table."""
    typed = {"ip": "ipv4_addr", "ip6": "ipv6_addr"}
    service = ("inet_proto", "inet_service")
    found = [
        Set(
            name=family,
            key=(typed[family],),
            flags=("interval",),
            elements=group(NETWORKS[family][0], ADDRESSES[family][2]).elements,
        )
        for family in families
    ]
    found += [
        Set(
            name="marks", key=("mark",), flags=("interval",), elements=group(e.Range(1, 2)).elements
        ),
        Set(
            name="services",
            key=service,
            elements=group(e.Concat(("tcp", 80)), e.Concat(("udp", 53))).elements,
        ),
        Set(
            name="verdicts",
            key=service,
            value=("verdict",),
            elements=mapping(
                (e.Concat(("tcp", 80)), e.Jump("last")), (e.Concat(("udp", 53)), e.Return())
            ).elements,
        ),
        Set(
            name=AFFINITY,
            key=(typed[families[0]],),
            flags=("dynamic", "timeout"),
            timeout=10_800,
        ),
    ]
    return {each.name: each for each in found}
