"""Sets as ``ipset save`` prints them, and packets that come near them."""

from __future__ import annotations

from itertools import product
from typing import Final

from hypothesis import strategies as st

from tests.support.naive.ipset import Sent

#: Types by what their entries have; the kernel of the lab knows all of them.
TYPES: Final = (
    "hash:ip",
    "hash:net",
    "hash:ip,port",
    "hash:net,port",
    "hash:ip,port,ip",
    "hash:ip,port,net",
    "bitmap:ip",
    "bitmap:port",
    "hash:net,iface",
)
FLAGS: Final = ("src", "dst", "src,dst", "dst,src", "dst,dst", "src,src,dst", "dst,dst,src")
_HOSTS: Final = tuple(f"10.0.{a}.{b}" for a, b in product((0, 1), (1, 2, 129)))
_NETS: Final = (*_HOSTS, "10.0.0.0/24", "10.0.1.0/24", "10.0.0.0/16", "10.0.0.128/25", "0.0.0.0/1")
_PORTS: Final = ("tcp:80", "udp:80", "tcp:53", "udp:53")
_PARTS: Final = {
    "ip": _HOSTS,
    "net": _NETS,
    "port": _PORTS,
    "iface": ("eth0", "eth1"),
}
_OPTIONS: Final = {
    "bitmap:ip": "range 10.0.0.0-10.0.255.255",
    "bitmap:port": "range 0-1024",
}


def _entries(kind: str) -> list[str]:
    parts = kind.partition(":")[2].split(",")
    if kind == "bitmap:port":
        return ["53", "80", "81"]
    return [",".join(each) for each in product(*(_PARTS[part] for part in parts))]


@st.composite
def saved(draw: st.DrawFn) -> str:
    """A few sets, and one that lists the others."""
    lines: list[str] = []
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    for at, kind in enumerate(kinds):
        options = _OPTIONS.get(kind, "family inet hashsize 1024 maxelem 65536")
        lines.append(f"create s{at} {kind} {options}")
        entries = draw(st.lists(st.sampled_from(_entries(kind)), max_size=6, unique=True))
        for each in entries:
            is_out = "net" in kind and draw(st.integers(0, 3)) == 0
            lines.append(f"add s{at} {each}" + " nomatch" * is_out)
    lines.append("create all list:set size 8")
    lines += [f"add all s{at}" for at in range(len(kinds))]
    return "\n".join(lines) + "\n"


packets = st.builds(
    Sent,
    source=st.sampled_from((*_HOSTS, "10.0.0.200", "192.0.2.1")),
    destination=st.sampled_from((*_HOSTS, "10.0.1.200", "192.0.2.2")),
    protocol=st.sampled_from(("tcp", "udp")),
    source_port=st.sampled_from((53, 80, 4000)),
    destination_port=st.sampled_from((53, 80, 81)),
    device=st.sampled_from(("eth0", "eth1")),
)
