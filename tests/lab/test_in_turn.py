"""Routes measured in turn: whose flows rules have counted, and that they are read seldom."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netns_lab.in_turn import parted
from tests.support.lab.running import case, in_lab

#: How many flows of each run came to which of six endpoints.
CAME = st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=4)

#: Measures all routes in turn; the rules seem to have counted one flow more at an endpoint.
PROGRAM = """
import json, sys
from types import SimpleNamespace
from netns_lab import asked
from netns_lab.arguments import FLOWS, parser
from netns_lab.in_turn import in_turn
*words, more = sys.argv[1:]
options = parser().parse_args(words, SimpleNamespace())
((lab, routes),) = asked.set_up(options, options.flows or FLOWS).labs
read = []
of_kernel = lab.drawn
def drawn():
    found = of_kernel()
    read.append(found.total())
    if more != "none" and len(read) == 2:
        found[max(found) if more == "endpoint" else (1, 1)] += 1
    return found
lab.drawn = drawn
found = in_turn(lab, [(*each, 200) for each in routes])
told = [
    (
        [s.name.text, s.protocol, r.source.value, str(r.frontend)],
        [m.service, m.protocol, m.source, m.frontend.split(" ", 1)[1]],
        m.counter_difference,
    )
    for (s, r), some in zip(routes, found, strict=True)
    for m in some.measurements
]
print(json.dumps({"read": read, "told": told}))
"""


#: The same, stopped after so many questions whether to stop.
STOPPED = """
import json, sys
from itertools import count
from types import SimpleNamespace
from netns_lab import asked
from netns_lab.arguments import FLOWS, parser
from netns_lab.in_turn import in_turn
*words, after, in_part = sys.argv[1:]
options = parser().parse_args(words, SimpleNamespace())
((lab, routes),) = asked.set_up(options, options.flows or FLOWS).labs
asked = count()
stop = lambda: next(asked) >= int(after)
found = in_turn(lab, [(*each, 2000) for each in routes], is_stopped=stop, in_part=in_part == "part")
told = [([(m.counter_difference, m.flows) for m in e.measurements], e.why_not) for e in found]
print(json.dumps(told))
"""


@given(came=CAME)
def test_what_was_counted_where_flows_came_is_theirs(came: list[dict[int, int]]) -> None:
    runs = [{(end, 80): number for end, number in run.items()} for run in came]
    counted: Counter[tuple[int, int]] = Counter()
    for run in runs:
        counted.update(run)
    assert parted(counted, runs) == [Counter(run) for run in runs]


@given(came=CAME, at=st.integers(0, 7), more=st.integers(1, 9))
def test_what_was_counted_beyond_that_is_a_difference_of_each_that_it_may_be(
    came: list[dict[int, int]], at: int, more: int
) -> None:
    runs = [{(end, 80): number for end, number in run.items()} for run in came]
    counted: Counter[tuple[int, int]] = Counter()
    for run in runs:
        counted.update(run)
    counted[at, 80] += more
    everywhere = not any((at, 80) in run for run in runs)
    for run, found in zip(runs, parted(counted, runs), strict=True):
        differs = {end for end in {*run, *found} if run.get(end, 0) != found[end]}
        assert differs == ({(at, 80)} if everywhere or (at, 80) in run else set())


def measured(more: str) -> Any:
    of = case("1.36.2-iptables-legacy/two-node@worker1")
    return json.loads(in_lab(PROGRAM, "run", *of.given, "--from", "pod", "hairpin", "--", more))


@pytest.mark.lab
def test_rules_are_read_once_for_routes_that_share_no_endpoint() -> None:
    found = measured("none")
    asked, told, differences = zip(*found["told"], strict=True)
    assert list(asked) == list(told)  # in the order in which they were wanted
    assert set(differences) == {0}
    assert len(found["read"]) < len(differences)
    assert sum(found["read"]) >= 200 * len(set(map(tuple, asked)))


@pytest.mark.lab
@pytest.mark.parametrize("more", ["endpoint", "elsewhere"])
def test_a_flow_that_only_rules_have_seen_is_a_difference(more: str) -> None:
    differences = [each for *_, each in measured(more)["told"]]
    assert differences.count(1) >= 1
    assert (differences.count(1) == 1) == (more == "endpoint")


@pytest.mark.lab
def test_what_was_sent_before_a_stop_is_counted() -> None:
    def measured(after: int, part: str) -> Any:
        return json.loads(in_lab(STOPPED, *words, str(after), part))

    of = case("1.36.2-iptables-legacy/two-node@worker1")
    words = "run", *of.given, "--from", "pod", "hairpin", "--"
    cut = [[], "the run was interrupted before"]
    every = measured(10**6, "whole")
    assert all(why is None for _, why in every)
    assert measured(0, "part") == [cut] * len(every)
    in_part = 0
    for after in (12, 15):  # in the middle of one route's flows, or behind them
        whole, part = measured(after, "whole"), measured(after, "part")
        assert 0 < whole.count(cut) < len(every)
        assert all(found in (cut, wanted) for found, wanted in zip(whole, every, strict=True))
        assert [why for _, why in whole] == [why for _, why in part]
        assert all(difference == 0 for sent, _ in part for difference, _ in sent)
        in_part += sum(len(sent) > 0 and why is not None for sent, why in part)
    assert in_part > 0
