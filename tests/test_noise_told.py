"""What can be said of nodes with other programs' rules: devices, sets, programs, hostPorts."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.support.commands import Command
from tests.support.json_reader import read
from tests.support.noise import DEAD, KNOWN, NOISE, PODS, REVERSE_PATH, assumed, dump, shares, told


@pytest.mark.deep
def test_which_devices_are_pods_can_be_said(command: Command) -> None:
    said = "pods of this node, and nothing else, are behind devices cali+, veth+"
    for options in (
        ("--pod-interface", "cali+,veth*"),
        ("--pod-interface", "cali+", "--pod-interface", "veth+"),
        ("--assume", "pod-interface=cali+", "--pod-interface", "veth+"),
    ):
        assert said in assumed(told(command, "services", "calico", *KNOWN, *options))
    nothing = told(command, "services", "calico", *KNOWN, "--assume", "pod-interface=unknown")
    assert assumed(nothing) == [REVERSE_PATH]


@pytest.mark.parametrize("name", ["", "+", "a b", "cali+,", "sixteen-letters-", "a*b"])
def test_what_is_no_device_is_refused(command: Command, name: str) -> None:
    done = command("services", dump("calico"), "--pod-interface", name)
    assert done.status == 2
    assert "is not a device or a pattern" in done.err


def test_devices_tell_pods_of_the_node_from_others(command: Command) -> None:
    """A rule that refuses what comes in by devices of pods is met by those alone."""
    text = (NOISE / "base.txt").read_text()
    raw = "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING {} -j DROP\nCOMMIT\n"
    for rule, lost in (
        ("-i cali+", {"pod"}),
        ("! -i cali+", {"pod-elsewhere"}),
        ("-i docker0", set()),
    ):
        file = command.file("rule.txt", raw.format(rule) + text)
        found = shares(read(command("services", file, *KNOWN, "--format", "json").out))
        kinds = {"pod", "pod-elsewhere", "node"}
        app = {k[3]: of for k, of in found.items() if k[0] == "default/app" and k[3] in kinds}
        assert all(lower == upper for lower, upper in app.values())
        assert kinds - app.keys() == lost


SETS: Final = "create pods hash:ip family inet\nadd pods 10.244.1.9\n"
#: Of a table that refuses what is sent to some endpoints, and one that leaves it alone.
SET_RULE: Final = (
    "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
    "-A PREROUTING -m set --match-set {} -j NOTRACK\nCOMMIT\n"
)


def test_what_ipsets_hold_decides_the_rules_that_ask_for_them(command: Command) -> None:
    text = SET_RULE.format("services dst") + (NOISE / "base.txt").read_text()
    file = command.file("set.txt", text)
    said = "contents of set services (-m set) not known"
    for verb in (("services",), ("loss", *DEAD), ("trace", "--from", "pod", "--to", "default/app")):
        done = command(verb[0], file, *verb[1:], *KNOWN)
        assert (done.err + done.out).count(said) == 1
        assert command(verb[0], file, *verb[1:], *KNOWN, "--strict").status == 3
    open_ = shares(read(command("services", file, *KNOWN, "--format", "json").out))
    assert all(
        lower == 0 < upper for (*_, kind, _, _), (lower, upper) in open_.items() if kind == "pod"
    )
    address = next(key[2].partition(":")[0] for key in open_ if key[0] == "default/app")
    sets = command.file("sets", f"create services hash:ip family inet\nadd services {address}\n")
    done = command("services", file, *KNOWN, "--ipsets", sets, "--format", "json")
    assert "unknown-ipset" not in done.out
    found = shares(read(done.out))
    base = shares(told(command, "services", "base", *KNOWN))
    hidden = {k for k in base if k[2] == f"{address}:80" and k[3] in {"pod", "pod-elsewhere"}}
    assert hidden
    assert not hidden & found.keys()
    others = {k: v for k, v in base.items() if not k[2].startswith(f"{address}:")}
    assert others.items() <= found.items()


def test_ipsets_tell_endpoints_apart_that_are_else_alike(command: Command) -> None:
    """Behind DNAT: who is in the set is masqueraded."""
    text = (NOISE / "base.txt").read_text()
    at = text.index("-A POSTROUTING")
    rule = "-A POSTROUTING -m set --match-set pods dst -j MASQUERADE\n"
    file, sets = command.file("m.txt", text[:at] + rule + text[at:]), command.file("sets", SETS)
    found = read(command("services", file, *KNOWN, "--ipsets", sets, "--format", "json").out)
    seen = {
        (endpoint["address"], endpoint["masquerade"])
        for service in found["services"]
        for route in service["routes"]
        for endpoint in route["endpoints"]
        if service["name"] == "default/app" and route["source"] == "pod"
    }
    assert seen == {("10.244.1.9", True), ("10.244.0.7", False)}


def test_a_file_that_holds_no_ipsets_is_refused_with_its_place(command: Command) -> None:
    for text, said in (
        ("add pods 10.0.0.1\n", "sets:1:5: expected a set that was created before"),
        ("", "expected the output of `ipset save`"),
    ):
        done = command("services", dump("base"), "--ipsets", command.file("sets", text))
        assert done.status == 2
        assert said in done.err
    assert command("services", dump("base"), "--ipsets", "-").status == 2
    assert command("services", dump("base"), "--ipsets", "/no/such/file").status == 2


def test_a_line_of_others_is_told_with_the_program_that_wrote_it(command: Command) -> None:
    to = "--from", "203.0.113.9", "--to", "192.168.0.11:80"
    out = command("trace", dump("portmap"), *KNOWN, *to).out
    assert re.search(r"-j CNI-HOSTPORT-DNAT  line \d+, CNI portmap$", out, re.MULTILINE)
    assert re.search(r"-j KUBE-FORWARD  line \d+$", out, re.MULTILINE)
    rules = told(command, "trace", "portmap", *KNOWN, *to)["rules"]
    programs = {rule["chain"]: rule["program"] for rule in rules if rule["chain"].isupper()}
    assert programs["CNI-HOSTPORT-DNAT"] == "CNI portmap"
    assert programs["KUBE-POSTROUTING"] == "kube-proxy"


def test_what_is_not_understood_of_others_names_them(command: Command) -> None:
    text = (NOISE / "calico.txt").read_text()
    row = '-A cali-PREROUTING -m comment --comment "cali:x" -m shiny --new -j ACCEPT\n'
    at = text.index("-A cali-PREROUTING")
    done = command("services", command.file("shiny.txt", text[:at] + row + text[at:]), *KNOWN)
    assert "answers that depend on it are bounds; written by Calico" in done.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("rows", "frontend", "reached"),
    [
        ("", ("*", 80), "10.244.1.50:8080"),
        (
            "-A CNI-DN-0123456789abcdef01234 -d 192.168.0.11/32 -p tcp -m tcp --dport 443 "
            "-j DNAT --to-destination 10.244.1.50:8443\n",
            ("192.168.0.11", 443),
            "10.244.1.50:8443",
        ),
        (
            ":KUBE-HOSTPORTS - [0:0]\n:KUBE-HP-ABCDEFGHIJKLMNOP - [0:0]\n"
            "-A PREROUTING -m addrtype --dst-type LOCAL -j KUBE-HOSTPORTS\n"
            '-A KUBE-HOSTPORTS -p udp -m comment --comment "web_default hostport 53" -m udp '
            "--dport 53 -j KUBE-HP-ABCDEFGHIJKLMNOP\n"
            "-A KUBE-HP-ABCDEFGHIJKLMNOP -p udp -m udp -j DNAT --to-destination 10.244.1.60:5353\n",
            ("*", 53),
            "10.244.1.60:5353",
        ),
    ],
)
def test_a_host_port_is_a_frontend_of_its_own_kind(
    command: Command, rows: str, frontend: tuple[str, int], reached: str
) -> None:
    text = (NOISE / "portmap.txt").read_text()
    at = text.index("-A CNI-DN-", text.index("*nat"))
    file = command.file("ports.txt", text[:at] + rows + text[at:])
    name = f"hostPort {frontend[1]}" if frontend[0] == "*" else f"hostPort {frontend[0]}:443"
    found = read(command("services", file, *KNOWN, "--format", "json").out)
    service = next(each for each in found["services"] if each["name"] == name)
    (given,) = service["frontends"]
    assert (given["kind"], given["address"] or "*", given["port"]) == ("HostPort", *frontend)
    address, _, port = reached.partition(":")
    assert [(e["address"], e["port"]) for e in service["endpoints"]] == [(address, int(port))]
    from_outside = [
        endpoint["share"]
        for route in service["routes"]
        for endpoint in route["endpoints"]
        if route["source"] == "external"
    ]
    assert from_outside
    assert {tuple(share) for share in from_outside} == {(1, 1)}
    assert f"HostPort {frontend[0]}:{frontend[1]}" in command("services", file, *KNOWN).out


def test_a_host_port_is_lost_with_its_node(command: Command) -> None:
    for verb in ("loss", "whatif", "timeline"):
        dead = () if verb == "whatif" else ("--dead-node", "worker1")
        assert "hostPort 80" in command(verb, dump("portmap"), *KNOWN, *dead).out
    found = told(command, "loss", "portmap", *KNOWN, "--dead-node", "worker1")
    (lost,) = [each for each in found["services"] if each["name"] == "hostPort 80"]
    assert lost["state"] == "silenced"
    survives = told(command, "whatif", "portmap", *KNOWN)["services"]
    assert [s["survives"] for s in survives if s["name"] == "hostPort 80"] == [0]
    check = command("services", dump("portmap"), *KNOWN, "--check")
    assert (check.status, "no finding" in check.out) == (0, True)
    added = command("diff", dump("base"), dump("portmap"), *KNOWN)
    assert "HostPort *:80 added" in added.out


@pytest.mark.parametrize("name", ["portmap", "nftables/portmap"])
def test_host_ports_are_no_drift(command: Command, name: str) -> None:
    """Whether a node has to have them is neither in the objects nor on other nodes."""
    file = command.file("worker1.txt", (NOISE / f"{name}.txt").read_text())
    for into, objects in (("with", KNOWN[:2]), ("without", ())):
        assert command("cluster", "build", file, *objects, "--into", into).status == 0
        found = read(command("cluster", "drift", into, "-o", "json").out)
        assert (found["differences"], found["not_judged"], found["compared"]) == ([], [], 5)
    once = command("watch", "--once", "--rules", file, *KNOWN)
    assert "kubeodds_ok 1" in once.out.splitlines()


@pytest.mark.parametrize("source", ["pod", "external"])
def test_clients_of_a_node_with_host_ports_may_call_these(command: Command, source: str) -> None:
    given = *KNOWN, "--dead-node", "worker1", "--from", source, "--client", "http-retry"
    found = told(command, "client", "portmap", *given, "--service", "hostPort 80")
    (operation,) = found["operations"]
    assert operation["fails"]["lower"]["value"] == 1
    of_all = told(command, "client", "portmap", *given)
    assert of_all["operations"]


UPSTREAM: Final = (
    '-A KUBE-SERVICES -d 10.96.77.7/32 -p udp -m comment --comment "kube-system/kube-dns-upstream:'
    'dns cluster IP" -m udp --dport 53 -j KUBE-SVC-TCOU7JCQXEZGVUNU\n'
)


def test_of_node_local_dns_what_it_asks_is_what_counts(command: Command) -> None:
    out = command("services", dump("nodelocaldns"), *KNOWN)
    assert "no endpoints" not in out.out
    assert out.out.count("ClusterIP 10.96.0.10:53 sent to no endpoint") == 2
    assert (
        "NodeLocal DNSCache answers on this node: flows to 169.254.20.10 and to kube-system/"
        in (out.err)
    )
    assert "kube-dns-upstream, is not in the dump" in out.err
    text = (NOISE / "nodelocaldns.txt").read_text()
    at = text.index("-A KUBE-SERVICES", text.index("*nat"))
    file = command.file("upstream.txt", text[:at] + UPSTREAM + text[at:])
    for verb in (("services",), ("loss", *DEAD)):
        done = command(*verb[:1], file, *verb[1:], *KNOWN)
        assert "kube-system/kube-dns-upstream at 10.96.77.7:53, from the node" in done.err
    found = read(command("services", file, *KNOWN, "--format", "json").out)
    states = {(s["name"], f["port"]): f["state"] for s in found["services"] for f in s["frontends"]}
    assert states["kube-system/kube-dns:dns", 53] == "astray"
    assert states["kube-system/kube-dns-upstream:dns", 53] == "endpoints"
    assert {k[-1] for k in shares(found) if k[0] == "kube-system/kube-dns-upstream:dns"} == {
        "10.244.0.3",
        "10.244.1.4",
    }


def test_no_client_is_said_to_fail_that_a_cache_may_answer(command: Command) -> None:
    asked = (*KNOWN, *DEAD, "--service", "kube-dns:dns-tcp")
    (loss,) = told(command, "loss", "nodelocaldns", *asked)["services"]
    operations = told(command, "client", "nodelocaldns", *asked, "--client", "glibc,dig,tcp")
    found = [loss["worst_loss"], *(each["fails"] for each in operations["operations"])]
    assert [(each["lower"]["value"], each["upper"]["value"]) for each in found] == [(0, 1)] * 4


@pytest.mark.parametrize("name", ["calico", "docker", "ufw"])
def test_what_is_lost_whatever_is_drawn_is_not_saved_by_sending_it_again(
    command: Command, name: str
) -> None:
    asked = (*KNOWN, *DEAD, "--service", "default/app")
    (loss,) = told(command, "loss", name, *asked)["services"]
    (found,) = told(command, "client", name, *asked, "--client", "tcp")["operations"]
    for each in (loss["worst_loss"], found["fails"]):
        assert (each["lower"]["value"], each["upper"]["value"]) == (1, 1)


@pytest.mark.parametrize("other", ["-p tcp -m tcp --dport 80", "-m mark --mark 0x1"])
def test_a_rule_that_keeps_other_flows_from_conntrack_is_not_taken_for_it(
    command: Command, other: str
) -> None:
    rule = f"-A PREROUTING -d 10.96.18.52/32 {other} -j NOTRACK\n"
    raw = f"*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{rule}COMMIT\n"
    file = command.file("raw.txt", raw + (NOISE / "base.txt").read_text())
    done = command("services", file, *KNOWN, "--format", "json")
    assert "node-local-dns" not in done.out
    # What the node makes is not kept from it.
    assert {f["state"] for s in read(done.out)["services"] for f in s["frontends"]} == {"endpoints"}


@pytest.mark.deep
def test_pods_with_calicos_profiles_lose_nothing(command: Command) -> None:
    """Each pod is behind one of the devices that are named, and all their chains accept."""
    for verb in (("services",), ("loss", *DEAD)):
        base, found = (
            command(verb[0], dump(each), *verb[1:], *KNOWN).out.splitlines()
            for each in ("base", "calico-profiles")
        )
        assert not [line for line in found if " now (" in line]
        rows = [line for line in base if "%" in line]
        assert rows
        assert [line for line in found if "%" in line] == rows
    assert assumed(told(command, "services", "calico-profiles", *KNOWN)) == [REVERSE_PATH, PODS]


@pytest.mark.parametrize(
    ("chains", "said"),
    [
        (("1",), "up to 50.0% of new flows from {} may be dropped now"),
        (("1", "2"), "50.0% of new flows from {} are dropped now"),
    ],
)
def test_of_a_device_that_is_not_known_some_or_all_may_drop(
    command: Command, chains: tuple[str, ...], said: str
) -> None:
    text = (NOISE / "calico-profiles.txt").read_text()
    for each in chains:
        head = f"-A cali-tw-cali{each} "
        text = text.replace(head, f"{head}-p tcp -m tcp --dport 8080 -j DROP\n{head}", 1)
    out = command("services", command.file("policies.txt", text), *KNOWN).out
    (line,) = [line for line in out.splitlines() if " now (" in line]
    whose = "pod, pod-elsewhere, external, hairpin"
    assert line.startswith(f"default/app: {said.format(whose)} (Calico, table filter, ")


@pytest.mark.deep
def test_what_rules_do_by_device_is_not_told_where_nothing_is_assumed(command: Command) -> None:
    out = command(
        "services", dump("calico-profiles"), *KNOWN, "--assume", "pod-interface=unknown"
    ).out
    assert "may be dropped now (Calico, table filter, " in out


@pytest.mark.parametrize(("target", "warned"), [("ACCEPT", False), ("DROP", True)])
def test_ipsets_that_decide_nothing_are_not_warned_of(
    command: Command, target: str, warned: bool
) -> None:
    row = f"-A FORWARD -m set --match-set trusted src -j {target}"
    text = (NOISE / "base.txt").read_text().replace("-A FORWARD", f"{row}\n-A FORWARD", 1)
    for verb in (("services",), ("loss", *DEAD)):
        done = command(verb[0], command.file("set.txt", text), *verb[1:], *KNOWN)
        assert ("contents of set trusted" in done.err + done.out) is warned
