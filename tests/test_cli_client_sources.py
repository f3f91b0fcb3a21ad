"""Which clients `client` judges: those of a kind, or one by its address; the others are named."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.captures import FIXTURES
from tests.support.client_documents import ASKED, document, fails, number, point
from tests.support.commands import DUMP, OBJECTS, Command


def edited(command: Command, rule: str) -> tuple[str, ...]:
    """Return the arguments for the dump with a rule before all others of FORWARD."""
    text = Path(DUMP).read_text().replace("-A FORWARD ", f"-A FORWARD {rule}\n-A FORWARD ", 1)
    return (command.file("edited.txt", text), *OBJECTS, "--node", "worker1", "--client", "glibc")


DUAL = FIXTURES.parent / "check" / "1.36.2-iptables-legacy" / "dual-stack"
NFT = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
ONE_POD = "-s 10.244.1.77/32 -p udp -m udp --dport 53 -j DROP"
#: One endpoint of DNS drops what is sent back to it.
HAIRPIN = "-s 10.244.1.4/32 -d 10.244.1.4/32 -j DROP"


@pytest.mark.parametrize(
    ("rule", "network"), [(ONE_POD, "10.244.1.77/32"), (HAIRPIN, "10.244.1.4/32")]
)
def test_whom_rules_single_out_is_not_judged(command: Command, rule: str, network: str) -> None:
    given = edited(command, rule)
    done = command("client", *given, "--max-failure", "10%")
    assert done.status == 1
    address = network.removesuffix("/32")
    assert f"Not judged: clients in {address}, whose flows to kube-system/kube-dns:" in done.out
    assert "Nothing fails for the others.\n" in done.out
    found = document(command, *given)
    assert found["singled_out"] == [{"name": "kube-system/kube-dns:dns", "networks": [network]}]
    # Who names another client has an answer for it.
    other = (*given, "--from", "10.244.1.78", "--max-failure", "10%")
    found = document(command, *other)
    assert (found["client"], found["source"], found["singled_out"]) == ("10.244.1.78", "pod", [])
    assert fails(found)["glibc"] == point(0, 1)


def test_a_client_that_rules_single_out_is_judged_by_its_address(command: Command) -> None:
    given = (*edited(command, ONE_POD), "--from", "10.244.1.77")
    found = document(command, *given, "--max-failure", "10%", status=1)
    assert fails(found)["glibc"] == point(1, 1)
    assert found["singled_out"] == []
    assert command("client", *given).out.startswith("Clients: 10.244.1.77, a pod at node worker1.")


def test_pods_that_have_no_address_of_a_podcidr_are_told_apart_too(command: Command) -> None:
    text = Path(OBJECTS[1]).read_text()
    for node in (0, 1):  # Calico leaves podCIDRs unused
        text = text.replace(f"10.244.{node}.0/24", f"10.244.{200 + node}.0/24")
    objects = command.file("unused.json", text)
    dump = edited(command, ONE_POD)[0]
    given = (dump, "--objects", objects, "--node", "worker1", "--client", "glibc")
    found = document(command, *given, "--from", "10.244.1.77")
    assert fails(found)["glibc"] == point(1, 1)
    assert document(command, *given)["singled_out"][0]["networks"] == ["10.244.1.77/32"]
    done = command("loss", *given[:5])
    told = "kube-system/kube-dns:dns: 100.0% of new flows from pod 10.244.1.77/32, "
    assert done.out.startswith(told)
    assert command("diff", DUMP, *given[:5]).status == 1


@pytest.mark.parametrize("kind", ["iptables", "nft"])
def test_endpoints_show_that_podcidrs_are_unused_to_nodes_alone(
    command: Command, kind: str
) -> None:
    objects = json.loads(Path(OBJECTS[1]).read_text())
    nodes = [each for each in objects["items"] if each["kind"] == "Node"]
    for at, node in enumerate(nodes):
        node["spec"] = {"podCIDR": f"10.244.{200 + at}.0/24"}
    given = command.file("nodes.json", json.dumps({**objects, "items": nodes}))
    if kind == "iptables":
        dump = edited(command, "-i cali+ -s 10.244.1.77/32 -j DROP")[0]
    else:
        of_others = """table ip policies {
            chain c {
                type filter hook forward priority 0; policy accept;
                iifname "cali*" ip saddr 10.244.1.77 drop
            }
        }"""
        dump = command.file("nft.txt", f"{NFT.read_text()}{of_others}\n")
    done = command("loss", dump, "--objects", given, "--node", "worker1")
    assert "100.0% of new flows from pod 10.244.1.77/32" in done.out


def test_no_verb_passes_over_pods_of_nodes_that_the_objects_lack(command: Command) -> None:
    given = edited(command, "-s 10.244.2.7/32 -d 10.244.1.4/32 -j DROP")
    source = "pod-elsewhere 10.244.2.7/32"
    for verb in ("loss", "whatif"):
        done = command(verb, *given[:-2])
        assert f"50.0% of new flows from {source} are dropped now (table filter, " in done.out
    dead = ("--dead", "10.244.0.7")  # of another Service
    dns = ("--service", "kube-system/kube-dns:dns", "--max-loss", "10%")
    assert command("loss", *given[:-2], *dead, "--service", "default/app").status == 0
    assert command("loss", *given[:-2], *dead, *dns).status == 1
    assert command("diff", DUMP, *given[:-2]).status == 1
    asked = (*given, "--from", "10.244.2.7")
    assert command("client", *asked).out.startswith("Clients: 10.244.2.7, a pod of another node at")
    _, upper = fails(document(command, *asked))["glibc"]
    assert upper >= Fraction(1, 2)


def test_an_endpoint_is_judged_with_what_it_sends_itself(command: Command) -> None:
    drop = "-s 10.244.1.9/32 -d 10.244.1.9/32 -j DROP"
    given = (*edited(command, drop)[:-2], "--client", "tcp", "--service", "default/app")
    found = document(command, *given, "--from", "10.244.1.9")
    # Half of its flows are drawn for itself. conntrack keeps none of these, so the next may live.
    assert number(found["operations"][0]["flow_fails"]["upper"]) == Fraction(1, 2)
    assert found["singled_out"] == []
    found = document(command, *given, "--from", "10.244.1.10")
    assert fails(found)["tcp"] == point(0, 1)


def test_from_is_a_kind_or_an_address(command: Command) -> None:
    done = command("client", *ASKED, "--from", "pods")
    assert done.status == 2
    assert "'pods' is no IP address, and no kind of source; did you mean pod?" in done.err
    done = command("client", *ASKED, "--from", "224.0.0.1")
    assert (done.status, "224.0.0.1 is no address of a client" in done.err) == (2, True)
    done = command("client", *ASKED, "--from", "fd00::1")
    assert (done.status, "--from fd00::1: the rules are for IPv4" in done.err) == (2, True)


def test_a_client_needs_a_name_server_of_its_ip_version(command: Command) -> None:
    rules = [str(DUAL / f"{name}-legacy-save.txt") for name in ("iptables", "ip6tables")]
    conf = command.file("resolv.conf", "nameserver 10.96.0.10\n")
    done = command(
        *("client", *rules, "--resolv-conf", conf, "--from", "fd00::9", "--client", "glibc")
    )
    assert (done.status, "no name server has an IPv6 address" in done.err) == (2, True)


@pytest.mark.parametrize("source", ["node", "external"])
def test_only_pods_are_sent_their_own_flows(command: Command, source: str) -> None:
    asked = (*edited(command, HAIRPIN), *resolv_conf(command, "10.96.0.10"), "--from", source)
    done = command("client", *asked, "--max-failure", "10%")
    assert (done.status, "Not judged" in done.out) == (0, False)


def test_an_endpoint_that_ends_as_others_do_is_not_singled_out(command: Command) -> None:
    answers = "-p tcp -m tcp --sport 8080 -m statistic --mode random --probability 0.25 -j REJECT"
    given = (*edited(command, answers)[:-2], "--client", "tcp", "--service", "default/app")
    assert document(command, *given)["singled_out"] == []


def test_an_ipv4_mapped_address_is_the_ipv4_address(command: Command) -> None:
    given = edited(command, ONE_POD)
    mapped = document(command, *given, "--from", "::ffff:10.244.1.77")
    assert mapped == document(command, *given, "--from", "10.244.1.77")


def test_the_address_of_all_hosts_is_no_clients(command: Command) -> None:
    done = command("client", *edited(command, ONE_POD), "--from", "255.255.255.255")
    assert done.status == 2
    assert "255.255.255.255 is no address of a client" in done.err


def test_networks_of_both_ip_versions_are_named_once_for_a_service(command: Command) -> None:
    given = []
    for program, pod in (("iptables", "10.244.0.77/32"), ("ip6tables", "fd00:10:244::77/128")):
        text = (DUAL / f"{program}-legacy-save.txt").read_text()
        rule = f"-A FORWARD -s {pod} -p tcp -j DROP\n-A FORWARD "
        given.append(command.file(f"{program}.txt", text.replace("-A FORWARD ", rule, 1)))
    known = ["--objects", str(DUAL / "objects.json"), "--node", "node-a1", "--client", "tcp"]
    found = document(command, *given, *known, "--service", "ds/ep-2")
    networks = ["10.244.0.77/32", "fd00:10:244::77/128"]
    (only,) = found["singled_out"]
    assert (only["name"], sorted(only["networks"])) == ("ds/ep-2", networks)
    for each in networks:
        alone = [*known, "--from", each.rpartition("/")[0], "--service", "ds/ep-2"]
        assert fails(document(command, *given, *alone))["tcp"] == point(1, 1)
    done = command("client", *given, *known, "--service", "ds/ep-2", "--max-failure", "10%")
    assert done.status == 1
    assert "Not judged: clients in 10.244.0.77, fd00:10:244::77" in done.out


# --- name servers -------------------------------------------------------------------


def resolv_conf(command: Command, *servers: str) -> tuple[str, str]:
    text = "".join(f"nameserver {each}\n" for each in servers)
    search = "search default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n"
    return "--resolv-conf", command.file("resolv.conf", text + search)


#: 203.0.113.10 is that of a balancer whose flows this node passes to its own endpoint alone.
BALANCED = (
    '-A KUBE-SERVICES -d 203.0.113.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns '
    'loadbalancer IP" -m udp --dport 53 -j KUBE-EXT-TCOU7JCQXEZGVUNU\n'
    "-A KUBE-EXT-TCOU7JCQXEZGVUNU -j KUBE-SEP-222YD7DQOUNKFRLL\n"
)


def balanced(command: Command) -> tuple[str, ...]:
    text = Path(DUMP).read_text().replace("-A KUBE-SERVICES ", f"{BALANCED}-A KUBE-SERVICES ", 1)
    text = text.replace(":KUBE-SVC-TCOU", ":KUBE-EXT-TCOU7JCQXEZGVUNU - [0:0]\n:KUBE-SVC-TCOU", 1)
    return (command.file("balanced.txt", text), *OBJECTS, "--node", "worker1")


@pytest.mark.parametrize("source", ["external", "203.0.113.77"])
def test_clients_outside_do_not_use_the_dns_of_the_cluster(command: Command, source: str) -> None:
    asked = (*ASKED, "--dead-node", "master", "--from", source)
    done = command("client", *asked, "--service", "app", "--max-failure", "100%")
    assert (done.status, "look up" in done.out) == (0, False)  # nobody asks about names
    done = command("client", *asked, "--max-failure", "100%")
    assert (done.status, "look up" in done.out) == (1, False)
    says = "look-ups are not judged: clients outside the cluster do not use its DNS Service"
    assert says in done.err
    assert [each["code"] for each in document(command, *asked)["diagnostics"]].count(
        "no-name-server"
    )
    for named in (("--client", "glibc"), ("--lookup", "app.default")):
        done = command("client", *asked, *named)
        assert (done.status, done.out) == (2, "")
        assert "Clients outside the cluster do not use its DNS Service; pass --res" in done.err
    journeys = '[[journey]]\nname = "order"\nsteps = [{lookup = "app.default"}]\n'
    done = command("client", *asked, "--requires", command.file("journeys.toml", journeys))
    assert (done.status, "which name server? Clients outside" in done.err) == (2, True)
    # Whose resolv.conf names a Service uses it, wherever they are.
    told = document(command, *asked, *resolv_conf(command, "10.96.0.10"), "--client", "musl")
    pods = (*ASKED, "--dead-node", "master", "--client", "musl")
    assert fails(told) == fails(document(command, *pods))


@pytest.mark.parametrize("source", ["pod", "external"])
def test_look_ups_take_the_route_to_the_name_server_that_is_named(
    command: Command, source: str
) -> None:
    asked = (*balanced(command), "--from", source, "--client", "dig", "--lookup", "app.default")
    for dead, at_cluster_ip, at_balancer in (
        ("10.244.0.3", point(1, 8), point(0, 1)),  # of dig's three tries each is drawn anew
        ("10.244.1.4", point(1, 8), point(1, 1)),
    ):
        for server, wanted in (("10.96.0.10", at_cluster_ip), ("203.0.113.10", at_balancer)):
            found = document(command, *asked, "--dead", dead, *resolv_conf(command, server))
            assert fails(found)["dig"] == wanted, (dead, server)
