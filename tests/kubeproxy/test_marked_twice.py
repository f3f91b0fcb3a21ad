"""Flows that KUBE-MARK-MASQ marks twice: an endpoint's own, from outside of the cluster."""

from __future__ import annotations

from analyzer.kubeproxy.view import Source
from analyzer.parsers.formats import read_ruleset
from tests.support.captures import FIXTURES
from tests.support.parsed_objects import parse_objects
from tests.support.reading import recogniser

CASE = FIXTURES / "1.25.1-iptables-legacy" / "two-node@worker1"
FIRST = "-A KUBE-MARK-MASQ -j MINE\n"
MINE = "-A MINE -m mark --mark 0x4000/0x4000 -j ACCEPT\n"


def test_what_is_marked_already_may_fare_otherwise() -> None:
    text = (CASE / "iptables-legacy-save.txt").read_text()
    row = next(line for line in text.splitlines(True) if line.startswith("-A KUBE-MARK-MASQ "))
    text = text.replace(row, f"{FIRST}{row}{MINE}", 1)
    text = text.replace(":KUBE-MARK-MASQ", ":MINE - [0:0]\n:KUBE-MARK-MASQ", 1)
    objects = parse_objects([("objects.json", (CASE / "objects.json").read_bytes())])
    for plainly in (True, False):
        rules = read_ruleset(text.encode(), "dump")
        view = recogniser(rules, objects, node="worker1", plainly=plainly).view()
        (api,) = (s for s in view.services if s.name.text == "default/kubernetes:https")
        (own,) = (r for r in api.routes if r.source is Source.HAIRPIN)
        assert not any(share.share.upper for share in own.shares)
