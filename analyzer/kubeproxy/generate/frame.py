"""What kube-proxy writes for any Services: base chains, marks and masquerading."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from analyzer.kubeproxy.generate.config import IPV4, ProxyConfig
from analyzer.kubeproxy.generate.rows import TableDraft, comment
from analyzer.kubeproxy.names import MARK_MASQUERADE, NODE_PORTS, SERVICES

CANARY: Final = "KUBE-PROXY-CANARY"
FORWARD: Final = "KUBE-FORWARD"
NEW: Final = "-m conntrack --ctstate NEW"
PORTALS: Final = comment("kubernetes service portals")
OUTSIDE_PORTALS: Final = comment("kubernetes externally-visible service portals")
FORWARDING: Final = comment("kubernetes forwarding rules")

_POSTROUTING: Final = "KUBE-POSTROUTING"
_MASQUERADED: Final = comment("kubernetes service traffic requiring SNAT")
_LAST: Final = comment(
    "kubernetes service nodeports; NOTE: this must be the last rule in this chain"
)
#: Minor versions: since 1.16 there are canaries and ``--random-fully``; up to 1.18.2 a single rule
#: masquerades.
SINCE_CANARY: Final = 16
_LAST_WITH_ONE_RULE: Final = 18
_ALL_HOOKS: Final = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")


def filter_table(chains: Iterable[str], *, canary: bool = True) -> TableDraft:
    """Return an empty filter table with the chains of all layouts and kube-proxy's `chains`."""
    own = (*([CANARY] if canary else []), FORWARD, SERVICES, *chains)
    return TableDraft("filter", ("INPUT", "FORWARD", "OUTPUT"), own)


def mangle_table() -> TableDraft:
    """Return the mangle table, which has nothing but the canary."""
    return TableDraft("mangle", _ALL_HOOKS, (CANARY,))


def nat_table(minor: int) -> TableDraft:
    """Return the nat table of kube-proxy 1.`minor`, with the rules that no Service changes."""
    canary = [CANARY] if minor >= SINCE_CANARY else []
    own = (*canary, MARK_MASQUERADE, NODE_PORTS, _POSTROUTING, SERVICES)
    nat = TableDraft("nat", ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"), own)
    nat.add("PREROUTING", f"{PORTALS} -j {SERVICES}")
    nat.add("OUTPUT", f"{PORTALS} -j {SERVICES}")
    nat.add("POSTROUTING", f"{comment('kubernetes postrouting rules')} -j {_POSTROUTING}")
    nat.add(MARK_MASQUERADE, "-j MARK --set-xmark 0x4000/0x4000")
    if minor <= _LAST_WITH_ONE_RULE:
        random = " --random-fully" if minor >= SINCE_CANARY else ""
        marked = "-m mark --mark 0x4000/0x4000"
        nat.add(_POSTROUTING, f"{_MASQUERADED} {marked} -j MASQUERADE{random}")
        return nat
    nat.add(_POSTROUTING, "-m mark ! --mark 0x4000/0x4000 -j RETURN")
    nat.add(_POSTROUTING, "-j MARK --set-xmark 0x4000/0x0")
    nat.add(_POSTROUTING, f"{_MASQUERADED} -j MASQUERADE --random-fully")
    return nat


def write_forward(
    table: TableDraft, invalid: str, established: Iterable[str], limits: Iterable[str] = ("", "")
) -> None:
    """Write KUBE-FORWARD: `invalid` counts what is dropped, `established` are comments.

    `limits` are the matches on addresses that go with each of these.
    """
    table.add(FORWARD, f"-m conntrack --ctstate INVALID{invalid} -j DROP")
    table.add(FORWARD, f"{FORWARDING} -m mark --mark 0x4000/0x4000 -j ACCEPT")
    for limit, says in zip(limits, established, strict=False):
        known = f"{limit}{comment(says)} -m conntrack --ctstate RELATED,ESTABLISHED"
        table.add(FORWARD, f"{known} -j ACCEPT")


def write_node_ports_last(nat: TableDraft, but: str = "") -> None:
    """Write the rule that ends KUBE-SERVICES; `but` is a match that excludes addresses."""
    nat.add(SERVICES, f"{but}{_LAST} -m addrtype --dst-type LOCAL -j {NODE_PORTS}")


def loopback(proxy: ProxyConfig) -> str:
    """Return the network of the loopback interface."""
    return "127.0.0.0/8" if proxy.family == IPV4 else "::1/128"
