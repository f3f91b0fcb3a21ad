"""The page of ``cluster drift`` has each difference of the answer once, with all of its nodes."""

from __future__ import annotations

import json
import re
from collections import Counter

from analyzer.model.value import replace
from analyzer.reports.pages.cluster_drift import render
from tests.support.cluster_answers import drift_answer

ANSWER = drift_answer("ns/a")


def test_what_scripts_are_given_is_what_was_found() -> None:
    page = "".join(render(ANSWER))
    (text,) = re.findall(r'id="data-drift">(.*?)</script>', page, re.DOTALL)
    data = json.loads(text)
    told = Counter(
        (data["nodes"][node], data["kinds"][kind][0], service, protocol, what)
        for kind, service, protocol, what, nodes in data["differences"]
        for node in nodes
    )
    findings = ANSWER.drifted.findings
    assert told == Counter((f.node, f.drift.value, f.service, f.protocol, f.what) for f in findings)


def test_what_is_not_judged_stands_in_the_page_and_is_no_all_clear() -> None:
    page = "".join(render(ANSWER))
    assert "Not judged, since it is not known what is right: ns/b." in page
    nothing = replace(ANSWER, drifted=replace(ANSWER.drifted, findings=()))
    page = "".join(render(nothing))
    assert '<span class="warning">No difference among what was judged at 2 nodes.' in page
    assert "Not judged, since it is not known what is right: ns/b." in page
    assert "data-drift" not in page
