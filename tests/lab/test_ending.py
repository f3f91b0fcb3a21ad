"""The rule that ended flows, traced where no counter tells."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from analyzer.parsers import nft_text
from analyzer.parsers.iptables_save import parse
from netns_lab.listening import ending_at
from tests.support.captures import FIXTURES
from tests.support.lab.running import NFT, Case, case, kubeodds, lab_run

IPTABLES = parse(
    """*filter
:INPUT DROP [0:0]
:OUTPUT ACCEPT [0:0]
:OWN - [0:0]
-A INPUT -j OWN
-A OWN -p tcp -j ACCEPT
-A OWN -p udp -j REJECT --reject-with icmp-port-unreachable
COMMIT
""",
    "dump",
)
REJECTS = "filter: -A OWN -p udp -j REJECT --reject-with icmp-port-unreachable"
OF_NFT = nft_text.parse(
    """table inet t {
    chain input {
        type filter hook input priority 0; policy drop;
        tcp dport 80 accept
        ip daddr vmap { 10.0.0.1 : drop }
    }
    chain own {
        accept
    }
}
""",
    "dump",
)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (("filter", "OWN", 2), REJECTS),
        (("ip filter", "OWN", 2), REJECTS),
        # That accepts, and the end of a chain without a policy.
        (("filter", "OWN", 1), None),
        (("filter", "OWN", 3), None),
        (("filter", "INPUT", 2), "filter: -P INPUT DROP"),
        (("filter", "OUTPUT", 1), None),
        (("ip6 filter", "INPUT", 2), None),
        (("mangle", "INPUT", 1), None),
    ],
)
def test_what_ended_a_flow_is_a_rule_or_a_policy(
    where: tuple[str, str, int], text: str | None
) -> None:
    assert ending_at(IPTABLES, where) == text


def test_what_ended_a_flow_is_a_rule_or_a_policy_of_nft() -> None:
    assert ending_at(OF_NFT, ("inet t", "input", 3)) == "inet t input: policy drop"
    assert ending_at(OF_NFT, ("inet t", "own", 2)) is None
    assert ending_at(OF_NFT, ("ip t", "input", 3)) is None
    found = ending_at(OF_NFT, ("inet t", "input", 2))
    assert found is not None
    assert found.startswith("inet t input: ip daddr vmap")


#: One ServicePort without endpoints, and one of which half the flows are dropped.
DROPS = """
table ip guard {
    chain forward {
        type filter hook forward priority 5; policy accept;
        ip daddr 10.1.0.1 udp dport 53 drop
    }
}
"""


@pytest.mark.lab
def test_the_rule_that_ends_a_part_of_the_flows_is_named_in_nftables_mode(tmp_path: Path) -> None:
    given = Case(NFT / "1.36.2-nftables/seed-dns")
    path = tmp_path / "nft.txt"
    path.write_text(Path(given.dump).read_text() + DROPS)
    words = ["--service", "kube-dns:dns", "--flows", "400", "--from", "pod", "hairpin"]
    status, found, _ = lab_run(str(path), *given.given[1:], *words)
    assert (status, found["agrees"]) == (0, True)
    ended = [each for each in found["measurements"] if each["unaccounted"]]
    assert ended
    for each in ended:
        assert each["ended_by"] is None
        assert each["ended_at"] == "ip guard forward: ip daddr 10.1.0.1 udp dport 53 drop"
        assert each["counter_difference"] == 0
    for each in found["measurements"]:
        if each not in ended:
            assert each["ended_at"] is None


@pytest.mark.lab
def test_every_rule_that_ends_flows_is_named_in_nftables_mode(captures: Path) -> None:
    folder = captures / "1.36.2-nftables" / "features"
    words = [str(folder / "nft-list-ruleset.txt"), "--objects", str(folder / "objects.json.gz")]
    words += ["--node", json.loads((folder / "run.json").read_text())["node"]]
    words += ["--service", "feat/lb-ranges,feat/lb-local-ranges,feat/no-endpoints"]
    done = kubeodds("lab", "verify", *words, "--resolution", "20%", "-o", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["agrees"]) == (0, True), done.stderr
    ended = Counter(
        each["ended_at"] for each in found["measurements"] if each["rejected"] + each["unaccounted"]
    )
    assert None not in ended
    rules = " ".join(map(str, ended))
    assert "saddr != 192.0.2.0/24 drop" in rules
    assert "reject-chain: reject" in rules


#: A ServicePort without endpoints, as kube-proxy refuses it in table filter.
REFUSES = (
    '-A KUBE-SERVICES -d 10.96.7.7/32 -p tcp -m comment --comment "default/gone has no endpoints" '
    "-m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable"
)


@pytest.mark.lab
@pytest.mark.parametrize(
    "ends",
    [
        "-A OUTPUT -p icmp -m icmp --icmp-type 3 -j DROP",
        "-A OUTPUT -p icmp -m statistic --mode random --probability 0.50000000000 -j DROP",
    ],
)
def test_errors_that_rules_end_in_output_are_no_flows_more(tmp_path: Path, ends: str) -> None:
    """They pass the rules too, whose counters then have more packets than flows."""
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    text = Path(given.dump).read_text()
    at = text.index("-A ", text.index("*filter"))
    path = tmp_path / "dump.txt"
    path.write_text(f"{text[:at]}{REFUSES}\n{ends}\n{text[at:]}")
    words = ["--service", "default/gone", "--flows", "40", "--from", "pod,external,node"]
    status, found, errors = lab_run(str(path), *given.given[1:], *words)
    assert (status, found["agrees"], found["left_out"]) == (0, True, []), errors
    assert [each["source"] for each in found["measurements"]] == ["pod", "node", "external"]
    for each in found["measurements"]:
        counted = {told["rule"]: told["packets"] for told in each["ended_by"]}
        assert (counted[REFUSES], each["rejected"] + each["unaccounted"]) == (40, 40)
        # What the node sends it hears refused by its own kernel, before any error is sent.
        kept_from = each["unaccounted"] if each["source"] != "node" else counted[ends]
        assert counted[ends] == kept_from > 0


#: Rules of nft beside those of iptables.
BESIDE = """table ip guard {
    chain forward {
        type filter hook forward priority 10; policy accept;
        ip daddr 10.244.0.7 tcp dport 8080 reject
    }
}
"""


#: Tables with flags, whose names libnftables 1.0.6 frees too early in JSON.
DORMANT = "".join(
    f"table ip asleep{n} {{\n flags dormant\n chain c {{\n  accept\n }}\n}}\n" for n in range(9)
)


@pytest.mark.lab
@pytest.mark.parametrize("others", ["", DORMANT], ids=["alone", "dormant"])
def test_a_rule_of_nft_that_ends_flows_beside_iptables_is_named(
    tmp_path: Path, others: str
) -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    path = tmp_path / "guard.nft"
    path.write_text(others + BESIDE)
    words = ["--other-rules", str(path), "--service", "default/app", "--flows", "100"]
    status, found, errors = lab_run(*given.given, *words)
    assert (status, found["agrees"]) == (0, True), errors
    (each,) = found["measurements"]
    assert each["rejected"] > 20
    assert each["ended_by"] is None  # nothing counts in nft
    rule = "ip daddr 10.244.0.7 tcp dport 8080 reject with icmp type port-unreachable"
    assert each["ended_at"] == f"ip guard forward: {rule}"


#: One ClusterIP is exempted from conntrack, and no flow's answer goes there.
UNTRACKED = """
table ip raw {
    chain prerouting {
        type filter hook prerouting priority raw; policy accept;
        ip daddr 10.96.18.52 notrack
    }
}
"""


@pytest.mark.lab
def test_answers_to_masqueraded_flows_go_to_no_cluster_ip(tmp_path: Path) -> None:
    folder = FIXTURES / "1.36.2-nftables" / "two-node@worker1"
    path = tmp_path / "nft.txt"
    path.write_text((folder / "nft-list-ruleset.txt").read_text() + UNTRACKED)
    words = [str(path), "--objects", str(folder / "objects.json"), "--node", "worker1"]
    words += ["--service", "kubernetes,kube-dns:dns", "--from", "node,external"]
    status, found, errors = lab_run(*words, "--flows", "300")
    assert (status, found["agrees"]) == (0, True), errors
    assert found["measurements"]
    for each in found["measurements"]:
        assert each["rejected"] + each["unaccounted"] == 0


@pytest.mark.lab
def test_a_rule_against_a_pod_of_no_known_node_ends_its_flows(tmp_path: Path) -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    rule = "-A FORWARD -s 10.244.2.7/32 -d 10.244.1.4/32 -j DROP"
    path = tmp_path / "dump.txt"
    path.write_text(Path(given.dump).read_text().replace("-A FORWARD", f"{rule}\n-A FORWARD", 1))
    words = ["--service", "kube-dns:dns", "--from", "pod-elsewhere", "--flows", "400"]
    status, found, errors = lab_run(str(path), *given.given[1:], *words)
    assert (status, found["agrees"]) == (0, True), errors
    lost = [each["unaccounted"] for each in found["measurements"]]
    assert len(lost) == 2
    # Those of other pods arrive.
    assert (min(lost), 120 < max(lost) < 280) == (0, True)
