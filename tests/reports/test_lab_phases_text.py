"""What ``lab run --for`` tells people of flows that nothing was predicted of."""

from __future__ import annotations

from analyzer.model.value import replace
from analyzer.reports.lab_phases_answer import LabPhasesAnswer
from analyzer.reports.lab_phases_text import render
from analyzer.reports.plain import render_plain
from tests.support.phases_answer import PHASES


def _verdict(answer: LabPhasesAnswer) -> str:
    (found,) = [x for x in render_plain(render(answer)).splitlines() if x.startswith("Verdict:")]
    return found


def test_flows_that_were_not_judged_stand_beside_the_verdict() -> None:
    answer = PHASES
    (untold,) = [each for each in answer.phases if not each.predicted]
    flows = untold.verdict.measurement.flows
    assert f"; {flows:,} flows not judged (" in _verdict(answer)
    told = tuple(each for each in answer.phases if each.predicted)
    assert "not judged" not in _verdict(replace(answer, phases=told))
