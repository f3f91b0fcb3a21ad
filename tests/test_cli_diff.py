"""The command line of `diff`: which dumps it takes, what it says of them, and its exit status."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.answers import AFTER, BEFORE
from tests.support.captures import ROOT
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import FILTER, cluster_ip, dump, endpoint, two_endpoints

NFT = str(ROOT / "fixtures/captures/1.36.2-nftables/two-node@worker1/nft-list-ruleset.txt")
IPTABLES_NFT = "fixtures/nft/1.36.2-iptables-nft/two-node/nft-list-ruleset-of-iptables-nft.txt"
MASTER = str(Path(DUMP).parents[1] / "two-node" / "iptables-legacy-save.txt")
KNOWN = (*OBJECTS, "--node", "worker1")
TWO = dump(*two_endpoints()) + FILTER
ONE_END = endpoint("KUBE-SEP-1", "10.0.0.1:80")
ONE = dump(cluster_ip(), "-A KUBE-SVC-A -j KUBE-SEP-1", ONE_END) + FILTER
SIX = ONE.replace("10.96.0.1/32", "fd00::1/128").replace("10.0.0.1:80", "[fd00::2]:80")


def two(command: Command, a: str, b: str) -> tuple[str, str]:
    return command.file("a.txt", a), command.file("b.txt", b)


def told(command: Command, *arguments: str) -> Any:
    done = command("diff", *arguments, "--format", "json")
    assert "error" not in done.err
    return json.loads(done.out)


def last_line(text: str) -> str:
    return text.splitlines()[-1]


# --- exit status ------------------------------------------------------------------


def test_equal_dumps_end_well(command: Command) -> None:
    done = command("diff", *two(command, TWO, TWO), "--node-ip", "192.0.2.1")
    assert (done.status, done.err) == (0, "")
    assert last_line(done.out).startswith("No Service changes")


def test_a_difference_is_a_no(command: Command) -> None:
    done = command("diff", *two(command, TWO, ONE))
    assert (done.status, done.err) == (1, "")
    assert last_line(done.out) == "Behaviour changes: 1 ServicePort changed."


def test_what_is_meant_to_differ_is_none_unless_it_is_to_be_counted(command: Command) -> None:
    done = command("diff", DUMP, NFT, *KNOWN)
    assert (done.status, done.err) == (0, "")
    assert last_line(done.out) == "No Service changes: all differences are by design."
    assert command("diff", DUMP, NFT, *KNOWN, "--count-intended").status == 1


def test_what_cannot_be_told_is_a_no(command: Command) -> None:
    odd = TWO.replace("-m statistic --mode random --probability 0.50000000000", "-m nonesuch")
    files = two(command, TWO, odd)
    done = command("diff", *files)
    assert done.status == 1
    assert "No definite change. Undetermined: 1 ServicePort not known." in done.out.splitlines()
    assert "b.txt:" in done.err
    assert command("diff", *files, "--strict").status == 3


# --- what is compared ---------------------------------------------------------------


def test_one_ip_version_of_a_ruleset_of_nft_is_compared_with_iptables(command: Command) -> None:
    document = told(command, DUMP, NFT, *KNOWN)
    assert (document["a"]["families"], document["b"]["families"]) == (["ip"], ["ip", "ip6"])
    assert (document["families"], document["verdict"]) == (["ip"], "intended")
    assert (document["a"]["mode"], document["b"]["mode"]) == ("iptables", "nftables")


def test_both_ip_versions_of_two_rulesets_of_nft_are_compared(command: Command) -> None:
    document = told(command, NFT, NFT, *KNOWN)
    assert (document["families"], document["verdict"]) == (["ip", "ip6"], "same")


def test_another_ip_version_cannot_be_compared(command: Command) -> None:
    done = command("diff", *two(command, ONE, SIX))
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "kubeodds: a.txt has rules of IPv4 and b.txt of IPv6: only dumps of the same IP version "
        "can be compared\n"
    )


@pytest.mark.parametrize("chain", ["KUBE-LOAD-BALANCER", "KUBE-PORTALS-CONTAINER"])
def test_modes_whose_rules_name_no_endpoints_are_refused(command: Command, chain: str) -> None:
    other = f"*nat\n:PREROUTING ACCEPT [0:0]\n:{chain} - [0:0]\nCOMMIT\n"
    done = command("diff", *two(command, ONE, other))
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("kubeodds: b.txt: kube-proxy runs in ")
    assert done.err.endswith("; only rules of iptables and nftables mode can be compared\n")


def test_two_dumps_without_rules_of_kube_proxy_are_refused(command: Command) -> None:
    empty = "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n"
    done = command("diff", *two(command, empty, empty))
    assert (done.status, done.out) == (2, "")
    assert "neither has rules of kube-proxy" in done.err


def test_rules_that_were_flushed_are_gone(command: Command) -> None:
    done = command("diff", *two(command, ONE, "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n"))
    assert done.status == 1
    assert "kube-proxy has not written these rules" in done.err
    assert last_line(done.out) == "Behaviour changes: 1 ServicePort gone."


def test_of_rules_of_iptables_as_nft_lists_them_nothing_can_be_told(command: Command) -> None:
    """nft leaves out by which chance an endpoint is drawn, and where DNAT sends flows."""
    done = command("diff", MASTER, str(ROOT / IPTABLES_NFT))
    assert done.status == 1
    shown = done.out.splitlines()
    assert not [line for line in shown if " gone " in line or " added " in line]
    says = "No definite change. Undetermined: 5 ServicePorts not known"
    assert any(says in line for line in shown)


def test_one_dump_may_come_from_standard_input(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = command.file("a.txt", TWO)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ONE.encode())))
    assert command("diff", name, "-").status == 1
    done = command("diff", "-", "-")
    assert (done.status, done.err) == (
        2,
        "kubeodds: - is standard input, which can be read only once: pass the others as files\n",
    )


def test_a_dump_that_is_missing_is_asked_for(command: Command) -> None:
    done = command("diff", "--objects", DUMP, DUMP)
    assert done.status == 2
    assert done.err.splitlines()[0].endswith("the following arguments are required: B")


# --- nodes and Services ---------------------------------------------------------------


def test_two_nodes_have_names_of_their_own(command: Command) -> None:
    document = told(command, DUMP, MASTER, *KNOWN, "--node-b", "master")
    assert (document["a"]["node"], document["b"]["node"]) == ("worker1", "master")
    (service,) = document["services"]
    assert service["name"] == "default/kubernetes:https"
    (change,) = service["routes"]
    assert [(each["a"], each["b"]) for each in change["masquerade"]] == [(True, False)]
    assert [each["source"] for each in change["routes"]] == ["external"]
    # Taken for the same node nothing differs.
    assert told(command, DUMP, MASTER, *KNOWN)["services"] == []


def test_addresses_of_the_other_node_may_be_given_without_objects(command: Command) -> None:
    one = ("--node-ip", "192.168.0.11", "--node-ip-b", "192.168.0.10")
    names = [each["name"] for each in told(command, DUMP, MASTER, *one)["services"]]
    assert "default/kubernetes:https" in names


def test_one_service_may_be_asked_about_even_if_one_dump_lacks_it(command: Command) -> None:
    files = two(command, BEFORE, AFTER)
    gone = told(command, *files, "--service", "ns/gone:http")
    assert [(each["name"], each["change"]) for each in gone["services"]] == [
        ("ns/gone:http", "gone")
    ]
    assert gone["beside"] == []
    both = told(command, *files, "--namespace", "ns")
    assert [each["name"] for each in both["services"]] == ["ns/a:http", "ns/gone:http"]
    done = command("diff", *files, "--service", "nowhere")
    assert done.status == 2
    assert done.err.startswith("kubeodds: no Service nowhere in this dump")


# --- text ----------------------------------------------------------------------------------


def many(number: int, gone: int = 0) -> str:
    """Return a dump of a Service with many endpoints, each drawn alike."""
    left = number - gone
    return dump(
        cluster_ip(),
        *[
            f"-A KUBE-SVC-A -m statistic --mode random --probability {1 / (left - at):.11f} "
            f"-j KUBE-SEP-{at}"
            for at in range(left - 1)
        ],
        f"-A KUBE-SVC-A -j KUBE-SEP-{left - 1}",
        *[endpoint(f"KUBE-SEP-{at}", f"10.0.{at % 2}.{at}:80") for at in range(left)],
    )


def test_an_endpoint_that_is_gone_for_one_network_is_not_counted_as_gone(command: Command) -> None:
    text, chain = Path(DUMP).read_text(), "-A KUBE-SVC-NZGXMBVUFMQ6OBBQ"
    to_one = f"{chain} -s 198.51.100.0/24 -j KUBE-SEP-S5UX5RFD5X5TSEPT\n{chain}"
    done = command("diff", DUMP, command.file("b.txt", text.replace(chain, to_one, 1)), *KNOWN)
    assert "from 198.51.100.0/24 to ClusterIP 10.96.18.52:80  10.244.0.7:8080" in done.out
    assert "Addresses of endpoints" not in done.out


def test_many_endpoints_are_told_by_node_unless_all_are_wanted(command: Command) -> None:
    files = two(command, many(40), many(40, gone=20))
    nodes = ("--node-of", "10.0.0.0/24=even", "10.0.1.0/24=odd")
    shown = command("diff", *files, *nodes).out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert shown.count(" gone ") == 2
    assert "ns/a:http tcp all 10 endpoints gone even 25.0% -> none" in lines
    assert "10 endpoints gone odd 25.0% -> none" in lines
    assert "each endpoint's share 1/40 -> 1/20" in lines
    assert "Addresses of endpoints gone: 10 on even, 10 on odd." in lines
    assert command("diff", *files, *nodes, "--all").out.count(" gone ") == 20


def test_many_services_are_cut_short_unless_all_are_wanted(command: Command) -> None:
    services = [
        line
        for at in range(1, 101)
        for line in (
            cluster_ip(f"ns/s-{at:03}:http", f"10.96.1.{at}", chain=f"KUBE-SVC-{at}"),
            f"-A KUBE-SVC-{at} -j KUBE-SEP-1",
        )
    ]
    more = dump(*services, ONE_END)
    files = two(command, more, ONE)
    shown = command("diff", *files).out
    assert (shown.count(" gone "), shown.count(" added ")) == (59, 1)
    assert "41 more ServicePorts that differ; --all shows each" in shown
    assert last_line(shown).endswith(": 100 ServicePorts gone, 1 ServicePort added.")
    assert command("diff", *files, "--all").out.count(" gone ") == 100


def test_who_notices_a_change_is_told(command: Command) -> None:
    shown = command("diff", *two(command, BEFORE, AFTER), "--node-ip", "192.0.2.1").out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "all session affinity none -> 600 s" in lines
    assert "ns/a:http tcp all ExternalIP 10.96.0.6:80 added none -> 3 endpoints" in lines
    assert (
        "from 10.0.0.0/8 to NodePort *:30080 source address at 10.0.0.1:80 "
        "the client's -> the node's" in lines
    )
    assert "new flows are sent to endpoints -> forwarded unchanged" in lines
    assert (
        "a NodePort at the loopback address node sent to endpoints forwarded unchanged differs"
        in lines
    )


# --- dumps that are cut off ---------------------------------------------------------

#: What each dump begins its Services with, and how many of the two-node cluster there are.
CUTS = {"iptables": (MASTER, "-A KUBE-SERVICES "), "nft": (NFT, "\tmap service-ips {")}


@pytest.mark.parametrize(("path", "begins"), CUTS.values(), ids=CUTS)
def test_what_a_cut_dump_lacks_is_perhaps_gone(command: Command, path: str, begins: str) -> None:
    whole = Path(path).read_text(encoding="utf-8")
    cut = command.file("cut.txt", whole[: whole.index(begins)])
    done = command("diff", path, cut, *KNOWN)
    assert done.status == 1
    assert last_line(done.out).startswith("No definite change. Undetermined: 5 ServicePorts not")
    assert "perhaps gone" in done.out
    back = command("diff", cut, path, *KNOWN)
    assert "perhaps added" in back.out
    found = told(command, path, cut, *KNOWN)
    assert found["verdict"] == "unknown"
    assert found["totals"]["unknown"] == 5
    assert found["totals"]["gone"] == 0


@pytest.mark.parametrize(("path", "begins"), CUTS.values(), ids=CUTS)
def test_nobody_vouches_for_the_loss_of_what_a_cut_dump_lacks(
    command: Command, path: str, begins: str
) -> None:
    whole = Path(path).read_text(encoding="utf-8")
    cut = command.file("cut.txt", whole[: whole.index(begins)])
    asked = ("--dead-node", "worker1", *OBJECTS, "--max-loss", "100%")
    done = command("loss", cut, *asked)
    assert (done.status, done.out) == (2, "")
    assert "it is truncated; take it again" in done.err
    # Behind the frontends, among the chains of Services.
    behind = "\tchain service-FY5PMXPG" if path == NFT else "-A KUBE-SVC-TCOU7JCQXEZGVUNU"
    later = command.file("later.txt", whole[: whole.index(behind)])
    done = command("loss", later, *asked)
    assert done.status == 1
    assert "what the ServicePorts in the rest lose is not known" in done.out
    done = command("loss", path, *asked)
    assert done.status == 0
    assert "not known" not in done.out


def test_a_dump_that_ends_in_the_rules_of_ipv6_tells_all_of_ipv4(command: Command) -> None:
    whole = Path(NFT).read_text(encoding="utf-8")
    at = whole.index("table ip6 kube-proxy")
    cut = command.file("cut.txt", whole[: whole.index("\n\t}\n", at)])
    done = command("diff", NFT, cut, *KNOWN)
    assert done.status == 1
    assert "gone" not in done.out
    assert last_line(done.out) == (
        "No definite change. Undetermined: not all rules are in both dumps."
    )
    done = command("loss", cut, *OBJECTS, "--dead-node", "worker1")
    assert "what the ServicePorts in the rest lose is not known" in done.out


def test_a_dump_without_rules_of_kube_proxy_is_said_to_have_none(command: Command) -> None:
    empty = command.file("empty.txt", "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n")
    lines = command("diff", DUMP, empty).out.splitlines()
    assert lines[1] == "B  empty.txt: no kube-proxy rules found, 0 ServicePorts"


def test_the_help_says_whose_node_each_option_names(command: Command) -> None:
    told = " ".join(command("diff", "--help").out.split())
    assert "--node NAME the node that A is from; also the node of B, unless --node-b names" in told
    assert "in the same order" not in told
    assert "their nodes in the same order" in " ".join(command("loss", "--help").out.split())
