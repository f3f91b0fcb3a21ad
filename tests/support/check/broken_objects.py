"""Broken dumps that look clean: only the API's objects tell.

A number names the issue of kubernetes/kubernetes whose complaint such a dump would explain.
"""

from __future__ import annotations

import re
from typing import Any

from tests.support.captures import FIXTURES
from tests.support.check.editing import (
    DUAL,
    DUAL_6,
    Kinds,
    changed,
    lines_with,
    only,
    unchanged,
    without,
    without_chain,
)

KINDS = Kinds()
kind = KINDS.kind

_SEED = FIXTURES / "1.36.2-iptables-legacy" / "seed-dns" / "iptables-legacy-save.txt"
_EP_1 = "KUBE-SVC-QTZLQJF33XQZTFPH"
#: The hash of default/kubernetes:https, tcp and 192.168.10.99:6443.
_SEP_OF_99 = "KUBE-SEP-2WOLQT6QPQWJEXL2"


def _not_ready(objects: Any) -> None:
    """Let the pod with 10.1.0.2 fail its readiness probe."""
    for item in objects["items"]:
        for endpoint in item.get("endpoints", []):
            if endpoint["addresses"] == ["10.1.0.2"]:
                endpoint["conditions"]["ready"] = False
        for subset in item.get("subsets", []):
            subset["addresses"] = [a for a in subset["addresses"] if a["ip"] != "10.1.0.2"]


@kind(
    "#99299: a Service is missing after a sync that was interrupted",
    DUAL,
    ("missing-service", None),
    names=("10.96.1.1:80/tcp (ds/ep-1)",),
    objects=unchanged,
)
def service_missing(text: str) -> str:
    (sep,) = {line.split(" -j ")[1] for line in lines_with(text, f"-A {_EP_1}", "KUBE-SEP")}
    text = without(text, "-A KUBE-SERVICES", "ds/ep-1 cluster IP")
    return without_chain(without_chain(text, _EP_1), sep)


@kind(
    "#80407, #102314: rules of a Service that was deleted",
    DUAL,
    ("stale-service", "ds/gone"),
    names=("10.96.2.9:80/tcp (ds/gone)",),
    objects=unchanged,
)
def service_deleted(text: str) -> str:
    rejected = only(text, "ds/no-endpoints has no endpoints")
    return text.replace(rejected, f"{rejected}\n{rejected.replace('no-endpoints has', 'gone has')}")


@kind(
    "#67875, #51445: an API server that was taken away stays an endpoint",
    DUAL,
    ("stale-endpoint", "-j KUBE-SEP-2WOLQT6QPQWJEXL2"),
    ("missing-endpoint", "-j KUBE-SEP-2WOLQT6QPQWJEXL2"),
    names=(
        "192.168.10.11:6443, which",
        "10.96.0.1:443/tcp (default/kubernetes:https)",
        "192.168.10.99:6443",
        "one of 1",
    ),
    objects=unchanged,
)
def stale_endpoint(text: str) -> str:
    sep = only(text, "-A KUBE-SVC-NPX46M4PTMTKRN6Y", "KUBE-SEP").split(" -j ")[1]
    return text.replace("192.168.10.11", "192.168.10.99").replace(sep, _SEP_OF_99)


@kind(
    "#76338: a pod that is not ready still gets traffic",
    _SEED,
    ("unready-endpoint", "kube-dns:dns -> 10.1.0.2:53"),
    ("unready-endpoint", "kube-dns:dns-tcp -> 10.1.0.2:53"),
    ("unready-endpoint", "kube-dns:metrics -> 10.1.0.2:9153"),
    names=("10.2.3.4:53/udp", "10.1.0.2:53", "not ready"),
    objects=_not_ready,
)
def unready_endpoint(text: str) -> str:
    return text  # it is the objects that changed


@kind(
    "#129128: a new endpoint never came into the rules",
    DUAL,
    ("missing-endpoint", "ds/ep-2 -> 10.244.0.15"),
    names=("10.96.1.2:80/tcp (ds/ep-2)", "10.244.1.11:8080"),
    objects=unchanged,
)
def ready_endpoint_missing(text: str) -> str:
    sep = "KUBE-SEP-LQ25BWHEUNP5S4ZL"
    text = without(text, "-A KUBE-SVC-2ETLJRLIZFEADTYC", sep)
    text = without_chain(text, sep)
    return changed(
        text,
        ("ds/ep-2 -> 10.244.0.15",),
        " -m statistic --mode random --probability 0.50000000000",
        "",
    )


@kind(
    "#110301 the other way round: refused, with endpoints that are ready",
    DUAL,
    ("missing-endpoint", "ds/ep-1 has no endpoints"),
    names=("10.96.1.1:80/tcp (ds/ep-1)", "1 as ready"),
    objects=unchanged,
)
def refused_with_endpoints(text: str) -> str:
    rejected = only(text, "ds/no-endpoints has no endpoints")
    new = rejected.replace("ds/no-endpoints", "ds/ep-1").replace("10.96.2.9", "10.96.1.1")
    return service_missing(text).replace(rejected, f"{rejected}\n{new}")


@kind(
    "a nodePort that was changed",
    DUAL,
    ("missing-frontend", "ds/nodeport"),
    ("stale-frontend", "ds/nodeport"),
    names=("30999/tcp (ds/nodeport)", "30301/tcp"),
    objects=unchanged,
)
def node_port_changed(text: str) -> str:
    return text.replace("--dport 30301", "--dport 30999")


@kind(
    "an external address that never came into the rules",
    DUAL,
    ("missing-frontend", "ds/affinity"),
    names=("198.51.100.61:80/tcp", "ExternalIP of ds/affinity"),
    objects=unchanged,
)
def external_ip_missing(text: str) -> str:
    text = without(text, "ds/affinity external IP")
    return without_chain(text, "KUBE-EXT-ZSATQLYJBXCZD65D")


@kind(
    "#110302: another timeout than the Service asks for",
    DUAL_6,
    ("affinity-differs", "--seconds 60"),
    names=("ds/affinity", "stay at an endpoint for 60 s,", "objects say 10800 s"),
    objects=unchanged,
)
def affinity_timeout_differs(text: str) -> str:
    assert "--seconds 10800" in text
    return text.replace("--seconds 10800", "--seconds 60")


@kind(
    "a Service that has got session affinity since",
    DUAL_6,
    ("affinity-differs", "KUBE-SEP-"),
    names=("ds/affinity", "have no session affinity, but", "objects say 10800 s"),
    objects=unchanged,
)
def affinity_missing(text: str) -> str:
    kept = [line for line in text.split("\n") if "-m recent --rcheck" not in line]
    return re.sub(r" -m recent --set --name \S+ --mask \S+ --rsource", "", "\n".join(kept))
