"""Broken dumps of which the rules alone tell: what was lost, doubled or left over.

A report that has no number is one that users tell without one. Numbers are of issues of
kubernetes/kubernetes unless another project is named.
"""

from __future__ import annotations

import re

from tests.kubeproxy.check.editing import (
    DUAL,
    DUAL_6,
    OLD,
    OLD_DUAL,
    TWO_NODE,
    Kinds,
    before,
    behind,
    changed,
    emptied,
    lines_with,
    only,
    without,
    without_chain,
)

KINDS = Kinds()
kind = KINDS.kind

_EP_3 = "KUBE-SVC-R3O7XKS4LVNGOQSR"
_AFFINITY = "KUBE-SVC-ZSATQLYJBXCZD65D"
_LB = "GN2YQJ2XERCX5Q77"


# --- what an iptables other than the one that wrote the rules makes of them ---


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
    ("unconditional-drop", "-A KUBE-FIREWALL"),
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
    ("unconditional-accept", "-A KUBE-FORWARD"),
    names=("from FORWARD", "every packet"),
)
def lost_mark_of_forward(text: str) -> str:
    return changed(text, ("-A KUBE-FORWARD", "--mark 0x4000"), " -m mark --mark 0x4000/0x4000", "")


@kind(
    "#112477: the same of -m addrtype",
    TWO_NODE,
    ("lost-addrtype", "-j KUBE-NODEPORTS"),
    names=("flows to any address", "that pods open"),
)
def lost_address_type(text: str) -> str:
    return changed(text, ("must be the last",), " -m addrtype --dst-type LOCAL", "")


# --- chains and draws ---


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
    "#37932: somebody set the probabilities by hand",
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
    names=("10.244.2.13:8080", "3 rule(s) behind it", "two shares", "10.96.1.3:80/tcp"),
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
    names=("10.96.1.3:80/tcp (ds/ep-3) that are sent there come back", "middle of a sync"),
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


# --- names, comments and destinations ---


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
    names=("10.244.0.3:53 takes tcp only", "10.96.0.10:53/udp"),
)
def endpoint_of_another_protocol(text: str) -> str:
    parts = ('"kube-system/kube-dns:dns"', "10.244.0.3:53", "DNAT")
    line = only(text, *parts)
    return text.replace(line, line.replace("-p udp", "-p tcp").replace("-m udp", "-m tcp"))


# --- frontends ---


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
    names=("10.96.1.3:80/tcp (ds/ep-3) never meet this rule", "ds/ep-2"),
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


# --- masquerading, drops, entries, modes ---


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
    names=("30301/tcp (ds/nodeport)", "does not know the answer"),
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
    names=("to NodePorts on other nodes", "of pods to themselves"),
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
    "#92275, #80462: KUBE-MARK-DROP is declared by kube-proxy and filled by nobody",
    OLD_DUAL,
    ("no-drop-mark", "-A KUBE-FW-"),
    names=("203.0.113.43:80/tcp (ds/lb-local)", "pass on untranslated"),
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
    names=("203.0.113.43:80/tcp (ds/lb-local)", "30403", "pass on untranslated"),
)
def local_policy_undecided(text: str) -> str:
    return without(text, f"-A KUBE-EXT-{_LB}", "-j KUBE-SVL-")


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
    names=("PREROUTING takes every packet", "any Service"),
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
    ("leftover-ipvs", "-m set --match-set KUBE-NODE-PORT-TCP dst"),
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
    ("leftover-userspace", None),
    names=("KUBE-PORTALS-CONTAINER", "no flow meets them"),
)
def leftover_of_userspace(text: str) -> str:
    return text.replace(
        ":KUBE-POSTROUTING - [0:0]\n",
        ":KUBE-PORTALS-CONTAINER - [0:0]\n:KUBE-POSTROUTING - [0:0]\n",
        1,
    )


# --- session affinity ---


@kind(
    "#110302: clients are sent to the endpoint of another list",
    DUAL,
    ("affinity-name", "--rcheck"),
    names=("KUBE-SEP-AAAAAAAAAAAAAAAA", "10.244.0.31:8080", "10.96.7.1:80/tcp (ds/affinity)"),
)
def affinity_of_another_list(text: str) -> str:
    return changed(
        text,
        ("--rcheck", "-> 10.244.0.31"),
        "--name KUBE-SEP-ZHOC477GL5G7NY5U",
        "--name KUBE-SEP-AAAAAAAAAAAAAAAA",
    )


@kind(
    "#24648: the endpoint no longer notes its clients",
    DUAL,
    ("affinity-not-set", "--rcheck"),
    names=("10.244.0.31:8080 notes no client", "10.96.7.1:80/tcp (ds/affinity)"),
)
def affinity_not_noted(text: str) -> str:
    return changed(
        text,
        ("-A KUBE-SEP-ZHOC477GL5G7NY5U", "--set"),
        " -m recent --set --name KUBE-SEP-ZHOC477GL5G7NY5U --mask 255.255.255.255 --rsource",
        "",
    )


@kind(
    "#24648: the rule that returns clients is lost",
    DUAL,
    ("affinity-not-checked", "0.50000000000"),
    names=("no rule returns clients to endpoint 10.244.0.31:8080", "ds/affinity"),
)
def affinity_not_checked(text: str) -> str:
    return without(text, "--rcheck", "-> 10.244.0.31")


@kind(
    "#110302: a client is drawn anew before its endpoint is looked up",
    DUAL,
    ("affinity-order", "--rcheck"),
    names=("stands behind draws", "10.244.0.31:8080", "ds/affinity"),
)
def affinity_behind_draws(text: str) -> str:
    line = only(text, "--rcheck", "-> 10.244.0.31")
    text = without(text, line)
    return behind(text, (f"-A {_AFFINITY}", "-> 10.244.0.31", "--probability"), line)


@kind(
    "#110302: two timeouts within one Service",
    DUAL,
    ("affinity-seconds", "--seconds 60"),
    names=("10800, 60 s", "10.96.7.1:80/tcp (ds/affinity)"),
)
def affinity_of_two_timeouts(text: str) -> str:
    return changed(text, ("--rcheck", "-> 10.244.2.25"), "10800", "60")


def with_kubelet(text: str) -> str:
    """Add the rules that the kubelet of 1.20 keeps: what is marked for it is dropped."""
    text = before(
        text, ("-A KUBE-MARK-MASQ",), "-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000"
    )
    return before(
        text,
        ("-A KUBE-FORWARD", "--ctstate INVALID"),
        "-A INPUT -j KUBE-FIREWALL",
        "-A OUTPUT -j KUBE-FIREWALL",
        "-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP",
    ).replace(":KUBE-FORWARD ", ":KUBE-FIREWALL - [0:0]\n:KUBE-FORWARD ", 1)
