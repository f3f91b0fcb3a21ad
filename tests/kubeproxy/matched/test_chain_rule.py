from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest

from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.parsers.xt.rule import parse_rule
from tests.support.strategies.iptables_rules import HERE


def of(words: str) -> ChainRule:
    return ChainRule("KUBE-SVC-A", parse_rule(f"-A KUBE-SVC-A {words}", HERE, ()))


def test_a_frontend_is_one_address_protocol_and_port() -> None:
    rule = of('-d 10.0.0.1/32 -p tcp -m comment --comment "ns/a cluster IP" -m tcp --dport 80')
    assert rule.host == IPv4Address("10.0.0.1")
    assert rule.frontend_key == (int(rule.host), "tcp", 80)
    assert (rule.comment, rule.others, rule.is_unconditional) == ("ns/a cluster IP", False, False)
    assert (rule.service, rule.kind) == ("ns/a", "ClusterIP")
    assert str(rule) == "10.0.0.1:80/tcp (ns/a)"


def test_a_node_port_has_no_address_and_the_bare_name_in_its_comment() -> None:
    rule = of('-p udp -m comment --comment "ns/a:dns" -m udp --dport 30053')
    assert (rule.service, rule.kind) == ("ns/a:dns", "")
    assert str(rule) == "*:30053/udp (ns/a:dns)"


def test_a_frontend_without_a_port_or_a_name_says_so() -> None:
    assert str(of("-d fd00::1/128 -p tcp")) == "[fd00::1]:any port/tcp"
    assert str(of("")) == "*:any port/any protocol"


@pytest.mark.parametrize(
    ("chain", "words", "counts"),
    [
        ("KUBE-NODEPORTS", "-d 127.0.0.0/8", True),
        ("KUBE-NODEPORTS", "", False),
        ("KUBE-NODEPORTS", "-d 10.0.0.1/32", False),
        ("KUBE-SERVICES", "-d 127.0.0.0/8", False),
    ],
)
def test_only_node_ports_are_counted_over_loopback(chain: str, words: str, counts: bool) -> None:
    assert ChainRule(chain, of(words).rule).is_loopback is counts


@pytest.mark.parametrize("words", ["! -d 10.0.0.1/32", "-d 10.0.0.0/31", ""])
def test_other_destinations_are_no_single_address(words: str) -> None:
    assert of(words).host is None


@pytest.mark.parametrize(("words", "port"), [("80", 80), ("80:81", None)])
def test_a_range_of_ports_is_asked_for_and_is_no_port(words: str, port: int | None) -> None:
    rule = of(f"-p tcp -m tcp --dport {words}")
    assert (rule.asks_port, rule.port, rule.others) == (True, port, False)
    negated = of(f"-p tcp -m tcp ! --dport {words}")
    assert (negated.asks_port, negated.port) == (True, None)


def test_networks_and_marks_may_be_negated() -> None:
    rule = of("! -s 10.0.0.0/9 -m mark ! --mark 0x4000/0x4000")
    assert (rule.source, rule.source_negated) == (IPv4Network("10.0.0.0/9"), True)
    assert rule.source_text == "10.0.0.0/9"
    assert rule.mark is not None
    assert (rule.mark.mask, rule.mark_negated) == (0x4000, True)
    assert not of("-m mark --mark 1").mark_negated


@pytest.mark.parametrize(
    "words",
    [
        "-i eth0",
        "-m multiport --dports 80",
        "-p tcp -m tcp --dport 80 -m tcp --dport 81",
        "-p tcp -m tcp --sport 80",
        "-m addrtype --src-type LOCAL --dst-type LOCAL",
        "-m recent ! --rcheck --name A --rsource",
        "-m statistic --mode nth --every 2 --packet 0",
        "! -i eth0",
        "-m made-up",
    ],
)
def test_what_a_rule_matches_on_beyond_is_counted_among_the_others(words: str) -> None:
    assert of(words).others
    assert not of(words).is_unconditional


@pytest.mark.parametrize("words", ["", '-m comment --comment "x y"', "-m nfacct --nfacct-name x"])
def test_a_comment_and_accounting_match_every_packet(words: str) -> None:
    assert of(f"{words} -j DROP".strip()).is_unconditional


def test_the_first_of_two_matches_on_the_same_counts() -> None:
    rule = of("-m comment --comment a -m comment --comment b -p tcp -m tcp --dport 80 -m tcp")
    assert (rule.comment, rule.port, rule.others) == ("a", 80, True)


@pytest.mark.parametrize(
    ("words", "target", "is_jump"),
    [
        ("-j KUBE-SEP-B", "KUBE-SEP-B", True),
        ("-g KUBE-SEP-B", "KUBE-SEP-B", True),
        ("-j RETURN", "RETURN", False),
        ("-j MASQUERADE --random-fully", "MASQUERADE", False),
        ("-j REJECT --made-up 1", "REJECT", False),
        ("-p tcp", None, False),
    ],
)
def test_a_target_is_a_chain_or_has_its_name(words: str, target: str, is_jump: bool) -> None:
    assert (of(words).target, of(words).is_jump) == (target, is_jump)


def test_a_verdict_ends_the_base_chain_and_a_return_does_not() -> None:
    assert of("-j ACCEPT").is_final
    assert not of("-j RETURN").is_final
    assert not of("-j KUBE-SEP-B").is_final


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("-j DNAT --to-destination 10.0.0.1:80", "10.0.0.1:80"),
        ("-j DNAT --to-destination [fd00::1]:80", "[fd00::1]:80"),
        ("-j DNAT --to-destination 10.0.0.1", None),
        ("-j DNAT --to-destination 10.0.0.1-10.0.0.2:80", None),
        ("-j DNAT --to-destination 10.0.0.1:80-81", None),
        ("-j RETURN", None),
    ],
)
def test_a_dnat_has_one_address_and_port_or_none(words: str, text: str | None) -> None:
    assert of(words).dnat == text
    assert of(words).has_dnat is ("DNAT" in words)


def test_a_probability_has_the_digits_that_were_printed() -> None:
    assert of("-m statistic --mode random --probability 0.50000").probability == "0.50000"
    assert of("-j RETURN").probability is None


def test_a_mark_is_what_the_target_sets() -> None:
    sets = of("-j MARK --set-xmark 0x4000/0x4000").sets_mark
    assert sets is not None
    assert (sets.value, sets.mask) == (0x4000, 0x4000)
    assert of("-j RETURN").sets_mark is None


def test_only_addresses_of_the_node_are_local() -> None:
    assert of("-m addrtype --dst-type LOCAL").local
    assert not of("-m addrtype ! --dst-type LOCAL").local
    assert not of("-m addrtype --dst-type UNICAST").local
