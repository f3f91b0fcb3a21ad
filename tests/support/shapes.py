"""Rulesets of one shape and any size, of which the work to answer them is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from typing import Final

#: The ClusterIP of the Service in each of them.
CLUSTER_IP: Final = "10.96.0.10"
_POSTROUTING: Final = (
    "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
    "-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0",
    "-A KUBE-POSTROUTING -j MASQUERADE",
)


def endpoint(number: int) -> str:
    """Return the address of an endpoint."""
    return str(IPv4Address("10.244.0.1") + number)


def service(
    endpoints: int,
    *,
    draw: Callable[[int, str], Sequence[str]] | None = None,
    before: Sequence[str] = (),
    own: Callable[[int], Sequence[str]] | None = None,
) -> str:
    """Return a dump with one Service of `endpoints`.

    `draw` gives the rows of KUBE-SVC for an endpoint, of its number and what kube-proxy draws it
    with; `own` those of its KUBE-SEP chain; `before` stand in PREROUTING before kube-proxy's.
    """
    draw = draw or (lambda number, chance: [f"{chance}-j KUBE-SEP-{number}"])
    own = own or kube_sep
    rows = [
        *before,
        "-A PREROUTING -j KUBE-SERVICES",
        "-A OUTPUT -j KUBE-SERVICES",
        "-A POSTROUTING -j KUBE-POSTROUTING",
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
        *_POSTROUTING,
        f"-A KUBE-SERVICES -d {CLUSTER_IP}/32 -p tcp -m comment "
        '--comment "ns/svc cluster IP" -m tcp --dport 80 -j KUBE-SVC-1',
        f"-A KUBE-SVC-1 ! -s 10.244.0.0/16 -d {CLUSTER_IP}/32 -p tcp -m tcp --dport 80 "
        "-j KUBE-MARK-MASQ",
    ]
    for number in range(endpoints):
        left = endpoints - number
        chance = f"-m statistic --mode random --probability {1 / left:.10f} " if left > 1 else ""
        rows += [f"-A KUBE-SVC-1 {row}" for row in draw(number, chance)]
        rows += [f"-A KUBE-SEP-{number} {row}" for row in own(number)]
    return dump(rows)


def kube_sep(number: int) -> list[str]:
    """Return the rows of kube-proxy's chain for an endpoint."""
    return [
        f"-s {endpoint(number)}/32 -j KUBE-MARK-MASQ",
        f"-p tcp -m tcp -j DNAT --to-destination {endpoint(number)}:8080",
    ]


def dump(rows: Sequence[str], table: str = "nat") -> str:
    """Return a whole table with these rows, and all chains that they are of."""
    bases = ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]
    chains = dict.fromkeys(row.split()[1] for row in rows)
    lines = [f"*{table}", *[f":{name} ACCEPT [0:0]" for name in bases]]
    lines += [f":{name} - [0:0]" for name in chains if name not in bases]
    return "\n".join([*lines, *rows, "COMMIT"]) + "\n"
