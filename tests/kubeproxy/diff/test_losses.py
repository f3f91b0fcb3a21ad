"""What another program's rule drops or rejects of flows and their answers is what differs."""

from __future__ import annotations

import json
from functools import cache
from ipaddress import ip_address
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.diff.changes import ServiceChange
from analyzer.kubeproxy.diff.difference import Conclusion
from analyzer.kubeproxy.diff.side import DumpSide
from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.view import Route, Source, each_network
from analyzer.model.addresses import IPV4, IPV6, WIDTHS
from analyzer.model.endings import EndKind
from tests.support.captures import FIXTURES, Capture
from tests.support.clusters import GeneratedCluster
from tests.support.comparing import compared, side_of_capture
from tests.support.effort import examples

_OUTCOMES: Final = {
    EndKind.DROPPED: "drop",
    EndKind.REJECTED: "reject",
    EndKind.UNANSWERED: "unanswered",
}
#: A route: name of the ServicePort, protocol, frontend, source and network.
_Key = tuple[str, ...]
_CAPTURE: Final = Capture(
    FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1" / "iptables-legacy-save.txt"
)
_NFT: Final = Capture(FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt")
_SIX: Final = Capture(
    FIXTURES.parent
    / "check"
    / "1.36.2-iptables-legacy"
    / "dual-stack"
    / "ip6tables-legacy-save.txt"
)


@cache
def _nft_of_six() -> str:
    """Return what kube-proxy writes for the same cluster of two IP versions in nftables mode."""
    objects = json.loads(_SIX.objects.read_text())["items"]
    flags = ("--cluster-cidr=10.244.0.0/16,fd00:10:244::/48",)
    return GeneratedCluster(objects, flags, RulesLayout.V1_36, 6, _SIX.node).nft


class Rule(NamedTuple):
    """A rule of another program on flows to an endpoint, or on answers from it."""

    chain: str
    protocol: str
    port: int
    endpoint: str
    client: str | None
    is_answer: bool
    is_drawn: bool
    target: str

    @property
    def version(self) -> int:
        return ip_address(self.endpoint).version

    def sides(self, *, nft: bool) -> tuple[DumpSide, DumpSide]:
        """Return a capture, and the same with the rule before all others."""
        capture = (_NFT if nft else _CAPTURE) if self.version == IPV4 else _SIX
        text = _nft_of_six() if nft and self.version == IPV6 else capture.dump.read_text()
        changed = f"{text}{self._in_nft()}" if nft else with_rule(capture, self._text())
        a, b = (side_of_capture(capture, self.version, text=each) for each in (text, changed))
        return a, b

    def _text(self) -> str:
        one, other, port = ("-s", "-d", "--sport") if self.is_answer else ("-d", "-s", "--dport")
        length = WIDTHS[self.version]
        client = "" if self.client is None else f" {other} {self.client}/{length}"
        part = " -m statistic --mode random --probability 0.25000000000" if self.is_drawn else ""
        of = f"-p {self.protocol} -m {self.protocol} {port} {self.port}"
        return f"-A {self.chain} {one} {self.endpoint}/{length}{client} {of}{part} -j {self.target}"

    def _in_nft(self) -> str:
        one, other, port = ("s", "d", "sport") if self.is_answer else ("d", "s", "dport")
        ip = "ip" if self.version == IPV4 else "ip6"
        client = "" if self.client is None else f" {ip} {other}addr {self.client}"
        part = " numgen random mod 4 0" if self.is_drawn else ""
        of = f"{ip} {one}addr {self.endpoint}{client} {self.protocol} {port} {self.port}{part}"
        hook = f"type filter hook {self.chain.lower()} priority 0; policy accept;"
        verdict = self.target.lower()
        return f"table {ip} others {{\n\tchain x {{\n\t\t{hook}\n\t\t{of} {verdict}\n\t}}\n}}\n"


def with_rule(capture: Capture, rule: str) -> str:
    """Return the dump with a rule before all others of its chain in the filter table."""
    head, mark, rest = capture.dump.read_text().partition("*filter\n")
    policies, _, rules = rest.partition("-A ")
    return f"{head}{mark}{policies}{rule}\n-A {rules}"


def key_of(name: str, protocol: str, route: Route) -> _Key:
    return (name, protocol, str(route.frontend), route.source.value, str(route.network))


def lost(side: DumpSide) -> dict[_Key, dict[str, float]]:
    """Return of each route which share ends how, from its draws and the losses at each endpoint.

    Of hairpin flows, the greatest share at any endpoint.
    """
    found: dict[_Key, dict[str, float]] = {}
    for service in side.view.services:
        for route in each_network(service.routes):
            ends: dict[str, float] = {}
            for drawn, losses in zip(route.draws()[1], route.losses(), strict=False):
                for ending, share in losses:
                    assert share.is_exact, ending
                    outcome, of = _OUTCOMES[ending.kind], float(share.lower)
                    if route.source is Source.HAIRPIN:
                        ends[outcome] = max(ends.get(outcome, 0), of)
                    else:
                        ends[outcome] = ends.get(outcome, 0) + of * float(drawn.lower)
            if ends:
                found[key_of(service.name.text, service.protocol, route)] = ends
    return found


def told(changes: tuple[ServiceChange, ...]) -> dict[_Key, dict[str, float]]:
    """Return of each route that differs how flows end in the second dump."""
    found: dict[_Key, dict[str, float]] = {}
    for each in changes:
        for route in each.routes:
            assert route.change.otherwise is not None
            ends = {kind: float(share.upper) for kind, share in route.change.otherwise[1]}
            for way in route.ways:
                key = str(way.frontend), way.source.value, str(way.network)
                found[each.name.text, each.protocol, *key] = ends
    return found


#: Of the endpoints some are on the node of the dump, and others elsewhere.
ENDPOINTS: Final = {
    IPV4: ["10.244.0.3", "10.244.1.4", "10.244.0.7", "10.244.1.9"],
    IPV6: ["fd00:10:244:2::c", "fd00:10:244::c", "fd00:10:244:1::c", "fd00:10:244::10"],
}
CLIENTS: Final = {
    IPV4: ["10.244.1.77", "10.244.0.50", "203.0.113.9", "10.244.1.9"],
    IPV6: ["fd00:10:244::77", "fd00:10:244:1::50", "2001:db8:9::9", "fd00:10:244::10"],
}


def rules(version: int) -> st.SearchStrategy[Rule]:
    return st.builds(
        lambda of, *rest: Rule(rest[0], *of, *rest[1:]),
        st.sampled_from([("udp", 53), ("tcp", 53), ("tcp", 8080)]),
        st.sampled_from(["FORWARD", "INPUT", "OUTPUT"]),
        st.sampled_from(ENDPOINTS[version]),
        st.none() | st.sampled_from(CLIENTS[version]),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["DROP", "REJECT"]),
    )


@pytest.mark.parametrize("version", [IPV4, IPV6])
@pytest.mark.parametrize("nft", [False, True])
def test_losses_of_a_new_rule_are_what_differs(nft: bool, version: int) -> None:
    @examples(8, 300)
    @given(rules(version))
    def check(rule: Rule) -> None:
        a, b = rule.sides(nft=nft)
        found = compared(a, b, version)
        wanted = lost(b)
        assert not lost(a)
        assert {key: pytest.approx(ends) for key, ends in wanted.items()} == told(found.changes)
        assert found.verdict is (Conclusion.DIFFERENT if wanted else Conclusion.SAME)

    check()


@pytest.mark.parametrize("version", [IPV4, IPV6])
@pytest.mark.parametrize("nft", [False, True])
def test_a_network_is_represented_by_an_address_in_it(nft: bool, version: int) -> None:
    @examples(4, 100)
    @given(rules(version))
    def check(rule: Rule) -> None:
        _, side = rule.sides(nft=nft)
        for service in [each for each in side.view.services if each.version == version]:
            for route in service.routes:
                if route.network is not None and route.source is not Source.HAIRPIN:
                    assert side.packet(service.protocol, route).source in route.network

    check()


@pytest.mark.parametrize("part", ["", " -m statistic --mode random --probability 0.50000000000"])
def test_answers_that_are_dropped_differ(part: str) -> None:
    rule = f"-A FORWARD -s 10.244.1.4/32 -p udp -m udp --sport 53{part} -j DROP"
    b = side_of_capture(_CAPTURE, text=with_rule(_CAPTURE, rule))
    ends = told(compared(side_of_capture(_CAPTURE), b).changes)
    way = "kube-system/kube-dns:dns", "udp", "10.96.0.10:53", "pod", "None"
    assert ends[way] == {"unanswered": 0.25 if part else 0.5}


def hairpin_change(a: str, b: str) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Return how flows end that are sent back to their pod, at most, in two dumps."""
    found = compared(side_of_capture(_CAPTURE, text=a), side_of_capture(_CAPTURE, text=b))
    return [
        tuple([{kind: float(share.upper) for kind, share in ends} for ends in changed])  # type: ignore[misc]  # of two
        for each in found.changes
        for route in each.routes
        if (changed := route.change.otherwise) is not None
        and {way.source for way in route.ways} == {Source.HAIRPIN}
    ]


_TO_ITSELF: Final = "-A FORWARD -s {0}/32 -d {0}/32 -j DROP"


def test_a_lack_of_masquerading_is_told_where_flows_were_dropped() -> None:
    dropped = with_rule(_CAPTURE, _TO_ITSELF.format("10.244.1.9"))
    rows = _CAPTURE.dump.read_text().split("\n")
    bare = "\n".join(r for r in rows if not ("-s 10.244.1.9/32" in r and "KUBE-MARK-MASQ" in r))
    assert hairpin_change(dropped, bare) == [({"drop": 1.0}, {"unanswered": 1.0})]


def test_two_endpoints_that_change_places_are_no_row_of_equals() -> None:
    one, other = (
        with_rule(_CAPTURE, _TO_ITSELF.format(each)) for each in ("10.244.1.9", "10.244.0.7")
    )
    for a, b in hairpin_change(one, other):
        assert a != b


def test_an_endpoints_own_network_changes_no_masquerade() -> None:
    part = "-m statistic --mode random --probability 0.25000000000"
    b = with_rule(_CAPTURE, f"-A FORWARD -s 10.244.1.9/32 {part} -j DROP")
    found = compared(side_of_capture(_CAPTURE), side_of_capture(_CAPTURE, text=b))
    assert not any(route.change.masquerade for each in found.changes for route in each.routes)
