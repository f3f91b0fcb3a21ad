"""NodePorts at further addresses of the node, as rules name them, and at loopback."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analyzer.inputs.recognised import Input, read_input
from analyzer.kubeproxy.view import Source
from netns_lab import further_addresses
from netns_lab.arguments import parser
from netns_lab.further_addresses import Answer, FurtherAddresses
from netns_lab.node_ports import own_first

FIRST, OTHER, CLIENT = map(ip_address, ("192.168.10.11", "192.168.10.99", "203.0.113.9"))
OWN = "--node-ip", f"{FIRST},{OTHER}"
IPTABLES = "1.36.2-iptables-legacy/dual-stack/iptables-legacy-save.txt"
NFTABLES = "1.36.2-nftables/dual-stack/nft-list-ruleset.txt"
JUMP = "-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS"


def read(dump: Path, *words: str) -> Input:
    options: Any = parser().parse_args(["run", str(dump), *words], SimpleNamespace())
    return read_input(options)


def answer(given: Input, to: Any, source: Source = Source.EXTERNAL, client: Any = CLIENT) -> Answer:
    (service,) = (
        s for s in given.view.services if s.name.text == "ds/nodeport" and s.version == to.version
    )
    return FurtherAddresses(given).answer(service, source, client, (to, 30301))


@pytest.fixture
def changed(captures: Path, tmp_path: Path) -> Any:
    """The rules of iptables mode, with one text in place of another."""

    def of(was: str, by: str) -> Input:
        text = (captures / IPTABLES).read_text()
        assert was in text
        path = tmp_path / "dump.txt"
        path.write_text(text.replace(was, by))
        return read(path, *OWN)

    return of


def test_at_an_address_that_rules_do_not_name_a_node_port_is_a_port_of_the_node(
    captures: Path, changed: Any
) -> None:
    for given in (read(captures / NFTABLES, *OWN), changed(JUMP, f"-d {FIRST}/32 {JUMP}")):
        assert answer(given, FIRST) is Answer.ALIKE
        assert answer(given, OTHER) is Answer.NO_SERVICE
        loopback = ip_address("127.0.0.1")
        assert answer(given, loopback, Source.NODE, loopback) is Answer.NO_SERVICE
    assert answer(read(captures / IPTABLES, *OWN), OTHER) is Answer.ALIKE


def test_the_first_address_is_one_at_which_rules_accept_node_ports(
    captures: Path, changed: Any
) -> None:
    swapped = "--node-ip", f"{OTHER},{FIRST}"
    assert own_first(read(captures / NFTABLES, *swapped)) == (FIRST, OTHER)
    assert own_first(read(captures / IPTABLES, *swapped)) == (OTHER, FIRST)
    assert own_first(changed(JUMP, f"-d {OTHER}/32 {JUMP}")) == (OTHER, FIRST)
    ipv6 = captures / IPTABLES.replace("iptables-legacy-save", "ip6tables-legacy-save")
    own = f"fd00::99,{OTHER},fd00::11,{FIRST}"
    both = read(captures / IPTABLES, str(ipv6), "--node-ip", own)
    assert [str(each) for each in own_first(both)[:2]] == ["fd00::99", str(OTHER)]
    assert answer(both, ip_address("fd00::11"), client=ip_address("2001:db8::9")) is Answer.ALIKE
    assert answer(both, FIRST) is Answer.ALIKE


def test_also_at_the_only_known_address_rules_may_accept_none(captures: Path) -> None:
    given = read(captures / NFTABLES, "--node-ip", str(OTHER))
    assert answer(given, OTHER) is Answer.NO_SERVICE
    assert answer(read(captures / IPTABLES, "--node-ip", str(OTHER)), OTHER) is Answer.ALIKE


def test_what_rules_treat_otherwise_is_not_alike(changed: Any) -> None:
    first = '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\n'
    for rule, expected in (
        (f"-d {OTHER}/32 -j RETURN", Answer.NO_SERVICE),
        (f"-d {OTHER}/32 -m something -j RETURN", Answer.OTHERWISE),
        (f"-d {OTHER}/32 -p tcp -j DNAT --to-destination 10.244.0.27:8080", Answer.OTHERWISE),
        (f"-d {OTHER}/32 -s 10.244.0.0/16 -j RETURN", Answer.ALIKE),  # as of this client
    ):
        given = changed(first, f"-A PREROUTING {rule}\n{first}")
        assert answer(given, OTHER) is expected
        assert answer(given, FIRST) is Answer.ALIKE


def test_at_loopback_a_node_port_answers_flows_of_the_node(captures: Path) -> None:
    given, loopback = read(captures / IPTABLES, *OWN), ip_address("127.0.0.1")
    assert answer(given, loopback, Source.NODE, loopback) is Answer.OTHERWISE
    assert answer(given, loopback, Source.EXTERNAL) is Answer.OTHERWISE  # no packet comes there
    assert answer(read(captures / IPTABLES), loopback, Source.NODE, loopback) is Answer.OTHERWISE


def test_of_too_many_clients_that_rules_distinguish_nothing_is_said(
    changed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(further_addresses, "_MOST_EVALUATED", 3)
    first = '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\n'

    def answers(rule: str) -> list[Answer]:
        given = changed(first, f"-A PREROUTING {rule} -j RETURN\n{first}")
        (service,) = (s for s in given.view.services if s.name.text == "ds/nodeport")
        found = FurtherAddresses(given)
        return [
            found.answer(service, Source.EXTERNAL, CLIENT + at % 3, (OTHER, 30301))
            for at in range(6)
        ]

    assert answers(f"-d {OTHER}/32") == [Answer.NO_SERVICE] * 6
    assert answers("-d 10.0.0.1/32") == [Answer.ALIKE] * 6
    assert answers(f"-s {CLIENT}/32 -d {OTHER}/32") == [
        *(Answer.NO_SERVICE, Answer.ALIKE, Answer.OTHERWISE) * 2
    ]
