"""What is said of flows to all endpoints at once is what is said of the flows to each."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.routes.after_dnat import AfterDnat
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.view import Endpoint, Source
from analyzer.model.intervals import Intervals
from analyzer.model.packet import Mark
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.devices import PodPlaces
from tests.support.effort import examples
from tests.support.strategies import by_source

ALL: Intervals = ((int(by_source.ADDRESSES[0]), int(by_source.ADDRESSES[-1])),)
HERE = PodPlaces(here=((ALL[0][0], ALL[0][0] + 1),))
DEVICES = st.sampled_from(["", "-A FORWARD -i cali+ -j DROP\n", "-A FORWARD -o cali+ -j REJECT\n"])
HEAD = "*filter\n:FORWARD ACCEPT [0:0]\n"


def after_dnat(text: str, places: PodPlaces) -> AfterDnat:
    rulesets = [read_ruleset(text.encode(), "dump")]
    sources = dict.fromkeys(Source)
    own = (by_source.OWN,)
    return FlowWalks(
        rulesets, "ip", own, sources, places=lambda: places, within=lambda: ALL
    ).after_dnat


@examples(20, 500)
@given(
    by_source.iptables(hook="FORWARD"),
    DEVICES,
    st.sampled_from([PodPlaces(), HERE]),
    st.sampled_from([*Source]),
    st.sampled_from([Mark(), Mark(1)]),
)
@example(HEAD + "COMMIT\n", "-A FORWARD -i cali+ -j DROP\n", PodPlaces(), Source.HAIRPIN, Mark())
@example(HEAD + "COMMIT\n", "-A FORWARD -i cali+ -j DROP\n", HERE, Source.HAIRPIN, Mark())
def test_all_is_each(text: str, device: str, places: PodPlaces, source: Source, mark: Mark) -> None:
    flows = after_dnat(text.replace("COMMIT", f"{device}COMMIT"), places)
    endpoints = [Endpoint(address, port) for address in by_source.ADDRESSES for port in (80, 90)]
    for address in (None, *by_source.ADDRESSES[:3]):
        of_all = flows.to_all(source, "tcp", mark, address)
        for endpoint in endpoints:
            of = endpoint.address if source is Source.HAIRPIN else address
            alone = flows.to(source, "tcp", endpoint, [mark], of)
            assert of_all is None or of_all == alone
            if source is Source.HAIRPIN and endpoint.address != by_source.OWN:
                assert flows.to_itself("tcp", mark)(endpoint) == alone


def test_hairpins_of_endpoints_whose_place_is_not_known_are_told_at_once() -> None:
    text = HEAD + "-A FORWARD -i cali+ -j DROP\nCOMMIT\n"
    of_all = after_dnat(text, PodPlaces()).to_all(Source.HAIRPIN, "tcp", Mark(), None)
    assert of_all is not None
    assert of_all.lost
    assert after_dnat(text, HERE).to_all(Source.HAIRPIN, "tcp", Mark(), None) is None
