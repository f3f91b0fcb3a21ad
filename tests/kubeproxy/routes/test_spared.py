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
from analyzer.model.packet import UNKNOWN_MARK, Mark
from analyzer.model.region import Intervals
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.assumed import LIMITS, Assumed
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from tests.support.effort import examples
from tests.support.strategies import by_source

MARKS = (Mark(), Mark(1), Mark(2))
ALL: Intervals = ((int(by_source.ADDRESSES[0]), int(by_source.ADDRESSES[-1])),)


class Node:
    """A node with these rules, and what is asked of them."""

    def __init__(self, text: str, values: dict[str, str] | None = None) -> None:
        self.assumed = Assumed(values or {})
        own = frozenset({by_source.OWN})
        situation = Situation(local_addresses=own, assumed=self.assumed)
        self.hooks = Hooks([read_ruleset(text.encode(), "dump")], "ip", situation)
        self.leaving = Leaving(self.hooks, "ip", within=lambda: ALL)
        self.packets = FlowPackets(dict.fromkeys(Source), {})
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
