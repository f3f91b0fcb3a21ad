"""What the kernel finds in ipsets, of packets of which all is known.

A program: it leaves the host's network. It makes the sets, loads one rule for each look-up, which
does nothing but count, sends each packet once, and prints as JSON which rules matched, and what
``ipset save`` says of the sets.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Final

from netns_lab.command import run
from netns_lab.namespace import leave_host
from tests.support.lab.nodes import OUTSIDE, Asked, Wired
from tests.support.lab.random_rules import OTHER_POD, POD, SERVICE

_HEAD: Final = "family inet hashsize 64 maxelem 1024"
#: What is made; entries that are wider than others, and that take some out of them.
SETS: Final = f"""\
create ip hash:ip {_HEAD}
add ip 10.1.0.8
create ip24 hash:ip {_HEAD} netmask 24
add ip24 10.1.0.77
create net hash:net {_HEAD}
add net 10.0.0.0/8
add net 10.1.0.0/16 nomatch
add net 10.1.0.8
create ipport hash:ip,port {_HEAD}
add ipport 10.2.3.4,tcp:80
add ipport 10.2.3.4,udp:53
add ipport 10.1.0.9,53
create netport hash:net,port {_HEAD}
add netport 10.0.0.0/8,tcp:80
add netport 10.2.0.0/16,tcp:80 nomatch
add netport 10.2.0.0/16,udp:53
create ipportip hash:ip,port,ip {_HEAD}
add ipportip 10.2.3.4,tcp:80,10.1.0.8
add ipportip 10.1.0.9,udp:53,203.0.113.7
create ipportnet hash:ip,port,net {_HEAD}
add ipportnet 10.2.3.4,tcp:80,10.1.0.0/24
add ipportnet 10.2.3.4,tcp:80,10.1.0.8/32 nomatch
add ipportnet 10.2.3.4,udp:53,203.0.113.0/24
create iface hash:net,iface {_HEAD}
add iface 10.1.0.0/24,pod0
add iface 0.0.0.0/0,eth0
create bits bitmap:ip range 10.1.0.0-10.1.0.255
add bits 10.1.0.8
create nets bitmap:ip range 10.0.0.0-10.3.255.255 netmask 16
add nets 10.2.0.0
create ports bitmap:port range 0-1024
add ports 80
create empty hash:ip {_HEAD}
create all list:set size 8
add all ip
add all ipport
"""
_SIDES: Final = {
    1: ("src", "dst", "src,dst"),
    2: ("src", "src,src", "src,dst", "dst,dst", "dst,src"),
    3: ("dst,dst", "dst,dst,src", "src,dst,dst"),
}
#: How many dimensions each set has; that which lists others has as many as they.
_DIMENSIONS: Final = {
    words[1]: 2 if words[2] == "list:set" else words[2].count(",") + 1
    for words in map(str.split, SETS.splitlines())
    if words[0] == "create"
}
#: The set, its sides, and what else is asked: the words of each match.
MATCHES: Final = tuple(
    f"-m set {negated}--match-set {name} {sides}{more}"
    for name, dimensions in _DIMENSIONS.items()
    for sides in _SIDES[dimensions]
    for negated, more in (("", ""), ("! ", ""), ("", " --return-nomatch"))
)
SENT: Final = tuple(
    Asked(device, source, destination, port, protocol)
    for device, source in (("pod0", OTHER_POD), ("pod0", POD), ("eth0", OUTSIDE))
    for destination in (SERVICE, POD)
    for port in (53, 80, 81)
    for protocol in ("tcp", "udp")
)
_COUNT: Final = re.compile(r"^\[(\d+):\d+\] -A PREROUTING", re.MULTILINE)


def rows() -> str:
    """Return iptables-restore's input."""
    return "\n".join(["*mangle", *[f"-A PREROUTING {each}" for each in MATCHES], "COMMIT", ""])


def main() -> None:
    leave_host()
    node = Wired()
    run(node.namespace, ["ipset", "restore"], SETS)
    run(node.namespace, ["iptables-legacy-restore"], rows())
    before = [0] * len(MATCHES)
    found = []
    for asked in SENT:
        node.emit(asked)
        saved = run(node.namespace, ["iptables-legacy-save", "-c", "-t", "mangle"]).stdout
        counts = [int(each) for each in _COUNT.findall(saved)]
        found.append([now > then for now, then in zip(counts, before, strict=True)])
        before = counts
    given = run(node.namespace, ["ipset", "save"]).stdout
    json.dump({"saved": given, "matched": found}, sys.stdout)


if __name__ == "__main__":
    main()
