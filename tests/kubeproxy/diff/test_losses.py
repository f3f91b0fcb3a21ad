"""What another program's rule drops or rejects of flows and their answers is what differs."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.diff.changes import ServiceChange
from analyzer.kubeproxy.diff.difference import Conclusion
from analyzer.kubeproxy.diff.side import DumpSide
from analyzer.kubeproxy.view import Route, Source, each_network
from analyzer.model.endings import EndKind
from tests.support.captures import FIXTURES, Capture
from tests.support.comparing import compared, side_of_capture
from tests.support.effort import examples

_OUTCOMES: Final = {
    EndKind.DROPPED: "drop",
    EndKind.REJECTED: "reject",
    EndKind.UNANSWERED: "unanswered",
}
#: A route: name of the ServicePort, protocol, frontend, source and network.
_Key = tuple[str, ...]
_CAPTURE: Final = Capture(
    FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1" / "iptables-legacy-save.txt"
)


def with_rule(capture: Capture, rule: str) -> str:
    """Return the dump with a rule before all others of its chain in the filter table."""
    head, mark, rest = capture.dump.read_text().partition("*filter\n")
    policies, _, rules = rest.partition("-A ")
    return f"{head}{mark}{policies}{rule}\n-A {rules}"


def key_of(name: str, protocol: str, route: Route) -> _Key:
    return (name, protocol, str(route.frontend), route.source.value, str(route.network))


def lost(side: DumpSide) -> dict[_Key, dict[str, float]]:
    """Return of each route which share ends how, from its draws and the losses at each endpoint.

    Of hairpin flows, the greatest share at any endpoint.
    """
    found: dict[_Key, dict[str, float]] = {}
    for service in side.view.services:
        for route in each_network(service.routes):
            ends: dict[str, float] = {}
            for drawn, losses in zip(route.draws()[1], route.losses(), strict=False):
                for ending, share in losses:
                    assert share.is_exact, ending
                    outcome, of = _OUTCOMES[ending.kind], float(share.lower)
                    if route.source is Source.HAIRPIN:
                        ends[outcome] = max(ends.get(outcome, 0), of)
                    else:
                        ends[outcome] = ends.get(outcome, 0) + of * float(drawn.lower)
            if ends:
                found[key_of(service.name.text, service.protocol, route)] = ends
    return found


def told(changes: tuple[ServiceChange, ...]) -> dict[_Key, dict[str, float]]:
    """Return of each route that differs how flows end in the second dump."""
    found: dict[_Key, dict[str, float]] = {}
    for each in changes:
        for route in each.routes:
            assert route.change.otherwise is not None
            ends = {kind: float(share.upper) for kind, share in route.change.otherwise[1]}
            for way in route.ways:
                key = str(way.frontend), way.source.value, str(way.network)
                found[each.name.text, each.protocol, *key] = ends
    return found


addresses = st.sampled_from(["10.244.0.3", "10.244.1.4", "10.244.0.7", "10.244.1.9"])


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Return a rule on flows to an endpoint, or on answers from it."""
    chain = draw(st.sampled_from(["FORWARD", "INPUT", "OUTPUT"]))
    protocol, port = draw(st.sampled_from([("udp", 53), ("tcp", 53), ("tcp", 8080)]))
    side, of = draw(st.sampled_from([("-s", "--sport"), ("-d", "--dport")]))
    part = draw(st.sampled_from(["", " -m statistic --mode random --probability 0.25000000000"]))
    target = draw(st.sampled_from(["DROP", "REJECT --reject-with icmp-port-unreachable"]))
    matches = f"{side} {draw(addresses)}/32 -p {protocol} -m {protocol} {of} {port}{part}"
    return f"-A {chain} {matches} -j {target}"


@examples(10, 300)
@given(rules())
def test_losses_of_a_new_rule_are_what_differs(rule: str) -> None:
    a = side_of_capture(_CAPTURE)
    b = side_of_capture(_CAPTURE, text=with_rule(_CAPTURE, rule))
    found = compared(a, b)
    wanted = lost(b)
    assert not lost(a)
    assert {key: pytest.approx(ends) for key, ends in wanted.items()} == told(found.changes)
    assert found.verdict is (Conclusion.DIFFERENT if wanted else Conclusion.SAME)


@pytest.mark.parametrize("part", ["", " -m statistic --mode random --probability 0.50000000000"])
def test_answers_that_are_dropped_differ(part: str) -> None:
    rule = f"-A FORWARD -s 10.244.1.4/32 -p udp -m udp --sport 53{part} -j DROP"
    b = side_of_capture(_CAPTURE, text=with_rule(_CAPTURE, rule))
    ends = told(compared(side_of_capture(_CAPTURE), b).changes)
    way = "kube-system/kube-dns:dns", "udp", "10.96.0.10:53", "pod", "None"
    assert ends[way] == {"unanswered": 0.25 if part else 0.5}
