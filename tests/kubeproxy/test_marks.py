"""Rules of others between DNAT and POSTROUTING, which may touch the mark of masquerading."""

from __future__ import annotations

import pytest

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address, address_from_text
from analyzer.model.cluster import Cluster
from analyzer.parsers.iptables_save import parse
from tests.support.captures import FIXTURES
from tests.support.dumps import masquerade_from

DUMP = FIXTURES / "1.36.2-iptables-legacy/seed-dns@worker1/iptables-legacy-save.txt"


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
def test_a_rule_that_clears_the_mark_on_the_way_decides_what_is_masqueraded(plainly: bool) -> None:
    assert masquerades("", plainly=plainly) == {True}
    clears = "-A FORWARD -d 10.0.0.0/8 -j MARK --set-xmark 0x0/0x4000"
    assert masquerades(clears, plainly=plainly) == {False}
    perhaps = "-A FORWARD -m made-up -j MARK --set-xmark 0x0/0x4000"
    assert masquerades(perhaps, plainly=plainly) == {None}
    other = "-A FORWARD -d 10.0.0.0/8 -j MARK --set-xmark 0x0/0x8000"
    assert masquerades(other, plainly=plainly) == {True}
