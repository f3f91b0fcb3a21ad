"""An address that stands for sources is one of the addresses that were walked."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.routes.pod_networks import PodNetworks
from analyzer.kubeproxy.routes.source_parts import SourceParts
from analyzer.kubeproxy.routes.sources import SourceFacts, source_addresses
from analyzer.kubeproxy.view import Frontend, FrontendKind, Source
from analyzer.model.addresses import smallest_with
from analyzer.model.cluster import Cluster
from analyzer.model.intervals import Intervals, holds, joined, networks_of, span
from tests.support.effort import examples

HERE, ELSEWHERE = IPv4Network("10.244.1.0/29"), IPv4Network("10.244.2.0/29")
PODS = PodNetworks((HERE,), (ELSEWHERE,))
NETWORKS = st.builds(
    lambda number, length: IPv4Network((number, length), strict=False),
    st.sampled_from(
        [int(HERE[0]) + 3, int(ELSEWHERE[0]), 0x7F000001, 0xCB007101, 0xC0A8000A, 0, (1 << 32) - 1]
    ),
    st.sampled_from([0, 1, 8, 16, 24, 29, 30, 31, 32]),
)
ADDRESSES = st.lists(
    st.sampled_from([HERE[2], HERE[3], ELSEWHERE[1], IPv4Address("203.0.113.1")]), max_size=3
)


def parts_of(
    own: list[IPv4Address],
    frontends: list[IPv4Address],
    endpoints: list[IPv4Address] | None = None,
    cluster_ips: list[IPv4Address] | None = None,
) -> SourceParts:
    taken = {*own, *frontends, *(endpoints or ())}
    return SourceParts(
        SourceFacts(
            addresses=source_addresses("ip", PODS, own, taken.__contains__),
            pods=PODS,
            written=None,
            own=tuple(own),
            frontends=lambda: [
                *(Frontend(FrontendKind.EXTERNAL_IP, each, 80) for each in frontends),
                *(Frontend(FrontendKind.CLUSTER_IP, each, 80) for each in cluster_ips or ()),
            ],
            is_taken=taken.__contains__,
            cluster=Cluster(),
        )
    )


@examples(60, 2_000)
@given(st.sets(NETWORKS, max_size=5), ADDRESSES, ADDRESSES)
# All of the outer one but the inner is an endpoint's.
@example({IPv4Network("10.244.1.2/31"), IPv4Network("10.244.1.3/32")}, [], [HERE[2]])
def test_networks_come_behind_those_that_hold_them(
    asked: set[IPv4Network], own: list[IPv4Address], taken: list[IPv4Address]
) -> None:
    parts = parts_of([*own, IPv4Address("192.168.0.10")], [], taken)
    for source in (Source.POD, Source.POD_ELSEWHERE, Source.EXTERNAL):
        before: list[IPv4Network] = []
        for network, _ in parts.of(source, asked):
            assert network is not None or not before
            if network is not None:
                assert isinstance(network, IPv4Network)
                assert not any(each.subnet_of(network) for each in before)
                before.append(network)


@examples(60, 2_000)
@given(st.sets(NETWORKS, max_size=5), ADDRESSES, ADDRESSES)
def test_who_stands_for_sources_is_one_of_them(
    asked: set[IPv4Network], own: list[IPv4Address], frontends: list[IPv4Address]
) -> None:
    parts = parts_of([*own, IPv4Address("192.168.0.10")], frontends)
    for source in (Source.POD, Source.POD_ELSEWHERE, Source.EXTERNAL):
        region = parts.region(source)
        for network, address in parts.of(source, asked):
            if address is None:
                continue
            assert region is not None
            assert address in region
            assert network is None or address in network


#: Networks that rules match on as one set.
SETS = st.sets(NETWORKS, min_size=1, max_size=4).map(lambda each: joined(map(span, each)))


@examples(60, 2_000)
@given(st.sets(SETS, max_size=3), ADDRESSES, st.lists(st.integers(0, 2**32 - 1), max_size=20))
def test_of_one_part_no_question_tells_any_from_the_address_that_stands_for_it(
    asked: set[Intervals], taken: list[IPv4Address], numbers: list[int]
) -> None:
    parts = parts_of([IPv4Address("192.168.0.10")], [], taken)
    for source in (Source.POD, Source.POD_ELSEWHERE, Source.EXTERNAL):
        region = parts.region(source)
        assert region is not None
        found = parts.alike(source, asked)
        of = {n: part for part in found for n in (part.network, *part.also)}
        # Each network of a question has its part, as it has one where each is asked for itself.
        networks = {n for each in asked for n in networks_of(4, each)}
        assert set(of) == {network for network, _ in parts.of(source, networks)}
        for number in (*numbers, *(int(n[at]) for n in networks for at in (0, -1))):
            address = IPv4Address(number)
            within = smallest_with(networks, address)
            if address in region and address not in taken and within in of:
                part = of[within]
                assert part.address is not None
                for each in asked:
                    assert holds(each, number) is holds(each, int(part.address))
        around = {part.key for part in found}
        assert all(part.around is None or part.around in around for part in found)


def test_the_networks_of_one_set_are_one_part() -> None:
    networks = [IPv4Network((0x0B000000 + 512 * at, 24)) for at in range(1_000)]
    parts = parts_of([IPv4Address("192.168.0.10")], [])
    rest, blocked = parts.alike(Source.EXTERNAL, {joined(map(span, networks))})
    assert rest.network is None
    assert (blocked.network, *blocked.also) == tuple(networks)
    assert (rest.around, blocked.around) == (None, rest.key)
    each = parts.each(Source.EXTERNAL, networks)
    assert [part.network for part in each] == [None, *networks]
    assert {part.around for part in each[1:]} == {each[0].key}


def test_nobody_outside_is_on_loopback_or_the_node_itself() -> None:
    parts = parts_of([IPv4Address("192.168.0.10")], [IPv4Address("10.96.0.1")])
    region = parts.region(Source.EXTERNAL)
    assert region is not None
    for address in ("127.0.0.1", "192.168.0.10", "10.96.0.1", str(HERE[1]), str(ELSEWHERE[1])):
        assert IPv4Address(address) not in region
    for address in ("192.168.0.9", "10.96.0.2", "203.0.113.1"):
        assert IPv4Address(address) in region


def test_where_pods_are_not_known_no_region_is() -> None:
    none = PodNetworks()
    known = SourceFacts(
        addresses=source_addresses("ip", none, (), lambda _: False),
        pods=none,
        written=None,
        own=(),
        frontends=tuple,
        is_taken=lambda _: False,
        cluster=Cluster(),
    )
    parts = SourceParts(known)
    assert parts.region(Source.POD) is None
    assert parts.region(Source.NODE) is None
    assert parts.of(Source.POD, [HERE]) == [(None, None)]
    assert parts.version == 4


def test_no_client_is_in_a_network_of_cluster_ips_alone() -> None:
    cluster_ip, node = IPv4Address("10.96.0.1"), IPv4Address("192.168.0.10")
    parts = parts_of([node], [cluster_ip], cluster_ips=[cluster_ip])
    services, beside = IPv4Network("10.96.0.0/12"), IPv4Network("10.112.0.0/12")
    wide = IPv4Network("10.0.0.0/8")  # wider than that of any cluster's Services
    asked = [services, beside, wide, IPv4Network("10.96.0.0/31")]
    found = dict(parts.of(Source.EXTERNAL, asked))
    assert set(found) == {None, beside, wide}
    # The node is in it too: it may have clients.
    other = parts_of([IPv4Address("10.96.0.2")], [cluster_ip], cluster_ips=[cluster_ip])
    assert services in dict(other.of(Source.EXTERNAL, [services]))


@pytest.mark.parametrize(
    "network", ["224.0.0.0/4", "239.0.0.0/8", "0.0.0.0/8", "127.0.0.0/8", "255.255.255.255/32"]
)
def test_no_part_is_of_addresses_from_which_no_packet_comes_in(network: str) -> None:
    """Rules against such sources, as shorewall writes them, lose nothing."""
    found = parts_of([IPv4Address("192.168.0.10")], [])
    asked = IPv4Network(network)
    for networks in ({asked}, {asked, IPv4Network("203.0.113.0/24")}):
        told = found.of(Source.EXTERNAL, networks)
        assert {n for n, _ in told} == {None, *networks} - {asked}
        assert not any(address in asked for _, address in told if address is not None)
    region = found.region(Source.EXTERNAL)
    assert region is not None
    assert not region.common((span(asked),))
