"""Who wrote a rule: told by names and comments, and by nothing else."""

from __future__ import annotations

import re

import pytest

from analyzer.model.hooks import TABLES
from analyzer.model.programs import (
    PROGRAMS,
    Program,
    is_ending,
    is_only_in_nat,
    program_of,
    program_of_chain,
)
from tests.support.captures import ROOT

NOISE = ROOT / "fixtures" / "noise"


@pytest.mark.parametrize(
    ("chain", "name"),
    [
        ("cali-FORWARD", "Calico"),
        ("felix-INPUT", "Calico"),
        ("CILIUM_PRE_raw", "Cilium"),
        ("OLD_CILIUM_POST_nat", "Cilium"),
        ("DOCKER", "Docker"),
        ("DOCKER-USER", "Docker"),
        ("ufw-before-input", "ufw"),
        ("ufw6-user-input", "ufw"),
        ("INPUT_ZONES", "firewalld"),
        ("IN_public_allow", "firewalld"),
        ("PRE_public", "firewalld"),
        ("KUBE-POD-FW-ABCDEF", "kube-router"),
        ("KUBE-ROUTER-FORWARD", "kube-router"),
        ("CNI-HOSTPORT-DNAT", "CNI portmap"),
        ("CNI-DN-0123456789abcdef01234", "CNI portmap"),
        ("CNI-0123456789abcdef01234567", "CNI"),
        ("FLANNEL-POSTRTG", "flannel"),
        ("AWS-SNAT-CHAIN-0", "AWS VPC CNI"),
        ("KUBE-KUBELET-CANARY", "kubelet"),
        ("KUBE-FIREWALL", "kubelet"),
        ("KUBE-HP-ABCDEFGH", "kubelet's host ports"),
        ("KUBE-SVC-ABCDEFGH", "kube-proxy"),
        ("KUBE-PROXY-CANARY", "kube-proxy"),
        ("ISTIO_OUTPUT", "Istio"),
        ("WEAVE-NPC", "Weave Net"),
        ("LIBVIRT_FWX", "libvirt"),
        ("ts-input", "Tailscale"),
        ("f2b-sshd", "fail2ban"),
        ("OVN-MASQUERADE", "Kube-OVN"),
        ("OVN-KUBE-EXTERNALIP", "OVN-Kubernetes"),
        ("OPENSHIFT-MASQUERADE", "OpenShift SDN"),
        ("KIND-MASQ-AGENT", "kindnet"),
        ("IP-MASQ", "ip-masq-agent"),
        ("LOGDROPOUT", "CSF"),
        ("DENYIN", "CSF"),
        ("FORWARD", None),
        ("my-chain", None),
        ("DOCKERISH", None),
        ("INPUT", None),
    ],
)
def test_a_chain_is_known_by_its_name(chain: str, name: str | None) -> None:
    assert program_of_chain(chain) == name


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ('-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD', "Calico"),
        ("-A FORWARD -m comment --comment cali:abc -j ACCEPT", "Calico"),
        ("-A FORWARD -j DOCKER-USER", "Docker"),
        ("-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE", "Docker"),
        (
            '-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD',
            "kube-proxy",
        ),
        (
            '-A PREROUTING -m comment --comment "NodeLocal DNS Cache: skip conntrack" -j NOTRACK',
            "NodeLocal DNSCache",
        ),
        (
            '-A POSTROUTING -m comment --comment "ip-masq: local traffic" -j RETURN',
            "ip-masq-agent",
        ),
        ("-A FORWARD -s 10.0.0.0/8 -j DROP", None),
        ('-A FORWARD -m comment --comment "not cali:x" -j DROP', None),
        ('iifname "docker0" accept', "Docker"),
        ('ip daddr 10.0.0.1 jump cali-x comment "mine"', "Calico"),
        ('tcp dport 22 drop comment "cali:xyz"', "Calico"),
    ],
)
def test_a_rule_in_a_chain_of_nobody_is_known_by_what_it_says(rule: str, name: str | None) -> None:
    assert program_of("FORWARD", rule) == name


def test_a_chain_is_its_program_s_whatever_others_put_into_it() -> None:
    assert program_of("DOCKER-USER", "-A DOCKER-USER -j cali-FORWARD") == "Docker"
    assert program_of("services", "", "ip kube-proxy") == "kube-proxy"
    assert program_of("filter_INPUT", "", "inet firewalld") == "firewalld"
    assert program_of("filter_forward", "", "ip nm-shared-br0") == "NetworkManager"


def test_each_program_is_named_once_and_its_patterns_are_such() -> None:
    assert len({each.name for each in PROGRAMS}) == len(PROGRAMS)
    for each in PROGRAMS:
        assert any((each.chains, each.comments, each.devices, each.tables))
        for pattern in (each.chains, each.comments, each.devices, each.tables):
            assert re.compile(pattern).match("") is None or not pattern


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("calico", "Calico"),
        ("flannel", "flannel"),
        ("libvirt", "libvirt"),
        ("portmap", "CNI portmap"),
        ("aws-vpc-cni", "AWS VPC CNI"),
        ("nodelocaldns", "NodeLocal DNSCache"),
    ],
)
def test_all_that_a_program_adds_to_a_node_is_known_as_its_own(file: str, name: str) -> None:
    base = set((NOISE / "base.txt").read_text().splitlines())
    rules = [
        line
        for line in (NOISE / f"{file}.txt").read_text().splitlines()
        if line.startswith("-A ") and line not in base
    ]
    assert len(rules) > 3
    told = {line: program_of(line.split()[1], line) for line in rules}
    assert [line for line, found in told.items() if found != name] == []


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_each_alternative_of_a_pattern_begins_with_plain_text(program: Program) -> None:
    for pattern in filter(
        None, (program.chains, program.comments, program.devices, program.tables)
    ):
        # Alternatives within groups are no alternatives of the whole.
        alone = re.sub(
            r"\([^()|]*(?:\|[^()|]*)+\)", lambda each: each[0].replace("|", "/"), pattern
        )
        for each in alone.split("|"):
            assert not re.match(r"\([^()]*\)[?*{]", each)
            for part in each.partition(")")[0].split("/") if each.startswith("(") else (each,):
                assert re.match(r"(?:\(\?:)?[A-Za-z0-9_](?![?*{])", part)


def test_no_base_chain_of_iptables_is_of_a_program() -> None:
    for chain in TABLES:
        assert not any(p.chains and re.match(p.chains, chain) for p in PROGRAMS)
        assert program_of_chain(chain) is None


def test_some_chains_are_in_the_nat_table_only() -> None:
    assert is_only_in_nat("KUBE-SVC-ABCDEFGH")
    assert is_only_in_nat("KUBE-MARK-MASQ")
    assert not is_only_in_nat("KUBE-SERVICES")
    assert not is_only_in_nat("cali-FORWARD")


def test_some_chains_end_in_a_rule_that_takes_all_packets() -> None:
    assert is_ending("KUBE-SEP-ABCDEFGH")
    assert not is_ending("KUBE-FW-ABCDEFGH")
    assert not is_ending("MY-SEP-ABCDEFGH")
