"""Answers that do not come back: which rules of which hook see them, and as what."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Final

import pytest

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import Route, Source, View
from analyzer.model.cluster import Cluster
from analyzer.model.endings import EndKind
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS
from analyzer.parsers.iptables_save import parse
from tests.support.captures import FIXTURES, Capture
from tests.support.foreign.ground import rules_of

NODE: Final = IPv4Address("192.168.0.11")
IPTABLES: Final = (
    FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1" / "iptables-legacy-save.txt"
)
NFT: Final = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
ESTABLISHED: Final = "-m conntrack --ctstate RELATED,ESTABLISHED"
EVERY: Final = ("pod", "pod-elsewhere", "node", "external", "hairpin")
#: A pod of this node and one of another, both endpoints of default/app.
HERE, ELSEWHERE = "10.244.1.9", "10.244.0.7"


def iptables(rows: str, table: str = "filter", assumed: dict[str, str] | None = None) -> View:
    """Return the view of a node with more rules, before kube-proxy's own."""
    lines = IPTABLES.read_text().split("\n")
    at = lines.index(f"*{table}") if f"*{table}" in lines else None
    if at is None:
        lines[:0] = [
            f"*{table}",
            ":PREROUTING ACCEPT [0:0]",
            ":OUTPUT ACCEPT [0:0]",
            *rows.split("\n"),
            "COMMIT",
        ]
    else:
        first = next(
            n for n, line in enumerate(lines) if n > at and line.startswith(("-A ", "COMMIT"))
        )
        lines[first:first] = rows.split("\n")
    return Recogniser(
        parse("\n".join(lines), "dump.txt"),
        Capture(IPTABLES).cluster,
        node="worker1",
        node_addresses=(NODE,),
        assumed=assumed,
    ).view()


def unanswered(view: View, of: str = "default/app") -> dict[str, set[str]]:
    """Return the sources whose answers are certainly lost, each with the endpoints'."""
    (service,) = [each for each in view.services if each.name.text == of]
    found: dict[str, set[str]] = {}
    for route in service.routes:
        for share in route.shares:
            for ending, bounds in share.lost:
                assert ending.kind is EndKind.UNANSWERED, ending
                assert bounds.lower == ALWAYS, (route.source, ending, bounds)
                place = f"{route.source.value} {route.network}" if route.network else None
                found.setdefault(place or route.source.value, set()).add(
                    str(share.endpoint.address)
                )
    return found


BOTH: Final = {HERE, ELSEWHERE}
#: Answers that the node forwards, of both endpoints and of one.
FORWARDED: Final = {source: BOTH for source in EVERY if source != "node"}
FROM_HERE: Final = {source: {HERE} for source in FORWARDED}


@pytest.mark.parametrize(
    ("table", "row", "expected"),
    [
        # Forwarded answers; those to the node itself, and none that it makes.
        ("filter", f"-A FORWARD {ESTABLISHED} -j DROP", FORWARDED),
        ("filter", f"-A INPUT {ESTABLISHED} -j REJECT", {"node": BOTH}),
        ("filter", f"-A OUTPUT {ESTABLISHED} -j DROP", {}),
        ("mangle", f"-A PREROUTING {ESTABLISHED} -j DROP", dict.fromkeys(EVERY, BOTH)),
        (
            "mangle",
            f"-A POSTROUTING {ESTABLISHED} -j DROP",
            FORWARDED,
        ),
        # From the endpoint and its port, until its address is put back behind POSTROUTING.
        (
            "filter",
            f"-A FORWARD -s {HERE}/32 {ESTABLISHED} -j DROP",
            FROM_HERE,
        ),
        (
            "mangle",
            f"-A POSTROUTING -s {HERE}/32 {ESTABLISHED} -j DROP",
            FROM_HERE,
        ),
        ("filter", f"-A INPUT -p tcp -m tcp --sport 8080 {ESTABLISHED} -j DROP", {"node": BOTH}),
        ("filter", "-A FORWARD -p tcp -m tcp --sport 80 -j DROP", {}),
        # To the client, whose port is not a server's.
        ("filter", "-A FORWARD -p tcp -m tcp --dport 22 -j DROP", {}),
        (
            "filter",
            f"-A FORWARD -d 203.0.113.0/24 {ESTABLISHED} -j DROP",
            {"external 203.0.113.0/24": BOTH},
        ),
        # The first answer of TCP is no SYN alone, and no RST.
        (
            "filter",
            f"-A INPUT -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN {ESTABLISHED} -j DROP",
            {},
        ),
        (
            "filter",
            f"-A INPUT -p tcp -m tcp --tcp-flags SYN,ACK SYN,ACK {ESTABLISHED} -j DROP",
            {"node": BOTH},
        ),
        # What conntrack knows of the flow.
        ("filter", "-A INPUT -m conntrack --ctdir REPLY -j DROP", {"node": BOTH}),
        ("filter", "-A INPUT -m conntrack --ctdir ORIGINAL -j DROP", {}),
        ("filter", "-A INPUT -m conntrack --ctstate DNAT -j DROP", {"node": BOTH}),
        ("filter", "-A INPUT -m conntrack --ctstate NEW,INVALID -j DROP", {}),
        (
            "filter",
            f"-A INPUT -m conntrack --ctreplsrc {HERE}/32 -j DROP",
            {"node": {HERE}},
        ),
        # It comes without the mark of the flow's packet.
        ("filter", f"-A FORWARD {ESTABLISHED} -m mark --mark 0x4000/0x4000 -j DROP", {}),
        # Rules before it that accept it.
        ("filter", f"-A INPUT {ESTABLISHED} -j ACCEPT\n-A INPUT -j DROP", {}),
    ],
)
def test_rules_end_answers(table: str, row: str, expected: dict[str, set[str]]) -> None:
    found = unanswered(iptables(row, table))
    # A hairpin comes back from the endpoint that it went to, of which the route has both.
    assert found == expected


def test_an_answer_that_is_not_tracked_does_not_get_its_addresses_back() -> None:
    row = f"-A PREROUTING -s {HERE}/32 -p tcp -m tcp --sport 8080 -j NOTRACK"
    view = iptables(row, "raw")
    found = unanswered(view)
    assert all(HERE in endpoints for endpoints in found.values())
    assert {"pod", "node", "external"} <= set(found)
    route = of(view, Source.NODE)
    (ended,) = {e for share in route.shares for e, _ in share.lost}
    assert (ended.kind, ended.how, ended.rule) == (EndKind.UNANSWERED, "NOTRACK", row)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        # Flows of pods of this node, and answers of such pods, are in the zone.
        ("-i cali+ -j CT --zone 5", {"pod": {ELSEWHERE}, "pod-elsewhere": {HERE}, "node": {HERE}}),
        ("-i cali+ -j CT --zone-reply 5", {"pod": {ELSEWHERE}, "pod-elsewhere": {HERE}}),
        ("-i cali+ -j CT --zone-orig 5", {}),
        ("-j CT --zone 5", {"node": BOTH}),  # which OUTPUT puts into no zone
        ("-j CT --zone 0", {}),
        ("-p icmp -j CT --zone 5", {}),
    ],
)
def test_an_answer_in_another_zone_does_not_belong_to_its_flow(
    row: str, expected: dict[str, set[str]]
) -> None:
    found = unanswered(iptables(f"-A PREROUTING {row}", "raw"))
    assert {s: found.get(s, set()) for s in expected} == expected
    assert bool(found) == bool(expected)
    for route in iptables(f"-A PREROUTING {row}", "raw").services[0].routes:
        ended = {(e.how, e.rule) for share in route.shares for e, _ in share.lost}
        assert ended <= {("conntrack zone", f"-A PREROUTING {row}")}


def test_zones_of_nft_are_those_of_iptables() -> None:
    for statement, lost in (("zone", True), ("original zone", False), ("reply zone", True)):
        rules = f'iifname "cali*" ct {statement} set 5'
        head = "type filter hook prerouting priority raw; policy accept;"
        table = f"table ip x {{\n\tchain c {{\n\t\t{head}\n\t\t{rules}\n\t}}\n}}\n"
        capture = Capture(NFT)
        ruleset = rules_of(NFT.read_text() + table)
        assert isinstance(ruleset, NftRuleset)
        view = NftRecogniser(
            ruleset, capture.cluster, node="worker1", node_addresses=(NODE,)
        ).view()
        assert unanswered(view).get("pod", set()) == ({ELSEWHERE} if lost else set())
        for share in of(view, Source.POD).shares if lost else ():
            assert {ended.rule for ended, _ in share.lost} <= {rules}


def of(view: View, source: Source) -> Route:
    (service,) = [each for each in view.services if each.name.text == "default/app"]
    return next(route for route in service.routes if route.source is source)


def test_a_flow_mark_is_the_one_that_the_flow_left() -> None:
    rows = "-A FORWARD -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0x7/0xffffffff"
    drops = f"-A FORWARD {ESTABLISHED} -m connmark --mark 0x7 -j DROP"
    assert set(unanswered(iptables(f"{rows}\n{drops}"))) == {*EVERY} - {"node"}
    assert unanswered(iptables(f"{rows}\n{drops.replace('0x7', '0x8')}")) == {}


def test_what_a_rule_asks_that_is_not_known_gives_bounds() -> None:
    view = iptables(f"-A INPUT {ESTABLISHED} -m made-up -j DROP")
    (service,) = [each for each in view.services if each.name.text == "default/app"]
    lost = {
        e.kind: b
        for r in service.routes
        if r.source is Source.NODE
        for s in r.shares
        for e, b in s.lost
    }
    assert not any(bounds.lower for bounds in lost.values())
    assert all(bounds.upper == ALWAYS for bounds in lost.values())
    assert lost


def test_an_answer_leaves_by_the_device_that_its_client_is_behind() -> None:
    """Though no rule matches on input devices, so that clients are alike until an answer leaves."""
    view = iptables(f"-A FORWARD -o eth0 {ESTABLISHED} -j DROP")
    bounds = {
        source: {b.upper for share in of(view, source).shares for _, b in share.lost}
        for source in Source
    }
    assert bounds == {
        Source.POD: set(),
        Source.POD_ELSEWHERE: {ALWAYS},
        Source.NODE: set(),
        Source.EXTERNAL: {ALWAYS},
        Source.HAIRPIN: {ALWAYS},  # of the endpoint that is elsewhere
    }
    assert "external" in unanswered(iptables(f"-A FORWARD ! -o cali+ {ESTABLISHED} -j DROP"))
    masked = iptables("-A POSTROUTING -o eth0 -j MASQUERADE", "nat")
    assert unanswered(masked) == {}


def test_rules_may_ask_whether_the_flow_is_masqueraded() -> None:
    """Answers to both kinds of flows are otherwise traversed together."""
    view = iptables(f"-A FORWARD {ESTABLISHED} -m conntrack ! --ctstate SNAT -j DROP")
    least = {
        source: {b.lower == ALWAYS for share in of(view, source).shares for _, b in share.lost}
        for source in Source
    }
    assert least == {
        Source.POD: {True},
        Source.POD_ELSEWHERE: {True},
        Source.NODE: set(),
        # Masqueraded; as an address of the node that may be its own.
        Source.EXTERNAL: {False},
        Source.HAIRPIN: {False},
    }


def test_the_policy_that_drops_an_answer_is_named() -> None:
    text = IPTABLES.read_text().replace(":INPUT ACCEPT", ":INPUT DROP", 1)
    assert (
        text.index("*filter") < text.index(":INPUT DROP")
        or "*mangle" in text[: text.index(":INPUT DROP")]
    )
    view = Recogniser(
        parse(text, "dump.txt"), Capture(IPTABLES).cluster, node="worker1", node_addresses=(NODE,)
    ).view()
    (ended,) = {e for share in of(view, Source.NODE).shares for e, _ in share.lost}
    assert (ended.kind, ended.how) == (EndKind.UNANSWERED, "policy DROP of INPUT")
    assert ended.place is not None


@pytest.mark.parametrize(
    ("rule", "lost"),
    [
        ("ct state established drop", True),
        ("ct direction reply reject", True),
        ("ct direction original drop", False),
        ("ct status dnat,seen-reply drop", True),
        ("tcp flags & (syn | ack) == syn | ack drop", True),
        ("tcp flags & (fin | syn | rst | ack) == syn ct state established drop", False),
        ("tcp sport 8080 drop", True),
        ("ct state new drop", None),
    ],
)
def test_rules_of_nft_end_answers(rule: str, lost: bool | None) -> None:
    head = "type filter hook input priority 0; policy accept;"
    table = f"table ip x {{\n\tchain c {{\n\t\t{head}\n\t\t{rule}\n\t}}\n}}\n"
    ruleset = rules_of(NFT.read_text() + table)
    assert isinstance(ruleset, NftRuleset)
    capture = Capture(NFT)
    view = NftRecogniser(ruleset, capture.cluster, node="worker1", node_addresses=(NODE,)).view()
    found = unanswered(view)
    assert found == ({"node": BOTH} if lost else {})


@pytest.mark.parametrize("at_device", [False, True])
def test_an_answer_leaves_with_the_frontends_address_which_may_be_the_nodes(
    *, at_device: bool
) -> None:
    head = 'netdev x {\n\tchain c {\n\t\ttype filter hook egress device "eth0" priority 0;'
    if not at_device:
        head = "ip x {\n\tchain c {\n\t\ttype filter hook postrouting priority 300;"
    rule = "ip daddr 203.0.113.9 fib saddr type local drop"
    table = f"table {head} policy accept;\n\t\t{rule}\n\t}}\n}}\n"
    capture, ruleset = Capture(NFT), rules_of(NFT.read_text() + table)
    assert isinstance(ruleset, NftRuleset)
    view = NftRecogniser(ruleset, capture.cluster, node="worker1", node_addresses=(NODE,)).view()
    (service,) = [each for each in view.services if each.name.text == "default/app"]
    told = {
        (str(route.network), ending.kind, bounds.upper)
        for route in service.routes
        for share in route.shares
        for ending, bounds in share.lost
    }
    assert told == {("203.0.113.9/32", EndKind.UNANSWERED, ALWAYS)}


def test_no_answer_is_lost_by_kube_proxys_own_rules() -> None:
    assert unanswered(iptables("-A INPUT -j ACCEPT")) == {}
    plain = Recogniser(parse(IPTABLES.read_text(), "dump.txt"), Cluster()).view()
    assert not any(route.losses() for service in plain.services for route in service.routes)


@pytest.mark.parametrize(
    ("rule", "source", "unchanged", "fate"),
    [
        ("-s 10.0.1.2/32 -p tcp -m tcp --sport 80 -j DROP", "10.0.0.1", True, "unanswered"),
        ("-s 10.0.1.2/32 -p tcp -m tcp --sport 80 -j DROP", "10.0.0.1", False, "no-service"),
        ("-d 10.0.0.1/32 -m conntrack --ctdir REPLY -j REJECT", "10.0.0.1", True, "unanswered"),
        ("-d 10.0.0.9/32 -j DROP", "10.0.0.1", True, "no-service"),
        # Its destination is its own.
        ("-s 10.0.1.2/32 -m conntrack --ctstate DNAT -j DROP", "10.0.0.1", True, "no-service"),
        # A pod does not answer its own address.
        ("-d 10.0.0.9/32 -j DROP", "10.0.1.2", True, "unanswered"),
    ],
)
def test_answers_to_flows_that_no_dnat_sends_on_are_followed_if_asked_for(
    rule: str, source: str, unchanged: bool, fate: str
) -> None:
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {rule}\nCOMMIT\n"
    packet = Packet(
        protocol="tcp",
        source=IPv4Address(source),
        destination=IPv4Address("10.0.1.2"),
        destination_port=80,
        in_interface="eth0",
    )
    question = Question(
        packet=packet, addresses=(NODE,), follows_answers=True, follows_unchanged=unchanged
    )
    (end,) = trace([parse(text, "dump.txt")], question, "ip").ends
    assert end.fate.kind == fate
