"""What an endpoint's flows to its own Service come to, beside a distribution added up by hand."""

from __future__ import annotations

from fractions import Fraction
from ipaddress import IPv4Address, ip_address

from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.view import Endpoint, Frontend, FrontendKind, Route, Share, Source
from analyzer.model.endings import Ending, EndKind
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace
from netns_lab.arriving import (
    Arriving,
    Beyond,
    LostBeyond,
    of_sender,
    sockaddr_of_endpoint,
    ways_to_end,
)
from netns_lab.arriving import arriving as arrives

SIXTEENTHS = 4
#: Of each endpoint: its share and what of it is lost behind the DNAT, in sixteenths.
FATES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=4)
#: The share of the endpoint that sends.
ITSELF = Share(Endpoint(IPv4Address(0), 80), Bounds(NEVER, ALWAYS), masquerade=False)


def exactly(sixteenths: int) -> Bounds:
    share = Dyadic.of(sixteenths, SIXTEENTHS)
    return Bounds(share, share)


def arriving(fates: list[tuple[int, int]]) -> Arriving:
    lost = [min(share, most) for share, most in fates]
    return Arriving(
        {(at, 80): exactly(share - lost[at]) for at, (share, _) in enumerate(fates)},
        {(at, 80): exactly(each) for at, each in enumerate(lost)},
        exactly(sum(lost)),
    )


def alone(share: int, lost: int, others: int) -> Arriving:
    """Return the prediction for the first endpoint's own flows: others have what it leaves."""
    rest = Bounds(NEVER, ~Dyadic.of(share, SIXTEENTHS))
    shares = {(0, 80): exactly(share - lost)} | {(at, 80): rest for at in range(1, others)}
    return Arriving(shares, {(0, 80): exactly(lost)}, exactly(lost))


@given(FATES, st.integers(0, 4))
def test_flows_to_other_endpoints_end_as_those_of_any_pod(
    fates: list[tuple[int, int]], back: int
) -> None:
    share = fates[0][0]
    back = min(back, share)
    found = of_sender(alone(share, back, len(fates)), ITSELF, [arriving(fates)], is_here=True)
    expected = arriving([(share, back), *fates[1:]])
    assert found == expected


@given(FATES, FATES)
def test_any_of_several_predictions_may_hold(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    share = one[0][0]
    own = alone(share, 0, max(len(one), len(other)))
    both = [[(share, 0), *each[1:]] for each in (one, other)]
    found = of_sender(own, ITSELF, [arriving(each) for each in both], is_here=True)
    for each in both:
        exact = arriving(each)
        assert within(exact.ended, found.ended)
        for sockaddr, bounds in exact.shares.items():
            assert within(bounds, found.shares[sockaddr])
            assert within(exact.lost[sockaddr], found.lost[sockaddr])


def within(one: Bounds, other: Bounds) -> bool:
    return other.lower <= one.lower and one.upper <= other.upper


def test_without_other_predictions_nothing_is_added() -> None:
    own = alone(4, 1, 3)
    assert of_sender(own, ITSELF, [], is_here=True) is own


def test_whether_an_endpoint_elsewhere_answers_itself_is_not_predicted() -> None:
    own, masked = alone(4, 1, 3), replace(ITSELF, masquerade=True)
    found = of_sender(own, ITSELF, [], is_here=False)
    assert found.unanswered == {(0, 80): Bounds(NEVER, ALWAYS)}
    assert (found.shares, found.lost, found.ended) == (own.shares, own.lost, own.ended)
    assert of_sender(own, masked, [], is_here=False) is own


def test_flows_that_a_pod_never_gets_out_are_ended_but_for_its_own_share() -> None:
    """Of all flows half come back to the sender; rules drop every flow of other pods."""
    own = alone(8, 0, 2)
    dropped = Arriving(
        {(0, 80): exactly(0), (1, 80): exactly(0)},
        {(0, 80): exactly(8), (1, 80): exactly(8)},
        Bounds(ALWAYS, ALWAYS),
    )
    found = of_sender(own, ITSELF, [dropped], is_here=True)
    assert found.shares == {(0, 80): exactly(8), (1, 80): exactly(0)}
    assert Fraction(found.ended.lower.as_fraction()) == Fraction(1, 2)
    assert found.ended.is_exact


def test_of_flows_whose_end_is_not_known_the_answers_may_be_lost_too() -> None:
    endpoint = Endpoint(ip_address("10.0.0.1"), 80)
    frontend = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)
    for kind, lower in ((EndKind.UNKNOWN, NEVER), (EndKind.UNANSWERED, ALWAYS)):
        lost = ((Ending(kind=kind), Bounds(lower, ALWAYS)),)
        shares = (Share(endpoint, Bounds(ALWAYS, ALWAYS), None, lost),)
        found = arrives(Route(frontend, Source.POD, shares, NEVER))
        assert found.unanswered == {sockaddr_of_endpoint(endpoint): Bounds(lower, ALWAYS)}


def test_what_rules_end_on_the_node_does_not_end_beyond_it_again() -> None:
    """The rules of the node drop half of the flows, and those of the next one half of the rest."""
    endpoint = Endpoint(ip_address("10.0.0.1"), 80)
    frontend = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)
    half = exactly(8)
    lost = ((Ending(kind=EndKind.DROPPED), half),)
    shares = (Share(endpoint, Bounds(ALWAYS, ALWAYS), None, lost),)
    found = arrives(Route(frontend, Source.POD, shares, NEVER), beyond(LostBeyond(half)))
    assert found.shares == {sockaddr_of_endpoint(endpoint): exactly(4)}
    assert found.lost == {sockaddr_of_endpoint(endpoint): exactly(12)}
    assert found.ended == exactly(12)


def beyond(lost: LostBeyond) -> Beyond:
    return lambda _: lost


def test_answers_may_be_lost_on_the_node_and_beyond_it() -> None:
    endpoint = Endpoint(ip_address("10.0.0.1"), 80)
    frontend = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)
    quarter, half = exactly(4), exactly(8)
    lost = ((Ending(kind=EndKind.UNANSWERED), quarter),)
    shares = (Share(endpoint, Bounds(ALWAYS, ALWAYS), None, lost),)
    for ended, unanswered, expected in (
        (exactly(0), half, Bounds(half.lower, exactly(12).upper)),
        # All that the other node lets pass.
        (half, half, Bounds(ALWAYS, ALWAYS)),
        (half, exactly(0), quarter),
    ):
        found = arrives(
            Route(frontend, Source.POD, shares, NEVER), beyond(LostBeyond(ended, unanswered))
        )
        assert found.unanswered == {sockaddr_of_endpoint(endpoint): expected}


def test_answers_are_waited_for_where_they_are_owed() -> None:
    half = Dyadic.of(1, 1)
    unanswered = {
        (1, 80): Bounds(ALWAYS, ALWAYS),
        (2, 80): Bounds(NEVER, ALWAYS),
        (3, 80): Bounds(NEVER, NEVER),
    }
    found = Arriving({}, {}, Bounds(NEVER, NEVER), unanswered)
    assert found.silent == [(1, 80), (2, 80)]
    assert not found.answers_some
    unanswered[4, 80] = Bounds(half, half)
    assert found.silent == [(1, 80), (2, 80)]
    assert found.answers_some


def test_what_rules_do_to_flows_that_they_end_is_told_as_far_as_they_end_any() -> None:
    frontend = Frontend(FrontendKind.CLUSTER_IP, IPv4Address(1), 80)
    some = Bounds(NEVER, ALWAYS)

    def ways(*ends: Ending, lost: tuple[Ending, ...] = (), share: Bounds = some) -> frozenset[str]:
        behind = replace(ITSELF, lost=tuple((each, share) for each in lost))
        astray = tuple((each, share) for each in ends)
        return ways_to_end(Route(frontend, Source.NODE, (behind,), NEVER, None, astray))

    drop = Ending(kind=EndKind.DROPPED)
    reject = Ending(kind=EndKind.REJECTED, how="tcp-reset")
    own = [Ending(kind=EndKind.REFUSED, how=each) for each in ("drop", "reject", "pass")]
    assert ways(drop) == ways(own[0]) == ways(lost=(drop,)) == {"dropped"}
    assert ways(reject) == ways(own[1]) == ways(lost=(reject,)) == {"rejected"}
    assert ways(drop, lost=(reject,)) == ways(own[0], own[1]) == {"dropped", "rejected"}
    assert ways() == ways(own[2], Ending(kind=EndKind.UNKNOWN)) == frozenset()
    assert ways(drop, share=Bounds(NEVER, NEVER)) == frozenset()


def test_flows_that_no_draw_takes_are_ended_where_kube_proxy_refuses_them() -> None:
    """In nftables mode its filter chains reject what is still for a ClusterIP after nat."""
    to = Frontend(FrontendKind.CLUSTER_IP, IPv4Address("10.96.0.1"), 443)
    all_of_them = Bounds(ALWAYS, ALWAYS)
    for how, ways in (("reject", {"rejected"}), ("drop", {"dropped"}), ("", set[str]())):
        left = Ending(kind=EndKind.LEFT_OVER, how=how)
        route = Route(to, Source.POD, (), NEVER, astray=((left, all_of_them),))
        assert ways_to_end(route) == ways
        assert arrives(route).ended == (all_of_them if how else Bounds(NEVER, NEVER))
