"""What ``lab run --for`` tells people of flows that nothing was predicted of."""

from __future__ import annotations

from analyzer.model.value import replace
from analyzer.reports.lab_phases_answer import LabPhasesAnswer
from analyzer.reports.lab_phases_text import render
from analyzer.reports.unstyled import render_unstyled
from tests.support.phases_answer import PHASES


def _verdict(answer: LabPhasesAnswer) -> str:
    (found,) = [x for x in render_unstyled(render(answer)).splitlines() if x.startswith("Verdict:")]
    return found


def test_flows_that_were_not_judged_stand_beside_the_verdict() -> None:
    answer = PHASES
    (untold,) = [each for each in answer.phases if not each.predicted]
    flows = untold.verdict.measurement.flows
    assert f"; {flows:,} flows not judged; 1 route not measured (" in _verdict(answer)
    told = tuple(each for each in answer.phases if each.predicted)
    assert "not judged" not in _verdict(replace(answer, phases=told))
    assert "not measured" not in _verdict(replace(answer, left_out=()))


def test_of_several_routes_each_has_its_tables_and_connections_say_of_which_they_are() -> None:
    udp = replace(PHASES.routes[0], protocol="udp", source="node", connections=0)
    wrong = replace(PHASES.phases[-1], route=1)
    answer = replace(PHASES, routes=(*PHASES.routes, udp), phases=(*PHASES.phases[:-1], wrong))
    shown = render_unstyled(render(answer)).splitlines()
    assert "in turn on 2 routes" in shown[0]
    assert "Route 2: from the node itself to ns/a:http (udp, ClusterIP 10.96.0.1:80)" in shown
    assert "No connections stayed open on 1 route: 2 (udp)." in shown
    assert any(each.startswith("Route 2, 15.00s to 20.00s: 7 flows answered") for each in shown)
    assert answer.agrees_at(1) is False
    assert answer.agrees is False


def test_a_route_of_which_nothing_was_judged_neither_agrees_nor_disagrees() -> None:
    untold = replace(PHASES.phases[3], route=1)
    good = replace(PHASES, phases=(PHASES.phases[0], untold), connections=PHASES.connections[:1])
    answer = replace(good, routes=(*PHASES.routes, PHASES.routes[0]))
    assert (answer.agrees_at(0), answer.agrees_at(1), answer.agrees) == (True, None, True)
    nothing = replace(answer, phases=(untold,), connections=())
    assert nothing.agrees is False
