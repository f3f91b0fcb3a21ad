"""Dumps as they are when commands that the program prints were run on the node."""

from __future__ import annotations

import re

_IPTABLES = re.compile(r"ip6?tables(?:-\w+)? -t nat -I (\S+) -j (\S+)")
_NFT = re.compile(r"nft insert rule (ip6?) kube-proxy (\S+) (.+)")


def after(text: str, command: str) -> str:
    """Return a dump with the rule that a command puts first into its chain."""
    bare = command.partition("  # ")[0]
    if found := _IPTABLES.fullmatch(bare):
        chain, to = found.groups()
        at = text.index(f"-A {chain} ", text.index("*nat\n"))
        return f"{text[:at]}-A {chain} -j {to}\n{text[at:]}"
    found = _NFT.fullmatch(bare)
    assert found, command
    family, chain, rule = found.groups()
    table = text.index(f"table {family} kube-proxy {{")
    head = f"\tchain {chain} {{"
    at = text.index("\n", text.index(head, table)) + 1
    return f"{text[:at]}\t\t{rule.replace(chr(39), '')}\n{text[at:]}"


def commands(printed: str) -> list[str]:
    """Return the commands of a report that change rules."""
    return [line for line in printed.splitlines() if _IPTABLES.match(line) or _NFT.match(line)]
