"""Objects become rules, rules become Services, and these are those of the objects.

What the objects imply is read by `promises`, which shares no code with the generator.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.parsers.iptables_save import parse, render
from tests.support.clusters import clusters, one_service
from tests.support.effort import examples
from tests.support.layouts import PROMISED
from tests.support.parsed_objects import parse_objects
from tests.support.promised_flows import ends, kept, may_keep
from tests.support.promises import Source
from tests.support.reading import read_ruleset
from tests.support.round_trips import CHANGES, OUTSIDE, Asked, RoundTrip

every_layout = pytest.mark.parametrize("layout", PROMISED, ids=lambda layout: layout.value)


@every_layout
@examples(5, 200)  # each takes long
@given(data=st.data(), told=st.booleans())
def test_objects_come_back_from_their_rules(
    layout: RulesLayout, data: st.DataObject, *, told: bool
) -> None:
    cluster = data.draw(clusters(layout))
    objects = json.dumps({"items": cluster.items}).encode()
    known = parse_objects([("objects.json", objects)]) if told else None
    RoundTrip(cluster, known=known).check()


@every_layout
@examples(5, 200)  # each takes long
@given(data=st.data())
def test_flows_through_all_tables_end_as_promised(layout: RulesLayout, data: st.DataObject) -> None:
    trip = RoundTrip(data.draw(clusters(layout)))
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
    found = ends(read_ruleset(trip.dump.encode(), "dump"), promises, asked.frontend, source)
    by_bridge = layout is RulesLayout.V1_20 and asked.frontend.kind == "ExternalIP"
    if by_bridge and promise.kind == "endpoint":
        assert may_keep(found, promise)
    else:
        assert kept(found, promise, promises)


@every_layout
@examples(5, 200)  # each takes long
@given(data=st.data())
def test_generated_rules_are_printed_as_they_were_read(
    layout: RulesLayout, data: st.DataObject
) -> None:
    text = data.draw(clusters(layout)).dump
    ruleset = parse(text, "dump")
    assert ruleset.diagnostics == ()
    assert rows(render(ruleset)) == rows(text)


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.deep
@every_layout
def test_above_a_thousand_endpoints_the_services_are_the_same(layout: RulesLayout) -> None:
    for endpoints, commented in ((1_000, True), (1_001, False)):
        trip = RoundTrip(one_service(layout, endpoints=endpoints, plain=True))
        of_endpoints = [row for row in rows(trip.dump) if row.startswith("-A KUBE-SEP-")]
        assert len(of_endpoints) == 2 * endpoints
        assert {"--comment" in row for row in of_endpoints} == {commented}
        if not commented:
            trip.check()


# --- that the check notices -------------------------------------------------------


@pytest.mark.alike
@every_layout
@pytest.mark.parametrize("change", CHANGES)
def test_a_dump_of_other_objects_is_noticed(layout: RulesLayout, change: str) -> None:
    cluster = one_service(layout, endpoints=4)
    RoundTrip(cluster).check()
    others = copy.deepcopy(cluster.items)
    service, endpoints = (i for i in others if i["kind"] in ("Service", "EndpointSlice"))
    CHANGES[change](service, endpoints)
    with pytest.raises(AssertionError):
        RoundTrip(cluster, dump=replace(cluster, items=others).dump).check()
