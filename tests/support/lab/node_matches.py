"""What the kernel says to matches that ask about the node, of flows whose routes are known.

A program: it leaves the host's network. For each program that loads rules it loads one rule for
each match, which does nothing but count, sends one packet of each kind, and prints as JSON which
rules matched.
"""

from __future__ import annotations

import json
import re
import sys
from ipaddress import ip_address
from typing import Final

from netns_lab.command import run
from netns_lab.namespace import leave_host
from tests.support.lab.nodes import OUTSIDE, Asked, Wired
from tests.support.lab.random_rules import OTHER_POD, SERVICE

#: Matches of iptables, in mangle PREROUTING.
IPTABLES: Final = (
    "-m rpfilter",
    "-m rpfilter --invert",
    "-m rpfilter --validmark --invert",
    "-m policy --dir in --pol none",
    "-m policy --dir in --pol ipsec",
    "-m socket",
    "-m socket --transparent",
    "-m limit --limit 9/sec",
    "-m connlimit --connlimit-above 0",
    "-m connlimit --connlimit-above 1",
    "-m connlimit --connlimit-upto 0",
    "-m connlimit --connlimit-upto 1",
    "-m addrtype --dst-type LOCAL",
    "-m addrtype --dst-type UNICAST",
    "-m addrtype ! --dst-type UNICAST",
    "-m addrtype --dst-type BROADCAST",
    "-m addrtype --dst-type MULTICAST",
    "-m addrtype --dst-type MULTICAST,BROADCAST",
    "-m addrtype --src-type UNICAST",
    "-m pkttype --pkt-type unicast",
    "-m pkttype --pkt-type broadcast",
    "-m pkttype --pkt-type multicast",
)
#: Matches of nft, in a chain at the hook prerouting.
NFT: Final = (
    "fib saddr . iif oif missing",
    "fib saddr . iif oif exists",
    "fib saddr . mark . iif oif missing",
    "fib saddr . iif oif 0",
    "fib saddr . iif oif != 0",
    "meta ipsec exists",
    "meta ipsec missing",
    "ipsec in reqid 1",
    "ipsec in reqid != 1",
    "socket transparent 0",
    "limit rate 9/second",
    "limit rate over 9/second",
    "ct count 0",
    "ct count 1",
    "ct count over 0",
    "ct count over 1",
    "fib daddr type local",
    "fib daddr type unicast",
    "fib daddr type != unicast",
    "fib daddr type broadcast",
    "fib daddr type multicast",
    "fib saddr type unicast",
    "meta pkttype host",
    "meta pkttype broadcast",
)
#: Packets by what the reverse-path check makes of them: the last says a pod's source by eth0.
SENT: Final = {
    "a pod": Asked("pod0", OTHER_POD, SERVICE, 80),
    "outside": Asked("eth0", OUTSIDE, SERVICE, 80),
    "a false source": Asked("eth0", OTHER_POD, SERVICE, 80),
    "to a group": Asked("eth0", OUTSIDE, ip_address("239.1.1.1"), 80),
    "to all": Asked("eth0", OUTSIDE, ip_address("255.255.255.255"), 80),
}
_COUNT: Final = re.compile(r"^\[(\d+):\d+\] -A PREROUTING|counter packets (\d+) ", re.MULTILINE)


def rows() -> str:
    """Return iptables-restore's input."""
    return "\n".join(["*mangle", *[f"-A PREROUTING {each}" for each in IPTABLES], "COMMIT", ""])


def ruleset() -> str:
    """Return nft's input."""
    rules = "".join(f"  {each} counter\n" for each in NFT)
    return (
        "table ip t {\n chain c {\n  type filter hook prerouting priority -150; policy accept;\n"
        f"{rules} }}\n}}\n"
    )


def _matched(program: str, asked: Asked) -> list[bool]:
    node = Wired()
    if program == "nft":
        run(node.namespace, ["nft", "-f", "-"], ruleset())
    else:
        run(node.namespace, [f"{program}-restore"], rows())
    node.emit(asked)
    if program == "nft":
        saved = run(node.namespace, ["nft", "list", "chain", "ip", "t", "c"]).stdout
    else:
        saved = run(node.namespace, [f"{program}-save", "-c", "-t", "mangle"]).stdout
    return [int(a or b) > 0 for a, b in _COUNT.findall(saved)]


def main() -> None:
    leave_host()
    found = {
        program: {name: _matched(program, asked) for name, asked in SENT.items()}
        for program in ("iptables-legacy", "iptables-nft", "nft")
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
