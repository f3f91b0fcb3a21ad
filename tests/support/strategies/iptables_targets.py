"""A hypothesis strategy for each kind of target: a row for each member of the union `Target`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from analyzer.model.iptables import targets as t
from analyzer.parsers.xt.known import XTABLES_TARGETS
from analyzer.parsers.xt.targets import TARGETS as READ_TARGETS
from tests.support.strategies.iptables_values import (
    addresses,
    bits32,
    comments,
    masked,
    names,
    port_ranges,
    ports,
    unread,
)

_UNREAD_TARGETS: Final = tuple(sorted(XTABLES_TARGETS - set(READ_TARGETS)))


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
hops = st.integers(0, 255)

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
    t.SetDscp: st.builds(t.SetDscp, st.integers(0, 63)),
    t.SetTos: st.builds(t.SetTos, st.sampled_from(["0x10/0xff", "0x00/0x0f", "0x10/0x3f"])),
    t.ChangeTtl: st.builds(t.ChangeTtl, to=hops)
    | st.builds(t.ChangeTtl, less=st.integers(1, 255))
    | st.builds(t.ChangeTtl, more=st.integers(1, 255)),
    t.ChangeHops: st.builds(t.ChangeHops, to=hops)
    | st.builds(t.ChangeHops, less=st.integers(1, 255))
    | st.builds(t.ChangeHops, more=st.integers(1, 255)),
    t.RemoveEcn: st.just(t.RemoveEcn(tcp=True)),
    t.StripOptions: st.builds(t.StripOptions, st.sampled_from(["8", "4,7,8"])),
    t.Classify: st.builds(t.Classify, st.sampled_from(["0001:0010", "ffff:0000"])),
    t.Audit: st.builds(t.Audit, st.sampled_from(["accept", "drop", "reject"])),
    t.Tee: st.builds(t.Tee, addresses, st.none() | st.just("eth0")),
    t.TargetUnknown: unread("-j", _UNREAD_TARGETS).map(t.TargetUnknown),
}
