"""conntrack's table is compared with what was seen of the flows, and a difference is found."""

from __future__ import annotations

import json

import pytest

from tests.support.effort import PROFILE
from tests.support.lab.running import NFT_CASES, Case, case, in_lab

pytestmark = pytest.mark.lab

#: Compares them, as they are and with one flow that conntrack has elsewhere, or not at all.
PROGRAM = """
import json, sys
from types import SimpleNamespace
from netns_lab import asked, tracked
from netns_lab.arguments import FLOWS, parser
from netns_lab.errors import LabError
options = parser().parse_args(sys.argv[1:], SimpleNamespace())
((lab, routes),) = asked.set_up(options, options.flows or FLOWS).labs
usual = tracked.tracked
looked_at = []
def elsewhere(known):
    first, second = dict.fromkeys(known.values())
    at = next(ends for ends, by in known.items() if by == first)
    return {**known, at: second}
def changed(change):
    def found(*given):
        looked_at.append(len(usual(*given)))
        return change(usual(*given))
    tracked.tracked = found
    try:
        tracked.cross_check(lab, routes)
    except LabError as error:
        return str(error)
print(json.dumps([
    [changed(each) for each in (dict, elsewhere, lambda known: dict(list(known.items())[1:]))],
    looked_at,
]))
"""
CASES = [case("1.36.2-iptables-legacy/two-node@worker1"), NFT_CASES[-1]]


@pytest.mark.parametrize("given", CASES if PROFILE != "quick" else CASES[:1], ids=str)
def test_a_flow_that_conntrack_has_elsewhere_is_found(given: Case) -> None:
    told = in_lab(PROGRAM, "run", *given.given, "--service", "kube-dns:dns")
    (right, elsewhere, missing), looked_at = json.loads(told)
    assert looked_at == [512] * 3
    assert right is None
    says = "conntrack has {} elsewhere than they came to, or not at all"
    assert says.format(2) in elsewhere  # too many of one endpoint, too few of the other
    assert says.format(1) in missing


def test_of_flows_that_are_reset_or_kept_back_nothing_is_compared() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1").given
    words = [*given, "--service", "default/app", "--dead", "10.244.0.7:process"]
    assert json.loads(in_lab(PROGRAM, "run", *words)) == [[None] * 3, []]
