"""Objects become rules of nftables mode, rules become Services, and these are the objects'.

What the objects imply is read by `promises`, which shares no code with the generator.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from functools import cached_property
from ipaddress import ip_address, ip_network
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import Frontend as ShownFrontend
from analyzer.kubeproxy.view import FrontendKind, ServicePort, View
from analyzer.kubeproxy.view import Source as Kind
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from tests.support.clusters import GeneratedCluster, clusters, one_service
from tests.support.effort import examples
from tests.support.parsed_objects import parse_objects
from tests.support.pod_networks import PODS
from tests.support.promised_flows import ends, kept
from tests.support.promises import Source
from tests.support.reading import nft_ruleset
from tests.support.round_trips import CHANGES, OUTSIDE, Asked, OfObjects, RoundTrip

every_layout = pytest.mark.parametrize(
    "layout", [RulesLayout.V1_30, RulesLayout.V1_36], ids=lambda layout: layout.value
)
_OWN: Final = re.compile(r"^\t\tip6? saddr (\S+) jump ", re.MULTILINE)
_SET: Final = re.compile(r"set hairpin-connections \{.*?\n\t\}", re.DOTALL)
_PAIR: Final = re.compile(r"([\da-f.:]+) \. \1 \. ")


class NftRoundTrip(RoundTrip):
    """The same of a ruleset in nftables mode, hairpins included."""

    #: Without objects external IPs and those of balancers look alike.
    codes = frozenset({"kind-guessed"})

    def __init__(
        self, cluster: GeneratedCluster, dump: str | None = None, known: Cluster | None = None
    ) -> None:
        super().__init__(cluster, cluster.nft if dump is None else dump, known)
        self.promises = OfObjects(cluster, nftables=True)

    @cached_property
    def view(self) -> View:
        own = self.promises.node_addresses
        return NftRecogniser(nft_ruleset(self.dump), self.known, node_addresses=own).view()

    @cached_property
    def _hairpins(self) -> set[Address]:
        found = _OWN.findall(self.dump)
        for held in _SET.findall(self.dump):
            found += _PAIR.findall(held)
        return {ip_address(text) for text in found if "/" not in text}

    @cached_property
    def _nodes_of(self) -> dict[str, set[str | None]]:
        """The nodes on which slices have each address."""
        found: dict[str, set[str | None]] = {}
        for item in self.cluster.items:
            for endpoint in item.get("endpoints") or ():
                for text in endpoint["addresses"]:
                    address = str(ip_address(text))
                    found.setdefault(address, set()).add(endpoint.get("nodeName"))
        return found

    def _shown(self, asked: Asked) -> ShownFrontend:
        """Only a balancer that has source ranges is told from an external IP."""
        shown = asked.shown
        if shown.kind is not FrontendKind.LOAD_BALANCER_IP:
            return shown
        given = asked.service["spec"].get("loadBalancerSourceRanges", ())
        ranges = [each for each in given if ip_network(each).version == self.cluster.family]
        return shown if ranges else replace_kind(shown)

    def _check_service(self, service: ServicePort, asked: list[Asked]) -> None:
        super()._check_service(service, asked)
        for route in service.routes:
            if route.source is Kind.HAIRPIN:
                (of_it,) = [a for a in asked if self._shown(a) == route.frontend]
                for share in route.shares:
                    address = share.endpoint.address
                    # What a node sends to itself is no flow of a pod; and where another Service
                    # has the endpoint on another node, the set of hairpins holds it all the same.
                    alone = len(self._nodes_of.get(str(address), {None})) == 1
                    if address not in self.promises.node_addresses and alone:
                        promise = self._promise(of_it, Source("itself", address))
                        end = address, share.endpoint.port
                        assert share.masquerade is (end in promise.masqueraded), (route, share)


def replace_kind(shown: ShownFrontend) -> ShownFrontend:
    return ShownFrontend(FrontendKind.EXTERNAL_IP, shown.address, shown.port)


@every_layout
@examples(5, 150)  # each takes long
@given(data=st.data(), told=st.booleans())
def test_objects_come_back_from_their_rules(
    layout: RulesLayout, data: st.DataObject, *, told: bool
) -> None:
    cluster = data.draw(clusters(layout))
    objects = json.dumps({"items": cluster.items}).encode()
    known = parse_objects([("objects.json", objects)]) if told else None
    NftRoundTrip(cluster, known=known).check()


@every_layout
@examples(5, 150)  # each takes long
@given(data=st.data())
def test_flows_through_all_tables_end_as_promised(layout: RulesLayout, data: st.DataObject) -> None:
    trip = NftRoundTrip(data.draw(clusters(layout)))
    promises, family = trip.promises, trip.cluster.family
    asked = Asked(*data.draw(st.sampled_from(list(promises.frontends()))))
    source = data.draw(
        st.sampled_from(
            [
                Source("a pod", promises.pod_here()),
                Source("the node", promises.node_addresses[0], made_here=True),
                Source("outside", OUTSIDE[family]),
            ]
        )
    )
    promise = promises.promise(asked.service, asked.port, asked.frontend, source)
    found = ends(nft_ruleset(trip.dump), promises, asked.frontend, source)
    assert kept(found, promise, promises), (found, promise)


@every_layout
def test_with_everything_masqueraded_a_local_policy_shows_which_sources_are_pods(
    layout: RulesLayout,
) -> None:
    cluster = one_service(layout, endpoints=4)
    trip = NftRoundTrip(replace(cluster, flags=(*cluster.flags, "--masquerade-all")))
    assert all(each in PODS[each.version] for each in trip.view.pod_sources)
    assert trip.view.pod_sources
    trip.check()


@pytest.mark.alike
@every_layout
@pytest.mark.parametrize("change", CHANGES)
def test_a_dump_of_other_objects_is_noticed(layout: RulesLayout, change: str) -> None:
    cluster = one_service(layout, endpoints=4)
    NftRoundTrip(cluster).check()
    others = copy.deepcopy(cluster.items)
    service, endpoints = (i for i in others if i["kind"] in ("Service", "EndpointSlice"))
    CHANGES[change](service, endpoints)
    with pytest.raises(AssertionError):
        NftRoundTrip(cluster, dump=replace(cluster, items=others).nft).check()


@pytest.mark.parametrize("plainly", [True, False])
def test_no_packet_matches_an_address_of_the_other_ip_version(*, plainly: bool) -> None:
    cluster = one_service(RulesLayout.V1_36, endpoints=2, plain=True)
    text = cluster.nft.replace("10.96.0.1 . tcp", "fd00:96::1 . tcp")
    assert text != cluster.nft
    view = NftRecogniser(nft_ruleset(text), Cluster(), plainly=plainly).view()
    assert not [route for service in view.services for route in service.routes]
