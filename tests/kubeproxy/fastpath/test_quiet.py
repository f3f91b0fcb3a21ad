"""Rows behind nat that let all plain flows pass, and what walks say of dumps with them."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.fastpath.quiet import Quiet
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import View, each_network
from analyzer.model.cluster import Cluster
from analyzer.parsers.iptables_save import parse
from tests.support.captures import FIXTURES

DUMP = FIXTURES / "1.36.2-iptables-legacy/two-node@worker1/iptables-legacy-save.txt"
TEXT = DUMP.read_text()
MARK = 0x4000
#: An endpoint of the dump, and its port.
HOST, PORT = "10.244.1.9", 8080
NEW = "-m conntrack --ctstate NEW"


def with_row(row: str) -> str:
    """Return the dump with a row first in a chain of its filter table, or a policy of that."""
    if row.startswith(":"):
        chain = row.split(" ", 1)[0]
        return TEXT.replace(f"{chain} ACCEPT", row, 1)
    chain = row.split()[1]
    place = TEXT.index(f"-A {chain} ")
    return f"{TEXT[:place]}{row}\n{TEXT[place:]}"


def is_quiet(text: str) -> bool:
    return Quiet(parse(text, "dump"), MARK, HOST.__eq__, PORT.__eq__).holds()


def view(text: str, *, plainly: bool) -> View:
    own = (ip_address("192.168.0.11"),)
    ruleset = parse(text, "dump")
    return Recogniser(ruleset, Cluster(), node_addresses=own, plainly=plainly).view()


def told(found: View) -> object:
    return [
        [
            (*map(str, (r.frontend, r.source, r.network)), tuple(r.shares), r.astray)
            for r in each_network(s.routes)
        ]
        for s in found.services
    ]


@pytest.mark.parametrize(
    ("row", "quiet"),
    [
        ("-A FORWARD -j ACCEPT", True),
        ("-A FORWARD -p tcp -j RETURN", True),
        ("-A FORWARD -m conntrack --ctstate INVALID -j DROP", True),
        ("-A FORWARD -m conntrack ! --ctstate INVALID -j DROP", False),
        ("-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j DROP", False),
        ("-A FORWARD -m conntrack --ctstate NEW -j DROP", False),
        ("-A FORWARD -d 10.96.0.77/32 -p tcp -j DROP", False),  # answers walk
        ("-A FORWARD -d 10.96.0.77/32 -p tcp -m conntrack --ctstate NEW -j DROP", True),
        (f"-A FORWARD -d {HOST}/32 -p tcp -j DROP", False),
        (f"-A FORWARD ! -d {HOST}/32 -p tcp -j DROP", False),
        ("-A FORWARD ! -d 10.96.0.77/32 -p tcp -j DROP", False),
        ("-A FORWARD -d 10.96.0.0/16 -p tcp -j DROP", False),  # no host: walked
        ("-A FORWARD -m mark --mark 0x8000/0x8000 -j DROP", True),
        ("-A FORWARD -m mark ! --mark 0x8000/0x8000 -j DROP", False),
        ("-A FORWARD -m mark --mark 0x4000/0x4000 -j DROP", False),
        ("-A FORWARD -m mark --mark 0x0/0x4000 -j DROP", False),
        (f"-A FORWARD {NEW} -p tcp -m addrtype --dst-type LOCAL -m tcp --dport 9 -j REJECT", True),
        (f"-A FORWARD -p tcp -m addrtype --dst-type LOCAL -m tcp --dport {PORT} -j DROP", False),
        ("-A FORWARD -j MARK --set-xmark 0x0/0x1", True),
        ("-A FORWARD -j MARK --set-xmark 0x0/0x4000", False),
        ("-A FORWARD -m made-up -j ACCEPT", False),
        ("-A FORWARD -j MADEUP", False),
        ("-A FORWARD -g KUBE-FIREWALL", True),
        ('-A FORWARD -m comment --comment "x -d 10.96.0.77/32 y" -j DROP', False),
        ("-A INPUT -j DROP", False),
        ("-A OUTPUT -j DROP", False),
        (":FORWARD DROP", False),
        (":INPUT DROP", False),
    ],
)
def test_what_may_stop_or_mark_a_flow_is_walked(row: str, quiet: bool) -> None:
    text = with_row(row)
    assert is_quiet(text) is quiet
    assert told(view(text, plainly=True)) == told(view(text, plainly=False))


@pytest.mark.parametrize("hook", ["POSTROUTING", "INPUT"])
def test_a_policy_of_nat_drops_too(hook: str) -> None:
    head, nat = TEXT.split("*nat", 1)
    text = f"{head}*nat{nat.replace(f':{hook} ACCEPT', f':{hook} DROP', 1)}"
    assert text != TEXT
    plain, walked = (view(text, plainly=plainly) for plainly in (True, False))
    assert told(plain) == told(walked)
    if hook == "POSTROUTING":
        assert any(share.lost for s in plain.services for r in s.routes for share in r.shares)


def test_a_queue_in_nat_may_lose_what_it_gets() -> None:
    row = "-A POSTROUTING -p tcp -j NFQUEUE --queue-num 0\n-A POSTROUTING"
    found = view(TEXT.replace("-A POSTROUTING", row, 1), plainly=True)
    lost = [s.lost for each in found.services for r in each.routes for s in r.shares]
    assert any(bounds.upper for endings in lost for _, bounds in endings)


def test_who_asks_for_a_bit_that_others_set_is_walked() -> None:
    marks = with_row("-A FORWARD -j MARK --set-xmark 0x1/0x1")
    assert is_quiet(marks)
    asks = marks.replace(
        "-A FORWARD -j MARK", "-A FORWARD -m mark --mark 0x1/0x1 -j DROP\n-A FORWARD -j MARK", 1
    )
    assert not is_quiet(asks)


def test_what_no_flow_comes_to_and_what_is_cut_off() -> None:
    unreached = TEXT.replace("*filter\n", "*filter\n:MINE - [0:0]\n", 1)
    unreached = unreached.replace("COMMIT", "-A MINE -j DROP\nCOMMIT", 1)
    assert is_quiet(unreached)
    assert not is_quiet(TEXT[: TEXT.index("*nat")].replace("COMMIT\n", ""))
