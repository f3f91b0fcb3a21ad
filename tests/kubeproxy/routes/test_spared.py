"""What is said not to be lost, of many flows at once, is lost by no walk of one flow."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.routes.leaving import Leaving
from analyzer.kubeproxy.routes.packets import FlowPackets
from analyzer.kubeproxy.routes.spared import Spared
from analyzer.kubeproxy.view import Source
from analyzer.model.intervals import Intervals, one_each
from analyzer.model.packet import UNKNOWN_MARK, Mark
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.assumed import (
    LIMITS,
    OUTSIDE_INTERFACE,
    POD_INTERFACE,
    SOURCE_PORT,
    Assumed,
)
from analyzer.semantics.devices import NodeDevices
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from tests.support.effort import examples
from tests.support.strategies import by_source

MARKS = (Mark(), Mark(1), Mark(2))
ALL: Intervals = ((int(by_source.ADDRESSES[0]), int(by_source.ADDRESSES[-1])),)


class Node:
    """A node with these rules, and what is asked of them."""

    def __init__(
        self,
        text: str,
        values: dict[str, str] | None = None,
        *,
        answers: bool = False,
        knows_own: bool = True,
    ) -> None:
        self.assumed = Assumed(values or {})
        situation = Situation(
            local_addresses=frozenset({by_source.OWN}) if knows_own else None,
            assumed=self.assumed,
            devices=NodeDevices(lambda: frozenset({"cali+", "eth0"})),
        )
        rulesets = [read_ruleset(text.encode(), "dump")]
        self.hooks = Hooks(rulesets, "ip", situation, follows_answers=answers)
        self.leaving = Leaving(self.hooks, "ip", within=lambda: ALL)
        self.packets = FlowPackets(dict.fromkeys(Source), {Source.EXTERNAL: False})
        self.spared = Spared(self.hooks, self.leaving, self.packets, self.assumed)

    def loses(self, source: Source, mark: Mark) -> bool:
        """Return whether a walk of any one flow may lose it."""
        for protocol, port, to, of in product(
            ("tcp", "udp"), (80, 90), by_source.ADDRESSES, by_source.ADDRESSES
        ):
            sent = self.packets.translated(source, protocol, mark)
            one = replace(sent, source=of, destination=to, destination_port=port)
            parts, _ = self.hooks.onward(one, made_here=source is Source.NODE)
            if any(onward.lost for _, onward in parts):
                return True
        return False

    def keeps(self, mark: Mark) -> bool:
        """Return whether a walk of any one flow to itself may lose it, or keep its source."""
        sent = self.packets.translated(Source.HAIRPIN, "tcp", mark)
        for port, of in product((80, 90), by_source.ADDRESSES):
            one = replace(sent, source=of, destination=of, destination_port=port)
            parts, _ = self.hooks.onward(one, made_here=False)
            if any(each.lost or each.masquerade is not Ternary.TRUE for _, each in parts):
                return True
        return False


def filtered(*rows: str) -> str:
    head = ["*filter", ":FORWARD ACCEPT [0:0]", ":INPUT ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]"]
    return "\n".join([*head, *rows, "COMMIT", ""])


@examples(20, 500)
@given(
    st.one_of(by_source.iptables(hook="FORWARD"), by_source.iptables(hook="POSTROUTING")),
    st.sampled_from([Source.POD, Source.EXTERNAL, Source.NODE]),
)
def test_what_is_spared_is_not_lost(text: str, source: Source) -> None:
    node = Node(text)
    assert node.spared.at_once(source, UNKNOWN_MARK) is None
    sent = node.packets.translated(source, None, UNKNOWN_MARK)
    node.leaving.asked(sent, 1_000)
    told = [node.spared.at_once(source, UNKNOWN_MARK)]
    told.append(node.spared.are(source, None, UNKNOWN_MARK, ALL))
    if any(told):
        assert not any(node.loses(source, mark) for mark in MARKS)


@pytest.mark.parametrize(
    ("row", "spares"),
    [
        ("-A FORWARD -s 10.0.0.2/32 -j ACCEPT", True),
        ("-A FORWARD -m conntrack --ctstate INVALID -j DROP", True),
        ("-A FORWARD -s 10.0.0.2/32 -j DROP", False),
        ("-A FORWARD -m mark --mark 0x1/0x1 -j DROP", False),
        ("-A FORWARD -d 192.0.2.1/32 -j DROP", True),  # to no such flow
        ("-A FORWARD -m limit --limit 5/sec -j DROP", False),
    ],
)
def test_all_flows_are_told_of_at_once(row: str, spares: bool) -> None:
    node = Node(filtered(row))
    for source in Source:
        node.leaving.asked(node.packets.translated(source, None, UNKNOWN_MARK), 1_000)
    coming = [source for source in Source if source is not Source.NODE]
    assert all(node.spared.at_once(each, UNKNOWN_MARK) is spares for each in coming)
    assert node.spared.at_once(Source.NODE, UNKNOWN_MARK)
    assert node.spared.all_plain(UNKNOWN_MARK, 0) is spares


def test_what_has_to_be_assumed_spares_nothing_and_is_not_noted() -> None:
    node = Node(
        filtered("-A FORWARD -m hashlimit --hashlimit-above 5/sec --hashlimit-name x -j DROP"),
        {LIMITS: "under"},
    )
    assert not node.spared.are(Source.POD, None, Mark(), ALL)
    assert not node.assumed.used


#: Masquerades what has a mark: rules before may have lost that, or the flow.
MASQUERADE = (
    "*nat",
    ":POSTROUTING ACCEPT [0:0]",
    "-A POSTROUTING -m mark ! --mark 0x1/0x1 -j RETURN",
    "-A POSTROUTING -j MASQUERADE",
    "COMMIT",
    "",
)


@examples(20, 500)
@given(by_source.iptables(hook="FORWARD"), st.sampled_from(MARKS))
@example(filtered(), Mark(1))
@example(filtered("-A FORWARD -d 10.0.0.2/32 -j DROP"), Mark(1))
def test_what_returns_is_spared_if_it_is_masqueraded(text: str, mark: Mark) -> None:
    node = Node("\n".join((text.rstrip(), *MASQUERADE)))
    if node.spared.are_hairpins("tcp", mark, None, ALL):
        assert not node.keeps(mark)
    elif text == filtered():
        assert not mark.value & 1


@pytest.mark.parametrize(("mark", "spared"), [(Mark(1), True), (Mark(2), False), (Mark(), False)])
def test_what_keeps_its_source_is_not_spared(mark: Mark, *, spared: bool) -> None:
    node = Node("\n".join((filtered().rstrip(), *MASQUERADE)))
    assert node.spared.are_hairpins(None, mark, None, ALL) is spared
    assert node.spared.are(Source.HAIRPIN, None, mark, ALL)


#: As kube-proxy in nftables mode masquerades what returns: by address, protocol and port.
HAIRPINS = """\
table ip x {
	set hairpins {
		type ipv4_addr . ipv4_addr . inet_proto . inet_service
		elements = { %s }
	}
	chain post {
		type nat hook postrouting priority 100; policy accept;
		ip saddr . ip daddr . meta l4proto . th dport @hairpins masquerade
	}
}
"""


@pytest.mark.parametrize("missing", [None, *by_source.ADDRESSES])
def test_what_returns_to_a_port_is_spared_if_each_is_masqueraded(missing: object) -> None:
    kept = [f"{each} . {each} . tcp . 80" for each in by_source.ADDRESSES if each != missing]
    node = Node(HAIRPINS % ", ".join(kept))
    spared = [
        node.spared.are_hairpins(protocol, Mark(), port, ALL)
        for protocol, port in (("tcp", 80), ("tcp", 90), ("tcp", None), ("udp", 80), (None, 80))
    ]
    assert spared == [missing is None, False, False, False, False]


#: What rules match on besides addresses: where flows and their answers come from, and to what port.
ASKED = {
    "-i cali+": 'iifname "cali*"',
    "-i eth0": 'iifname "eth0"',
    "! -i cali+": 'iifname != "cali*"',
    "-o cali+": 'oifname "cali*"',
    "-o eth0": 'oifname "eth0"',
    "-m conntrack --ctstate ESTABLISHED": "ct state established",
    "-m conntrack --ctstate NEW": "ct state new",
    "-p tcp": "meta l4proto tcp",
    "-p udp": "meta l4proto udp",
    "-p tcp -m tcp --dport 80": "tcp dport 80",
    "-p udp -m udp --sport 80": "udp sport 80",
    "-m addrtype --src-type LOCAL": "fib saddr type local",
    "-m conntrack --ctorigdstport 90": "ct original proto-dst 90",
    "-m mark --mark 0x1/0x1": "meta mark & 0x1 == 0x1",
    "-d 10.0.0.2/32": "ip daddr . th dport @ends",
    "-s 10.0.0.0/30": "ip saddr . meta l4proto . th sport @begins",
    "-m physdev --physdev-in veth0": "meta iiftype ether",
    "-m made-up": 'xt match "made-up"',
}
SETS = """\
set ends { type ipv4_addr . inet_service; elements = { 10.0.0.2 . 80, 192.0.2.1 . 90 }; }
set begins { type ipv4_addr . inet_proto . inet_service; elements = { 10.0.0.1 . tcp . 80 }; }
"""


@st.composite
def asking(draw: st.DrawFn) -> str:
    """Return rules of filter and nat that match on these, as iptables or as nft lists them."""
    is_nft = draw(st.booleans())
    asked = st.lists(st.sampled_from(list(ASKED.items())), min_size=1, max_size=2)
    hooks = ("FORWARD", "INPUT", "OUTPUT", "POSTROUTING")
    rows: dict[str, list[str]] = {hook: [] for hook in hooks}
    for _ in range(draw(st.integers(1, 3))):
        hook = draw(st.sampled_from(hooks))
        ends = ["ACCEPT", "DROP"] if hook != "POSTROUTING" else ["ACCEPT", "MASQUERADE"]
        matches = [each[is_nft] for each in draw(asked)]
        end = draw(st.sampled_from(ends))
        rows[hook].append(" ".join([*matches, end.lower() if is_nft else f"-j {end}"]))
    tables = {"filter": hooks[:3], "nat": hooks[3:]}
    if not is_nft:
        head = {hook: f":{hook} ACCEPT [0:0]" for hook in hooks}
        said = [
            [f"*{table}", *map(head.get, of), *(f"-A {h} {row}" for h in of for row in rows[h])]
            for table, of in tables.items()
        ]
        return "".join("\n".join([*map(str, lines), "COMMIT", ""]) for lines in said)
    chains = [
        f"chain {hook.lower()} {{ type {table} hook {hook.lower()} priority 0; policy accept;"
        for table, of in tables.items()
        for hook in of
    ]
    return "\n".join(
        ["table ip x {", SETS]
        + [
            line
            for head, hook in zip(chains, hooks, strict=True)
            for line in (head, *rows[hook], "}")
        ]
        + ["}", ""]
    )


@examples(40, 3_000)
@given(text=asking(), mark=st.sampled_from(MARKS[:2]), knows_own=st.booleans())
def test_what_is_told_of_many_flows_at_once_is_told_of_each(
    text: str, mark: Mark, *, knows_own: bool
) -> None:
    values = {POD_INTERFACE: "cali+", OUTSIDE_INTERFACE: "other", SOURCE_PORT: "ephemeral"}
    shared, alone = (Node(text, values, answers=True, knows_own=knows_own) for _ in range(2))
    every = product(Source, ("tcp", "udp"), (80, 90))
    for source, protocol, port in every:
        sent = alone.packets.translated(source, protocol, mark)
        to = replace(sent, destination_port=port)
        both = [
            (shared.spared.to_others, alone.leaving.to_others),
            (shared.spared.to_itself, alone.leaving.to_itself),
        ]
        for told, by_itself in both:
            found = told(source, protocol, mark, port, ALL)
            wanted = by_itself(to, ALL)
            if found is not None and wanted is not None:
                assert set(found[0]) == set(wanted[0])


@pytest.mark.parametrize(
    ("row", "lost"),
    [
        ("-i cali+ -m conntrack --ctstate NEW", Source.POD),
        ("-o cali+ -m conntrack --ctstate ESTABLISHED", Source.POD),
        ("-m physdev ! --physdev-in veth0 -m conntrack --ctstate NEW", Source.EXTERNAL),
        ("-p tcp -m tcp --dport 80 -m conntrack --ctstate NEW", None),
    ],
)
def test_what_rules_match_on_is_given(row: str, lost: Source | None) -> None:
    node = Node(filtered(f"-A FORWARD {row} -j DROP"), {POD_INTERFACE: "cali+"}, answers=True)
    node.assumed.used.add(POD_INTERFACE)  # other results rest on it already
    to = one_each(int(each) for each in by_source.ADDRESSES if each != by_source.OWN)
    for source in (Source.POD, Source.EXTERNAL, Source.POD_ELSEWHERE):
        found = [node.spared.to_others(source, "tcp", Mark(), port, to) for port in (80, 90)]
        losses = [any(onward.lost for _, onward in each[0]) for each in found if each is not None]
        if "physdev" in row and source is not Source.EXTERNAL:
            assert found == [None, None]  # whether they pass a port of a bridge is not known
        else:
            assert losses == ([True, False] if lost is None else [source is lost] * 2)
