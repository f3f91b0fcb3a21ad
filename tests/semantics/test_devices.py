"""Devices of pods: what is told of them holds for each device that it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.devices import Devices, Side, covers, meets
from analyzer.model.intervals import everything
from analyzer.model.iptables import matches as m
from analyzer.model.iptables.rules import Rule, Table
from analyzer.model.packet import Packet
from analyzer.model.region import Parted, Region
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.devices import LOCAL, USUAL, NodeDevices, PodPlaces
from analyzer.semantics.iptables.matching import evaluate_match
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.situation import Situation
from tests.support.agreement.iptables_table import START, is_dead
from tests.support.naive import table as naive
from tests.support.odds import bounds
from tests.support.strategies.iptables_walkable import DEAD, walked_tables

TRUE, FALSE, UNKNOWN = Ternary.TRUE, Ternary.FALSE, Ternary.UNKNOWN
HERE, THERE, NOWHERE = map(ip_address, ("10.1.0.5", "10.2.0.5", "203.0.113.9"))
PLACES: Final = PodPlaces(((0x0A010000, 0x0A0100FF),), ((0x0A020000, 0x0A0200FF),))
#: Devices that a node may have, whatever they are for.
DEVICES: Final = ("cali1", "cali22", "cni0", "cni1", "docker0", "eth0", "tunl0", "lo", "c")
NAMES: Final = ("cali+", "cali1", "cni0", "cni+", "c+", "docker0", "eth0", "eth+", "lo", "+")
names = st.sampled_from(NAMES)
patterns = st.lists(st.sampled_from([n for n in NAMES if n != "+"]), min_size=1, max_size=3)
sides = st.sampled_from(Side)


def is_one(name: str, pattern: str) -> bool:
    """Tell whether a device has a name of a pattern, as a shell would."""
    return fnmatchcase(name, f"{pattern[:-1]}*" if pattern.endswith("+") else pattern)


def possible(side: Side, pods: list[str], *, by_uplink: bool) -> Iterator[str]:
    """Give the devices that a flow may pass, as the assumptions have it."""
    for name in DEVICES:
        is_pods = any(is_one(name, each) for each in pods)
        others = ("lo",) if side is Side.OUTSIDE and not by_uplink else LOCAL
        if is_pods if side is Side.POD else not (is_pods or name in others):
            yield name


def situation(given: str, *named: str, by_uplink: bool = False) -> Situation:
    uplink = {"outside-interface": "uplink"} if by_uplink else {}
    return Situation(
        local_addresses=frozenset(),
        assumed=Assumed({"pod-interface": given, **uplink}),
        devices=NodeDevices(lambda: frozenset(named), lambda: PLACES),
    )


@given(patterns, names, st.booleans())
def test_what_is_told_of_a_device_holds_for_all_that_it_may_be(
    given: list[str], name: str, inside: bool
) -> None:
    may = [d for d in DEVICES if any(is_one(d, each) for each in given) is inside]
    told = Devices(tuple(given), inside=inside).is_named(name)
    if may and told is not UNKNOWN:
        assert {is_one(device, name) for device in may} == {told is TRUE}


@given(names, names)
def test_patterns_cover_and_meet_as_the_names_do(one: str, other: str) -> None:
    mine, theirs = ({d for d in DEVICES if is_one(d, each)} for each in (one, other))
    assert not covers(one, other) or theirs <= mine
    assert meets(one, other) or not mine & theirs


def asking(made: Table, asked: list[m.Match]) -> Table:
    """Return a table that asks for devices in the place of draws."""
    rest = iter(asked)

    def of(rule: Rule) -> Rule:
        draws = (m.MatchRandom, m.MatchNot)
        found = [next(rest, each) if isinstance(each, draws) else each for each in rule.matches]
        return replace(rule, matches=tuple(found))

    return with_rules(made, of)


def known(made: Table, device: str) -> Table:
    """Return a table that asks for no device, but that is as it is for one."""

    def holds(match: m.Match) -> bool | None:
        match match:
            case m.MatchInInterface(name) | m.MatchOutInterface(name):
                return is_one(device, name)
            case m.MatchNot(m.MatchInInterface(name) | m.MatchOutInterface(name)):
                return not is_one(device, name)
            case _:
                return None

    def certain(match: m.Match) -> m.Match:
        found = holds(match)
        return match if found is None else m.MatchRandom(naive.ALWAYS_DRAWN * found)

    return with_rules(made, lambda rule: replace(rule, matches=tuple(map(certain, rule.matches))))


def with_rules(made: Table, of: Callable[[Rule], Rule]) -> Table:
    chains = {n: replace(c, rules=tuple(map(of, c.rules))) for n, c in made.chains.items()}
    return replace(made, chains=chains)


def sent(side: Side, *, leaving: bool) -> Packet:
    if not leaving:
        return Packet(source=HERE, comes_from=side)
    to = {Side.POD: HERE, Side.ELSEWHERE: THERE, Side.OUTSIDE: NOWHERE}[side]
    return Packet(destination=to, in_interface="", is_routed=True)


tables = walked_tables(unknown_match=False, unknown_target=False, chains=2)
matches = st.builds(
    lambda kind, name, negated: m.MatchNot(kind(name)) if negated else kind(name),
    st.just(m.MatchInInterface),
    names.filter(lambda name: name != "+"),
    st.booleans(),
)


@given(
    tables,
    st.lists(matches, min_size=4, max_size=8),
    patterns,
    sides,
    st.booleans(),
    st.booleans(),
)
def test_whatever_device_it_is_the_naive_interpreter_stays_within_the_bounds(
    made: Table, asked: list[m.Match], pods: list[str], side: Side, leaving: bool, by_uplink: bool
) -> None:
    made = asking(made, [out_of(each) if leaving else each for each in asked])
    of = situation(" ".join(pods), by_uplink=by_uplink)
    tree = Traversal(made, of).tree(START, sent(side, leaving=leaving))
    found = bounds(tree, is_dead)
    outside = leaving and side is Side.OUTSIDE  # nothing is assumed of where that leaves
    for device in DEVICES if outside else possible(side, pods, by_uplink=by_uplink):
        ends = naive.distribution(known(made, device), START)
        dead = sum(chance for end, chance in ends.items() if end.target == DEAD)
        assert found.lower.as_fraction() <= dead <= found.upper.as_fraction()


def out_of(match: m.Match) -> m.Match:
    match match:
        case m.MatchNot(m.MatchInInterface(name)):
            return m.MatchNot(m.MatchOutInterface(name))
        case m.MatchInInterface(name):
            return m.MatchOutInterface(name)
        case _:
            raise AssertionError(match)


@pytest.mark.parametrize(
    ("named", "name", "pod", "elsewhere", "outside"),
    [
        (["cali+", "cali1"], "cali+", TRUE, FALSE, FALSE),
        (["cali+", "cali1"], "cali1", UNKNOWN, FALSE, FALSE),
        (["cali+", "cni0"], "cni0", UNKNOWN, FALSE, FALSE),
        (["docker0"], "docker0", FALSE, FALSE, UNKNOWN),
        (["docker0"], "cni0", UNKNOWN, FALSE, FALSE),
        (["eth0"], "eth0", FALSE, UNKNOWN, UNKNOWN),
        (["lo"], "lo", FALSE, FALSE, FALSE),
        (["cilium_host", "lxc+"], "lxc+", TRUE, FALSE, FALSE),
        (["cilium_host", "lxc+"], "cilium_host", UNKNOWN, UNKNOWN, UNKNOWN),
        (["weave"], "weave", UNKNOWN, UNKNOWN, UNKNOWN),
    ],
)
def test_of_devices_that_plugins_name_those_count_that_rules_name(
    named: list[str], name: str, pod: Ternary, elsewhere: Ternary, outside: Ternary
) -> None:
    for side, want in ((Side.POD, pod), (Side.ELSEWHERE, elsewhere), (Side.OUTSIDE, outside)):
        of = situation("usual", *named)
        assert evaluate_match(m.MatchInInterface(name), Packet(comes_from=side), of).known is want
        assert of.assumed is not None
        assert of.assumed.used == (set() if want is UNKNOWN else {"pod-interface"})


@pytest.mark.parametrize(
    ("name", "outside", "used"),
    [
        ("docker0", FALSE, {"pod-interface", "outside-interface"}),
        ("virbr0", FALSE, {"pod-interface", "outside-interface"}),
        ("br-+", FALSE, {"pod-interface", "outside-interface"}),
        ("cni0", FALSE, {"pod-interface"}),
        ("lo", FALSE, {"pod-interface"}),
        ("eth0", UNKNOWN, set()),
        ("br0", UNKNOWN, set()),
    ],
)
def test_flows_from_outside_come_by_no_bridge_of_containers_if_that_is_assumed(
    name: str, outside: Ternary, used: set[str]
) -> None:
    of = situation("usual", name, by_uplink=True)
    assert (
        evaluate_match(m.MatchInInterface(name), Packet(comes_from=Side.OUTSIDE), of).known
        is outside
    )
    assert of.assumed is not None
    assert of.assumed.used == used


def test_by_which_device_cilium_sends_to_pods_is_not_told() -> None:
    to_pod = sent(Side.POD, leaving=True)
    for named, want in ((["lxc+"], TRUE), (["lxc+", "cilium_host"], UNKNOWN)):
        assert (
            evaluate_match(m.MatchOutInterface("lxc+"), to_pod, situation("usual", *named)).known
            is want
        )


def test_nothing_is_told_of_devices_where_nothing_is_assumed() -> None:
    for of in (situation("unknown", "cali+"), replace(situation("usual"), devices=None)):
        came, leaves = Packet(comes_from=Side.POD), sent(Side.POD, leaving=True)
        assert evaluate_match(m.MatchInInterface("cali+"), came, of).known is UNKNOWN
        assert evaluate_match(m.MatchOutInterface("cali+"), leaves, of).known is UNKNOWN


def test_destinations_are_told_apart_by_where_they_live() -> None:
    anywhere = Region(4, (everything(4),))
    packet = Packet(destinations=anywhere, in_interface="", is_routed=True)
    with pytest.raises(Parted) as parted:
        evaluate_match(m.MatchOutInterface("cali+"), packet, situation("usual", "cali+"))
    assert parted.value.inside.intervals == PLACES.here


def test_every_usual_device_is_one_that_the_pattern_stands_for() -> None:
    for each in USUAL:
        match = m.MatchInInterface(each)
        assert (
            evaluate_match(match, Packet(comes_from=Side.POD), situation("usual", each)).known
            is TRUE
        )


def test_a_device_that_is_said_to_be_pods_is_no_others_though_its_kind_may_be_shared() -> None:
    """``--pod-interface weave``: by a bridge named so others might have come, too."""
    others = Devices(("weave", "docker0"), inside=False, open=("weave+",))
    assert others.is_named("weave") is Ternary.FALSE
    assert others.is_named("weave1") is Ternary.UNKNOWN
    assert others.is_named("+") is Ternary.TRUE
