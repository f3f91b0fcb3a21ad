"""The two ways to a Service's shares: rows read as text, and the general traversal."""

from __future__ import annotations

import random
import re
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError
from analyzer.kubeproxy.fastpath import masquerade
from analyzer.kubeproxy.generate import GeneratedService, iptables_save, services
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.rows.endpoints import EndpointRows
from analyzer.kubeproxy.rows.plain import PlainTable
from analyzer.kubeproxy.view import View, each_network
from analyzer.model.cluster import Cluster
from analyzer.model.value import replace
from analyzer.parsers.ipset_save import parse_ipsets
from analyzer.parsers.iptables_save import parse, render
from tests.support.captures import FIXTURES, Capture
from tests.support.effort import examples
from tests.support.reading import read_ruleset

DUMPS = sorted(FIXTURES.glob("*iptables*/*/iptables-*-save.txt"))


def view(data: bytes, *, plainly: bool, own: tuple[IPv4Address, ...] = ()) -> View | str:
    try:
        ruleset = read_ruleset(data, "dump", skim=EndpointRows.skim if plainly else None)
        return Recogniser(ruleset, Cluster(), node_addresses=own, plainly=plainly).view()
    except AnalyzerError as error:
        return str(error)


def told(found: View | str) -> object:
    """Return all that a view says, whichever way it was found.

    Which of two malformed rows is refused depends on which is read first.
    """
    if isinstance(found, str):
        return "refused"
    return (
        found.mode,
        found.pod_sources,
        [(d.severity, d.code, d.line) for d in found.diagnostics],
        [
            (
                s.name,
                s.protocol,
                s.affinity,
                sorted(map(str, s.frontends)),
                sorted(map(str, s.refusals)),
                sorted(map(str, s.unfilled)),
                sorted(
                    (
                        str(r.frontend),
                        r.source.value,
                        str(r.network),
                        str(tuple(r.shares)),
                        str(r.unresolved),
                    )
                    for r in each_network(s.routes)
                ),
            )
            for s in found.services
        ],
    )


def check_both_ways(data: bytes, *own: IPv4Address) -> None:
    walked = told(view(data, plainly=False, own=own))
    for many in (0, 64):  # all endpoints are evaluated at once, and each of few
        with patch.object(masquerade, "MANY", many):
            assert told(view(data, plainly=True, own=own)) == walked


@pytest.mark.parametrize("path", DUMPS, ids=lambda p: str(p.relative_to(FIXTURES)))
def test_both_ways_agree_on_every_fixture(path: Path) -> None:
    data = path.read_bytes()
    node = Capture(path).node
    own = {"master": "192.168.0.10", "worker1": "192.168.0.11"}[node]
    check_both_ways(data)
    check_both_ways(data, IPv4Address(own))
    # An endpoint's address as the node's own: hairpin, and flows that stay on the node.
    check_both_ways(data, IPv4Address("10.1.0.1"))


def test_both_ways_agree_on_every_capture(captures: Path) -> None:
    paths = [
        path
        for path in sorted(captures.glob("*iptables*/*/ip*-save*.txt*"))
        if not re.search(r"scale-\d{4}", str(path))
    ]
    assert paths
    for path in paths:
        check_both_ways(path.read_bytes())


@pytest.mark.parametrize("path", DUMPS, ids=lambda p: str(p.relative_to(FIXTURES)))
def test_what_the_fixtures_hold_is_plain(path: Path) -> None:
    table = PlainTable(read_ruleset(path.read_bytes(), "dump").tables["nat"])
    assert len(table.services) == path.read_text().count(' cluster IP" -m') // 2
    assert table.enters_plainly("PREROUTING")
    assert table.enters_plainly("OUTPUT")
    assert table.masquerades_plainly()


@given(st.sampled_from(DUMPS), st.randoms(use_true_random=False))
def test_both_ways_agree_on_dumps_that_somebody_has_changed(
    path: Path, chance: random.Random
) -> None:
    lines = path.read_text().split("\n")
    for _ in range(chance.randint(1, 4)):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(7):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[other])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = lines[at].replace(
                    "-j ", chance.choice(["-g ", "-j LOG --log-x ", "! -j "])
                )
            case 4:
                lines[at] = re.sub(r"KUBE-S\w+-\w+", "KUBE-SEP-ODD", lines[at])
            case 5:
                place = chance.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:place] + chance.choice('!"-/.: 10x') + lines[at][place:]
            case _:
                lines[at] = re.sub(r"0\.5\d*", chance.choice(["0", "1.0", "0.25"]), lines[at])
        lines = lines or [""]
    check_both_ways("\n".join(lines).encode())


@pytest.mark.parametrize(
    ("row", "written", "instead"),
    [
        ("RELATED,ESTABLISHED -j ACCEPT", "-j ACCEPT", "-g ACCEPT"),  # to a chain that is missing
        ("0x4000/0x4000 -j ACCEPT", "-j ACCEPT", "-g ACCEPT"),
        ("--dport 9153 -j KUBE-MARK-MASQ", ".0.0/16", '."0.0/16'),
        ("-A PREROUTING", '"kubernetes', '""kubernetes'),
        ("-j MASQUERADE", "requiring", 'requiri"ng'),
    ],
)
def test_both_ways_agree_on_a_row_that_no_kernel_has(row: str, written: str, instead: str) -> None:
    for path in (TWO_NODES, TWO_NODES_1_20):
        rows = path.read_text().split("\n")
        changed = [each.replace(written, instead) if row in each else each for each in rows]
        assert changed != rows
        check_both_ways("\n".join(changed).encode())


TWO_NODES = FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1" / "iptables-legacy-save.txt"
TWO_NODES_1_20 = FIXTURES / "1.20.2-iptables-nft" / "two-node" / "iptables-nft-save.txt"
#: What rows behind the DNAT may ask of a flow; where they tell sources apart only together with
#: something else, as its mark, that makes no difference to all flows.
ASKED = (
    ["", "-s 10.9.9.9/32 ", "-s 10.9.9.0/24 ", "! -s 10.9.0.0/16 ", "-s 10.244.1.0/28 "],
    ["", "-d 10.244.0.0/24 ", "-d 10.244.1.9/32 ", "! -d 10.244.0.7/32 "],
    ["", "-p tcp -m tcp --dport 8080 ", "-p udp ", "-p tcp -m tcp --dport 9090 "],
    ["", "-m mark --mark 0x4000/0x4000 ", "-m mark ! --mark 0x4000/0x4000 "],
)
MADE = [
    "ACCEPT",
    "RETURN",
    "MASQUERADE",
    "SNAT --to-source 192.0.2.1",
    "MARK --set-xmark 0x0/0x4000",
]
ROWS = st.builds(
    lambda chain, *words: f"-A {chain} {''.join(words[:-1])}-j {words[-1]}",
    st.sampled_from(["POSTROUTING", "INPUT", "KUBE-POSTROUTING"]),
    *map(st.sampled_from, ASKED),
    st.sampled_from(MADE),
)


@pytest.mark.deep
@examples(15, 1_500)
@given(st.lists(ROWS, min_size=1, max_size=3), st.sampled_from([(), ("192.168.0.11",)]))
@example(["-A POSTROUTING -s 10.9.9.9/32 -m mark --mark 0x4000/0x4000 -j ACCEPT"], ())
@example(["-A POSTROUTING -s 10.9.9.9/32 -p tcp -m tcp --dport 8080 -j ACCEPT"], ("192.168.0.11",))
def test_both_ways_agree_on_rules_of_others_behind_the_endpoints(
    rows: list[str], own: tuple[str, ...]
) -> None:
    text = TWO_NODES.read_text()
    for row in rows:
        if row.startswith("-A INPUT") and "MASQ" in row:
            continue  # the kernel takes it in POSTROUTING alone
        before, nat, after = text.partition("*nat\n")
        chain = " ".join(row.split()[:2])
        at = after.find(f"{chain} ")
        at = after.index("-A ") if at < 0 else at
        text = f"{before}{nat}{after[:at]}{row}\n{after[at:]}"
    check_both_ways(text.encode(), *map(IPv4Address, own))


@pytest.mark.parametrize("own", [(), ("192.168.0.11",)])
def test_both_ways_agree_where_more_than_the_mark_is_set(own: tuple[str, ...]) -> None:
    text = TWO_NODES.read_text()
    for row in (
        "-A KUBE-MARK-MASQ -j CONNMARK --set-xmark 0x10/0x10",
        "-A POSTROUTING -m connmark --mark 0x10/0x10 -j ACCEPT",
    ):
        chain = " ".join(row.split()[:2])
        before = text
        text = text.replace(f"\n{chain} ", f"\n{row}\n{chain} ", 1)
        assert text != before
    check_both_ways(text.encode(), *map(IPv4Address, own))


#: Sets by destination, with a port, and of pairs of a source and a destination.
SETS: Final = parse_ipsets(
    b"create to hash:ip,port family inet\nadd to 10.244.1.9,tcp:8080\n"
    b"create pairs hash:net,net family inet\nadd pairs 10.244.0.0/24,10.244.1.0/24\n"
    b"create near hash:net family inet\nadd near 10.244.1.0/25\n",
    "sets",
)


@pytest.mark.parametrize("own", [(), ("192.168.0.11",)])
@pytest.mark.parametrize(
    "row",
    [
        "-A FORWARD -m set --match-set to dst,dst -j DROP",
        "-A FORWARD -m set --match-set pairs src,dst -j DROP",
        "-A FORWARD -m set ! --match-set near dst -j DROP",
        "-A FORWARD -m set --match-set near src -m set --match-set near dst -j DROP",
    ],
)
def test_both_ways_agree_on_sets_of_destinations(row: str, own: tuple[str, ...]) -> None:
    text = TWO_NODES.read_text().replace("-A FORWARD", f"{row}\n-A FORWARD", 1)
    read = read_ruleset(text.encode(), "dump", skim=EndpointRows.skim)
    ruleset = replace(read, ipsets=SETS)
    addresses = tuple(map(IPv4Address, own))
    found = []
    for plainly, many in ((False, 64), (True, 64), (True, 0)):
        with patch.object(masquerade, "MANY", many):
            made = Recogniser(ruleset, Cluster(), node_addresses=addresses, plainly=plainly)
            found.append(told(made.view()))
    assert found[0] == found[1] == found[2]
    assert "DROPPED" in str(found[0])


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 7))
def test_generated_clusters_come_out_as_they_went_in(sizes: list[int], nodes: int) -> None:
    given_ = list(services(len(sizes) * 2, endpoints=sizes, nodes=nodes))
    text = iptables_save(given_)
    rows = text.removesuffix("# Completed\n").split("\n-A")[1:]
    assert render(parse(text, "made")).split("\n-A")[1:] == rows
    found = view(text.encode(), plainly=True)
    assert isinstance(found, View)
    assert {
        (s.name.text, s.protocol, tuple((e.address, e.port) for e in s.endpoints))
        for s in found.services
    } == {(s.name, s.protocol, s.endpoints) for s in given_}


def test_generated_rows_are_those_of_the_capture() -> None:
    path = FIXTURES / "1.36.2-iptables-legacy/two-node@worker1/iptables-legacy-save.txt"
    pods = ((IPv4Address("10.244.0.3"), 53), (IPv4Address("10.244.1.4"), 53))
    dns = GeneratedService("kube-system/kube-dns:dns", "udp", IPv4Address("10.96.0.10"), 53, pods)
    rows = iptables_save([dns], cidr="10.244.0.0/16").split("\n")
    captured = path.read_text().split("\n")
    generated = [row for row in rows if not row.startswith("#")]
    assert set(generated) <= set(captured)
    places = [captured.index(row) for row in generated if row.startswith("-A")]
    assert places == sorted(places)


V4 = FIXTURES / "1.36.2-iptables-legacy/seed-dns@worker1/iptables-legacy-save.txt"
DNS = "-A KUBE-SERVICES -d 10.2.3.4/32 -p udp"
_OTHER_TABLE = """*filter
:KUBE-SEP-ZZZ - [0:0]
-A KUBE-SEP-ZZZ -s 1.2.3.4/32 -j KUBE-MARK-MASQ
-A KUBE-SEP-ZZZ -p tcp -m tcp -j DNAT --to-destination 1.2.3.4:80
COMMIT
*mangle"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("*mangle", _OTHER_TABLE),
        ("--to-destination 10.1.0.1:53", "--to-destination 10.1.0.1:99999"),
        ("--to-destination 10.1.0.1:53", "--to-destination [10.1.0.1:53"),
        ("--to-destination 10.1.0.1:53", "--to-destination 10.1.0.1]:53"),
        ("--to-destination 10.1.0.1:53", "--to-destination 10.1.0.1:053"),
        ("--dport 53", "--dport 053"),
        ("-p udp", "-p 17"),
        ("-m udp", "-m udplite"),
        ("10.2.3.4/32", "10.2.3.4/128"),
        (DNS, f"-A KUBE-SERVICES -d 10.2.3.0/24 -p udp -j KUBE-MARK-MASQ\n{DNS}"),
        (DNS, f"-A KUBE-SERVICES -d 10.2.3.4/32 -j KUBE-SVC-JD5MR3NA4I4DYORP\n{DNS}"),
        (DNS, DNS.replace("10.2.3.4/32", "10.2.3.0/24")),
        (DNS, DNS.replace("-d 10.2.3.4/32", "-m set --match-set X dst")),
        ("-A PREROUTING", "-A PREROUTING -j DROP\n-A PREROUTING"),
        ("-A PREROUTING", "-A PREROUTING -m mark --mark 0x1 -j ACCEPT\n-A PREROUTING"),
        ("-A PREROUTING", "-A PREROUTING -j MARK --set-xmark 0x1/0x1\n-A PREROUTING"),
        ("-A KUBE-MARK-MASQ -j MARK", "-A KUBE-MARK-MASQ -j ACCEPT\n-A KUBE-MARK-MASQ -j MARK"),
        ("-A POSTROUTING", "-A POSTROUTING -o eth0 -j MASQUERADE\n-A POSTROUTING"),
        ("0.50000000000 -j", "1.00000000000 -j"),
        ("0.50000000000 -j", "0.00000000000 -j"),
    ],
)
def test_both_ways_agree_on_rows_that_are_nearly_plain(old: str, new: str) -> None:
    text = V4.read_text()
    assert old in text
    check_both_ways(text.replace(old, new).encode())


#: A Service of tcp and one of udp, of three endpoints each.
TWO = iptables_save(list(services(2, endpoints=(3,))))
DRAWN = "-m statistic --mode random --probability 0.50000000000 "


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The last row is drawn too, so that some flows come back; one before it takes all.
        (r'(-A KUBE-SVC\S+ -m comment --comment "\S+ -> \S+" )(?=-j)', rf"\1{DRAWN}"),
        (r"(-A KUBE-SVC.*?) -m statistic.*? -j", r"\1 -j"),
        (re.escape(DRAWN), ""),
        # An endpoint is drawn twice; a row in between, or behind, does something else.
        (rf"(-A KUBE-SVC.* {DRAWN}.*\n)", r"\1\1"),
        (rf"(-A KUBE-SVC\S+)(.* {DRAWN}.*\n)", r"\1\2\1 -j RETURN\n"),
        (rf"(-A KUBE-SVC\S+)(.* {DRAWN}.*\n.*\n)", r"\1\2\1 -j ACCEPT\n"),
        # Endpoints for another protocol than their Service's: one, all of them, another still.
        (r"-p tcp (.*10\.0\.1\.2:8080)", r"-p udp \1"),
        (r"-p tcp (.*) -m tcp (.*10\.0\.1\.2:8080)", r"-p udp \1 -m udp \2"),
        (r"-p tcp (.*) -m tcp (.*DNAT)", r"-p udp \1 -m udp \2"),
        (r"-p udp (.*) -m udp (.*DNAT)", r"-p tcp \1 -m tcp \2"),
        (r"-p udp (.*) -m udp (.*10\.0\.4\.2:8080)", r"-p sctp \1 -m sctp \2"),
        (r"-p udp (.*) -m udp (.*DNAT)", r"-p sctp \1 -m sctp \2"),
        (r"-j KUBE-SEP-LHBW2OTRTFY5A6BX", "-j KUBE-SEP-TWFER2LAEQZHYTXE"),
    ],
)
def test_both_ways_agree_on_draws_that_are_nearly_plain(old: str, new: str) -> None:
    text, edits = re.subn(old, new, TWO)
    assert edits
    check_both_ways(text.encode())
    check_both_ways(text.encode(), IPv4Address("10.0.1.2"))


def test_both_ways_agree_where_the_chain_that_marks_is_gone() -> None:
    lines = [line for line in V4.read_text().split("\n") if "KUBE-MARK-MASQ" not in line[:24]]
    check_both_ways("\n".join(lines).encode())


def test_a_network_of_ipv6_is_no_host(captures: Path) -> None:
    path = captures / "1.36.2-iptables-legacy/dual-stack/ip6tables-legacy-save.txt"
    first = "-A KUBE-SERVICES -d"
    row = "-A KUBE-SERVICES -d fd00:10::/32 -p tcp -m tcp --dport 80 -j ACCEPT"
    check_both_ways(path.read_text().replace(first, f"{row}\n{first}", 1).encode())


def test_clean_captures_give_no_diagnostic(captures: Path) -> None:
    for path in sorted(captures.glob("*iptables*/*/ip*-save*.txt*")):
        if not re.search(r"scale-\d{4}", str(path)):
            found = view(path.read_bytes(), plainly=True)
            assert isinstance(found, View)
            # Of bridges something is assumed up to 1.21.
            assert {each.code for each in found.diagnostics} <= {"assumed"}
