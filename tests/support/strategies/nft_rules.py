"""Hypothesis strategies for the values of nft's model.

`EXPRESSIONS` and `STATEMENTS` have a row for each member of the unions; a test counts them.
Their values are those that nft can print, so that they survive printing.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from hypothesis import strategies as st

from analyzer.model.addresses import Address
from analyzer.model.diagnostics import Location
from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import Chain, Flowtable, NamedObject, NftRuleset, Rule, Set, Table
from analyzer.parsers.nft import exthdr, meta, payload
from tests.support.nft.updates import dynamic

HERE: Final = Location("made", 1)
bits32 = st.integers(0, 0xFFFFFFFF)
positive = st.integers(1, 0xFFFFFFFF)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9/_.-]{0,20}", fullmatch=True)
#: Any line in quotes: braces, semicolons, hashes, words of nft, other alphabets, broken UTF-8.
quoted_texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters='\0"'), max_size=20),
    st.lists(
        st.sampled_from(["{", "}", ";", "#", "comment", " ", "  ", ",", ":", "\\", "\n", "\udc80"])
    ).map("".join),
)
_words = st.sampled_from(["tcp", "udp", "new", "echo-request", "local", "snat", "eth0", "veth*"])
#: Strings that neither form takes for an address, a set or a wildcard.
strings = _words | st.from_regex(r"[a-z][a-z0-9 ;{}#,.-]{0,8}[xyz]", fullmatch=True)
addresses: st.SearchStrategy[Address] = st.ip_addresses()
numbers = st.integers(0, 0xFFFFFFFFFFFFFFFF)
constant_values = st.one_of(numbers, strings, addresses)
ranges = st.one_of(
    st.builds(e.Range, numbers, numbers),
    st.builds(e.Range, addresses, addresses),
    st.builds(e.Range, strings, strings),
)
prefixes = st.one_of(
    st.builds(e.Prefix, st.ip_addresses(v=4), st.integers(0, 32)),
    st.builds(e.Prefix, st.ip_addresses(v=6), st.integers(0, 128)),
)
verdicts = st.one_of(
    *(st.builds(kind) for kind in (e.Accept, e.Drop, e.Continue, e.Return)),
    st.builds(e.Jump, names),
    st.builds(e.Goto, names),
)
seconds = st.integers(0, 10_000_000)
limits = st.builds(
    s.Limit,
    rate=positive,
    per=st.sampled_from(["second", "minute", "hour", "day", "week"]),
    burst=bits32,
    over=st.booleans(),
) | st.builds(
    s.Limit,
    rate=positive,
    per=st.sampled_from(["second", "minute"]),
    burst=bits32,
    over=st.booleans(),
    rate_unit=st.sampled_from(["bytes", "kbytes", "mbytes"]),
    burst_unit=st.sampled_from(["bytes", "kbytes", "mbytes"]),
)
#: What stands for itself in a set or behind an operator.
single_keys = st.one_of(constant_values, ranges, prefixes)
keys = st.one_of(
    single_keys,
    st.lists(single_keys, min_size=2, max_size=4).map(lambda parts: e.Concat(tuple(parts))),
    st.just(e.Wildcard()),
)


def elements(
    key: st.SearchStrategy[Any] = keys, value: st.SearchStrategy[Any] | None = None
) -> st.SearchStrategy[e.Element]:
    optional_seconds = st.none() | seconds
    return st.builds(
        e.Element,
        key=key,
        value=st.none() if value is None else value,
        timeout=optional_seconds,
        expires=optional_seconds,
        comment=st.none() | quoted_texts,
        counter=st.none() | st.tuples(numbers, numbers),
        limit=st.sampled_from([None, None, "rate 10/second", "rate over 3 kbytes/day"]),
    )


map_values = verdicts | keys
groups = st.one_of(
    st.lists(elements(), min_size=1, max_size=3),
    st.lists(elements(value=map_values), min_size=1, max_size=3),
).map(lambda held: e.AnonymousSet(tuple(held)))
set_refs = st.builds(e.SetRef, names)
flags = st.lists(strings | numbers, min_size=2, max_size=4).map(lambda n: e.Flags(tuple(n)))
fields = st.sampled_from(
    [(protocol, field) for protocol, held in sorted(payload.FIELDS.items()) for field in held]
)
exthdrs = st.sampled_from(
    [e.Exthdr("exthdr", name, field) for name, held in exthdr.IPV6.items() for field in held]
    + [e.Exthdr("exthdr", "hbh"), e.Exthdr("tcp option", "sack-perm")]
    + [
        e.Exthdr(kind, "somename", field)
        for kind, held in exthdr.FIELDS.items()
        for field in sorted(held)
    ]
)
#: What looks at the packet and holds no other expression.
LEAVES: Final[Mapping[type, st.SearchStrategy[Any]]] = {
    e.Payload: fields.map(lambda pair: e.Payload(*pair))
    | st.sampled_from([e.Payload("arp", "operation"), e.Payload("arp", "saddr ip")]),
    e.RawPayload: st.builds(
        e.RawPayload, st.sampled_from(["ll", "nh", "th", "ih"]), bits32, bits32
    ),
    e.Exthdr: exthdrs,
    e.Meta: st.builds(e.Meta, st.sampled_from(sorted(meta.KEYS))),
    e.Ct: st.sampled_from(
        [
            e.Ct("state"),
            e.Ct("mark"),
            e.Ct("status"),
            e.Ct("ip saddr", "original"),
            e.Ct("proto-dst", "reply"),
            e.Ct("bytes"),
        ]
    ),
    e.Rt: st.sampled_from([e.Rt("mtu"), e.Rt("classid"), e.Rt("nexthop", "ip6")]),
    e.Socket: st.sampled_from([e.Socket("mark"), e.Socket("transparent")]),
    e.Osf: st.just(e.Osf("name")),
    e.Ipsec: st.sampled_from([e.Ipsec("in", "reqid"), e.Ipsec("out", "saddr", "ip", 2)]),
    e.Fib: st.builds(
        e.Fib,
        st.sampled_from(["type", "oif", "oifname"]),
        st.lists(
            st.sampled_from(["saddr", "daddr", "mark", "iif", "oif"]), min_size=1, unique=True
        ).map(tuple),
    ),
    e.Numgen: st.builds(e.Numgen, st.sampled_from(["random", "inc"]), positive, bits32),
    e.Symhash: st.builds(e.Symhash, positive, bits32),
}
leaves = st.one_of(*LEAVES.values())


def _binaries(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[e.Binary]:
    return st.builds(e.Binary, st.sampled_from(["&", "|", "^", "<<", ">>"]), inner, inner | bits32)


concatenated = leaves | _binaries(leaves)
concats = st.lists(concatenated, min_size=2, max_size=4).map(lambda p: e.Concat(tuple(p)))
jhashes = st.builds(e.Jhash, leaves | concats, positive, st.none() | bits32, bits32)
#: What a rule may look at.
lefts = st.one_of(leaves, st.recursive(leaves, _binaries, max_leaves=4), concats, jhashes)
lookups = st.builds(e.MapLookup, lefts, set_refs | groups)
EXPRESSIONS: Final[Mapping[type, st.SearchStrategy[Any]]] = {
    **LEAVES,
    int: numbers,
    str: strings,
    bool: st.booleans(),
    **dict.fromkeys((IPv4Address, IPv6Address), addresses),
    e.Jhash: jhashes,
    e.Concat: concats,
    e.Prefix: prefixes,
    e.Range: ranges,
    e.Wildcard: st.just(e.Wildcard()),
    e.Flags: flags,
    e.Binary: _binaries(leaves),
    e.SetRef: set_refs,
    e.AnonymousSet: groups,
    e.MapLookup: lookups,
    **{type(v): st.just(v) for v in (e.Accept(), e.Drop(), e.Continue(), e.Return())},
    e.Jump: st.builds(e.Jump, names),
    e.Goto: st.builds(e.Goto, names),
}

_signs = st.sampled_from(["==", "!=", "<", ">", "<=", ">=", "!"])
_bit_fields = st.sampled_from([e.Ct("state"), e.Ct("status"), e.Payload("tcp", "flags")])
_masked = st.builds(e.Binary, st.just("&"), _bit_fields, flags)
matches = st.one_of(
    st.builds(s.Match, _signs, lefts, st.one_of(keys, st.booleans(), groups, set_refs)),
    st.builds(s.Match, st.just("in"), _bit_fields, flags | strings | numbers),
    st.builds(s.Match, st.sampled_from(["==", "!="]), _masked, strings | flags),
)
_nat_flags = st.lists(
    st.sampled_from(["random", "fully-random", "persistent"]), unique=True, max_size=2
).map(tuple)
_ports = st.none() | st.integers(0, 65535) | st.builds(e.Range, bits32, bits32)
_ipv6 = st.ip_addresses(v=6)
_to = st.one_of(
    addresses,
    st.builds(e.Range, st.ip_addresses(v=4), st.ip_addresses(v=4)),
    st.builds(e.Range, _ipv6, _ipv6),
    lookups,
)


def _nat(kind: type) -> st.SearchStrategy[Any]:
    family = st.sampled_from([None, "ip", "ip6"])
    whole = {"family": family, "flags": _nat_flags}
    return st.builds(kind, address=_to, port=_ports | lookups, prefix=st.booleans(), **whole) | (
        st.builds(kind, port=_ports.filter(lambda port: port is not None), **whole)
    )


values = st.one_of(lefts, constant_values, lookups)
objects = st.sampled_from(["counter", "quota", "limit", "synproxy", "ct helper", "ct timeout"])
STATEMENTS: Final[Mapping[type, st.SearchStrategy[Any]]] = {
    s.Match: matches,
    s.Vmap: st.builds(
        s.Vmap,
        lefts,
        set_refs
        | st.lists(elements(value=verdicts), min_size=1, max_size=3).map(
            lambda held: e.AnonymousSet(tuple(held))
        ),
    ),
    **{kind: EXPRESSIONS[kind] for kind in (e.Accept, e.Drop, e.Continue, e.Return)},
    e.Jump: EXPRESSIONS[e.Jump],
    e.Goto: EXPRESSIONS[e.Goto],
    s.Counter: st.builds(s.Counter, numbers, numbers) | st.just(s.Counter()),
    s.ObjectRef: st.builds(s.ObjectRef, objects, strings | lookups),
    s.Limit: limits,
    s.Quota: st.builds(
        s.Quota,
        amount=numbers,
        unit=st.sampled_from(["bytes", "kbytes", "mbytes"]),
        used=positive,
        used_unit=st.sampled_from(["bytes", "kbytes"]),
        over=st.booleans(),
    ),
    s.Log: st.builds(
        s.Log,
        prefix=st.none() | quoted_texts,
        group=st.none() | bits32,
        snaplen=st.none() | bits32,
        queue_threshold=st.none() | bits32,
        level=st.sampled_from([None, "debug", "audit"]),
        flags=st.sampled_from(
            [(), ("all",), ("tcp sequence", "tcp options", "ip options"), ("skuid", "ether")]
        ),
    ),
    s.Reject: st.builds(
        s.Reject,
        st.sampled_from(["icmp", "icmpv6", "icmpx"]),
        st.sampled_from(["port-unreachable", "admin-prohibited", 200]),
    )
    | st.just(s.Reject("tcp reset")),
    s.Dnat: _nat(s.Dnat),
    s.Snat: _nat(s.Snat),
    s.Masquerade: st.builds(s.Masquerade, port=_ports, flags=_nat_flags),
    s.Redirect: st.builds(s.Redirect, port=_ports | lookups, flags=_nat_flags),
    s.MetaSet: st.builds(s.MetaSet, st.sampled_from(sorted(meta.KEYS)), values),
    s.CtSet: st.builds(
        s.CtSet,
        st.sampled_from(["mark", "zone", "event"]),
        values | flags,
        st.sampled_from([None, "original"]),
    ),
    s.Mangle: st.builds(s.Mangle, LEAVES[e.Payload] | LEAVES[e.RawPayload] | exthdrs, values),
    s.CtCount: st.builds(s.CtCount, bits32, st.booleans()),
    s.SetUpdate: st.builds(
        s.SetUpdate,
        operation=st.sampled_from(["add", "update", "delete"]),
        set=names,
        element=elements(leaves | concats, st.none() | leaves | addresses),
    ),
    s.Notrack: st.builds(s.Notrack),
    s.Queue: st.builds(
        s.Queue,
        st.none() | bits32 | LEAVES[e.Numgen],
        st.sampled_from([(), ("bypass",), ("bypass", "fanout")]),
    ),
    s.Dup: st.builds(s.Dup, addresses | strings, st.none() | strings),
    s.Fwd: st.builds(s.Fwd, strings, st.sampled_from([None, "ip"]), st.none() | addresses),
    s.Tproxy: st.builds(
        s.Tproxy, st.sampled_from([None, "ip", "ip6"]), addresses, _ports | LEAVES[e.Numgen]
    ),
    s.FlowAdd: st.builds(s.FlowAdd, names),
    s.Xt: st.builds(
        s.Xt,
        st.sampled_from(["match", "target", "watcher"]),
        st.from_regex("[a-zA-Z0-9]{1,10}", fullmatch=True),
    ),
    e.Unknown: st.sampled_from(["made up 1 2", "meter x", "reset everything"]).map(e.Unknown),
}
_known = st.one_of(*(held for kind, held in STATEMENTS.items() if kind is not e.Unknown))


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """A rule; what is not understood takes all that follows, so it stands last."""
    held = draw(st.lists(_known, min_size=1, max_size=4))
    if draw(st.integers(0, 9)) == 0:
        held.append(draw(STATEMENTS[e.Unknown]))
    return Rule(tuple(held), HERE, "", draw(st.none() | quoted_texts))


TYPES: Final = ("ipv4_addr", "ipv6_addr", "inet_proto", "inet_service", "mark", "ifname")
types = st.lists(st.sampled_from(TYPES), min_size=1, max_size=4).map(tuple)
comments = st.none() | quoted_texts
priorities = st.integers(-1000, 1000)
devices = st.lists(st.from_regex("[a-z]{1,5}[0-9]", fullmatch=True), max_size=2).map(tuple)


@st.composite
def sets(draw: st.DrawFn, name: str) -> Set:
    value = draw(st.none() | types | st.just(("verdict",)))
    held = elements() if value is None else elements(value=map_values)
    return Set(
        name=name,
        key=draw(types),
        value=value,
        flags=draw(st.sampled_from([(), ("interval",), ("dynamic", "timeout")])),
        timeout=draw(st.none() | seconds),
        gc_interval=draw(st.none() | seconds),
        size=draw(st.none() | bits32),
        policy=draw(st.sampled_from([None, "memory"])),
        auto_merge=draw(st.booleans()),
        statements=draw(st.sampled_from([(), (s.Counter(),), (s.Limit(rate=3, per="day"),)])),
        comment=draw(comments),
        elements=tuple(draw(st.lists(held, max_size=3))),
    )


@st.composite
def chains(draw: st.DrawFn, name: str) -> Chain:
    held = tuple(draw(st.lists(rules(), max_size=4)))
    comment = draw(comments)
    if draw(st.booleans()):
        return Chain(name=name, rules=held, comment=comment)
    return Chain(
        name=name,
        rules=held,
        comment=comment,
        type=draw(st.sampled_from(["filter", "nat", "route"])),
        hook=draw(st.sampled_from(["prerouting", "input", "output", "postrouting", "ingress"])),
        priority=draw(priorities),
        policy=draw(st.sampled_from(["accept", "drop"])),
        devices=draw(devices),
    )


@st.composite
def named_objects(draw: st.DrawFn, name: str) -> NamedObject:
    kind = draw(st.sampled_from(["counter", "quota", "limit", "ct helper"]))
    held: dict[str, Any]
    if kind == "counter":
        held = {"packets": draw(numbers), "bytes": draw(numbers)}
    elif kind == "quota":
        held = {"bytes": draw(numbers), "used": draw(numbers), "over": draw(st.booleans())}
    elif kind == "limit":
        limit = draw(limits)
        held = {
            n: getattr(limit, n)
            for n in ("rate", "per", "burst", "over", "rate_unit", "burst_unit")
        }
    else:
        held = {"type": draw(strings), "protocol": "tcp", "l3proto": "ip"}
    return NamedObject(kind=kind, name=name, properties=tuple(held.items()), comment=draw(comments))


@st.composite
def tables(draw: st.DrawFn, family: str, name: str) -> Table:
    def named(strategy: Any) -> dict[str, Any]:
        return {
            each: draw(strategy(each)) for each in draw(st.lists(names, unique=True, max_size=2))
        }

    held = named(named_objects).values()
    of_chains = named(chains)
    return Table(
        family=family,
        name=name,
        chains=of_chains,
        sets=dynamic(named(sets), of_chains),
        objects={(each.kind, each.name): each for each in held},
        flowtables={
            each: Flowtable(name=each, hook="ingress", priority=draw(priorities))
            for each in draw(st.lists(names, unique=True, max_size=1))
        },
        flags=draw(st.sampled_from([(), ("dormant",), ("owner", "persist")])),
        comment=draw(comments),
    )


@st.composite
def rulesets(draw: st.DrawFn) -> NftRuleset:
    families = st.sampled_from(["ip", "ip6", "inet", "arp", "bridge", "netdev"])
    # Tables of iptables-nft's names are read with more suspicion.
    own = names.filter(lambda name: name not in {"filter", "nat", "mangle", "raw", "security"})
    places = draw(st.lists(st.tuples(families, own), unique=True, min_size=1, max_size=2))
    return NftRuleset(
        tables={place: draw(tables(*place)) for place in places}, input_format="nft", file="made"
    )
