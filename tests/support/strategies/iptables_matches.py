"""A hypothesis strategy for each kind of match: a row for each member of the union `Match`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from analyzer.model.iptables import matches as m
from analyzer.model.iptables import options as o
from analyzer.model.probability import XT_STATISTIC_BITS
from analyzer.parsers.xt.matches import MATCHES as READ_MATCHES
from analyzer.parsers.xt.matches import addrtype, conntrack
from tests.support.strategies.iptables_values import (
    address_ranges,
    bits32,
    codes,
    comments,
    flag,
    flag_sets,
    given_something,
    interfaces,
    masked,
    names,
    networks,
    octets,
    option,
    port_lists,
    port_ranges,
    ports,
    ranges,
    some,
    unread,
)

randoms = st.builds(m.MatchRandom, st.integers(0, 1 << XT_STATISTIC_BITS))
nths = st.integers(1, 0xFFFFFFFF).flatmap(
    lambda every: st.builds(m.MatchNth, st.just(every), st.integers(0, every - 1))
)
_port_options = {"source_port": option(port_ranges), "destination_port": option(port_ranges)}
_UNREAD_MATCHES: Final = tuple(n for n in ("bpf", "u32", "made-up") if n not in READ_MATCHES)

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
        source_mask=st.none() | st.integers(0, 31),
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
    m.MatchUnknown: unread("-m", _UNREAD_MATCHES).map(m.MatchUnknown),
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
