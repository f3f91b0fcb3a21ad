"""Broken dumps: flows that are masqueraded wrongly, or not.

A number names the issue whose complaint such a dump would explain, of kubernetes/kubernetes unless
another project is named; it is not a dump of theirs.
"""

from __future__ import annotations

from tests.support.check.editing import (
    DUAL,
    OLD,
    OLD_DUAL,
    TWO_NODE,
    Kinds,
    changed,
    with_kubelet,
    without,
)

KINDS = Kinds()
kind = KINDS.kind

_EP_3 = "KUBE-SVC-R3O7XKS4LVNGOQSR"


@kind(
    "rancher/rancher#29719: a pod cannot reach itself through its Service",
    DUAL,
    ("no-hairpin-mark", "-A KUBE-SEP-RNX3UEWD3KJ2MX63 -p"),
    names=("10.244.1.13 to itself", "10.96.1.3:80/tcp (ds/ep-3)", "no answer"),
)
def hairpin_mark_lost(text: str) -> str:
    return without(text, "-A KUBE-SEP-RNX3UEWD3KJ2MX63 -s")


@kind(
    "rancher/rancher#29719: the hairpin mark is of another pod",
    DUAL,
    ("hairpin-address", "-s 10.244.1.99/32"),
    names=("marks flows from 10.244.1.99/32", "10.244.1.13", "ds/ep-3"),
)
def hairpin_mark_of_another(text: str) -> str:
    return changed(text, ("-A KUBE-SEP-RNX3UEWD3KJ2MX63 -s",), "10.244.1.13", "10.244.1.99")


@kind(
    "rancher/rancher#29719: clients are hidden from one endpoint",
    DUAL,
    ("unconditional-mark", "-A KUBE-SEP-RNX3UEWD3KJ2MX63 -m"),
    names=("all flows to endpoint 10.244.1.13:8080 are masqueraded", "ds/ep-3"),
)
def hairpin_mark_of_all(text: str) -> str:
    return changed(text, ("-A KUBE-SEP-RNX3UEWD3KJ2MX63 -s",), " -s 10.244.1.13/32", "")


@kind(
    "the rule for flows from outside is lost for one ClusterIP",
    DUAL,
    ("no-outside-mark", "-A KUBE-SERVICES -d 10.96.1.3/32"),
    names=("from outside the cluster to 10.96.1.3:80/tcp (ds/ep-3)",),
)
def outside_mark_lost(text: str) -> str:
    return without(text, f"-A {_EP_3} ! -s")


@kind(
    "two values of --cluster-cidr in one node's rules",
    OLD,
    ("outside-network", "! -s 10.32.0.0/16"),
    names=("10.32.0.0/16", "10.244.0.0/16", "10.96.18.52:80/tcp (default/app:)"),
)
def outside_network_differs(text: str) -> str:
    return changed(text, ("! -s", "default/app"), "10.244.0.0/16", "10.32.0.0/16")


@kind(
    "NodePort traffic is not masqueraded, as written up to 1.23",
    OLD_DUAL,
    ("no-outside-mark", "-j KUBE-SVC-EMDR7L2MNAG3KY74"),
    names=("30301/tcp (ds/nodeport)", "does not recognise it"),
)
def node_port_mark_lost(text: str) -> str:
    return without(with_kubelet(text), "-A KUBE-NODEPORTS", "ds/nodeport", "KUBE-MARK-MASQ")


@kind(
    "external traffic is not masqueraded",
    DUAL,
    ("no-outside-mark", "-j KUBE-SVC-EMDR7L2MNAG3KY74"),
    names=("30301/tcp (ds/nodeport)",),
)
def external_mark_lost(text: str) -> str:
    return without(text, "masquerade traffic for ds/nodeport")


@kind(
    "k3s-io/k3s#7542: the chain is there and its rule is flushed",
    TWO_NODE,
    ("no-masquerade", "-j MARK --set-xmark 0x4000/0x0"),
    names=("to NodePorts on other nodes", "from pods to themselves"),
)
def masquerade_lost(text: str) -> str:
    return without(text, "-j MASQUERADE")


@kind(
    "kubelet and kube-proxy were told different --iptables-masquerade-bit",
    TWO_NODE,
    ("forward-mark", "-A KUBE-FORWARD"),
    ("masquerade-mark", "-j MASQUERADE"),
    names=("0x4000", "0x2000", "FORWARD is DROP"),
)
def masquerade_bits_differ(text: str) -> str:
    return changed(text, ("-A KUBE-MARK-MASQ",), "0x4000/0x4000", "0x2000/0x2000")


@kind(
    "a mark that overwrites the bits of others",
    TWO_NODE,
    ("masquerade-mark", "-A KUBE-MARK-MASQ"),
    names=("from outside the cluster", "lose other marks"),
)
def mark_overwrites(text: str) -> str:
    return changed(text, ("-A KUBE-MARK-MASQ",), "0x4000/0x4000", "0x4000/0xffffffff")


@kind(
    "k3s-io/k3s#7542: KUBE-FORWARD lost its ACCEPT, and Docker's policy is DROP",
    TWO_NODE,
    ("no-forward-accept", "-A KUBE-FORWARD"),
    names=("from outside to NodePorts and ClusterIPs are dropped",),
)
def forward_accept_lost(text: str) -> str:
    return without(text, "-A KUBE-FORWARD", "--mark 0x4000")


@kind(
    "k3s-io/k3s#7542: the mark stays on what is masqueraded",
    TWO_NODE,
    ("mark-not-cleared", "-j MASQUERADE"),
    names=("a new flow that passes again", "masqueraded once more"),
)
def mark_not_cleared(text: str) -> str:
    return without(text, "-A KUBE-POSTROUTING", "-j MARK")


@kind(
    "somebody put the rules back by hand: the mark is flipped before it is asked for",
    TWO_NODE,
    ("masquerade-order", "-j MARK --set-xmark 0x4000/0x0"),
    names=("should keep their source are masqueraded",),
)
def mark_cleared_too_early(text: str) -> str:
    lines = text.split("\n")
    rows = [at for at, line in enumerate(lines) if line.startswith("-A KUBE-POSTROUTING")]
    lines[rows[0]], lines[rows[1]] = lines[rows[1]], lines[rows[0]]
    return "\n".join(lines)


@kind(
    "somebody put the rules back by hand: the mark is cleared behind the masquerade",
    TWO_NODE,
    ("masquerade-order", "-j MARK --set-xmark 0x4000/0x0"),
    names=("masqueraded once more",),
)
def mark_cleared_too_late(text: str) -> str:
    lines = text.split("\n")
    rows = [at for at, line in enumerate(lines) if line.startswith("-A KUBE-POSTROUTING")]
    lines[rows[1]], lines[rows[2]] = lines[rows[2]], lines[rows[1]]
    return "\n".join(lines)
