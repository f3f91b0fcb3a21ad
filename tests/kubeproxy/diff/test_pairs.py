"""Which ServicePort of one dump is which of the other."""

from __future__ import annotations

from ipaddress import ip_address

from analyzer.kubeproxy.diff.pairs import common_frontends, pairs, version_of
from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.view import Frontend, FrontendKind, ServicePort
from tests.support.comparing import compared, only_change
from tests.support.dumps import cluster_ip, dump, endpoint, only_service, two_endpoints

CLUSTER_IP = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)
NODE_PORT = Frontend(FrontendKind.NODE_PORT, None, 30_080)
#: A Service of two frontends.
BOTH = dump(
    *two_endpoints(),
    "-A KUBE-SERVICES -d 198.51.100.1/32 -p tcp -m comment "
    '--comment "ns/a:http external IP" -m tcp --dport 80 -j KUBE-SVC-A',
)


def service(name: str, *frontends: Frontend, protocol: str = "tcp") -> ServicePort:
    return ServicePort(name=service_name(name), protocol=protocol, frontends=frontends, routes=())


def named_pairs(a: list[ServicePort], b: list[ServicePort]) -> list[tuple[str, ...]]:
    return [tuple("" if each is None else each.name.text for each in pair) for pair in pairs(a, b)]


def without_comments(text: str) -> str:
    import re

    return re.sub(r' -m comment --comment "[^"]*"', "", text)


def test_names_tell_which_is_which_whatever_the_frontends() -> None:
    moved = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.2"), 80)
    assert named_pairs([service("ns/a", CLUSTER_IP)], [service("ns/a", moved)]) == [
        ("ns/a", "ns/a")
    ]


def test_an_address_that_another_service_has_taken_over_makes_it_no_pair() -> None:
    assert named_pairs([service("ns/a", CLUSTER_IP)], [service("ns/b", CLUSTER_IP)]) == [
        ("ns/a", ""),
        ("", "ns/b"),
    ]


def test_protocols_are_told_apart() -> None:
    udp = service("ns/a", CLUSTER_IP, protocol="udp")
    assert named_pairs([service("ns/a", CLUSTER_IP)], [udp]) == [("ns/a", ""), ("", "ns/a")]


def test_versions_of_one_name_are_told_apart() -> None:
    six = Frontend(FrontendKind.CLUSTER_IP, ip_address("fd00::1"), 80)
    both = [service("ns/a", CLUSTER_IP), service("ns/a", six)]
    assert [version_of(each) for each in both] == [4, 6]
    found = list(pairs(both, both[::-1]))
    assert found == [(both[0], both[0]), (both[1], both[1])]


def test_a_service_without_a_name_is_the_one_that_has_its_frontend() -> None:
    nameless = service("10.96.0.1:80", CLUSTER_IP)
    for a, b in ((nameless, service("ns/a", CLUSTER_IP)), (service("ns/a", CLUSTER_IP), nameless)):
        assert named_pairs([a], [b]) == [("ns/a", "ns/a")]


def test_frontends_without_names_are_one_service_where_the_other_dump_says_so() -> None:
    for a, b in ((BOTH, without_comments(BOTH)), (without_comments(BOTH), BOTH)):
        found = compared(a, b)
        assert (found.changes, found.both) == ((), 1)


def test_two_dumps_without_names_are_compared_frontend_by_frontend() -> None:
    bare = without_comments(BOTH)
    assert compared(bare, bare).both == 2
    fewer = bare.replace(
        "-A KUBE-SERVICES -d 198.51.100.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-A\n", ""
    )
    assert fewer != bare
    change = only_change(compared(bare, fewer))
    assert ([str(f) for f in change.gone], change.b) == (["198.51.100.1:80"], None)


def test_a_guessed_kind_is_no_difference() -> None:
    balancer = BOTH.replace("external IP", "loadbalancer IP")
    assert compared(BOTH, balancer).changes == ()


def test_a_lost_port_is_that_of_the_frontend_at_the_same_address() -> None:
    lost = dump(*two_endpoints()).replace(" -m tcp --dport 80", "", 1)
    frontend = only_service(lost).frontends[0]
    assert frontend.port is None
    whole = only_service(dump(*two_endpoints()))
    assert common_frontends(whole, only_service(lost)) == [(whole.frontends[0], frontend)]
    assert common_frontends(only_service(lost), whole) == [(frontend, whole.frontends[0])]


def test_only_frontends_of_the_same_place_are_common() -> None:
    a = service("ns/a", CLUSTER_IP, NODE_PORT)
    b = service("ns/a", NODE_PORT, Frontend(FrontendKind.CLUSTER_IP, CLUSTER_IP.address, 81))
    assert common_frontends(a, b) == [(NODE_PORT, NODE_PORT)]


def test_a_service_that_one_dump_has_is_gone_or_added() -> None:
    more = dump(
        *two_endpoints(),
        cluster_ip("ns/b:http", "10.96.0.2", chain="KUBE-SVC-B"),
        "-A KUBE-SVC-B -j KUBE-SEP-3",
        endpoint("KUBE-SEP-3", "10.0.0.3:80"),
    )
    less = dump(*two_endpoints())
    gone, added = only_change(compared(more, less)), only_change(compared(less, more))
    assert (gone.name.text, gone.b, len(gone.gone), gone.added) == ("ns/b:http", None, 1, ())
    assert (added.name.text, added.a, len(added.added), added.gone) == ("ns/b:http", None, 1, ())
    assert compared(more, less).both == compared(less, more).both == 1
