"""The command line of `repair`: what it prints, what it warns of, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.model.iptables.rules import Ruleset
from tests.support.captures import FIXTURES, ROOT
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import chance, cluster_ip, dump, endpoint, two_endpoints

RULESET = str(ROOT / "examples" / "ruleset.nft")
ANY_AGE = ("--max-age", "999999999")
ASKED = (DUMP, *OBJECTS, "--node", "worker1", *ANY_AGE)
DEAD = (*ASKED, "--dead-node", "master")


def test_the_head_says_what_it_does_how_to_apply_it_and_how_to_take_it_back(
    command: Command,
) -> None:
    done = command("repair", *DEAD)
    assert (done.status, done.err) == (0, "")
    head = [line for line in done.out.splitlines() if line.startswith("#")]
    text = " ".join(line.removeprefix("#").strip() for line in head)
    assert "excludes node master (2 of 3 endpoint addresses) from new flows of node" in text
    assert "No more losses to dead endpoints: 4 ServicePorts" in text
    assert "Left alone: default/kubernetes:https." in text
    assert "iptables-legacy-restore -w 5 --noflush < undo.rules" in text
    assert "conntrack -D -p udp --reply-src 10.244.0.3 --reply-port-src 53" in text
    assert max(map(len, head)) <= 96


def test_all_that_is_no_comment_is_for_iptables_restore(command: Command) -> None:
    lines = command("repair", *DEAD).out.splitlines()
    kinds = {line.split(" ")[0] for line in lines if not line.startswith(("#", "*"))}
    assert kinds == {"-N", "-A", "-I", "COMMIT"}
    undo = command("repair", *DEAD, "--print", "undo").out.splitlines()
    assert {line.split(" ")[0] for line in undo if line[0] != "*"} == {"-D", "-F", "-X", "COMMIT"}


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        ("-A FORWARD -d 10.244.1.9/32 -j DROP", "100.0% of new flows on ClusterIP 10.96.18.52:80"),
        ("-A FORWARD -s 10.244.1.77/32 -d 10.244.1.9/32 -j DROP", "10.96.18.52:80 (pod), to"),
    ],
)
def test_flows_that_rules_end_at_living_endpoints_are_named(
    command: Command, rule: str, where: str
) -> None:
    text = Path(DUMP).read_text().replace("-A FORWARD ", f"{rule}\n-A FORWARD ", 1)
    given = command.file("dump.txt", text), *DEAD[1:], "--service", "default/app"
    lines = command("repair", *given).out.splitlines()
    told = " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
    assert "STILL LOST: default/app loses 100.0% of new flows on ClusterIP 10.96." in told
    assert where in told
    (service,) = json.loads(command("repair", *given, "--format", "json").out)["services"]
    after = [each["loss_after"]["upper"]["value"] for each in service["routes"]]
    assert max(after) == 1
    assert "STILL LOST" not in command("repair", *DEAD).out


def test_commands_that_free_flows_stand_alone_udp_first(command: Command) -> None:
    done = command("repair", *DEAD, "--print", "conntrack")
    lines = done.out.splitlines()
    assert all(line.startswith("conntrack -D -p ") for line in lines)
    protocols = [line.split()[3] for line in lines]
    assert protocols == sorted(protocols, key=lambda each: each != "udp")


def test_the_api_is_refused_only_where_it_is_asked_for(command: Command) -> None:
    assert "REJECT" not in command("repair", *DEAD).out
    done = command("repair", *DEAD, "--service", "default/kubernetes:https")
    assert "No endpoint left, rejected at once: default/kubernetes:https." in done.out
    assert "-d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j REJECT" in done.out
    assert "default/app" not in done.out


@pytest.mark.parametrize("rules", [DUMP, RULESET])
def test_services_with_the_same_endpoints_are_left_alone_unless_asked_for(
    command: Command, rules: str
) -> None:
    asked = (rules, *OBJECTS, "--node", "worker1", *ANY_AGE, "--dead-node", "master")
    done = command("repair", *asked, "--service", "kube-dns:dns")
    changes = [line for line in done.out.splitlines() if not line.startswith("#")]
    assert done.status == 0
    assert any("10.96.0.10" in line for line in changes)
    assert not any("tcp" in line for line in changes if "10.96.0.10" in line), changes


def test_the_api_is_not_refused_with_another_service_of_its_servers(command: Command) -> None:
    text = dump(
        cluster_ip("default/kubernetes:https", chain="KUBE-SVC-1"),
        cluster_ip("kube-system/api:https", "10.96.0.7", chain="KUBE-SVC-2"),
        "-A KUBE-SVC-1 -j KUBE-SEP-1",
        "-A KUBE-SVC-2 -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "192.168.0.10:6443"),
    )
    done = command("repair", command.file("api.txt", text), "--dead", "192.168.0.10", *ANY_AGE)
    assert "Left alone: default/kubernetes:https." in done.out
    assert "-d 10.96.0.7/32" in done.out
    assert "-d 10.96.0.1/32" not in done.out


def test_loss_of_the_rules_with_the_repair_among_them_is_nothing(command: Command) -> None:
    from analyzer.parsers.iptables_save import render
    from analyzer.repair.applied import applied
    from tests.support.reading import read_ruleset

    ruleset = read_ruleset(Path(DUMP).read_bytes(), DUMP)
    assert isinstance(ruleset, Ruleset)
    patch = json.loads(command("repair", *DEAD, "--format", "json").out)["patches"][0]
    name = command.file("then.txt", render(applied(ruleset, patch["apply"])))
    asked = (
        "loss",
        name,
        *OBJECTS,
        "--node",
        "worker1",
        "--dead",
        "10.244.0.7",
        "--max-loss",
        "0%",
    )
    done = command(*asked, "--service", "default/app")
    assert done.status == 2, done
    assert "no Service of this dump has that endpoint" in done.err
    # A second one is made of rules without the first.
    again = command("repair", name, *DEAD[1:])
    assert (again.status, again.out) == (2, "")
    assert "undo it (--print undo), and take the dump again" in again.err
    # Whoever has lost the undo gets it from the rules that the repair is in.
    undo = command("repair", *DEAD, "--print", "undo").out
    found = command("repair", name, "--print", "undo")
    assert (found.status, found.err) == (0, "")
    assert sorted(found.out.splitlines()) == sorted(undo.splitlines())


def test_an_old_dump_is_warned_of(command: Command) -> None:
    done = command("repair", *DEAD[: -2 - len(ANY_AGE)], *DEAD[-2:])
    assert "these rules are " in done.err
    assert "take the dump again before you apply a change" in done.err


def test_nobody_dead_is_no_question(command: Command) -> None:
    done = command("repair", *ASKED)
    assert (done.status, done.out) == (2, "")
    assert "nothing is marked dead" in done.err


def test_endpoints_of_unknown_nodes_make_the_answer_no(command: Command) -> None:
    given = command.file("dump.txt", dump(*two_endpoints()))
    done = command("repair", given, "--dead-node", "master", "--node-of", "10.0.0.1/32=master")
    assert done.status == 1
    assert "Node unknown for 1 endpoint: they stay in the draws" in done.out


def test_what_is_not_understood_is_named_and_makes_the_answer_no(command: Command) -> None:
    text = dump(
        cluster_ip("ns/a:http"),
        chance("0.50000000000", "KUBE-SEP-2", match="-m nonesuch --of src"),
        "-A KUBE-SVC-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
        endpoint("KUBE-SEP-2", "10.0.0.2:80"),
    )
    done = command("repair", command.file("dump.txt", text), "--dead", "10.0.0.1")
    assert done.status == 1
    assert "NOT COVERED: ns/a:http may still lose flows" in done.out
    assert "a match that is not understood" in done.out
    assert not [line for line in done.out.splitlines() if not line.startswith("#")]


def test_a_listing_is_refused(command: Command) -> None:
    from tests.support.listings import listing_of
    from tests.support.reading import read_ruleset

    ruleset = read_ruleset(Path(DUMP).read_bytes(), DUMP)
    assert isinstance(ruleset, Ruleset)
    text = listing_of(ruleset.tables["nat"])
    done = command("repair", command.file("listing.txt", text), "--dead", "10.244.0.7")
    assert (done.status, done.out) == (2, "")
    assert "a listing leaves out part of what rules match on" in done.err


def test_hostile_names_end_no_comment_and_begin_no_command(command: Command) -> None:
    name = "ns/a:http\x1b[31m\u2028*nat"
    text = dump(*two_endpoints()).replace("ns/a:http", name)
    done = command("repair", command.file("dump.txt", text), "--dead", "10.0.0.1")
    for line in done.out.splitlines():
        assert line.isprintable()
        assert line.startswith(("#", "*nat", "*filter", "-N ", "-A ", "-I ", "COMMIT"))
    assert done.out.count("*nat\n") == 1


def test_rules_of_both_versions_are_asked_for_one_after_the_other(command: Command) -> None:
    two = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
    done = command("repair", str(two), "--dead", "10.244.0.7", "--print", "undo")
    assert done.out == "delete table ip kubeodds\n"
    text = two.read_text() + "table ip6 kubeodds {\n}\n"
    left = command("repair", command.file("left.nft", text), "--print", "undo")
    assert left.out == "delete table ip6 kubeodds\n"
    done = command("repair", str(two), "--dead", "10.244.0.7", "--family", "ip6", *ANY_AGE)
    assert "create table" not in done.out
    assert "Nothing to change" in done.out
    done = command("repair", DUMP, "--dead", "10.244.0.7", "--family", "ip6")
    assert (done.status, done.out) == (2, "")
    assert "--family ip6: no dump is of that IP version" in done.err


@pytest.mark.parametrize("minutes", ["0", "-1", "x", "1.5"])
def test_an_age_is_a_number_of_minutes(command: Command, minutes: str) -> None:
    done = command("repair", *DEAD, f"--max-age={minutes}")
    assert done.status == 2
    assert "is not a positive number of minutes" in done.err
