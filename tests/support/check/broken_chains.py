"""Broken dumps: chains that are missing, empty or unreachable, and draws that are lost.

A number names the issue whose complaint such a dump would explain, of kubernetes/kubernetes unless
another project is named; it is not a dump of theirs.
"""

from __future__ import annotations

from tests.support.check.editing import (
    DUAL,
    Kinds,
    changed,
    emptied,
    lines_with,
    without,
    without_chain,
)

KINDS = Kinds()
kind = KINDS.kind

_EP_3 = "KUBE-SVC-R3O7XKS4LVNGOQSR"
_LB = "GN2YQJ2XERCX5Q77"


@kind(
    "#121362: a partial sync without the KUBE-SVL chain",
    DUAL,
    ("missing-chain", f"-j KUBE-SVL-{_LB}"),
    names=("203.0.113.43:80/tcp (ds/lb-local)", "30403"),
)
def missing_local_chain(text: str) -> str:
    return without_chain(text, f"KUBE-SVL-{_LB}")


@kind(
    "#121362: a partial sync that lost the endpoint's chain",
    DUAL,
    ("missing-chain", "-j KUBE-SEP-RNX3UEWD3KJ2MX63"),
    names=("10.96.1.3:80/tcp (ds/ep-3)",),
)
def missing_endpoint_chain(text: str) -> str:
    return without_chain(text, "KUBE-SEP-RNX3UEWD3KJ2MX63")


@kind(
    "#121362: a partial sync that lost the rule of one endpoint",
    DUAL,
    ("unreachable-chain", "-A KUBE-SEP-RNX3UEWD3KJ2MX63 -s"),
    ("lost-draw", f'-A {_EP_3} -m comment --comment "ds/ep-3 -> 10.244.0.17:8080"'),
    names=("10.244.1.13:8080", "10.96.1.3:80/tcp (ds/ep-3)", "66.67%", "1/2"),
)
def one_draw_missing(text: str) -> str:
    return without(text, f"-A {_EP_3}", "RNX3UEWD3KJ2MX63")


@kind(
    "#121362: a partial sync that lost the first endpoint's rule",
    DUAL,
    ("unreachable-chain", "-A KUBE-SEP-OUUF6XIXIHKLH6HX -s"),
    names=("endpoint 10.244.0.17:8080 of ds/ep-3 gets no new flow",),
)
def first_draw_missing(text: str) -> str:
    return without(text, f"-A {_EP_3}", "OUUF6XIXIHKLH6HX")


@kind(
    "#99299: a restore that was cut off",
    DUAL,
    ("unreachable-chain", "-A KUBE-SEP-VRCMOX5GCD5SZE6Y -s"),
    ("no-last-endpoint", f'-A {_EP_3} -m comment --comment "ds/ep-3 -> 10.244.1.13:8080"'),
    names=("33.33% of new flows to 10.96.1.3:80/tcp (ds/ep-3) reach no endpoint",),
)
def last_draw_missing(text: str) -> str:
    return without(text, f"-A {_EP_3}", "VRCMOX5GCD5SZE6Y")


@kind(
    "#37932: shares that are not even",
    DUAL,
    ("wrong-probability", f"-A {_EP_3}"),
    names=("10.244.0.17:8080 gets 50% of new flows to 10.96.1.3:80/tcp (ds/ep-3)", "1/3"),
)
def wrong_probability(text: str) -> str:
    return changed(text, (f"-A {_EP_3}", "0.33333333349"), "0.33333333349", "0.50000000000")


@kind(
    "#34321: draws in the wrong order are not even",
    DUAL,
    ("wrong-probability", "0.50000000000"),
    names=("10.244.0.17:8080 gets 50%", "ds/ep-3"),
)
def draws_out_of_order(text: str) -> str:
    first, second, _ = lines_with(text, f"-A {_EP_3}", "-j KUBE-SEP-")
    swapped = first.replace("0.33333333349", "0.50000000000")
    return text.replace(first, swapped).replace(
        second, second.replace("0.50000000000", "0.33333333349")
    )


@kind(
    "a public paste in which the chain of a Service stands twice",
    DUAL,
    ("never-drawn", "-j KUBE-SEP-VRCMOX5GCD5SZE6Y"),
    ("endpoint-twice", "-j KUBE-SEP-OUUF6XIXIHKLH6HX"),
    ("endpoint-twice", "-j KUBE-SEP-RNX3UEWD3KJ2MX63"),
    ("endpoint-twice", "-j KUBE-SEP-VRCMOX5GCD5SZE6Y"),
    names=("10.244.2.13:8080", "3 rule(s) after it", "two shares", "10.96.1.3:80/tcp"),
)
def chain_pasted_twice(text: str) -> str:
    draws = lines_with(text, f"-A {_EP_3}", "-j KUBE-SEP-")
    return text.replace(draws[-1], "\n".join([draws[-1], *draws]), 1)


@kind(
    "#129128: one endpoint takes a second share in place of another",
    DUAL,
    ("unreachable-chain", "-A KUBE-SEP-RNX3UEWD3KJ2MX63 -s"),
    ("endpoint-twice", "10.244.1.13"),
    ("comment-endpoint", "10.244.1.13"),
    names=("endpoint 10.244.0.17:8080 is drawn twice", "10.96.1.3:80/tcp (ds/ep-3)"),
)
def same_endpoint_twice(text: str) -> str:
    return changed(
        text, (f"-A {_EP_3}", "RNX3UEWD3KJ2MX63"), "RNX3UEWD3KJ2MX63", "OUUF6XIXIHKLH6HX"
    )


@kind(
    "#121362: in the middle of a sync: chains declared and not filled",
    DUAL,
    ("empty-chain", f"-j {_EP_3}"),
    ("unreachable-chain", "-A KUBE-SEP-OUUF6XIXIHKLH6HX -s"),
    ("unreachable-chain", "-A KUBE-SEP-RNX3UEWD3KJ2MX63 -s"),
    ("unreachable-chain", "-A KUBE-SEP-VRCMOX5GCD5SZE6Y -s"),
    names=("10.96.1.3:80/tcp (ds/ep-3) that enter it return", "middle of a sync"),
)
def mid_sync_empty_service_chain(text: str) -> str:
    return emptied(text, _EP_3)


@kind(
    "#121362: in the middle of a sync: the endpoint's chain not filled",
    DUAL,
    ("empty-chain", "-j KUBE-SEP-RNX3UEWD3KJ2MX63"),
    names=("10.96.1.3:80/tcp (ds/ep-3)", "reach no endpoint"),
)
def mid_sync_empty_endpoint_chain(text: str) -> str:
    return emptied(text, "KUBE-SEP-RNX3UEWD3KJ2MX63")


@kind(
    "#35641: the frontend is missing on one node",
    DUAL,
    ("unreachable-chain", f"-A {_EP_3}"),
    names=("10.96.1.3:80/tcp (ds/ep-3) are not sent to",),
)
def frontend_lost(text: str) -> str:
    return without(text, "-A KUBE-SERVICES", "ds/ep-3 cluster IP")


@kind(
    "a change to ipvs mode that left declared chains behind",
    DUAL,
    ("empty-chain", None),
    names=("KUBE-SVC-AAAAAAAAAAAAAAAA", "left over"),
)
def declared_and_empty_chain(text: str) -> str:
    return text.replace(f":{_EP_3} ", f":KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n:{_EP_3} ", 1)
