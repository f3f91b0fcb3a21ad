"""Small rulesets in nftables mode, made for one test each."""

from __future__ import annotations

HALF = "0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 80"
DRAWS = f"meta l4proto tcp dnat ip to numgen random mod 2 map {{ {HALF} }}"
#: Rules of another ruleset, which translate the flows of PLAIN's Service.
ELSEWHERE = (
    "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 80 "
    "-j DNAT --to-destination 10.9.9.9:80\nCOMMIT\n"
)


def ruleset(*blocks: str, table: str = "ip kube-proxy", more: str = "") -> str:
    """Return a table of these chains, sets and maps, and what stands behind it."""
    inside = "".join(f"\t{block}\n\n" for block in blocks)
    return f"table {table} {{\n{inside}}}\n{more}"


def chain(name: str, *rules: str) -> str:
    """Return a chain of these rules."""
    return f"chain {name} {{\n" + "".join(f"\t\t{rule}\n" for rule in rules) + "\t}"


def base(name: str, head: str, *rules: str) -> str:
    """Return a base chain, whose policy is accept."""
    return chain(name, f"type {head}; policy accept;", *rules)


def nat(*rules: str) -> str:
    """Return the base chain where flows that come in meet kube-proxy's maps."""
    return base("nat-prerouting", "nat hook prerouting priority dstnat", *rules)


#: One Service of two endpoints.
PLAIN = ruleset(nat("ip daddr 10.96.0.1 tcp dport 80 goto x"), chain("x", DRAWS))
