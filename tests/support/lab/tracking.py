"""Rules with which the kernel asks nat, and such with which it does not.

A program: it leaves the host's network. For each case it loads a table nat that counts, and the
case's rule beside it, sends a packet that the node makes, and prints as JSON whether nat saw it.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from netns_lab.command import run
from netns_lab.namespace import leave_host
from tests.support.lab.nodes import OUTSIDE, Asked, Wired
from tests.support.lab.random_rules import NODE

#: Rows of iptables by their table; of the other tables nothing is there.
IPTABLES: Final = {
    "nothing": ("filter", ""),
    "what asks for marks": ("mangle", "-A OUTPUT -m mark --mark 0x1"),
    "notrack for others": ("raw", "-A OUTPUT -d 192.0.2.1/32 -j CT --notrack"),
    "conntrack": ("filter", "-A INPUT -m conntrack --ctstate NEW"),
    "not conntrack": ("filter", "-A INPUT -m conntrack ! --ctstate NEW"),
    "state": ("filter", "-A INPUT -m state --state NEW"),
    "connmark": ("mangle", "-A INPUT -m connmark --mark 0x1"),
    "connlimit": ("filter", "-A INPUT -m connlimit --connlimit-above 4 --connlimit-mask 32"),
    "a zone": ("raw", "-A PREROUTING -j CT --zone 1"),
    "CONNMARK": ("mangle", "-A INPUT -j CONNMARK --save-mark"),
    "MASQUERADE": ("nat", "-A POSTROUTING -d 192.0.2.1/32 -j MASQUERADE"),
    "SNAT": ("nat", "-A POSTROUTING -d 192.0.2.1/32 -j SNAT --to-source 192.0.2.2"),
    "DNAT": ("nat", "-A PREROUTING -j DNAT --to-destination 192.0.2.2"),
    "REDIRECT": ("nat", "-A PREROUTING -p tcp -j REDIRECT --to-ports 80"),
    "a chain that nothing leads to": ("nat", "-A OTHER -j MASQUERADE"),
}
#: Rules of nft in a chain that nothing leads to, by the table's family.
NFT: Final = {
    "nothing": ("ip", "counter"),
    "what asks for marks": ("ip", "meta mark 0x1"),
    "notrack": ("ip", "notrack"),
    "conntrack": ("ip", "ct state new"),
    "conntrack of both families": ("inet", "ct state new"),
    "conntrack of the other family": ("ip6", "ct state new"),
    "a flow's addresses": ("ip", "ct original ip saddr 192.0.2.1"),
    "a map of flows' marks": ("ip", "ct mark vmap { 1 : drop }"),
    "a mark that is set": ("ip", "ct mark set 0x1"),
    "a mark that is copied": ("ip", "meta mark set ct mark"),
    "ct count": ("ip", "ct count over 4"),
    "masquerade": ("ip", "masquerade"),
    "masquerade of both families": ("inet", "masquerade"),
    "dnat": ("ip", "dnat to 192.0.2.2"),
    "dnat of both families' table": ("inet", "dnat ip to 192.0.2.2"),
    "dnat of the other family": ("inet", "dnat ip6 to fd00::2"),
    "snat": ("ip", "snat to 192.0.2.2"),
    "redirect": ("ip", "redirect"),
}
#: Cases in which nothing needs conntrack.
NOT_NEEDED: Final = {
    "nothing",
    "what asks for marks",
    "notrack for others",
    "notrack",
    "conntrack of the other family",
    "dnat of the other family",
}
ASKED: Final = Asked(None, NODE, OUTSIDE, 53)


def rows(name: str) -> str:
    """Return iptables-restore's input of a case."""
    table, row = IPTABLES[name]
    nat = ["*nat", ":OTHER - [0:0]", "-A OUTPUT -p udp -j RETURN"]
    if table == "nat":
        return "\n".join([*nat, row, "COMMIT", ""])
    return "\n".join([*nat, "COMMIT", f"*{table}", row, "COMMIT", ""])


def ruleset(name: str) -> str:
    """Return nft's input of a case."""
    family, rule = NFT[name]
    return (
        "table ip n {\n chain c {\n  type nat hook output priority -100; policy accept;\n"
        "  counter\n }\n}\n"
        f"table {family} t {{\n chain c {{\n  {rule}\n }}\n}}\n"
    )


def _seen(program: str, name: str) -> bool:
    node = Wired()
    if program == "nft":
        run(node.namespace, ["nft", "-f", "-"], ruleset(name))
    else:
        run(node.namespace, [f"{program}-restore"], rows(name))
    node.emit(ASKED)
    if program == "nft":
        return "packets 1 " in run(node.namespace, ["nft", "list", "chain", "ip", "n", "c"]).stdout
    saved = run(node.namespace, [f"{program}-save", "-c", "-t", "nat"]).stdout
    return "[1:" in next(row for row in saved.splitlines() if " -j RETURN" in row)


def main() -> None:
    leave_host()
    found = {
        program: {name: _seen(program, name) for name in (NFT if program == "nft" else IPTABLES)}
        for program in ("iptables-legacy", "iptables-nft", "nft")
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
