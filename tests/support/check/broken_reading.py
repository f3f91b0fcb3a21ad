"""Dumps that were clean in the kernel, and an iptables of another version read them.

A number names the issue whose complaint such a dump would explain, of kubernetes/kubernetes unless
another project is named; it is not a dump of theirs.
"""

from __future__ import annotations

import re

from tests.support.check.editing import (
    OLD,
    OLD_DUAL,
    TWO_NODE,
    Kinds,
    changed,
    with_kubelet,
)

KINDS = Kinds()
kind = KINDS.kind


@kind(
    "#112477: iptables-nft-save 1.8.7 of rules that 1.8.8 or later wrote",
    TWO_NODE,
    ("lost-port", "-A KUBE-SERVICES"),
    names=("10.96.0.10", "whatever its port", "kube-system/kube-dns:dns", "4 more"),
)
def lost_destination_ports(text: str) -> str:
    return re.sub(r" --dport \d+", "", text)


@kind(
    "cloudnativelabs/kube-router#1370: an older iptables drops -m mark, and DROP is for all",
    OLD_DUAL,
    ("unconditional-verdict", "-A KUBE-FIREWALL"),
    names=("INPUT, OUTPUT", "every packet"),
)
def lost_mark_of_the_drop(text: str) -> str:
    return changed(
        with_kubelet(text), ("-j DROP", "--mark 0x8000"), "-m mark --mark 0x8000/0x8000 ", ""
    )


@kind(
    "cloudnativelabs/kube-router#1370, as of 1.14: MASQUERADE is for all",
    OLD,
    ("unconditional-masquerade", "-j MASQUERADE"),
    names=("every new flow that leaves the node",),
)
def lost_mark_of_masquerade(text: str) -> str:
    return changed(text, ("-j MASQUERADE",), " -m mark --mark 0x4000/0x4000", "")


@kind(
    "cloudnativelabs/kube-router#1370, as of 1.17 on: RETURN is for all",
    TWO_NODE,
    ("no-masquerade", "-j RETURN"),
    names=("from outside the cluster", "to NodePorts"),
)
def lost_mark_of_return(text: str) -> str:
    return changed(text, ("-j RETURN",), " -m mark ! --mark 0x4000/0x4000", "")


@kind(
    "cloudnativelabs/kube-router#1370: ACCEPT of KUBE-FORWARD is for all",
    TWO_NODE,
    ("unconditional-verdict", "-A KUBE-FORWARD"),
    names=("from FORWARD", "every packet"),
)
def lost_mark_of_forward(text: str) -> str:
    return changed(text, ("-A KUBE-FORWARD", "--mark 0x4000"), " -m mark --mark 0x4000/0x4000", "")


@kind(
    "#112477: the same of -m addrtype",
    TWO_NODE,
    ("lost-addrtype", "-j KUBE-NODEPORTS"),
    names=("flows to any address", "from pods to such ports"),
)
def lost_address_type(text: str) -> str:
    return changed(text, ("must be the last",), " -m addrtype --dst-type LOCAL", "")
