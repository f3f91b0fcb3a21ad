"""Chains to which rules send flows by their device, and flows of which it is not known."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.matched.devices import asked_devices, dispatched
from analyzer.model.addresses import VERSIONS
from analyzer.model.devices import Devices, Side
from analyzer.model.intervals import everything
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.model.iptables.targets import Accept, Drop, Reject
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.region import Region
from analyzer.model.value import replace
from analyzer.parsers.iptables_save import parse
from analyzer.semantics.assumed import DEFAULTS, Assumed
from analyzer.semantics.conditions import from_source
from analyzer.semantics.devices import NodeDevices
from analyzer.semantics.effort import MOST_BY_DEVICE
from analyzer.semantics.iptables.by_device import ByDevice
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import FellThrough, Tree
from tests.support.effort import examples
from tests.support.odds import bounds

DEVICES: Final = ("cali1a", "cali1b", "cali2", "cali3")
EVENTS: Final = (Accept, Drop, Reject, FellThrough)
ROWS: Final = (
    "-j MARK --set-xmark 0x1/0x1",
    "-j MARK --set-xmark 0x0/0x1",
    "-j MARK --set-xmark 0x20/0x20",  # no rule asks for it
    "-m mark --mark 0x1/0x1 -j RETURN",
    "-m mark --mark 0x0/0x1 -j DROP",
    "-p tcp -m tcp --dport 80 -j RETURN",
    "-p tcp -m tcp --dport 81 -j DROP",
    "-j ACCEPT",
    "-j DROP",
    "-j shared",
    "-i cali2 -j DROP",
    "-i cali1+ -j RETURN",
)


def saved(rows: list[str]) -> Ruleset:
    names = dict.fromkeys(row.split()[1] for row in rows)
    called = (w[i + 1] for w in map(str.split, rows) for i, x in enumerate(w) if x in {"-j", "-g"})
    chains = dict.fromkeys([*names, *(each for each in called if each.islower())])
    head = ["*filter", ":FORWARD ACCEPT [0:0]"]
    head += [f":{chain} - [0:0]" for chain in chains if chain != "FORWARD"]
    ordered = [row for name in names for row in rows if row.split()[1] == name]
    return parse("\n".join([*head, *ordered, "COMMIT", ""]), "dump")


def walked(ruleset: Ruleset, packet: Packet) -> Tree:
    rules = [ruleset]
    devices = NodeDevices(
        lambda: asked_devices(rules), dispatched=lambda leaving: dispatched(rules, leaving=leaving)
    )
    situation = Situation(assumed=Assumed(DEFAULTS), devices=devices)
    return Traversal(ruleset.tables["filter"], situation).tree("FORWARD", packet)


def told(tree: Tree) -> dict[type, Bounds]:
    return {e: bounds(tree, lambda leaf, e=e: isinstance(leaf.outcome, e)) for e in EVENTS}  # type: ignore[misc]  # of mypy


ZERO: Final = Bounds(NEVER, NEVER)
POD: Final = Packet(protocol="tcp", destination_port=80, comes_from=Side.POD)


def by_device(ruleset: Ruleset, names: list[str]) -> dict[type, Bounds]:
    """Return what walks of packets of each device say together."""
    every = [told(walked(ruleset, Packet(protocol="tcp", destination_port=80, in_interface=name)))
             for name in names]  # fmt: skip
    assert all(each[event].is_exact for each in every for event in EVENTS)
    return {
        event: Bounds(
            min(each[event].lower for each in every), max(each[event].upper for each in every)
        )
        for event in EVENTS
    }


@st.composite
def dispatches(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Return rows of chains that send packets on by device, as Calico's do, and the devices."""
    names = draw(st.lists(st.sampled_from(DEVICES), min_size=1, unique=True))
    rows: list[str] = []
    inner: list[str] = []
    prefixed = [name for name in names if name.startswith("cali1")]
    is_nested = draw(st.booleans())
    if prefixed and is_nested:
        rows.append("-A dispatch -i cali1+ -g inner")
        inner += [f"-A inner -i {name} -g of-{name}" for name in prefixed]
        inner.append("-A inner -j DROP")
    alone = [name for name in names if not (inner and name in prefixed)]
    rows += [f"-A dispatch -i {name} -g of-{name}" for name in alone]
    rows = [*draw(st.permutations(rows)), "-A dispatch -j DROP", *inner]
    kinds = draw(st.lists(st.lists(st.sampled_from(ROWS), max_size=4), min_size=1, max_size=3))
    for name in names:
        rows += [f"-A of-{name} {row}" for row in draw(st.sampled_from(kinds))]
    rows += [f"-A shared {row}" for row in draw(st.lists(st.sampled_from(ROWS[:-3]), max_size=2))]
    begin = ["-A FORWARD -i cali+ -j dispatch"]
    if draw(st.booleans()):
        begin.append(
            "-A FORWARD -m mark --mark 0x1/0x1 -j REJECT --reject-with icmp-port-unreachable"
        )
    return [*begin, *rows], names


@given(dispatches())
def test_all_that_it_may_be_together_say_what_is_told_of_one_that_is_not_known(
    made: tuple[list[str], list[str]],
) -> None:
    rows, names = made
    ruleset = saved(rows)
    assert dispatched([ruleset], leaving=False) == {"cali+": frozenset(names)}
    assert told(walked(ruleset, POD)) == by_device(ruleset, names)


def test_a_chain_that_asks_for_devices_is_walked_for_each() -> None:
    rows = ["-A FORWARD -i cali+ -j dispatch"]
    rows += [f"-A dispatch -i {name} -g of" for name in DEVICES[2:]]
    rows += ["-A dispatch -j DROP", "-A of -i cali2 -j ACCEPT", "-A of -i cali3 -j REJECT"]
    ruleset = saved(rows)
    assert told(walked(ruleset, POD)) == by_device(ruleset, list(DEVICES[2:]))


@given(dispatches(), st.sampled_from(DEVICES), st.sampled_from(ROWS[:-3]))
def test_what_is_asked_once_more_is_told_within_bounds(
    made: tuple[list[str], list[str]], name: str, row: str
) -> None:
    rows, names = made
    ruleset = saved([f"-A FORWARD -i {name} {row}", *rows, "-A FORWARD -i cali2 -j DROP"])
    found, wanted = told(walked(ruleset, POD)), by_device(ruleset, names)
    for event in EVENTS:
        assert found[event].lower <= wanted[event].lower
        assert wanted[event].upper <= found[event].upper


FIRST_ASKED: Final = ("", "-m statistic --mode random --probability 0.50000000000 ")
MARKED: Final = ("", "-m mark --mark 0x1/0x1 ", "-m mark ! --mark 0x1/0x1 ")


@st.composite
def mixed(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Return rows of which some send on by device, others mark packets between, and the devices."""
    names = draw(st.lists(st.sampled_from(DEVICES), min_size=2, unique=True))
    asked, chains = st.sampled_from((*DEVICES, "cali1+")), st.sampled_from(("x", "y", "dispatch"))
    verdicts = ("ACCEPT", "DROP", "RETURN", "MARK --set-xmark 0x1/0x1")
    sends = st.builds(
        "-i {} {}-{} {}".format,
        asked,
        st.sampled_from((*FIRST_ASKED, *MARKED)),
        st.sampled_from("gj"),
        chains,
    )
    marks = st.builds(
        "{}-j MARK --set-xmark {}".format,
        st.sampled_from(FIRST_ASKED),
        st.sampled_from(("0x1/0x1", "0x0/0x1")),
    )
    ends = st.builds("{}-j {}".format, st.sampled_from(MARKED), st.sampled_from(verdicts))
    begin = draw(st.lists(st.one_of(sends, sends, marks, ends), min_size=2, max_size=6))
    rows = [f"-A FORWARD {row}" for row in begin]
    rows += [f"-A dispatch -i {name} -g of-{name}" for name in names]
    rows.append("-A dispatch -j DROP")
    for chain in ("x", "y", *(f"of-{name}" for name in names)):
        rows += [f"-A {chain} {row}" for row in draw(st.lists(ends, max_size=2))]
    return rows, names


@example(
    (
        [
            "-A FORWARD -i cali2 -g x",
            "-A FORWARD -j MARK --set-xmark 0x1/0x1",
            "-A FORWARD -i cali3 -g x",
            "-A x -m mark --mark 0x1/0x1 -j DROP",
            *("-A dispatch -i cali2 -g y", "-A dispatch -i cali3 -g y", "-A dispatch -j DROP"),
        ],
        ["cali2", "cali3"],
    )
)
@example(
    (
        [
            "-A FORWARD -i cali2 -m statistic --mode random --probability 0.50000000000 -g x",
            *("-A FORWARD -i cali3 -g x", "-A FORWARD -j ACCEPT", "-A x -j DROP"),
            *("-A dispatch -i cali2 -g y", "-A dispatch -i cali3 -g y", "-A dispatch -j DROP"),
        ],
        ["cali2", "cali3"],
    )
)
@example((["-A FORWARD -i cali2 -g x", "-A FORWARD -j DROP"], ["cali2", "cali3"]))
@examples(60, 2000)
@given(mixed())
def test_what_is_between_rules_that_ask_for_devices_is_told_within_bounds(
    made: tuple[list[str], list[str]],
) -> None:
    rows, names = made
    ruleset = saved(rows)
    # Where FORWARD itself drops what comes by others, pods are assumed to be behind those it names.
    passed = dispatched([ruleset], leaving=False).get("+")
    found, wanted = told(walked(ruleset, POD)), by_device(ruleset, sorted(passed or names))
    for event in EVENTS:
        assert found[event].lower <= wanted[event].lower
        assert wanted[event].upper <= found[event].upper


@examples(60, 2000)
@given(st.one_of(dispatches(), mixed()))
def test_rules_that_do_the_same_for_other_devices_are_passed_at_once(
    made: tuple[list[str], list[str]],
) -> None:
    ruleset = saved(made[0])
    found = walked(ruleset, POD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ByDevice, "past_alike", lambda _self, _chain, at, packet: (at + 1, packet))
        assert found == walked(ruleset, POD)


def test_open_names_stay_open_where_others_are_known_one_by_one() -> None:
    rows = ["-A FORWARD -i vlan+ -j DROP", "-A FORWARD -i eni+ -j d"]
    ruleset = saved([*rows, "-A d -i eni1 -g x", "-A d -i eni2 -g x", "-A d -j DROP"])
    assert told(walked(ruleset, POD))[Drop] == Bounds(NEVER, ALWAYS)


def test_a_pod_may_be_behind_a_device_of_another_kind_that_rules_name() -> None:
    rows = ["-A FORWARD -i veth+ -j DROP", "-A FORWARD -i cali+ -j d"]
    ruleset = saved([*rows, "-A d -i cali2 -g x", "-A d -i cali3 -g x", "-A d -j DROP"])
    assert told(walked(ruleset, POD))[Drop] == Bounds(NEVER, ALWAYS)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (["-A d -i a -g x", "-A d -i b -g x", "-A d -j DROP"], {"a", "b"}),
        (['[1:2] -A d -i a -m comment --comment "is -j B" -g x', "[0:0] -A d -j REJECT"], {"a"}),
        (["-A d -i a+ -g x", "-A d -i b -g x", "-A d -j DROP"], set()),  # nor which begin with a
        (
            [
                "-A d -i a+ -g x",
                "-A d -i b -g y",
                "-A d -j DROP",
                "-A x -i a1 -g y",
                "-A x -j DROP",
            ],
            {"a1", "b"},
        ),
        (["-A d -i a+ -g x", "-A d -j ACCEPT", "-A x -i a1 -g y", "-A x -j DROP"], set()),
        (
            [
                "-A d -i a+ -g x",
                "-A d -i b+ -g y",
                "-A d -j DROP",
                "-A x -i a1 -g y",
                "-A x -j DROP",
            ],
            set(),
        ),
        (["-A d -i a+ -g x", "-A d -j DROP", "-A x -i a+ -g x", "-A x -j DROP"], set()),
        (["-A d -o a -g x", "-A d -j DROP"], set()),  # by which packets leave
        (["-A d -i a -g x"], set()),  # others come through
        (["-A d -i a -g x", "-A d -j ACCEPT"], set()),
        (["-A d -i a -g x", "-A d -p tcp -j DROP"], set()),
        (["-A d -p tcp -i a -g x", "-A d -j DROP"], set()),  # not all of its packets
        (["-A d ! -i a -g x", "-A d -j DROP"], set()),
        (["-A d -i a -j x", "-A d -j DROP"], set()),  # they come back, and are dropped
        (["-A d -i a -g x", "-A d -s 10.0.0.0/8 -j RETURN", "-A d -j DROP"], set()),
    ],
)
def test_which_chains_send_on_by_device_and_drop_all_others(
    rows: list[str], names: set[str]
) -> None:
    text = "*filter\n:FORWARD ACCEPT [0:0]\n:d - [0:0]\n:x - [0:0]\n-A FORWARD -j d\n"
    ruleset = parse(f"{text}{chr(10).join(rows)}\nCOMMIT\n", "dump")
    assert dispatched([ruleset], leaving=False) == ({"+": names} if names else {})


@pytest.mark.parametrize(
    ("entries", "come"),
    [
        (["-A FORWARD -j d"], {"+"}),
        (['-A FORWARD -m comment --comment "-p tcp" -g d'], {"+"}),
        (["-A FORWARD -i cali+ -j d"], {"cali+"}),
        (["-A FORWARD -i cali1+ -j d", "-A FORWARD -i cali2+ -j d"], {"cali1+", "cali2+"}),
        (["-A FORWARD -i cali+ -j up", "-A up -j d"], {"cali+"}),
        (["-A FORWARD -j up", "-A up -i cali+ -j d"], {"cali+"}),
        (["-A FORWARD -j up", "-A up -j d"], {"+"}),
        (["-A up -j d", "-A up -j up"], set()),  # nothing comes there
        (["-A FORWARD -p udp -j d"], set()),
        (["-A FORWARD -i cali+ -p udp -j d"], set()),
        (["-A FORWARD -p udp -j up", "-A up -j d"], set()),
        (["-A FORWARD ! -i eth0 -j d"], set()),
        (["-A FORWARD -o cali+ -j d"], set()),
    ],
)
def test_whose_packets_all_come_to_a_chain_that_sends_on_by_device(
    entries: list[str], come: set[str]
) -> None:
    ruleset = saved([*entries, "-A d -i cali1 -g x", "-A d -j DROP"])
    assert dispatched([ruleset], leaving=False) == {each: {"cali1"} for each in come}


@pytest.mark.parametrize("entry", ["-i cali1+", "-p tcp", "-i cali+ -p tcp"])
def test_pods_whose_packets_need_not_come_there_may_have_other_devices(entry: str) -> None:
    ruleset = saved([f"-A FORWARD {entry} -j d", "-A d -i cali1 -j ACCEPT", "-A d -j DROP"])
    dropped = told(walked(ruleset, POD))[Drop]
    assert (dropped.lower, dropped.upper) == (NEVER, ALWAYS)


@pytest.mark.parametrize(
    ("names", "next_", "left"),
    [
        ({"cali2", "cali3", "cali9"}, 3, {"cali9"}),
        ({"cali2", "cali3"}, 2, {"cali3"}),  # the last of which matches for certain
        ({"cali9", "cali8"}, 3, {"cali9", "cali8"}),
    ],
)
def test_where_rules_that_do_the_same_end(names: set[str], next_: int, left: set[str]) -> None:
    rows = [f"-A FORWARD -i cali{at} -g x" for at in (1, 2, 3)]
    chains = saved([*rows, "-A FORWARD -i cali4 -g y", "-A y -j DROP"]).tables["filter"]
    devices = Devices((), inside=True, names=frozenset(names))
    found = ByDevice(chains, lambda: 0).past_alike("FORWARD", 0, replace(POD, came_by=devices))
    assert found[0] == next_
    assert found[1].came_by is not None
    assert found[1].came_by.names == frozenset(left)


def table(*rows: str) -> Table:
    return saved(["-A FORWARD -j a", *rows]).tables["filter"]


@pytest.mark.parametrize(
    ("rows", "inert"),
    [
        ((), True),
        (("-A a -p tcp -j RETURN",), True),
        (("-A a -s 10.0.0.0/8 -j MARK --set-xmark 0x2/0x2",), True),
        (("-A a -j MARK --set-xmark 0x1/0x1",), False),  # which rules ask for
        (("-A a -j MARK --set-xmark 0x0/0x3",), False),
        (("-A a -j b", "-A b -g c", "-A c -j RETURN"), True),
        (("-A a -j b", "-A b -j DROP"), False),
        (("-A a -p tcp -j ACCEPT",), False),
        (("-A a -j NOTRACK",), False),
        (("-A a -m recent --set --name x --mask 255.255.255.255 --rsource -j RETURN",), False),
        (('-A a -m comment --comment "x -j RETURN" -j DROP',), False),
        (("-A a -j a",), False),
    ],
)
def test_what_can_do_nothing_to_a_packet(rows: tuple[str, ...], *, inert: bool) -> None:
    assert ByDevice(table(*rows), lambda: 0x1).is_inert("a") is inert


def test_of_too_many_rules_nothing_is_told_and_that_is_said() -> None:
    many = [f"-s 10.0.{at}.0/24 -j DROP" for at in range(MOST_BY_DEVICE // 2 + 1)]
    rows = [
        *(f"-A FORWARD -i {name} -g of-{name}" for name in DEVICES[:2]),
        *(
            f"-A of-{name} {row}"
            for name in DEVICES[:2]
            for row in (*many, f"-d 1.1.1.1/32 -i {name} -j DROP")
        ),
    ]
    version = VERSIONS["ip"]
    anybody = Region(version, (everything(version),))
    packet = Packet(protocol="tcp", sources=anybody, comes_from=Side.POD)
    found = told(walked(saved(rows), packet))
    assert set(found.values()) == {Bounds(NEVER, ALWAYS)}


def test_a_rule_may_ask_for_a_device_and_for_sources() -> None:
    rows = ["-A FORWARD -s 10.244.1.0/25 -i cali2 -j DROP"]
    rows += [f"-A d -i {name} -g x" for name in DEVICES[2:]]
    version = VERSIONS["ip"]
    sources = Region(version, (everything(version),))
    packet = Packet(protocol="tcp", sources=sources, comes_from=Side.POD)
    tree = walked(saved([*rows, "-A d -j DROP"]), packet)
    for address, wanted in (("10.244.1.7", Bounds(NEVER, ALWAYS)), ("10.9.9.9", ZERO)):
        assert told(from_source(tree, ip_address(address), None))[Drop] == wanted
