from __future__ import annotations

from analyzer.model.diagnostics import Location
from analyzer.model.endings import Ending, EndKind, any_of, part, summed, total
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic

HALF = Dyadic.of(1, 1)
QUARTER = Dyadic.of(1, 2)
DROP, REJECT = (Ending(kind=kind) for kind in (EndKind.DROPPED, EndKind.REJECTED))


def exactly(share: Dyadic) -> Bounds:
    return Bounds(share, share)


def test_endings_of_the_same_rule_in_two_files_are_equal() -> None:
    one, two = (
        Ending(
            kind=EndKind.DROPPED,
            rule="-A FORWARD -j DROP",
            place=Location(file, 3),
            chain="FORWARD",
        )
        for file in ("a", "b")
    )
    assert one == two
    assert len({one, two}) == 1
    assert one != Ending(kind=EndKind.DROPPED, rule="-A FORWARD -j DROP", chain="OTHER")
    assert one != "an ending"


def test_the_same_ending_is_summed_and_no_sum_is_more_than_all() -> None:
    every = [(DROP, exactly(HALF)), (REJECT, exactly(QUARTER)), (DROP, exactly(QUARTER))]
    assert summed(every) == (
        (DROP, exactly(Dyadic.of(3, 2))),
        (REJECT, exactly(QUARTER)),
    )
    assert total(every) == exactly(ALWAYS)
    assert total([*every, (REJECT, exactly(HALF))]).upper == ALWAYS
    assert total([]) == exactly(NEVER)


def test_of_several_that_may_hold_each_ending_has_the_bounds_of_all() -> None:
    one = ((DROP, exactly(HALF)),)
    assert any_of([one, one]) == one
    assert any_of([one, ((REJECT, exactly(ALWAYS)),)]) == (
        (DROP, Bounds(NEVER, HALF)),
        (REJECT, Bounds(NEVER, ALWAYS)),
    )
    assert any_of([one, ()]) == ((DROP, Bounds(NEVER, HALF)),)


def test_endings_of_a_part_are_a_part_of_all() -> None:
    assert part(((DROP, exactly(HALF)),), Bounds(QUARTER, HALF)) == (
        (DROP, Bounds(Dyadic.of(1, 3), QUARTER)),
    )
