"""Frontends that are alike have the answer of one of them, and others have their own."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from itertools import count, groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import RulesLayout
from tests.support.alike import among_strangers, told, view
from tests.support.clusters import clusters, one_service
from tests.support.effort import examples
from tests.support.layouts import PROMISED

#: What the copy of a Service has instead of its own.
_CHANGES = (
    (r"(KUBE-(?:SVC|SVL|EXT|XLB|FW|SEP)-)\w", r"\g<1>9"),
    (r"(?<=[ :])10\.96\.", "10.97."),
    (r"10\.244\.(\d+)\.(?!0/1)", lambda found: f"10.244.{int(found[1]) + 8}."),
    (r"198\.51\.100\.", "198.51.101."),
    (r"198\.18\.0\.", "198.18.1."),
    (r"--dport 3(\d{4})\b", r"--dport 4\1"),
    (r'--comment "?[\w-]+/', r"\g<0>copy-"),
)
_OF_SERVICE = re.compile(
    r":KUBE|-A KUBE-(?:SVC|SVL|EXT|XLB|FW|SEP)-|-A KUBE-(?:SERVICES|NODEPORTS)"
)


def doubled(text: str) -> str:
    """Return a dump with a copy of each Service, which has names and addresses of its own."""
    lines: list[str] = []
    for chain, rows in groupby(text.split("\n"), lambda line: line.split(" ")[:2]):
        held = list(rows)
        lines += held
        if _OF_SERVICE.match(" ".join(chain)):
            lines += [copy for row in held if (copy := copied(row)) != row]
    # What is for no Service stays behind what is for one.
    last = [line for line in lines if line.endswith("-j KUBE-NODEPORTS")]
    for line in last:
        chain = " ".join(line.split(" ")[:2])
        at = max(at for at, each in enumerate(lines) if each.startswith(f"{chain} "))
        lines.remove(line)
        lines.insert(at, line)
    return "\n".join(lines)


def copied(row: str) -> str:
    if row.endswith("-j KUBE-NODEPORTS"):
        return row
    for pattern, new in _CHANGES:
        row = re.sub(pattern, new, row)
    return row


@st.composite
def dumps(draw: st.DrawFn) -> str:
    layout = draw(st.sampled_from(PROMISED))
    text = doubled(draw(clusters(layout, families=st.just(4))).dump)
    return draw(among_strangers(text))


@examples(8, 1500)
@given(dumps(), st.sampled_from((None, "192.168.0.1", "192.168.0.2")))
def test_what_is_alike_is_answered_as_if_it_was_walked(text: str, own: str | None) -> None:
    addresses = [] if own is None else [IPv4Address(own)]
    assert told(view(text, addresses, plainly=True)) == told(view(text, addresses, plainly=False))


TEXT = doubled(one_service(RulesLayout.V1_36, endpoints=6).dump)
COPIES = ["10.97.0.1:80", "198.51.101.1:80", "198.18.1.1:80", "*:40000"]


def test_copies_of_a_service_are_not_walked(carried: list[str]) -> None:
    assert len(view(TEXT, plainly=True).services) == 2
    assert sorted(carried) == sorted(COPIES)


@pytest.mark.parametrize(
    "row",
    [
        "-A KUBE-SERVICES -d 10.97.0.0/16 -j RETURN",
        "-A PREROUTING -d 10.96.0.0/16 -j ACCEPT",
        "-A OUTPUT ! -d 10.96.0.0/16 -j ACCEPT",
    ],
)
def test_a_rule_that_tells_them_apart_has_each_of_them_walked(carried: list[str], row: str) -> None:
    chain = " ".join(row.split()[:2])
    text = TEXT.replace(f"\n{chain} ", f"\n{row}\n{chain} ", 1)
    assert text != TEXT
    found = view(text, plainly=True)
    assert "10.97.0.1:80" not in carried
    assert told(found) == told(view(text, plainly=False))


@pytest.mark.parametrize(
    ("row", "before"),
    [
        # Whose flows they are nobody can tell: all may come to the first Service.
        ("-A PREROUTING -m set --match-set x src -j {chain}", "-A PREROUTING "),
        (
            "-A KUBE-SERVICES -p tcp -m set --match-set x src -j DNAT --to-destination {endpoint}",
            "-A KUBE-SERVICES ",
        ),
        # Between the rows of one and of the other.
        ("-A KUBE-SERVICES -p tcp -m tcp --dport 80 -j RETURN", "-A KUBE-SERVICES -d 10.97."),
        # It matches every port, whatever its comment says.
        (
            '-A KUBE-NODEPORTS -p tcp -m comment --comment "a --dport 9 b" -j RETURN',
            '-A KUBE-NODEPORTS -d 127.0.0.0/8 -p tcp -m comment --comment "default/copy-a:http"',
        ),
    ],
)
def test_each_has_its_own_answer(row: str, before: str) -> None:
    chain = re.search(r"-d 10\.96\.0\.1/32 .*-j (KUBE-SVC-\w+)", TEXT)
    endpoint = re.search(r"--to-destination (\S+)", TEXT)
    assert chain
    assert endpoint
    row = row.format(chain=chain[1], endpoint=endpoint[1])
    text = TEXT.replace(f"\n{before}", f"\n{row}\n{before}", 1)
    assert text != TEXT
    assert told(view(text, plainly=True)) == told(view(text, plainly=False))


def test_what_only_looks_like_a_comment_is_a_difference() -> None:
    text = TEXT
    # The mark of one row is that of all packets, and that of the other of none.
    for host, mark in ((r"10\.96", "0x9"), (r"10\.97", "0x0")):
        chain = re.search(rf"-d {host}\.0\.1/32 .*-j (KUBE-SVC-\w+)", text)
        assert chain
        row = (
            f'-A {chain[1]} -p tcp -m string --string " -m comment --comment " --algo bm '
            f'-m mark --mark {mark} -m comment --comment "x" -j RETURN'
        )
        text = text.replace(f"\n-A {chain[1]} ", f"\n{row}\n-A {chain[1]} ", 1)
    assert text.count("--string") == 2
    assert told(view(text, plainly=True)) == told(view(text, plainly=False))


def test_counters_are_no_difference(carried: list[str]) -> None:
    numbers = count()
    view(re.sub(r"(?m)^-A", lambda _: f"[{next(numbers)}:60] -A", TEXT), plainly=True)
    assert sorted(carried) == sorted(COPIES)


def test_an_endpoint_that_is_the_node_itself_is_not_as_others(carried: list[str]) -> None:
    view(TEXT, [IPv4Address("10.244.8.0")], plainly=True)
    assert carried == []
