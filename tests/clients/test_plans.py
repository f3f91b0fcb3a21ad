"""Plans beside clients that are played step by step, and the laws that all of them keep."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.clients.connect import connect, connect_to_pods
from analyzer.clients.connectors import CONNECTORS, To
from analyzer.clients.look_up import candidates, look_up, with_options
from analyzer.clients.operations import ends
from analyzer.clients.outcome import QUANTILES, OperationOutcome, fails, outcome
from analyzer.clients.plan import OperationResult, Plan
from analyzer.clients.resolvers import RESOLVERS, Port, Resolver, Search
from analyzer.clients.responses import RESPONSES, FlowResponse, Lot, of_responses
from analyzer.clients.target import ClientTarget
from analyzer.model.resolv_conf import ResolvConf
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from tests.support.documents import rows
from tests.support.effort import examples
from tests.support.naive import clients as naive

ONE = Fraction(1)
NEVER = (Fraction(0), Fraction(0))
TO_SERVICES = [name for name, each in CONNECTORS.items() if each.to is To.SERVICE]


def exact(*chances: Fraction) -> Lot:
    """The lot of being answered, silent, refused, unreachable."""
    return Lot(tuple((each, each) for each in chances))


def told(lot: Lot) -> dict[str, Fraction]:
    return {fate.value: lower for fate, (lower, _) in zip(RESPONSES, lot.bounds, strict=True)}


@st.composite
def lots(
    draw: st.DrawFn, fates: tuple[FlowResponse, ...] = (FlowResponse.SILENT, FlowResponse.REFUSED)
) -> Lot:
    weights = {fate: draw(st.integers(0, 3)) for fate in (FlowResponse.ANSWERED, *fates)}
    if not any(weights.values()):
        weights[FlowResponse.ANSWERED] = 1
    whole = sum(weights.values())
    return exact(*(Fraction(weights.get(fate, 0), whole) for fate in RESPONSES))


@st.composite
def confs(draw: st.DrawFn, servers: int) -> ResolvConf:
    # All that may be drawn is played: two servers make it many.
    search = draw(st.integers(0, 2 if servers == 1 else 1))
    return ResolvConf(
        nameservers=tuple(ip_address(f"10.96.0.{at}") for at in range(servers)),
        search=tuple(f"d{at}" for at in range(search)),
        ndots=draw(st.sampled_from([None, 1, 5])),
        timeout=draw(st.sampled_from([None, 1, 2, 20])),
        attempts=draw(st.sampled_from([None, 1, 2])),
    )


def targets(drawn: list[Lot], affine: Ternary = Ternary.FALSE) -> list[ClientTarget]:
    return [ClientTarget(name=str(at), lot=lot, affine=affine) for at, lot in enumerate(drawn)]


def chances(found: OperationOutcome) -> dict[tuple[str, Fraction], Fraction]:
    """The chance of each end, of an outcome that is exact."""
    assert all(each.chance[0] == each.chance[1] for each in found.endings)
    assert all(each.time.least == each.time.most for each in found.endings)
    return {
        (each.result.value, each.time.least): each.chance[0]
        for each in found.endings
        if each.chance[0]
    }


def check(found: OperationOutcome, played: dict[tuple[str, Fraction], Fraction]) -> None:
    """Hold an outcome against all ends of a client that was played."""
    assert sum(played.values()) == 1
    assert chances(found) == played
    failing = sum(chance for (result, _), chance in played.items() if result != "answered")
    assert found.fails == (failing, failing)
    mean = sum((time * chance for (_, time), chance in played.items()), Fraction(0))
    assert found.delay == (mean, mean)
    by_time: dict[Fraction, Fraction] = defaultdict(Fraction)
    for (_, time), chance in played.items():
        by_time[time] += chance
    for wanted, within in zip(QUANTILES, found.quantiles, strict=True):
        over = (
            t for t in sorted(by_time) if sum(c for o, c in by_time.items() if o <= t) >= wanted
        )
        first = next(over)
        assert within == (first, first)


# --- look-ups -----------------------------------------------------------------------


@given(st.data(), st.sampled_from(sorted(naive.RESOLVERS)), st.sampled_from([1, 1, 2]))
@examples(30, 300)
def test_a_look_up_ends_as_the_client_that_is_played(
    data: st.DataObject, name: str, servers: int
) -> None:
    servers = 1 if name == "go" else servers
    resolver, conf = RESOLVERS[name], data.draw(confs(servers))
    drawn = data.draw(st.lists(lots(), min_size=servers, max_size=servers))
    if name == "go":
        conf = replace(conf, search=conf.search[:1])
    text = data.draw(st.sampled_from(["a", "a.b", "a.b."]))
    bare = text.rstrip(".")
    possible = [bare, *(f"{bare}.{domain}" for domain in conf.search)]
    there = frozenset({data.draw(st.sampled_from(possible))})
    asked = candidates(resolver, conf, text, lambda each: each in there)
    found = outcome(look_up(with_options(resolver, conf), asked, targets(drawn), (), ends))
    searched = () if text.endswith(".") else tuple(possible[1:])
    first = text.endswith(".") or bare.count(".") >= (1 if conf.ndots is None else conf.ndots)
    played = naive.Name(searched, bare, first, there)
    options = (conf.timeout or 5, conf.attempts or 2)
    ways = [told(lot) for lot in drawn]
    client = naive.RESOLVERS[name]
    check(found, naive.every(lambda dice: client(naive.Host(dice, ways), played, options)))


CONF = ResolvConf(nameservers=(ip_address("10.96.0.10"),), search=("d1", "d2"), ndots=5)


def looked_up(resolver: Resolver, lot: Lot, conf: ResolvConf = CONF) -> Plan:
    """The plan of a look-up whose second candidate is the one."""
    text = "a.d2." if not resolver.searches else "a"
    asked = candidates(resolver, conf, text, lambda each: each == "a.d2")
    return look_up(with_options(resolver, conf), asked, targets([lot]), (), ends)


@pytest.mark.parametrize("name", RESOLVERS)
def test_nothing_dead_nothing_fails_and_nobody_waits(name: str) -> None:
    found = outcome(looked_up(RESOLVERS[name], of_responses([FlowResponse.ANSWERED])))
    assert found.fails == found.delay == NEVER
    assert [each.result for each in found.endings] == [OperationResult.ANSWERED]


@pytest.mark.parametrize("name", RESOLVERS)
@pytest.mark.parametrize(
    "fate", [FlowResponse.SILENT, FlowResponse.REFUSED, FlowResponse.UNREACHABLE]
)
def test_all_dead_all_fail(name: str, fate: FlowResponse) -> None:
    assert fails(looked_up(RESOLVERS[name], of_responses([fate]))) == (ONE, ONE)


@given(lots(RESPONSES[1:]), st.sampled_from(sorted(RESOLVERS)))
@examples(10, 300)
def test_a_retry_from_a_new_port_never_hurts(lot: Lot, name: str) -> None:
    same = replace(RESOLVERS[name], port=Port.SAME)
    new = replace(RESOLVERS[name], port=Port.NEW)
    either = replace(RESOLVERS[name], port=Port.EITHER)
    assert fails(looked_up(new, lot))[0] <= fails(looked_up(same, lot))[0]
    assert fails(looked_up(new, lot))[1] <= fails(looked_up(same, lot))[1]
    # Who does not know is between both.
    least, most = fails(looked_up(either, lot))
    assert least <= fails(looked_up(new, lot))[0]
    assert most >= fails(looked_up(same, lot))[1]


@given(lots((FlowResponse.SILENT,)), st.sampled_from(["glibc", "musl"]), st.integers(1, 5))
@examples(20, 200)
def test_a_pinned_retry_never_helps(lot: Lot, name: str, attempts: int) -> None:
    once = fails(looked_up(RESOLVERS[name], lot, replace(CONF, attempts=1)))
    assert fails(looked_up(RESOLVERS[name], lot, replace(CONF, attempts=attempts))) == once


@given(
    lots(RESPONSES[1:]),
    st.sampled_from(RESPONSES[1:]),
    st.sampled_from(sorted(RESOLVERS)),
    st.integers(0, 3),
)
@examples(30, 300)
def test_look_ups_fail_more_where_more_is_dead(
    lot: Lot, fate: FlowResponse, name: str, part: int
) -> None:
    # Where silence becomes a refusal a resolver may well do better; where life does, never.
    dies = lot.bounds[0][0] * Fraction(part, 3)
    moved = {FlowResponse.ANSWERED: -dies, fate: dies}
    worse = exact(
        *(lower + moved.get(f, 0) for f, (lower, _) in zip(RESPONSES, lot.bounds, strict=True))
    )
    less, more = (fails(looked_up(RESOLVERS[name], each)) for each in (lot, worse))
    assert less[0] <= more[0]
    assert less[1] <= more[1]


@given(st.data(), st.sampled_from(sorted(RESOLVERS)))
@examples(12, 300)
def test_bounds_hold_whatever_is_true(data: st.DataObject, name: str) -> None:
    true = data.draw(lots(RESPONSES[1:]))
    slack = [Fraction(data.draw(st.integers(0, 2)), 8) for _ in RESPONSES]
    loose = Lot(
        tuple(
            (max(Fraction(0), lower - each), min(ONE, lower + each))
            for (lower, _), each in zip(true.bounds, slack, strict=True)
        )
    )
    resolver = replace(RESOLVERS[name], attempts=min(RESOLVERS[name].attempts, 4))
    inner, outer = (outcome(looked_up(resolver, each)) for each in (true, loose))
    for small, large in zip(
        (inner.fails, inner.delay, *inner.quantiles), (outer.fails, outer.delay, *outer.quantiles),
        strict=True,
    ):  # fmt: skip
        assert large[0] <= small[0] <= small[1] <= large[1]


def test_an_entry_that_conntrack_has_forgotten_is_drawn_anew() -> None:
    half = exact(Fraction(1, 2), Fraction(1, 2), Fraction(0), Fraction(0))
    one = [ClientTarget(name="a", lot=half)]
    asked = candidates(RESOLVERS["glibc"], CONF, "a.", lambda _: True)
    for timeout, expected in ((29, (ONE / 2, ONE / 2)), (30, (ONE / 4, ONE / 2))):
        resolver = with_options(RESOLVERS["glibc"], replace(CONF, timeout=timeout))
        assert fails(look_up(resolver, asked, one, (), ends)) == expected
    # Two servers, of which each is asked again 40 s later.
    resolver = with_options(RESOLVERS["glibc"], replace(CONF, timeout=20))
    assert fails(look_up(resolver, asked, targets([half, half]), (), ends)) == (ONE / 16, ONE / 16)


# --- connections ------------------------------------------------------------------------


@given(lots(), st.booleans(), st.integers(1, 4), st.integers(1, 5))
@examples(30, 300)
def test_a_connection_ends_as_the_client_that_is_played(
    lot: Lot, pinned: bool, tries: int, timeout: int
) -> None:
    connector = replace(
        CONNECTORS["http-retry"], tries=tries, timeout=(Fraction(timeout),), pinned=pinned
    )
    found = outcome(connect(connector, ClientTarget(name="a", lot=lot), (), ends))
    check(
        found,
        naive.every(
            lambda dice: naive.curl(
                naive.Host(dice, [told(lot)]), Fraction(timeout), tries, pinned=pinned
            )
        ),
    )


@given(
    st.lists(
        st.sampled_from([FlowResponse.ANSWERED, FlowResponse.SILENT, FlowResponse.REFUSED]),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(["userspace-proxy", "proxy-by-pod-ip"]),
)
@examples(30, 200)
def test_endpoints_are_tried_one_after_another(endpoints: list[FlowResponse], name: str) -> None:
    connector = CONNECTORS[name]
    counts = {fate: endpoints.count(fate) for fate in RESPONSES}
    found = outcome(connect_to_pods(connector, counts, {}, (), ends))
    timeouts = (*connector.timeout, *(connector.timeout[-1:] * 4))[: connector.tries]
    played = naive.every(
        lambda dice: naive.one_after_another(
            dice, [each.value for each in endpoints], timeouts, around=connector.around
        )
    )
    check(found, played)


@pytest.mark.parametrize("name", CONNECTORS)
def test_a_connection_to_the_living_never_fails(name: str) -> None:
    connector = CONNECTORS[name]
    if connector.to is To.SERVICE:
        plan = connect(
            connector, ClientTarget(name="a", lot=of_responses([FlowResponse.ANSWERED])), (), ends
        )
    else:
        plan = connect_to_pods(connector, {FlowResponse.ANSWERED: 3}, {}, (), ends)
    found = outcome(plan)
    assert found.fails == found.delay == NEVER


@pytest.mark.parametrize("name", CONNECTORS)
@pytest.mark.parametrize("fate", RESPONSES[1:])
def test_a_connection_to_the_dead_always_fails(name: str, fate: FlowResponse) -> None:
    connector = CONNECTORS[name]
    if connector.to is To.SERVICE:
        plan = connect(connector, ClientTarget(name="a", lot=of_responses([fate])), (), ends)
    else:
        plan = connect_to_pods(connector, {fate: 3}, {}, (), ends)
    assert fails(plan) == (ONE, ONE)


@given(lots(RESPONSES[1:]), st.sampled_from(TO_SERVICES), st.integers(1, 4))
@examples(30, 300)
def test_another_try_never_hurts(lot: Lot, name: str, tries: int) -> None:
    fewer = replace(CONNECTORS[name], tries=tries)
    more = replace(CONNECTORS[name], tries=tries + 1)
    target = ClientTarget(name="a", lot=lot)
    few, many = (fails(connect(each, target, (), ends)) for each in (fewer, more))
    assert many[0] <= few[0]
    assert many[1] <= few[1]


@given(lots((FlowResponse.SILENT,)), st.integers(1, 4))
@examples(10, 100)
def test_session_affinity_is_all_or_nothing(lot: Lot, tries: int) -> None:
    connector = replace(CONNECTORS["http-retry"], tries=tries)
    lost = lot.fails
    pinned = ClientTarget(name="a", lot=lot, affine=Ternary.TRUE)
    assert fails(connect(connector, pinned, (), ends)) == lost
    # A client that the rules may forget may draw anew.
    forgotten = ClientTarget(name="a", lot=lot, affine=Ternary.UNKNOWN)
    least, most = fails(connect(connector, forgotten, (), ends))
    assert (least, most) == (lost[0] ** tries, lost[1])


def test_endpoints_of_which_nobody_knows_are_bounds() -> None:
    connector = CONNECTORS["proxy-by-pod-ip"]
    plan = connect_to_pods(
        connector,
        {FlowResponse.SILENT: 2, FlowResponse.ANSWERED: 1},
        {FlowResponse.SILENT: 2},
        (),
        ends,
    )
    # Two dead of five never make three; four dead of five do in 4 of 10.
    assert fails(plan) == (Fraction(0), Fraction(4, 10))


@pytest.mark.parametrize("name", TO_SERVICES)
def test_of_a_lot_of_which_nothing_is_known_nothing_is_said(name: str) -> None:
    plan = connect(CONNECTORS[name], ClientTarget(name="a", lot=of_responses(RESPONSES)), (), ends)
    assert fails(plan) == (Fraction(0), ONE)


def test_every_profile_says_what_it_is_and_where_that_stands() -> None:
    told = [(n, r.name, r.says, r.source) for n, r in RESOLVERS.items()]
    told += [(n, c.name, c.says, c.source) for n, c in CONNECTORS.items()]
    listed = rows("The clients", "clients.md")
    assert [*listed] == [name for name, *_ in told]
    for name, own, says, source in told:
        assert name == own
        assert says
        assert source
    for name, measured in [(n, r.measured) for n, r in RESOLVERS.items()] + [
        (n, c.measured) for n, c in CONNECTORS.items()
    ]:
        assert ("measured" in listed[name]) is measured, name
    assert {each.silence for each in RESOLVERS.values()} == set(Search)
