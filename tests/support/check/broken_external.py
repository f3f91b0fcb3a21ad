"""Broken dumps: traffic from outside that is let in, refused or held wrongly.

A number names the issue whose complaint such a dump would explain, of kubernetes/kubernetes unless
another project is named; it is not a dump of theirs.
"""

from __future__ import annotations

from tests.support.check.editing import (
    DUAL,
    OLD_DUAL,
    Kinds,
    with_kubelet,
    without,
)

KINDS = Kinds()
kind = KINDS.kind

_LB = "GN2YQJ2XERCX5Q77"


@kind(
    "#92275, #80462: KUBE-MARK-DROP is declared by kube-proxy and filled by nobody",
    OLD_DUAL,
    ("no-drop-mark", "-A KUBE-FW-"),
    names=("203.0.113.43:80/tcp (ds/lb-local)", "leave untranslated"),
)
def drop_mark_without_kubelet(text: str) -> str:
    return text


@kind(
    "#92275: the kubelet's DROP is lost",
    OLD_DUAL,
    ("lost-drop", "-A KUBE-FW-"),
    names=("0x8000", "203.0.113.43:80/tcp (ds/lb-local)"),
)
def drop_of_the_mark_lost(text: str) -> str:
    return without(with_kubelet(text), "--mark 0x8000/0x8000", "-j DROP")


@kind(
    "#92275: the load balancer's chain no longer marks what it refuses",
    OLD_DUAL,
    ("lost-drop", "-j KUBE-FW-"),
    names=("203.0.113.43:80/tcp (ds/lb-local)", "loadBalancerSourceRanges"),
)
def refusal_of_the_load_balancer_lost(text: str) -> str:
    return without(with_kubelet(text), f"-A KUBE-FW-{_LB}", "-j KUBE-MARK-DROP")


@kind(
    "#75262: the DROP behind loadBalancerSourceRanges is lost",
    DUAL,
    ("lost-drop", f"-j KUBE-FW-{_LB}"),
    names=("203.0.113.43:80/tcp (ds/lb-local)", "loadBalancerSourceRanges"),
)
def firewall_drop_lost(text: str) -> str:
    return without(text, "-A KUBE-PROXY-FIREWALL")


@kind(
    "#75262: a local policy's chain leads nowhere, and nothing drops",
    DUAL,
    ("lost-drop", f"-A KUBE-EXT-{_LB}"),
    ("unreachable-chain", f"-A KUBE-SVL-{_LB}"),
    names=("203.0.113.43:80/tcp (ds/lb-local)", "30403", "leave untranslated"),
)
def local_policy_undecided(text: str) -> str:
    return without(text, f"-A KUBE-EXT-{_LB}", "-j KUBE-SVL-")


@kind(
    "#75262: a load balancer that lets nobody in",
    DUAL,
    ("no-source-range", "other traffic to ds/lb-local"),
    names=("203.0.113.43:80/tcp (ds/lb-local)",),
)
def source_ranges_lost(text: str) -> str:
    return without(text, f"-A KUBE-FW-{_LB}", "-s 192.0.2.0/24")


@kind(
    "#35641: external traffic of the whole cluster is sent nowhere",
    DUAL,
    ("lost-drop", "masquerade traffic for ds/nodeport"),
    names=("*:30301/tcp (ds/nodeport)", "neither endpoints nor a DROP"),
)
def external_traffic_undecided(text: str) -> str:
    return without(text, "-A KUBE-EXT-EMDR7L2MNAG3KY74", "-j KUBE-SVC-")


@kind(
    "#75262: the node itself is held to its own endpoints",
    DUAL,
    ("lost-local-route", f"-j KUBE-SVL-{_LB}"),
    names=("flows from the node itself to 203.0.113.43:80/tcp (ds/lb-local)",),
)
def local_route_lost(text: str) -> str:
    return without(text, "route LOCAL traffic for ds/lb-local")


@kind(
    "#75262: the node's own flows keep their source",
    DUAL,
    ("lost-local-mark", f"-j KUBE-SVL-{_LB}"),
    names=("flows from the node itself to 203.0.113.43:80/tcp (ds/lb-local)", "masqueraded"),
)
def local_mark_lost(text: str) -> str:
    return without(text, "masquerade LOCAL traffic for ds/lb-local")


@kind(
    "#66354: pods are held to the endpoints of their own node",
    OLD_DUAL,
    ("lost-pod-route", "-j KUBE-SEP-QTHWXF5CCNQL4M53"),
    names=("pods (10.244.0.0/16) to", "203.0.113.43:80/tcp (ds/lb-local)"),
)
def pod_route_lost(text: str) -> str:
    return without(with_kubelet(text), f"-A KUBE-XLB-{_LB}", "Redirect pods")
