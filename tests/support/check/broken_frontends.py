"""Broken dumps: frontends, ways in, and chains of other modes.

A number names the issue whose complaint such a dump would explain, of kubernetes/kubernetes unless
another project is named; it is not a dump of theirs.
"""

from __future__ import annotations

from tests.support.check.editing import (
    DUAL,
    TWO_NODE,
    Kinds,
    before,
    behind,
    only,
    without,
)

KINDS = Kinds()
kind = KINDS.kind


@kind(
    "#110301: the last endpoint left, and both tables answer",
    DUAL,
    ("refused-and-served", "ds/ep-3 cluster IP"),
    names=("10.96.1.3:80/tcp (ds/ep-3) are sent to endpoints by table nat and rejected",),
)
def refused_and_served(text: str) -> str:
    return before(
        text,
        ("ds/no-endpoints has no endpoints",),
        "-A KUBE-SERVICES -d 10.96.1.3/32 -p tcp -m comment --comment "
        '"ds/ep-3 has no endpoints" -m tcp --dport 80 -j REJECT '
        "--reject-with icmp-port-unreachable",
    )


@kind(
    "#80407: a deleted Service's rule holds the address of a new one",
    DUAL,
    ("duplicate-frontend", "ds/ep-3 cluster IP"),
    ("no-outside-mark", "ds/ep-2 cluster IP"),
    names=("10.96.1.3:80/tcp (ds/ep-3) never reach this rule", "ds/ep-2"),
)
def address_of_two_services(text: str) -> str:
    line = only(text, "-A KUBE-SERVICES", "ds/ep-2 cluster IP")
    return before(
        text, ("-A KUBE-SERVICES", "ds/ep-3 cluster IP"), line.replace("10.96.1.2", "10.96.1.3")
    )


@kind(
    "#82361: the same rule again and again",
    DUAL,
    ("duplicate-frontend", "ds/ep-3 cluster IP"),
    names=("10.96.1.3:80/tcp (ds/ep-3)", "is the same"),
)
def frontend_twice(text: str) -> str:
    parts = ("-A KUBE-SERVICES", "ds/ep-3 cluster IP")
    return behind(text, parts, only(text, *parts))


@kind(
    "a rule added behind the one that must be the last",
    DUAL,
    ("nodeports-not-last", "ds/ep-7 cluster IP"),
    names=("10.96.1.7:80/tcp (ds/ep-7)", "NodePort"),
)
def node_ports_not_last(text: str) -> str:
    line = only(text, "-A KUBE-SERVICES", "ds/ep-7 cluster IP")
    return behind(without(text, line), ("-j KUBE-NODEPORTS", "must be the last"), line)


@kind(
    "k3s-io/k3s#7542: the jump to KUBE-NODEPORTS was flushed",
    DUAL,
    ("no-nodeports", "-A KUBE-SERVICES"),
    names=("30301/tcp (ds/nodeport)", "all other NodePorts"),
)
def node_ports_not_reached(text: str) -> str:
    return without(text, "must be the last", "-j KUBE-NODEPORTS")


@kind(
    "#35641: a ClusterIP is missing on one node, its NodePort is there",
    DUAL,
    ("lost-frontend", "-A KUBE-SVC-EMDR7L2MNAG3KY74 ! -s"),
    names=("10.96.3.1:80/tcp (ds/nodeport)", "leave untranslated"),
)
def cluster_ip_lost(text: str) -> str:
    return without(text, "-A KUBE-SERVICES", "ds/nodeport cluster IP")


@kind(
    "#35641: a NodePort is missing on one node",
    DUAL,
    ("lost-frontend", "-d 127.0.0.0/8"),
    names=("30301/tcp (ds/nodeport)", "leave untranslated"),
)
def node_port_lost(text: str) -> str:
    return without(text, "-A KUBE-NODEPORTS -p tcp", "ds/nodeport", "-j KUBE-EXT-")


@kind(
    "#93091: firewalld restarts and flushes the jumps",
    TWO_NODE,
    ("no-entry", None),
    names=("PREROUTING", "new flows from pods and from outside to any Service"),
)
def entry_flushed(text: str) -> str:
    return without(text, "-A PREROUTING", "-j KUBE-SERVICES")


@kind(
    "k3s-io/k3s#7542: firewalld's rules take everything first",
    TWO_NODE,
    ("shadowed-entry", "-j PREROUTING_direct"),
    names=("PREROUTING matches every packet", "any Service"),
)
def entry_shadowed(text: str) -> str:
    text = text.replace(
        ":KUBE-SERVICES - [0:0]\n:KUBE-SVC",
        ":PREROUTING_direct - [0:0]\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC",
        1,
    )
    text = before(text, ("-A PREROUTING", "-j KUBE-SERVICES"), "-A PREROUTING -j PREROUTING_direct")
    return behind(text, ("-A POSTROUTING",), "-A PREROUTING_direct -j ACCEPT")


@kind(
    "#109286: a change from ipvs to iptables mode, not cleaned up",
    TWO_NODE,
    ("leftover-mode", "-m set --match-set KUBE-NODE-PORT-TCP dst"),
    names=("KUBE-NODE-PORT", "load balancer addresses and NodePorts"),
)
def leftover_of_ipvs(text: str) -> str:
    text = text.replace(
        ":KUBE-NODEPORTS - [0:0]\n:KUBE-POST",
        ":KUBE-NODE-PORT - [0:0]\n:KUBE-NODEPORTS - [0:0]\n:KUBE-POST",
        1,
    )
    return behind(
        text,
        ("-A KUBE-MARK-MASQ",),
        "-A KUBE-NODE-PORT -p tcp -m set --match-set KUBE-NODE-PORT-TCP dst -j KUBE-MARK-MASQ",
    )


@kind(
    "#12596: userspace mode's chains beside those of iptables mode",
    TWO_NODE,
    ("leftover-mode", None),
    names=("KUBE-PORTALS-CONTAINER", "no flow traverses them"),
)
def leftover_of_userspace(text: str) -> str:
    return text.replace(
        ":KUBE-POSTROUTING - [0:0]\n",
        ":KUBE-PORTALS-CONTAINER - [0:0]\n:KUBE-POSTROUTING - [0:0]\n",
        1,
    )
