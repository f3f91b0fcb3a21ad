"""Flows to no Service: what becomes of them in two dumps."""

from __future__ import annotations

from analyzer.kubeproxy.diff.beside import Topic
from analyzer.kubeproxy.diff.difference import Conclusion
from analyzer.kubeproxy.view import Source
from analyzer.model.probability import ALWAYS, Bounds
from tests.support.comparing import compared
from tests.support.dumps import dump, two_endpoints

ALL = Bounds(ALWAYS, ALWAYS)
NODE_PORT = (
    *two_endpoints(),
    "-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS",
    '-A KUBE-NODEPORTS -p tcp -m comment --comment "ns/a:http" -m tcp --dport 30080 -j KUBE-SVC-A',
)
FILTER = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{}COMMIT\n"
#: What nftables mode does, in iptables' words.
NEW = "-m conntrack --ctstate NEW"
REFUSING = FILTER.format(
    f"-A FORWARD {NEW} -d 10.96.0.1/32 -j REJECT\n-A OUTPUT {NEW} -d 10.96.0.1/32 -j REJECT\n"
    f"-A FORWARD {NEW} -d 10.96.0.0/16 -j DROP\n-A OUTPUT {NEW} -d 10.96.0.0/16 -j DROP\n"
)


def test_where_both_pass_what_is_nobodys_nothing_is_told() -> None:
    assert compared(dump(*NODE_PORT), dump(*NODE_PORT) + FILTER.format("")).beside == ()


def test_refused_ports_and_addresses_are_told_with_the_rules_that_refuse() -> None:
    found = compared(dump(*NODE_PORT), dump(*NODE_PORT) + REFUSING)
    told = {each.topic: each for each in found.beside}
    assert set(told) == {Topic.CLUSTER_IP_PORT, Topic.CLUSTER_IP_PING, Topic.UNALLOCATED}
    for each in told.values():
        assert set(each.sources) == {Source.POD, Source.NODE, Source.EXTERNAL}
        assert each.a == (("no-service", ALL),)
        assert (each.is_certain, each.is_intended) == (True, False)
    assert told[Topic.CLUSTER_IP_PORT].b == told[Topic.CLUSTER_IP_PING].b == (("reject", ALL),)
    assert told[Topic.UNALLOCATED].b == (("drop", ALL),)
    assert told[Topic.UNALLOCATED].rules_b[-1].raw.endswith("-d 10.96.0.0/16 -j DROP")
    assert [str(to) for to in told[Topic.UNALLOCATED].places] == ["10.96.0.2:65535"]


def test_in_iptables_mode_such_a_difference_is_nobodys_intention() -> None:
    found = compared(dump(*NODE_PORT), dump(*NODE_PORT) + REFUSING)
    assert (found.changes, found.verdict) == ((), Conclusion.DIFFERENT)


def test_node_ports_at_fewer_addresses_are_told() -> None:
    local = "-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS"
    without_loopback = local.replace("-m addrtype", "! -d 127.0.0.0/8 -m addrtype")
    one_address = local.replace("-m addrtype --dst-type LOCAL", "-d 192.0.2.1/32")
    text = dump(*NODE_PORT)
    (loopback,) = compared(text, text.replace(local, without_loopback)).beside
    assert (loopback.topic, loopback.sources) == (Topic.NODE_PORT_LOOPBACK, (Source.NODE,))
    assert (loopback.a, loopback.b) == ((("endpoint", ALL),), (("no-service", ALL),))
    found = compared(text, text.replace(local, one_address))
    assert {each.topic for each in found.beside} == {
        Topic.NODE_PORT_LOOPBACK,
        Topic.NODE_PORT_ADDRESS,
    }


def test_what_only_one_dump_decides_cannot_be_told() -> None:
    odd = FILTER.format("-A FORWARD -m nonesuch -j DROP\n")
    found = compared(dump(*NODE_PORT), dump(*NODE_PORT) + odd)
    assert found.beside
    assert not any(each.is_certain for each in found.beside)
    assert found.verdict is Conclusion.UNKNOWN
