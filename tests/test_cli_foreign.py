"""What the command line says of dumps that hold more, or less, than kube-proxy's rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.captures import ROOT
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.defects import path
from tests.support.json_reader import read

KNOWN = ("--objects", path("objects.json"), "--node", "worker1")
OF_MANY = ("--objects", path("masqall-o.json"))
APP = ("--service", "default/app")


def told(command: Command, *arguments: str) -> Any:
    done = command(*arguments, "--format", "json")
    assert done.status in {0, 1}
    return read(done.out)


# --- services ---------------------------------------------------------------------


def test_json_tells_each_network_of_sources_where_one_of_them_differs(command: Command) -> None:
    way = "services", path("masqall.txt"), "--service", "feat/lb-ranges", *OF_MANY
    (service,) = told(command, *way, "--node", "node-a1")["services"]
    routes = {
        route["network"]: len(route["endpoints"])
        for route in service["routes"]
        if (route["frontend"]["kind"], route["source"]) == ("LoadBalancerIP", "external")
    }
    assert routes.pop(None) == 0
    assert routes
    assert set(routes.values()) == {2}


@pytest.mark.parametrize("name", ["badaddr.json", "badaddr.nft", "b2.json"])
def test_an_endpoint_that_is_no_address_leaves_its_share_open(command: Command, name: str) -> None:
    found = told(command, "services", path(name))
    (endpoint,) = found["services"][0]["routes"][0]["endpoints"]
    assert (endpoint["address"], endpoint["share"]) == ("10.244.0.11", (0.5, 1.0))
    assert {tuple(each["values"]) for each in found["distributions"]} == {(None,)}


@pytest.mark.parametrize("name", ["ok.json", "ok.nft"])
def test_the_same_rules_with_two_addresses_are_exact(command: Command, name: str) -> None:
    (service,) = told(command, "services", path(name))["services"]
    shares = {each["address"]: each["share"] for each in service["routes"][0]["endpoints"]}
    assert shares == {"10.244.0.11": (0.5, 0.5), "10.244.2.11": (0.5, 0.5)}
    # The rules hang on prerouting alone, where no packet of the node itself comes by.
    (node,) = [route for route in service["routes"] if route["source"] == "node"]
    assert node["endpoints"] == []
    assert node["unresolved"] == 0


def test_a_chain_of_another_table_tells_sources_of_nft_apart(command: Command) -> None:
    found = told(command, "services", path("nftboth.txt"), *KNOWN)
    assert len(found["services"]) == 5
    for service in found["services"]:
        routes = {(way["source"], way["network"]): way["endpoints"] for way in service["routes"]}
        assert routes.pop(("external", "192.0.2.0/24")) == []
        count = len(service["endpoints"])
        for ways in routes.values():
            assert [each["share"] for each in ways] == [(1 / count, 1 / count)] * count


def test_a_number_of_draws_that_is_no_number_leaves_all_open(command: Command) -> None:
    file = path("numgen.txt")  # numgen-4294967295.txt with the word MOD in its place
    found = told(command, "services", file)
    (service,) = found["services"]
    assert service["endpoints"] == []
    assert [frontend["state"] for frontend in service["frontends"]] == ["unknown"]
    assert [(each["code"], each["line"]) for each in found["diagnostics"]] == [
        ("unknown-statement", 17),
        ("assumed", None),
    ]
    (lost,) = told(command, "loss", file, "--dead", "10.244.0.11")["services"]
    assert lost["state"] == "degraded"  # what the node makes meets no chain of nat at all
    bounds = {
        route["source"]: [route["loss"][end]["value"] for end in ("lower", "upper")]
        for route in lost["routes"]
    }
    assert bounds["node"] == [1.0, 1.0]
    assert bounds["pod"] == bounds["external"] == [0.0, 1.0]


@pytest.mark.parametrize("verb", [["services"], ["loss", "--dead-node", "node-b1"]])
def test_rows_without_tables_give_their_shares_and_bounds_at_the_node(
    command: Command, verb: list[str]
) -> None:
    known = "--objects", path("ds-objects.json"), "--node", "node-a1"
    found = told(command, verb[0], path("rows-dual-stack.txt"), *known, *verb[1:])
    services = {each["name"]: each for each in found["services"]}
    if verb == ["services"]:
        ways = services["ds/ep-2"]["routes"][0]["endpoints"]
        assert {each["node"]: each["share"] for each in ways} == {
            "node-a1": (0.5, 0.5),
            "node-a2": (0.5, 0.5),
        }
        # Chains of filter are told apart from those of nat: there it is rejected.
        (frontend,) = services["ds/no-endpoints"]["frontends"]
        assert frontend["state"] == "no-endpoints"
    else:
        # No row says the policy of FORWARD: it may drop what living endpoints would get.
        lost = {name: services[name]["cluster_ip_loss"] for name in ("ds/v6-first", "ds/ep-2")}
        assert {name: (b["lower"]["value"], b["upper"]["value"]) for name, b in lost.items()} == {
            "ds/v6-first": (0.5, 1),
            "ds/ep-2": (0, 1),
        }
        (node,) = [way for way in services["ds/v6-first"]["routes"] if way["source"] == "node"]
        assert [node["loss"][end]["value"] for end in ("lower", "upper")] == [0.5, 1]
        assert services["ds/ep-2"]["state"] == "unknown"


@pytest.mark.deep
def test_json_of_nft_that_is_damaged_is_no_reason_to_fail(command: Command) -> None:
    file = path("crash-nft-1-1.json")
    assert command("services", file).status == 0
    assert command("diff", file, file).status == 0


# --- diff -------------------------------------------------------------------------


@pytest.mark.deep
def test_only_those_have_lost_who_are_in_no_narrower_network(command: Command) -> None:
    files = path("diff-range-a.txt"), path("diff-range-b.txt")
    (change,) = told(command, "diff", *files, *OF_MANY)["services"]
    (route,) = [way for each in change["routes"] for way in each["routes"]]
    assert (route["network"], route["but"]) == ("198.18.0.0/15", ["198.18.0.0/16"])
    text = command("diff", *files, *OF_MANY).out
    assert "from 198.18.0.0/15 but not 198.18.0.0/16 to LoadBalancerIP" in text


def test_what_is_no_address_in_one_of_two_dumps_cannot_be_compared(command: Command) -> None:
    assert told(command, "diff", path("ok.json"), path("ok.nft"))["services"] == []
    (change,) = told(command, "diff", path("ok.json"), path("b2.json"))["services"]
    assert change["change"] == "unknown"
    for way in change["routes"]:
        assert way["endpoints_gone"] == way["endpoints_added"] == way["shares_moved"] == []
        assert "shares" in way["unknown"]


def test_who_gets_another_source_address_behind_the_services_is_a_change(
    command: Command,
) -> None:
    done = command("diff", path("nomangle.txt"), path("egress.txt"), *KNOWN, *APP)
    assert done.status == 1
    assert "from pods in 10.244.1.64/26 to ClusterIP 10.96.18.52:80" in done.out


# --- tree and trace ---------------------------------------------------------------


def ends(command: Command, *arguments: str) -> list[str]:
    done = command("tree", *arguments)
    assert done.status == 0
    return [line.partition("=> ")[2] for line in done.out.splitlines() if "=> " in line]


def test_a_tree_ends_where_a_policy_drops_the_flow(command: Command) -> None:
    assert ends(command, path("d1-policy.txt"), "default/app", *KNOWN) == [
        "dropped: the policy of PREROUTING in table mangle, line 32"
    ]


def test_a_tree_ends_where_a_rule_behind_nat_drops_the_flow(command: Command) -> None:
    text = (ROOT / path("nomangle.txt")).read_text()
    row = "-A FORWARD -d 10.244.0.7/32 -j DROP\n"
    dump = command.file("dump.txt", text.replace("-A FORWARD", f"{row}-A FORWARD", 1))
    assert ends(command, dump, "default/app", *KNOWN) == ["dropped", "10.244.1.9:8080 on worker1"]


def test_an_endpoint_stands_where_nat_sends_flows_to_it(command: Command) -> None:
    done = command("tree", path("nomangle.txt"), "default/app", *KNOWN)
    assert "FORWARD" not in done.out
    assert ends(command, path("nomangle.txt"), "default/app", *KNOWN) == [
        "10.244.0.7:8080 on master",
        "10.244.1.9:8080 on worker1",
    ]


DUAL = ROOT / "fixtures" / "check" / "1.36.2-iptables-legacy" / "dual-stack"


@pytest.mark.parametrize(
    ("dump", "objects", "node", "source", "to"),
    [
        (DUMP, OBJECTS[1], "worker1", "127.0.0.1", "10.96.18.52:80"),
        (
            str(DUAL / "ip6tables-legacy-save.txt"),
            str(DUAL / "objects.json"),
            "node-a1",
            "::1",
            "[fd00:10:96:7::1]:80",
        ),
        (path("nftboth.txt"), path("objects.json"), "worker1", "::1", "[fd00:10:96::1]:80"),
    ],
)
def test_what_comes_from_loopback_the_node_has_made(
    command: Command, dump: str, objects: str, node: str, source: str, to: str
) -> None:
    way = "trace", dump, "--objects", objects, "--node", node, "--to", to
    found = told(command, *way, "--from", source)
    made = told(command, *way, "--from", source, "--from-node")
    assert found == made
    assert found["packet"]["made_here"]
    met = {"OUTPUT", "nat-output"}, {"PREROUTING", "nat-prerouting"}
    assert chains(found) & met[0]
    assert not chains(found) & met[1]
    arrived = told(command, *way, "--from", source, "--in-interface", "eth0")
    assert not arrived["packet"]["made_here"]
    assert chains(arrived) & met[1]
    assert not chains(arrived) & met[0]


def chains(found: Any) -> set[str]:
    return {rule["chain"] for end in found["outcomes"] for rule in end["rules"]}


# --- bridges ----------------------------------------------------------------------

EXTERNAL = (
    "-A KUBE-SERVICES -d 198.51.100.61/32 -p tcp -m comment --comment "
    '"default/app external IP" -m tcp --dport 80 -j KUBE-MARK-MASQ\n'
    "-A KUBE-SERVICES -d 198.51.100.61/32 -p tcp -m comment --comment "
    '"default/app external IP" -m tcp --dport 80 -m physdev ! --physdev-is-in '
    "-m addrtype ! --src-type LOCAL -j KUBE-SVC-NZGXMBVUFMQ6OBBQ\n"
)
ASSUMED = "flows from outside do not arrive by a bridge port (-m physdev)"


def with_external_ip() -> str:
    text = (ROOT / path("nomangle.txt")).read_text()
    head, star, nat = text.partition("*nat")
    return head + star + nat.replace("-A KUBE-SERVICES", f"{EXTERNAL}-A KUBE-SERVICES", 1)


def test_flows_from_outside_are_taken_to_come_by_no_bridge_port(command: Command) -> None:
    dump = command.file("dump.txt", with_external_ip())
    found = told(command, "services", dump, *KNOWN, *APP)
    shares = {
        route["source"]: [endpoint["share"] for endpoint in route["endpoints"]]
        for route in found["services"][0]["routes"]
        if route["frontend"]["kind"] == "ExternalIP"
    }
    assert shares["external"] == [(0.5, 0.5), (0.5, 0.5)]
    assert all(lower < upper for lower, upper in shares["pod"])
    assert len(shares["pod"]) == 2
    assert shares["node"] == []
    assert [(d["severity"], d["code"], d["message"]) for d in found["diagnostics"]] == [
        ("info", "assumed", ASSUMED)
    ]
    for verb in (["services"], ["loss", "--dead-node", "master"]):
        done = command(verb[0], dump, *KNOWN, *APP, *verb[1:])
        assert f"Assumed: {ASSUMED}." in done.out


def test_nothing_is_assumed_of_bridges_that_no_rule_asks_for(command: Command) -> None:
    assert told(command, "services", path("nomangle.txt"), *KNOWN)["diagnostics"] == []
    assert "bridge" not in command("services", path("nomangle.txt"), *KNOWN).out
