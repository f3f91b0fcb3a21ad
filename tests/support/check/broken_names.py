"""Broken dumps: names, comments and destinations that contradict each other.

A number names the issue whose complaint such a dump would explain, of kubernetes/kubernetes unless
another project is named; it is not a dump of theirs.
"""

from __future__ import annotations

import re

from tests.support.check.editing import (
    DUAL,
    DUAL_6,
    TWO_NODE,
    Kinds,
    changed,
    lines_with,
    only,
)

KINDS = Kinds()
kind = KINDS.kind

_EP_3 = "KUBE-SVC-R3O7XKS4LVNGOQSR"


@kind(
    "#28674: a frontend leads to another Service's chain",
    DUAL,
    ("chain-hash", "ds/ep-2 cluster IP"),
    ("no-outside-mark", "ds/ep-2 cluster IP"),
    ("unreachable-chain", "-A KUBE-SVC-2ETLJRLIZFEADTYC"),
    names=("10.96.1.2:80/tcp (ds/ep-2) are sent to KUBE-SVC-R3O7XKS4LVNGOQSR", "another one"),
)
def frontend_of_another_service(text: str) -> str:
    # The rule that marks flows from outside stands in the lost chain.
    return changed(text, ("-A KUBE-SERVICES", "ds/ep-2"), "KUBE-SVC-2ETLJRLIZFEADTYC", _EP_3)


@kind(
    "#28674: the endpoint's chain sends to a pod of before",
    DUAL,
    ("hairpin-address", "-A KUBE-SEP-RNX3UEWD3KJ2MX63 -s"),
    ("chain-hash", "--to-destination 10.244.9.9:8080"),
    ("comment-endpoint", "10.244.1.13"),
    names=("10.244.9.9:8080", "10.244.1.13", "ds/ep-3", "10.96.1.3:80/tcp"),
)
def stale_destination(text: str) -> str:
    return changed(
        text, ("--to-destination 10.244.1.13:8080", "ds/ep-3"), "10.244.1.13", "10.244.9.9"
    )


@kind(
    "#76338: IPv6, where the comment has another endpoint than the chain",
    DUAL_6,
    ("comment-endpoint", "fd00:10:244:9::9"),
    names=("[fd00:10:244:9::9]:8080", "ds/ep-2"),
)
def comment_of_another_endpoint(text: str) -> str:
    line = lines_with(text, "-A KUBE-SVC-", "ds/ep-2 ->")[0]
    return text.replace(line, re.sub(r"-> \[.*?\]", "-> [fd00:10:244:9::9]", line), 1)


@kind(
    "#76338: the chain of a Service kept rules of another one",
    DUAL,
    ("comment-service", "ds/ep-9 ->"),
    names=("the comment says ds/ep-9", "10.96.1.3:80/tcp (ds/ep-3)"),
)
def comment_of_another_service(text: str) -> str:
    return changed(text, (f"-A {_EP_3}", "10.244.1.13"), "ds/ep-3", "ds/ep-9")


@kind(
    "#67875: an endpoint of another Service in the chain",
    DUAL,
    ("shared-endpoint", "-j KUBE-SEP-LSOIKVI6TYFQMVZK"),
    ("unreachable-chain", "-A KUBE-SEP-RNX3UEWD3KJ2MX63 -s"),
    ("comment-endpoint", "-j KUBE-SEP-LSOIKVI6TYFQMVZK"),
    names=("ds/ep-2/tcp", "ds/ep-3/tcp", "10.244.0.15:8080"),
)
def endpoint_of_another_service(text: str) -> str:
    return changed(
        text, (f"-A {_EP_3}", "RNX3UEWD3KJ2MX63"), "RNX3UEWD3KJ2MX63", "LSOIKVI6TYFQMVZK"
    )


@kind(
    "an old binary: DNAT printed without its address",
    DUAL,
    ("no-dnat", "-A KUBE-SEP-RNX3UEWD3KJ2MX63 -p"),
    names=("10.96.1.3:80/tcp (ds/ep-3) reaches no endpoint",),
)
def destination_not_printed(text: str) -> str:
    return changed(
        text,
        ("--to-destination 10.244.1.13:8080", "ds/ep-3"),
        "--to-destination 10.244.1.13:8080",
        "[unsupported revision]",
    )


@kind(
    "dns for tcp and udp: the endpoint takes the wrong one",
    TWO_NODE,
    ("endpoint-protocol", '-p tcp -m comment --comment "kube-system/kube-dns:dns"'),
    names=("10.244.0.3:53 matches tcp only", "10.96.0.10:53/udp"),
)
def endpoint_of_another_protocol(text: str) -> str:
    parts = ('"kube-system/kube-dns:dns"', "10.244.0.3:53", "DNAT")
    line = only(text, *parts)
    return text.replace(line, line.replace("-p udp", "-p tcp").replace("-m udp", "-m tcp"))
