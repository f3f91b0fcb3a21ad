"""The command line of `client`: what it prints, what it asks for, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from analyzer.arguments.client import CLIENTS
from analyzer.clients.connectors import CONNECTORS
from tests.support.client_documents import ASKED, document, fails, number, point
from tests.support.commands import Command
from tests.support.dumps import dump, two_endpoints

DEAD = (*ASKED, "--dead-node", "master")
APP = ("--service", "default/app")
POD = {
    "kind": "Pod",
    "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {"nodeName": "worker1"},
    "status": {"phase": "Running", "podIP": "10.244.1.50"},
}


def seconds(ending: Any) -> Fraction:
    return number(ending["after"]["latest"])


def test_half_of_dns_gone_is_more_or_less_than_half_to_clients(command: Command) -> None:
    found = fails(document(command, *DEAD))
    assert [*found] == list(CLIENTS)
    assert found["glibc"] == found["musl"] == point(3, 4)
    assert found["go"] == point(1, 4)
    assert found["dig"] == point(1, 8)
    assert found["c-ares"] == point(1, 16)
    # Which of its attempts draw anew is not known; it is given the name in full.
    assert found["systemd-resolved"] == (Fraction(0), Fraction(1, 2))


def test_connections_go_to_what_loses_most_or_to_what_is_named(command: Command) -> None:
    done = document(command, *DEAD, "--client", "tcp")
    assert [each["target"] for each in done["operations"]] == ["default/kubernetes:https"]
    found = fails(document(command, *DEAD, *APP))
    assert found["tcp"] == found["affinity"] == found["proxy-by-service-ip"] == point(1, 2)
    assert found["http-retry"] == point(1, 16)
    assert found["headless"] == found["proxy-by-pod-ip"] == found["userspace-proxy"] == point(0, 1)


def test_nothing_dead_nothing_fails(command: Command) -> None:
    done = command("client", *ASKED, "--max-failure", "0%")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("Clients: a pod at node worker1. Dead: nothing.\n")
    assert set(fails(document(command, *ASKED)).values()) == {point(0, 1)}


def test_a_refusal_costs_no_time_and_lets_glibc_ask_again(command: Command) -> None:
    name = ("--lookup", "kubernetes.default.svc.cluster.local.")
    silent = document(command, *DEAD, *name, "--client", "glibc")
    refused = document(command, *DEAD, *name, "--client", "glibc", "--fate", "master=refused")
    assert fails(silent)["glibc"] == point(1, 2)
    assert fails(refused)["glibc"] == point(1, 4)
    assert number(silent["operations"][0]["delay"]["lower"]) == 5
    assert number(refused["operations"][0]["delay"]["upper"]) == 0


def test_what_is_said_of_an_endpoint_goes_before_what_is_of_its_node(command: Command) -> None:
    said = ("--fate", "master=refused,10.244.0.7=silent")
    found = document(command, *DEAD, *APP, "--client", "tcp", *said)["operations"][0]
    assert {each["result"] for each in found["endings"]} == {"answered", "timed-out"}


def test_a_node_whose_place_nobody_knows_is_bounds(command: Command) -> None:
    command.file("dump.txt", dump(*two_endpoints()))
    where = ("--node-of", "10.0.0.1/32=n1", "--dead-node", "n1")
    found = fails(document(command, "dump.txt", *where, "--client", "tcp"))
    assert found["tcp"] == (Fraction(1, 2), Fraction(1))


def test_options_of_resolv_conf_count(command: Command) -> None:
    command.file("r", "nameserver 10.96.0.10\nsearch a.example\noptions ndots:1 timeout:1\n")
    found = document(command, *DEAD, "--resolv-conf", "r", "--lookup", "x.y", "--client", "glibc")
    (asked,) = found["operations"]
    assert [each["name"] for each in asked["names"]] == ["x.y", "x.y.a.example"]
    assert asked["names"][0]["exists"]
    # A silent first name is asked for with the domain behind it, to be told that it is not there.
    assert [(e["result"], int(seconds(e))) for e in asked["endings"]] == [
        ("answered", 0), ("timed-out", 2), ("timed-out", 4),
    ]  # fmt: skip
    assert ("x.y is not a Service of this cluster: it is assumed to exist as given") in found[
        "assumed"
    ]


def test_two_name_servers_are_two_draws(command: Command) -> None:
    command.file("r", "nameserver 10.96.0.10\nnameserver 10.96.0.10\n")
    name = ("--lookup", "kubernetes.default.svc.cluster.local.", "--resolv-conf", "r")
    found = fails(document(command, *DEAD, *name, "--client", "musl,go,glibc"))
    assert found["go"] == point(1, 16)
    assert found["glibc"] == point(1, 4)
    # From one socket to one address is one flow.
    assert found["musl"] == point(1, 2)


def test_of_a_name_server_that_is_no_service_nobody_knows(command: Command) -> None:
    command.file("r", "nameserver 169.254.20.10\n")
    found = document(command, *DEAD, "--resolv-conf", "r", "--client", "glibc")
    assert fails(found)["glibc"] == (Fraction(0), Fraction(1))
    assert any("169.254.20.10" in each for each in found["assumed"])


def test_a_threshold_is_broken(command: Command) -> None:
    asked = (*DEAD, *APP, "--client", "http-retry")
    assert command("client", *asked, "--max-failure", "6.25%").status == 0
    done = command("client", *asked, "--max-failure", "6.24%")
    assert done.status == 1
    assert "--max-failure 6.24%: 1 operation may fail more often.\n" in done.out
    assert command("client", *asked, "--tries", "1", "--max-failure", "6.25%").status == 1


def test_a_timeout_and_tries_of_its_own(command: Command) -> None:
    asked = (*DEAD, *APP, "--client", "tcp", "--timeout", "2s", "--tries", "2")
    (found,) = document(command, *asked)["operations"]
    assert number(found["fails"]["upper"]) == Fraction(1, 4)
    assert [number(each["after"]["earliest"]) for each in found["endings"]] == [0, 2, 4]


JOURNEYS = """
[[journey]]
name = "order"
steps = [
    { lookup = "app.default" },
    { connect = "default/app", client = "http-retry" },
    { connect = "default/app" },
]
"""


def test_a_journey_fails_where_any_of_its_steps_does(command: Command) -> None:
    command.file("journeys.toml", JOURNEYS)
    (found,) = document(command, *DEAD, "--requires", "journeys.toml")["operations"]
    assert (found["client"], found["kind"]) == ("order", "journey")
    steps = [number(each["fails"]["lower"]) for each in found["alternatives"]]
    assert steps == [Fraction(3, 4), Fraction(1, 16), Fraction(1, 2)]
    whole = 1 - Fraction(1, 4) * Fraction(15, 16) * Fraction(1, 2)
    assert number(found["fails"]["lower"]) == number(found["fails"]["upper"]) == whole
    text = command("client", *DEAD, "--requires", "journeys.toml").out
    assert "order: 1. look up app.default alone fails 75.0%" in text


def test_callers_on_a_dead_node_are_dead_too(command: Command) -> None:
    other = json.loads(json.dumps(POD).replace("web-1", "web-2").replace("worker1", "master"))
    unplaced = json.loads(json.dumps(POD).replace("web-1", "web-3"))
    del unplaced["spec"]["nodeName"]
    command.file("pods.json", json.dumps({"kind": "List", "items": [POD, other, unplaced]}))
    asked = (*DEAD, "--objects", "pods.json", *APP, "--client", "tcp")
    for selector in ("shop/web-*", "shop/app=web"):
        found = document(command, *asked, "--caller", selector)
        assert found["callers"] == {
            "living": ["shop/web-1"], "dead": ["shop/web-2"], "unplaced": ["shop/web-3"],
        }  # fmt: skip
        without = found["operations"][0]["callers_without_answer"]
        assert number(without["lower"]) == Fraction(1 + 1, 3)
        assert number(without["upper"]) == Fraction(2 * 2 + 1, 6)
    text = command("client", *asked, "--caller", "shop/web-1").out
    assert "1 caller: none dead with its node, 1 alive." in text
    refused = command("client", *asked, "--caller", "shop/db-*")
    assert refused.status == 2
    assert "no such pod" in refused.err


def node_port(name: str) -> str:
    return dump(
        *two_endpoints(),
        '-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be '
        'the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS',
        f'-A KUBE-NODEPORTS -p tcp -m comment --comment "ns/a:http" -m tcp --dport {name} '
        "-j KUBE-SVC-A",
    )


def test_a_balancer_draws_a_node_first(command: Command) -> None:
    for name in ("n1", "n2"):
        command.file(f"{name}.txt", node_port("30000"))
    where = ("--node", "n1,n2", "--node-of", "10.0.0.1/32=n1,10.0.0.2/32=n2")
    asked = ("n1.txt", "n2.txt", *where, "--client", "tcp", "--dead-node", "n2")
    found = document(command, *asked, "--balancer", "uniform")
    assert [each["node"] for each in found["balancer"]] == ["n1", "n2"]
    assert found["operations"][0]["frontend"] == {
        "kind": "NodePort", "address": None, "port": 30000,
    }  # fmt: skip
    text = command("client", *asked, "--balancer", "uniform").out
    assert "The load balancer draws n1 50.0%, n2 50.0%." in text
    assert "reach ns/a:http by NodePort *:30000" in text
    # Half of all flows come to the dead node, of the others half go to its endpoint.
    assert fails(found)["tcp"] == point(3, 4)
    command.file("weights.toml", "n1 = 3\nn2 = 1\n")
    assert fails(document(command, *asked, "--balancer", "weights.toml"))["tcp"] == point(5, 8)
    # Of a node without a dump nothing is known.
    more = ("--node-of", "10.0.0.3/32=n3")
    least, most = fails(document(command, *asked, *more, "--balancer", "uniform"))["tcp"]
    assert (least, most) == (Fraction(1, 2), Fraction(5, 6))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--client", "glib"), "did you mean glibc"),
        (("--fate", "master=gone"), "is not NAME=FATE"),
        (("--fate", "worker1=refused"), "nothing of that name is marked dead"),
        (("--fate", "master=refused,master=silent"), "is it refused, or silent?"),
        (("--caller", "web"), "is not NAMESPACE/POD"),
        (("--timeout", "3"), "is not a duration"),
        (("--tries", "0"), "is not a number of tries"),
        (("--max-failure", "lots"), "is not a percentage"),
        (("--lookup", "x", "--client", "tcp"), "does not look up names"),
        (("--resolv-conf", "none"), "No such file"),
        (("--requires", "none"), "No such file"),
        (("--requires", "none", "--client", "tcp"), "journeys define it"),
        (("--balancer", "uniform", "--from", "pod"), "a load balancer is outside"),
        (("--balancer", "uniform", "--lookup", "x"), "do not go through a load balancer"),
        (("--service", "kube-dns:dns", "--client", "tcp"), "none of these can be reached by TCP"),
        (("--lookup", "a..b"), "is not a name"),
        (("--lookup", ""), "is not a name"),
    ],
)
def test_what_does_not_fit_is_refused(
    command: Command, arguments: tuple[str, ...], says: str
) -> None:
    done = command("client", *DEAD, *arguments)
    assert (done.status, done.out) == (2, "")
    assert says in " ".join(done.err.split())
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("nameserver\n", "r:1:1: expected the address of a name server"),
        ("search a\nnameserver x\n", "r:2:12: expected the address of a name server"),
        ("nameserver 1.2.3.4\noptions ndots:x\n", "r:2:9: expected a number after ndots:"),
        ("# nothing\n", "r: no line `nameserver ADDRESS`"),
        ("nameserver 1.2.3.4\noptions attempts:99\n", "attempts:99 is more than"),
        ("nameserver 1.2.3.4\noptions use-vc\n", "what go does with `options use-vc` is not known"),
        (f"nameserver 1.2.3.4\nsearch {'a ' * 40}\n", "40 search domains are more than"),
    ],
)
def test_a_resolv_conf_that_is_none_is_refused(command: Command, content: str, says: str) -> None:
    command.file("r", content)
    done = command("client", *DEAD, "--resolv-conf", "r", "--client", "go")
    assert (done.status, done.out) == (2, "")
    assert says in done.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[[journey", "it is not TOML"),
        ("", "expected one [[journey]] or more"),
        ("[[journey]]\n", "journey 1: expected a name"),
        ('[[journey]]\nname = "a"\n', "expected steps"),
        ('[[journey]]\nname = "a"\nsteps = [{}]\n', "step 1: expected either lookup or connect"),
        ('[[journey]]\nname = "a"\nsteps = [{ lookup = 1 }]\n', "expected a name for lookup"),
        ('[[journey]]\nname = "a"\nsteps = [{ look = "x" }]\n', "did you mean lookup?"),
        (JOURNEYS.replace("http-retry", "http"), "no client 'http' for connect"),
        (JOURNEYS.replace("default/app", "default/ap"), "no Service default/ap"),
        (JOURNEYS * 2, "two journeys are named 'order'"),
    ],
)
def test_journeys_that_are_none_are_refused(command: Command, content: str, says: str) -> None:
    command.file("j.toml", content)
    done = command("client", *DEAD, "--requires", "j.toml")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("kubeodds: j.toml")
    assert says in done.err


@pytest.mark.parametrize(
    ("content", "says"),
    [("a", "not TOML"), ("worker1 = 0", "one above 0"), ("worker1 = 0.5", "a whole number"),
     ("worker9 = 1", "no node 'worker9' is known"), ("", "expected a weight")],
)  # fmt: skip
def test_weights_that_are_none_are_refused(command: Command, content: str, says: str) -> None:
    command.file("w.toml", content)
    done = command("client", *DEAD, "--balancer", "w.toml", "--client", "tcp")
    assert (done.status, done.out) == (2, "")
    assert says in done.err


def test_all_shows_each_way_in_which_it_may_end(command: Command) -> None:
    done = command("client", *DEAD, "--client", "glibc", "--all")
    assert "fails: no such name" in done.out
    assert command("client", *DEAD, "--client", "glibc").out in done.out.replace(
        done.out[done.out.index("\n\nglibc: look up") : done.out.index("\nAssumed")], ""
    )


def test_session_affinity_holds_a_client(command: Command) -> None:
    affine = "-m recent --rcheck --seconds 60 --reap --name KUBE-SEP-{0} --rsource -j KUBE-SEP-{0}"
    rules = [
        *two_endpoints()[:1],
        *(f"-A KUBE-SVC-A {affine.format(each)}" for each in (1, 2)),
        *two_endpoints()[1:3],
        *(
            f"-A KUBE-SEP-{each} -p tcp -m recent --set --name KUBE-SEP-{each} --rsource -m tcp "
            f"-j DNAT --to-destination 10.0.0.{each}:80"
            for each in (1, 2)
        ),
    ]
    command.file("dump.txt", dump(*rules))
    found = document(command, "dump.txt", "--dead", "10.0.0.1", "--client", "http-retry")
    # In iptables mode an endpoint may forget a client: then it draws anew.
    assert fails(found)["http-retry"] == (Fraction(1, 16), Fraction(1, 2))
    assert "session affinity" in found["operations"][0]["why"][0]


def test_without_a_name_server_one_is_asked_for(command: Command) -> None:
    command.file("dump.txt", dump(*two_endpoints()))
    done = command("client", "dump.txt", "--client", "glibc")
    assert (done.status, done.out) == (2, "")
    assert "pass --resolv-conf FILE" in done.err
    # Not asked for look-ups by name, it answers what it can.
    assert [*fails(document(command, "dump.txt"))] == list(CONNECTORS)


def test_from_outside_a_client_takes_a_node_port_before_a_cluster_ip(command: Command) -> None:
    command.file("dump.txt", node_port("30000"))
    found = document(command, "dump.txt", "--from", "external", "--client", "tcp,headless")
    service, pods = found["operations"]
    assert service["frontend"]["kind"] == "NodePort"
    assert pods["frontend"] is None
    found = document(command, "dump.txt", "--client", "tcp")
    assert found["operations"][0]["frontend"] is None


def test_what_is_not_nothing_is_never_told_as_nothing(command: Command) -> None:
    asked = (*DEAD, *APP, "--client", "tcp", "--timeout", "1ms")
    assert "50.0%       <0.1s" in command("client", *asked).out


def test_what_the_node_itself_stops_is_said(command: Command) -> None:
    row = "-A FORWARD -d 10.0.0.2/32 -m conntrack --ctstate NEW -j DROP"
    stops = f"*filter\n:FORWARD ACCEPT [0:0]\n{row}\nCOMMIT\n"
    command.file("dump.txt", dump(*two_endpoints()) + stops)
    found = document(command, "dump.txt", "--dead", "10.0.0.1", "--client", "tcp")
    assert fails(found)["tcp"] == (Fraction(1, 2), Fraction(1))
    assert any("may stop flows to ns/a:http" in each for each in found["assumed"])


def test_icmp_that_comes_for_a_later_attempt_lets_glibc_draw_anew(command: Command) -> None:
    """As the kernel has it: ``getent`` with ``timeout:1 attempts:5`` is answered after seconds."""
    conf = command.file("resolv.conf", "nameserver 10.96.0.10\noptions timeout:1 attempts:3\n")
    asked = (*DEAD, "--client", "glibc", "--lookup", "app.default.svc.cluster.local.", "--all")
    fate = ("--fate", "master=unreachable", "--resolv-conf", conf)

    def answered(*more: str) -> list[str]:
        lines = command("client", *asked, *more).out.splitlines()
        return [line.split()[-1] for line in lines if line.startswith("answered ")]

    assert answered(*fate) == ["0s", "1s"]
    assert answered(*fate[2:]) == ["0s"]  # silence brings no ICMP
