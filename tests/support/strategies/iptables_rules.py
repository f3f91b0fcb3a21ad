"""Hypothesis strategies for the values of the model, written once for all tests.

`MATCHES` and `TARGETS` have a row for each member of the unions `Match` and `Target`; a test
counts them, and they stand in one file, however long, as the unions do. Their values are those
that iptables-save can print, so that they survive printing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from typing import Any, Final, TypeVar, get_args

from hypothesis import strategies as st

from analyzer.model import matches as m
from analyzer.model import options as o
from analyzer.model import targets as t
from analyzer.model.diagnostics import Location
from analyzer.model.probability import XT_STATISTIC_BITS, Dyadic
from analyzer.model.rules import Chain, Rule, Ruleset, Table
from analyzer.parsers.xt.known import XTABLES_TARGETS
from analyzer.parsers.xt.matches import MATCHES as READ_MATCHES
from analyzer.parsers.xt.matches import addrtype, conntrack
from analyzer.parsers.xt.matches.tcp import FLAGS
from analyzer.parsers.xt.targets import TARGETS as READ_TARGETS

V = TypeVar("V")

HERE: Final = Location("made", 1)

dyadics = st.integers(0, 40).flatmap(
    lambda e: st.integers(0, 1 << e).map(lambda n: Dyadic.of(n, e))
)

#: Any one line that a comment may hold: quotes, backslashes, other alphabets, bytes that are
#: no UTF-8 (which surrogates carry), and text that looks like options.
comments = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"), max_size=30),
    st.binary(max_size=30).map(
        lambda data: re.sub(rb"[\0\n]", b"", data).decode("utf-8", "surrogateescape")
    ),
    st.lists(
        st.sampled_from([" -j ", "DROP", '"', "\\", "'", "!", "-m", " ", "\t", "; ", "é", "\u2028"])
    ).map("".join),
)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,14}", fullmatch=True)
interfaces = st.from_regex(r"[a-z][a-z0-9.@-]{0,10}\+?", fullmatch=True)
bits32 = st.integers(0, 0xFFFFFFFF)
ports = st.integers(0, 0xFFFF)
addresses = st.ip_addresses()
networks_v4 = st.builds(
    lambda a, n: IPv4Network((a, n), strict=False), st.ip_addresses(v=4), st.integers(0, 32)
)
networks_v6 = st.builds(
    lambda a, n: IPv6Network((a, n), strict=False), st.ip_addresses(v=6), st.integers(0, 128)
)
networks = networks_v4 | networks_v6


def ranges(most: int) -> st.SearchStrategy[o.Range]:
    ends = st.tuples(st.integers(0, most), st.integers(0, most))
    return ends.map(lambda pair: o.Range(min(pair), max(pair)))


port_ranges = ranges(0xFFFF)
masked = st.builds(o.Masked, bits32, bits32 | st.just(0xFFFFFFFF))
port_lists = st.lists(port_ranges, min_size=1, max_size=3).map(tuple)
octets = st.integers(0, 255)
codes = st.none() | octets


@st.composite
def _address_ranges(draw: st.DrawFn) -> o.AddressRange:
    ends = draw(st.sampled_from([st.ip_addresses(v=4), st.ip_addresses(v=6)]))
    return o.AddressRange(*sorted(draw(st.tuples(ends, ends))))


address_ranges = _address_ranges()
flag_sets = st.frozensets(st.sampled_from(FLAGS))


def option(values: st.SearchStrategy[V]) -> st.SearchStrategy[o.Option[V] | None]:
    return st.none() | st.builds(o.Option, values, st.booleans())


def flag() -> st.SearchStrategy[o.Option[bool] | None]:
    return option(st.just(True))


def some(words: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    """Some of these words, in the order in which iptables-save prints them."""
    chosen = st.sets(st.sampled_from(words), min_size=1, max_size=3)
    return chosen.map(lambda some: tuple(word for word in words if word in some))


def given_something(kind: type[V], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[V]:
    """Values of `kind` other than the one without any option."""
    return st.builds(kind, **fields).filter(lambda value: value != kind())


randoms = st.builds(m.MatchRandom, st.integers(0, 1 << XT_STATISTIC_BITS))
nths = st.integers(1, 0xFFFFFFFF).flatmap(
    lambda every: st.builds(m.MatchNth, st.just(every), st.integers(0, every - 1))
)
_port_options = {"source_port": option(port_ranges), "destination_port": option(port_ranges)}
_plain_words = st.lists(st.sampled_from(["--x", "1", '"a b"', "0x0=0x1", "dst,src"]), max_size=3)


def _unread(option: str, known: tuple[str, ...]) -> st.SearchStrategy[str]:
    head = st.sampled_from(known).map(lambda name: f"{option} {name}")
    return st.builds(lambda name, words: " ".join([name, *words]), head, _plain_words)


_UNREAD_MATCHES: Final = tuple(n for n in ("bpf", "u32", "made-up") if n not in READ_MATCHES)
_UNREAD_TARGETS: Final = tuple(sorted(XTABLES_TARGETS - set(READ_TARGETS)))

#: A strategy for each kind of match that stands for itself.
_POSITIVE: Final[Mapping[type, st.SearchStrategy[Any]]] = {
    m.MatchProtocol: st.builds(m.MatchProtocol, st.sampled_from(["tcp", "udp", "sctp", "47"])),
    m.MatchSource: st.builds(m.MatchSource, networks),
    m.MatchDestination: st.builds(m.MatchDestination, networks),
    m.MatchInInterface: st.builds(m.MatchInInterface, interfaces),
    m.MatchOutInterface: st.builds(m.MatchOutInterface, interfaces),
    m.MatchFragment: st.builds(m.MatchFragment),
    m.MatchComment: st.builds(m.MatchComment, comments),
    m.MatchTcp: st.builds(
        m.MatchTcp,
        **_port_options,
        tcp_option=option(st.integers(0, 255)),
        flags=option(st.builds(o.TcpFlags, flag_sets, flag_sets)),
    ),
    m.MatchUdp: st.builds(m.MatchUdp, **_port_options),
    m.MatchSctp: st.builds(
        m.MatchSctp,
        **_port_options,
        chunk_types=option(
            st.builds(
                o.ChunkTypes,
                st.sampled_from(["all", "any", "only"]),
                some(("DATA", "DATA:Be", "INIT", "ABORT:T")),
            )
        ),
    ),
    m.MatchPhysdev: given_something(
        m.MatchPhysdev,
        in_device=option(interfaces),
        is_in=flag(),
        out_device=option(interfaces),
        is_out=flag(),
        is_bridged=flag(),
    ),
    m.MatchMark: st.builds(m.MatchMark, masked),
    m.MatchRandom: randoms,
    m.MatchNth: nths,
    m.MatchNfacct: st.builds(m.MatchNfacct, names),
    m.MatchAddrtype: given_something(
        m.MatchAddrtype,
        source_type=option(some(addrtype.TYPES)),
        destination_type=option(some(addrtype.TYPES)),
        limit_in_interface=st.booleans(),
        limit_out_interface=st.booleans(),
    ),
    m.MatchConntrack: given_something(
        m.MatchConntrack,
        state=option(some(conntrack.STATES)),
        protocol=option(st.sampled_from(["6", "17"])),
        original_source=option(networks),
        original_destination=option(networks),
        reply_source=option(networks),
        reply_destination=option(networks),
        original_source_port=option(port_ranges),
        original_destination_port=option(port_ranges),
        reply_source_port=option(port_ranges),
        reply_destination_port=option(port_ranges),
        status=option(some(conntrack.STATUSES)),
        expire=option(ranges(0xFFFFFFFF)),
        direction=st.none() | st.sampled_from(["ORIGINAL", "REPLY"]),
    ),
    m.MatchRecent: st.builds(
        m.MatchRecent,
        action=st.builds(
            o.Option, st.sampled_from(["set", "rcheck", "update", "remove"]), st.booleans()
        ),
        seconds=st.none() | st.integers(1, 0xFFFFFFFF),
        reap=st.booleans(),
        hit_count=st.none() | st.integers(1, 255),
        ttl=st.booleans(),
        name=names,
        mask=st.none() | st.just("255.255.255.255"),
        side=st.sampled_from(["rsource", "rdest"]),
    ),
    m.MatchIcmp: st.just(m.MatchIcmp(None)) | st.builds(m.MatchIcmp, st.integers(0, 254), codes),
    m.MatchIcmp6: st.builds(m.MatchIcmp6, octets, codes),
    m.MatchState: st.builds(m.MatchState, some(conntrack.STATES[:5])),
    m.MatchConnmark: st.builds(m.MatchConnmark, masked),
    m.MatchSet: st.builds(
        m.MatchSet,
        match_set=st.builds(
            o.Option,
            st.tuples(
                names | st.just("weave-;rGqyMIl1HN^cfDki~Z$3]6!N"),
                st.sampled_from(["src", "dst", "dst,src"]),
            ),
            st.booleans(),
        ),
        return_nomatch=st.booleans(),
        no_update_counters=st.booleans(),
        no_update_subcounters=st.booleans(),
        packets_equal=option(bits32),
        bytes_above=st.none() | bits32,
    ),
    m.MatchOwner: given_something(
        m.MatchOwner,
        socket_exists=flag(),
        user=option(ranges(0xFFFFFFFF)),
        group=option(ranges(0xFFFFFFFF)),
        supplementary_groups=st.booleans(),
    ),
    m.MatchLimit: st.builds(
        m.MatchLimit,
        # Periods that a rate gives; iptables-save prints each as that rate again.
        st.sampled_from([1000, 10_000, 120_000, 600_000, 12_000_000, 43_200_000, 864_000_000]),
        st.integers(1, 10_000),
    ),
    m.MatchHashlimit: st.builds(
        m.MatchHashlimit,
        up_to=st.sampled_from(["50/sec", "512kb/s"]),
        burst=st.none() | st.just("5"),
        mode=st.none() | st.sampled_from(["srcip", "srcip,dstport"]),
        name=names,
        expire=st.none() | bits32,
        source_mask=st.none() | st.integers(0, 32),
        rate_match=st.booleans(),
    ),
    m.MatchMultiport: given_something(
        m.MatchMultiport,
        source_ports=option(port_lists),
        destination_ports=option(port_lists),
        ports=option(port_lists),
    ),
    m.MatchIprange: given_something(
        m.MatchIprange, source=option(address_ranges), destination=option(address_ranges)
    ),
    m.MatchSocket: st.builds(
        m.MatchSocket,
        transparent=st.booleans(),
        no_wildcard=st.booleans(),
        restore_mark=st.booleans(),
    ),
    m.MatchRpfilter: st.builds(
        m.MatchRpfilter,
        loose=st.booleans(),
        valid_mark=st.booleans(),
        accept_local=st.booleans(),
        invert=st.booleans(),
    ),
    m.MatchLength: st.builds(m.MatchLength, port_ranges),
    m.MatchTtl: given_something(
        m.MatchTtl, equal=option(octets), below=st.none() | octets, above=st.none() | octets
    ),
    m.MatchHl: given_something(
        m.MatchHl, equal=option(octets), below=st.none() | octets, above=st.none() | octets
    ),
    m.MatchMac: st.builds(
        m.MatchMac, st.from_regex(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", fullmatch=True)
    ),
    m.MatchPkttype: st.builds(
        m.MatchPkttype, st.sampled_from(["unicast", "broadcast", "multicast"])
    ),
    m.MatchString: st.builds(
        m.MatchString,
        text=st.builds(o.Option, comments, st.booleans()),
        algorithm=st.sampled_from(["bm", "kmp"]),
        first=st.none() | ports,
        last=st.none() | ports,
        ignore_case=st.booleans(),
    )
    | st.builds(
        m.MatchString,
        hexadecimal=st.builds(o.Option, st.just("|00ff|"), st.booleans()),
        algorithm=st.sampled_from(["bm", "kmp"]),
    ),
    m.MatchTcpmss: st.builds(m.MatchTcpmss, port_ranges),
    m.MatchConnlimit: st.builds(
        m.MatchConnlimit,
        above=bits32,
        mask=st.none() | st.integers(0, 128),
        source=st.booleans(),
    ),
    m.MatchPolicy: st.builds(
        m.MatchPolicy,
        direction=st.sampled_from(["in", "out"]),
        policy=st.sampled_from(["ipsec", "none"]),
        strict=st.booleans(),
        elements=st.lists(
            given_something(
                o.PolicyElement,
                reqid=option(bits32),
                spi=option(bits32),
                protocol=option(st.sampled_from(["esp", "ah"])),
                mode=option(st.sampled_from(["transport", "tunnel"])),
                tunnel_source=option(st.just("10.0.0.0/8")),
                tunnel_destination=option(st.just("10.0.0.1")),
            ),
            max_size=2,
        ).map(tuple),
    ),
    m.MatchIpvs: given_something(
        m.MatchIpvs,
        is_ipvs=flag(),
        protocol=option(st.just("6")),
        address=option(networks),
        port=option(ports),
        direction=st.none() | st.sampled_from(["ORIGINAL", "REPLY"]),
        method=option(st.sampled_from(["GATE", "IPIP", "MASQ"])),
        control_port=option(ports),
    ),
    m.MatchUnknown: _unread("-m", _UNREAD_MATCHES).map(m.MatchUnknown),
}

#: The kinds that ``!`` negates as a whole, where iptables accepts it.
_NEGATABLE: Final = (
    m.MatchProtocol,
    m.MatchSource,
    m.MatchDestination,
    m.MatchInInterface,
    m.MatchOutInterface,
    m.MatchFragment,
    m.MatchMark,
    m.MatchRandom,
    m.MatchNth,
    m.MatchIcmp,
    m.MatchIcmp6,
    m.MatchState,
    m.MatchConnmark,
    m.MatchLength,
    m.MatchMac,
    m.MatchPkttype,
    m.MatchTcpmss,
)

MATCHES: Final[Mapping[type, st.SearchStrategy[Any]]] = {
    **_POSITIVE,
    m.MatchNot: st.one_of([_POSITIVE[kind] for kind in _NEGATABLE]).map(m.MatchNot),
}


@st.composite
def _nat_ranges(draw: st.DrawFn) -> t.NatRange:
    ends = draw(st.sampled_from([st.ip_addresses(v=4), st.ip_addresses(v=6)]))
    first, last = sorted(draw(st.tuples(ends, ends)))
    low, high = sorted(draw(st.tuples(st.integers(1, 0xFFFF), st.integers(1, 0xFFFF))))
    has_address, has_port = draw(st.sampled_from([(True, False), (True, True), (False, True)]))
    if not has_address:
        return t.NatRange(None, None, low, draw(st.none() | st.just(high)))
    return t.NatRange(
        first,
        draw(st.none() | st.just(last)),
        low if has_port else None,
        draw(st.none() | st.just(high)) if has_port else None,
    )


nat_ranges = _nat_ranges()

TARGETS: Final[Mapping[type, st.SearchStrategy[Any]]] = {
    t.Jump: st.builds(t.Jump, names.filter(lambda name: name not in XTABLES_TARGETS)),
    t.Goto: st.builds(t.Goto, names),
    t.Accept: st.builds(t.Accept),
    t.Drop: st.builds(t.Drop),
    t.Return: st.builds(t.Return),
    t.Reject: st.builds(
        t.Reject, st.none() | st.sampled_from(["icmp-port-unreachable", "tcp-reset"])
    ),
    t.SetMark: st.builds(t.SetMark, bits32, bits32),
    t.Dnat: st.builds(t.Dnat, nat_ranges, st.booleans(), st.booleans()),
    t.Masquerade: st.builds(
        t.Masquerade,
        ports=st.none() | port_ranges,
        random=st.booleans(),
        random_fully=st.booleans(),
    ),
    t.Snat: st.builds(t.Snat, nat_ranges, st.booleans(), st.booleans(), st.booleans()),
    t.Redirect: st.builds(t.Redirect, st.none() | port_ranges, st.booleans()),
    t.SetConnmark: st.builds(t.SetConnmark, bits32, bits32),
    t.CopyConnmark: st.builds(t.CopyConnmark, st.sampled_from(["save", "restore"]), bits32, bits32),
    t.ConnectionTracking: st.builds(
        t.ConnectionTracking,
        no_track=st.booleans(),
        helper=st.none() | names,
        events=st.none() | st.just("new,destroy"),
        zone=st.none() | st.just("5"),
        zone_reply=st.none() | st.just("7"),
    ),
    t.NoTrack: st.builds(t.NoTrack),
    t.Log: st.builds(
        t.Log,
        prefix=st.none() | comments,
        level=st.none() | st.sampled_from([0, 1, 2, 3, 5, 6, 7]),
        tcp_sequence=st.booleans(),
        user=st.booleans(),
    ),
    t.NfLog: st.builds(
        t.NfLog,
        prefix=st.none() | comments,
        group=st.none() | ports,
        size=st.none() | bits32,
        threshold=st.none() | ports,
    ),
    t.Tproxy: st.builds(
        t.Tproxy,
        port=ports,
        address=st.none() | addresses,
        mark=st.none() | masked,
    ),
    t.SetMss: st.builds(t.SetMss, mss=ports) | st.just(t.SetMss(clamp=True)),
    t.ChangeSet: st.builds(
        t.ChangeSet,
        action=st.sampled_from(["add-set", "del-set", "map-set"]),
        name=names,
        directions=st.sampled_from(["src", "dst,src"]),
        exist=st.booleans(),
        timeout=st.none() | bits32,
        map_mark=st.booleans(),
    ),
    t.Queue: st.builds(
        t.Queue,
        number=st.none() | ports,
        balance=st.none() | port_ranges,
        bypass=st.booleans(),
        cpu_fanout=st.booleans(),
    ),
    t.Trace: st.builds(t.Trace),
    t.FillChecksum: st.builds(t.FillChecksum),
    t.TargetUnknown: _unread("-j", _UNREAD_TARGETS).map(t.TargetUnknown),
}

matches: Final[st.SearchStrategy[m.Match]] = st.sampled_from(list(MATCHES)).flatmap(
    MATCHES.__getitem__
)
targets: Final[st.SearchStrategy[t.Target]] = st.sampled_from(list(TARGETS)).flatmap(
    TARGETS.__getitem__
)
rules: Final = st.builds(
    Rule,
    st.lists(matches, max_size=4).map(tuple),
    st.none() | targets,
    st.just(HERE),
    st.just(""),
)

chain_names = names.filter(lambda name: name not in XTABLES_TARGETS)


@st.composite
def _chains(draw: st.DrawFn) -> tuple[Chain, ...]:
    made = draw(st.lists(chain_names, min_size=1, max_size=4, unique=True))
    policies = st.sampled_from([None, "ACCEPT", "DROP"])
    held = st.lists(rules, max_size=4).map(tuple)
    return tuple(Chain(name, draw(held), draw(policies)) for name in made)


@st.composite
def _rulesets(draw: st.DrawFn) -> Ruleset:
    kept = draw(
        st.lists(
            st.sampled_from(["raw", "mangle", "nat", "filter"]), min_size=1, max_size=3, unique=True
        )
    )
    tables = {
        name: Table("ip", name, {chain.name: chain for chain in draw(_chains())}) for name in kept
    }
    return Ruleset(tables=tables, family="ip", input_format="iptables-save", file="made")


rulesets: Final = _rulesets()

#: Chains of the tables that are walked. Each jumps to later ones only, so that no walk loops.
CHAINS: Final = ("A", "B", "C")
DEAD: Final = t.Dnat(t.NatRange(IPv4Address("10.0.0.1"), None, 80))
_ALIVE: Final = t.Dnat(t.NatRange(IPv4Address("10.0.0.2"), None, 80))
#: Quarters, so that every probability has few digits; 0 and 1 among them.
quarters = st.integers(0, 4).map(lambda n: m.MatchRandom(n << (XT_STATISTIC_BITS - 2)))
_marks = st.builds(m.MatchMark, st.builds(o.Masked, st.integers(0, 3), st.integers(0, 3)))
known_matches: Final[st.SearchStrategy[m.Match]] = st.one_of(
    quarters, quarters.map(m.MatchNot), _marks, _marks.map(m.MatchNot)
)
unknown_matches: Final[st.SearchStrategy[m.Match]] = st.sampled_from(
    [m.MatchUnknown("-m u32"), m.MatchNot(m.MatchUnknown("-m u32"))]
)


def _decisions(later: tuple[str, ...], *, unknown: bool) -> st.SearchStrategy[t.Target | None]:
    marks = st.builds(t.SetMark, st.integers(0, 3), st.integers(0, 3) | st.just(0xFFFFFFFF))
    kinds: list[st.SearchStrategy[t.Target | None]] = [
        st.sampled_from(
            [None, DEAD, _ALIVE, t.Accept(), t.Drop(), t.Reject(), t.Masquerade(), t.Return()]
        ),
        marks,
    ]
    if later:
        kinds += [st.sampled_from(later).map(t.Jump), st.sampled_from(later).map(t.Goto)]
    if unknown:
        kinds.append(st.just(t.TargetUnknown("-j TPROXY")))
    return st.one_of(kinds)


@st.composite
def walked_tables(
    draw: st.DrawFn,
    *,
    unknown_match: bool = True,
    unknown_target: bool = True,
    chains: int = len(CHAINS),
    most_rules: int = 3,
    most_matches: int = 2,
) -> Table:
    """Small tables whose walk has every turn in it: jumps, gotos, marks, chance, the unknown."""
    asked = known_matches | unknown_matches if unknown_match else known_matches
    built: dict[str, Chain] = {}
    for depth, name in enumerate(CHAINS[:chains]):
        decisions = _decisions(CHAINS[depth + 1 : chains], unknown=unknown_target)
        drawn = draw(
            st.lists(
                st.tuples(st.lists(asked, max_size=most_matches).map(tuple), decisions),
                min_size=1,
                max_size=most_rules,
            )
        )
        built[name] = Chain(
            name,
            tuple(
                Rule(held, target, Location(name, line), f"-A {name} #{line}")
                for line, (held, target) in enumerate(drawn, 1)
            ),
        )
    return Table("ip", "nat", built)


@st.composite
def looping_tables(draw: st.DrawFn) -> Table:
    """Tables whose chains lead anywhere: back, to themselves, to chains that do not exist."""
    anywhere = st.sampled_from([*CHAINS, "MISSING"])
    decision: st.SearchStrategy[t.Target] = st.one_of(
        anywhere.map(t.Jump),
        anywhere.map(t.Goto),
        st.builds(t.SetMark, st.integers(0, 3), st.integers(0, 3)),
        st.sampled_from([DEAD, t.Return()]),
    )
    asked: st.SearchStrategy[tuple[m.Match, ...]] = st.sampled_from(
        [(), (m.MatchRandom(1 << 30),), (m.MatchUnknown("-m u32"),)]
    )
    built = {}
    for name in CHAINS:
        drawn = draw(st.lists(st.tuples(asked, decision), max_size=3))
        held = tuple(Rule(each, target, HERE, "") for each, target in drawn)
        built[name] = Chain(name, held)
    return Table("ip", "nat", built)


def kinds_of(union: Any) -> set[type]:
    """The members of a union of types."""
    return set(get_args(union))
