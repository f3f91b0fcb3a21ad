"""What nft lists of two Services of iptables-nft, with rules of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: The ClusterIPs of the two Services.
SERVICES: Final = "10.96.0.10", "10.96.0.20"


def endpoints_of(number: int) -> list[str]:
    """Return the addresses of the endpoints of a Service, by its number."""
    return [f"10.244.{number}.{at}" for at in (7, 8, 9)]


def listing(
    *rules: str,
    chains: str = "",
    first: Sequence[str] = (),
    last: Sequence[str] = (),
    raw: str = "",
    own: str = "",
) -> str:
    """Return what nft lists of two Services of iptables-nft, each with three endpoints.

    `rules` stand in KUBE-SERVICES and `first` in PREROUTING, both before kube-proxy's; `last`
    behind it; `own` in the chain of each endpoint before the last.
    """
    rows, behind = [*rules], []
    for number, address in enumerate(SERVICES):
        place = f"meta l4proto tcp ip daddr {address} tcp dport 80 counter"
        rows += [
            f"meta l4proto tcp ip saddr != 10.244.0.0/16 {place[17:]} jump KUBE-MARK-MASQ",
            f"{place} jump KUBE-SVC-{number}",
        ]
        names = [f"KUBE-SEP-{number}-{at}" for at in range(3)]
        draws = [f"meta random & 2147483647 < 1073741824 jump {name}" for name in names[:-1]]
        behind.append(block(f"KUBE-SVC-{number}", *draws, f"jump {names[-1]}"))
        for name, endpoint in zip(names, endpoints_of(number), strict=True):
            marks = f"ip saddr {endpoint} counter jump KUBE-MARK-MASQ"
            sends = f"meta l4proto tcp counter dnat to {endpoint}:8080"
            behind.append(block(name, marks, *([own] if own else []), sends))
    return "\n".join(
        [
            "table ip nat {",
            block(
                "PREROUTING",
                hook("nat", "prerouting", -100),
                *first,
                "jump KUBE-SERVICES",
                *last,
            ),
            block("OUTPUT", hook("nat", "output", -100), "jump KUBE-SERVICES"),
            block(
                "POSTROUTING",
                hook("nat", "postrouting", 100),
                "meta mark & 0x4000 == 0x4000 masquerade",
            ),
            block("KUBE-MARK-MASQ", "meta mark set meta mark | 0x4000"),
            block("KUBE-SERVICES", *rows),
            *behind,
            chains,
            "}",
            raw,
            "",
        ]
    )


def block(name: str, *rules: str) -> str:
    """Return a chain."""
    return "\n".join([f"chain {name} {{", *rules, "}"])


def hook(kind: str, at: str, priority: int) -> str:
    """Return what makes a chain a base chain."""
    return f"type {kind} hook {at} priority {priority}; policy accept;"
