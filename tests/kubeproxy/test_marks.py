"""Rules of others between DNAT and POSTROUTING, which may touch the mark of masquerading."""

from __future__ import annotations

import pytest

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.marks import changed_by
from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address, address_from_text
from analyzer.model.cluster import Cluster
from analyzer.model.packet import ALL_BITS
from analyzer.parsers.iptables_save import parse
from tests.support.captures import FIXTURES
from tests.support.dumps import masquerade_from

DUMP = FIXTURES / "1.36.2-iptables-legacy/seed-dns@worker1/iptables-legacy-save.txt"
FILTER = "*filter\n:FORWARD ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:X - [0:0]\n{}COMMIT\n"


@pytest.mark.parametrize(
    ("rules", "bits"),
    [
        ("", 0),
        ("-A FORWARD -j ACCEPT\n", 0),
        ("-A FORWARD -j MARK --set-xmark 0x0/0x4000\n", 0x4000),
        ("-A FORWARD -j MARK --set-xmark 0x8000/0x0\n", 0x8000),
        ("-A FORWARD -p tcp -j X\n-A X -j MARK --set-xmark 0x3/0x5\n", 7),
        ("-A FORWARD -p tcp -g X\n-A X -j MARK --set-xmark 0x3/0x5\n", 7),
        ("-A FORWARD -j X\n-A X -j X\n-A X -j MARK --set-xmark 0x1/0x1\n", 1),
        # What the flow does not reach, or reaches only on its way to the node.
        ("-A X -j MARK --set-xmark 0x1/0x1\n", 0),
        ("-A INPUT -j MARK --set-xmark 0x1/0x1\n", 0),
        ("-A FORWARD -j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff\n", 0),
        ("-A FORWARD -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80\n", 0x80),
        ("-A FORWARD -j NFQUEUE --queue-num 0\n", ALL_BITS),
        ("-A FORWARD -j SET --map-set x src --map-mark\n", ALL_BITS),
        ("-A FORWARD -j MADEUP\n", ALL_BITS),
        ('-A FORWARD -m comment --comment "-j ACCEPT" -j MADEUP\n', ALL_BITS),
        ('-A FORWARD -m comment --comment "-j MARK" -j ACCEPT\n', 0),
        ("-A FORWARD -p tcp\n", 0),
    ],
)
def test_bits_that_rules_on_the_way_may_change(rules: str, bits: int) -> None:
    assert changed_by(parse(FILTER.format(rules), "dump")).mark == bits
    # The same, line by line.
    odd = "a line that is no rule\n" + FILTER.format(rules)
    assert changed_by(parse(odd, "dump")).mark == bits


def test_the_table_says_where_the_packet_is_on_its_way() -> None:
    mangle = "*mangle\n:{0} ACCEPT [0:0]\n-A {0} -j MARK --set-xmark 0x1/0x1\nCOMMIT\n"
    found = {
        hook: changed_by(parse(mangle.format(hook), "dump")).mark
        for hook in ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
    }
    assert found == {"PREROUTING": 0, "INPUT": 0, "FORWARD": 1, "OUTPUT": 0, "POSTROUTING": 1}


def masquerades(rule: str, *, plainly: bool) -> set[bool | None]:
    text = DUMP.read_text()
    assert "-A FORWARD" in text
    changed = text.replace("-A FORWARD", f"{rule}\n-A FORWARD", 1) if rule else text
    own: tuple[Address | None, ...] = (address_from_text("192.168.0.11"),)
    view = Recogniser(
        parse(changed, "dump"),
        Cluster(),
        node_addresses=tuple(a for a in own if a is not None),
        plainly=plainly,
    ).view()
    return masquerade_from(view, Source.EXTERNAL)


@pytest.mark.parametrize("plainly", [True, False])
def test_a_rule_that_may_clear_the_mark_leaves_open_what_is_masqueraded(plainly: bool) -> None:
    assert masquerades("", plainly=plainly) == {True}
    clears = "-A FORWARD -d 10.0.0.0/8 -j MARK --set-xmark 0x0/0x4000"
    assert masquerades(clears, plainly=plainly) == {None}
    other = "-A FORWARD -d 10.0.0.0/8 -j MARK --set-xmark 0x0/0x8000"
    assert masquerades(other, plainly=plainly) == {True}
