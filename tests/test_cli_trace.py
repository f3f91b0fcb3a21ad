"""``kubeodds trace``: what it takes, what it says to nonsense, and what it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer import cli
from tests.support.captures import FIXTURES
from tests.support.json_reader import read

CAPTURE = FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1"
DUMP = str(CAPTURE / "iptables-legacy-save.txt")
GIVEN = [DUMP, "--objects", str(CAPTURE / "objects.json"), "--node", "worker1"]
APP = ["--to", "10.96.18.52:80"]
POD = ["--from", "10.244.1.200"]


def traced(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert cli.main(["trace", *arguments, "--format", "json"]) == 0
    return read(capsys.readouterr().out)


def ends(document: Any) -> list[tuple[str, str | None, bool | None]]:
    return [(e["outcome"], e["address"], e["masquerade"]) for e in document["outcomes"]]


def test_what_has_the_nodes_address_the_node_sends(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = traced(capsys, *GIVEN, "--from", "192.168.0.11", "--from-node", *APP)
    found = traced(capsys, *GIVEN, "--from", "192.168.0.11", *APP)
    assert found == wanted
    assert found["packet"]["made_here"]
    arriving = traced(capsys, *GIVEN, "--from", "192.168.0.11", "--in-interface", "eth0", *APP)
    assert not arriving["packet"]["made_here"]
    other = traced(capsys, *GIVEN, "--from", "192.168.0.10", *APP)
    assert not other["packet"]["made_here"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([*POD, "--to", "nonsense"], "--to nonsense: expected IP:PORT"),
        ([*POD, "--to", "10.96.18.52"], "tcp needs a port"),
        ([*POD, "--to", "10.96.18.52:99999"], "expected IP:PORT"),
        ([*POD, "--to", "fd00::1"], "tcp needs a port"),
        ([*POD, "--to", "[fd00::1]:80"], "fd00::1 is not an IPv4 address"),
        ([*POD, "--to", "10.96.18.52:80", "--protocol", "icmp"], "icmp has no ports"),
        ([*APP], "--from IP is needed, --from pod, or --from-node"),
        (["--from", "nobody", *APP], "--from nobody: not an IP address"),
        ([*POD, *APP, "--from-node", "--in-interface", "eth0"], "arrive by no device"),
        ([*POD, "--to", "127.0.0.1:80"], "the kernel drops packets that arrive for loopback"),
        (
            [*POD, "--to", "1.1.1.1", "--protocol", "icmp", "--icmp-type", "0"],
            "conntrack never treats this type as the first packet",
        ),
        (
            [*POD, "--to", "1.1.1.1", "--protocol", "icmp", "--icmp-type", "8" * 5000],
            "expected a type",
        ),
        ([*POD, "--to", "224.0.0.1:80"], "224.0.0.1 is not a unicast address"),
        ([*POD, *APP, "--mark", "red"], "--mark red: expected a 32-bit number"),
        ([*POD, *APP, "--mark", "0x100000000"], "expected a 32-bit number"),
        ([*POD, *APP, "--sport", "70000"], "a port is 0 to 65535"),
        ([*POD, *APP, "--icmp-type", "8"], "needs --protocol icmp"),
        ([*POD, "--to", "1.1.1.1", "--protocol", "icmp", "--icmp-type", "x"], "expected a type"),
        ([*POD, "--to", "1.1.1.1", "--protocol", "icmp", "--icmp-type", "8/999"], "a type"),
        ([*POD, *APP, "--affinity", "10.244.1.9"], "expected an endpoint"),
        ([*POD, *APP, "--affinity", "1.2.3.4:5"], "no Service with session affinity has that"),
        (
            [*POD, *APP, "--affinity", "10.244.1.9:8080"],
            "no Service with session affinity has that",
        ),
        (["--from", "pod", "--from-node", *APP], "is it the node that sends it, or a pod?"),
        ([*POD, *APP, "--routes", DUMP], "expected the output of `ip -j route`"),
        ([*POD, *APP, "--addresses", DUMP], "expected the output of `ip -j address`"),
        ([*POD, *APP, "--addresses", "/nonexistent"], "/nonexistent: No such file"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trace", *GIVEN, *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err
    assert printed.err.count("\n") == 1


def test_a_service_is_traced_to_its_endpoints(capsys: pytest.CaptureFixture[str]) -> None:
    found = traced(capsys, *GIVEN, *POD, *APP)
    assert ends(found) == [("endpoint", "10.244.0.7", False), ("endpoint", "10.244.1.9", False)]
    assert [e["probability"] for e in found["outcomes"]] == [(0.5, 0.5), (0.5, 0.5)]
    assert [(e["lower"], e["upper"]) for e in found["outcomes"]] == [(0.5, 0.5), (0.5, 0.5)]
    tables = [(rule["table"], rule["chain"]) for rule in found["outcomes"][0]["rules"]]
    assert tables[0] == ("nat", "PREROUTING")
    assert ("filter", "FORWARD") in tables
    assert tables[-1] == ("nat", "KUBE-POSTROUTING")
    lines = Path(DUMP).read_text().split("\n")
    for rule in found["outcomes"][0]["rules"]:
        assert lines[rule["line"] - 1] == rule["text"]


def test_a_mark_is_believed(capsys: pytest.CaptureFixture[str]) -> None:
    found = traced(capsys, *GIVEN, *POD, *APP, "--mark", "0x4000")
    assert {masked for _, _, masked in ends(found)} == {True}


def test_a_later_packet_goes_where_the_first_one_went(capsys: pytest.CaptureFixture[str]) -> None:
    found = traced(capsys, *GIVEN, *POD, *APP, "--ctstate", "ESTABLISHED")
    assert ends(found) == [("unresolved", None, None)]
    assert "not evaluated again" in found["assumptions"][0]


def test_addresses_and_routes_come_from_the_node_itself(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    dump = tmp_path / "dump"
    dump.write_text(
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
        "-A FORWARD -o eth0 -j DROP\n-A INPUT -j REJECT\nCOMMIT\n"
    )
    addresses, routes = tmp_path / "addresses", tmp_path / "routes"
    addresses.write_text('[{"ifname":"eth0","addr_info":[{"family":"inet","local":"10.0.0.1"}]}]')
    routes.write_text(
        '[{"dst":"default","gateway":"10.0.0.2","dev":"eth0"},'
        '{"dst":"10.1.0.0/16","dev":"cni0","scope":"link"},{"dst":"10.1.2.3","dev":"veth9"}]'
    )
    given = [str(dump), "--addresses", str(addresses), "--routes", str(routes), "--from", "9.9.9.9"]

    def fate(to: str) -> list[str]:
        return [kind for kind, _, _ in ends(traced(capsys, *given, "--to", to))]

    assert fate("10.0.0.1:80") == ["reject"]
    assert fate("8.8.8.8:80") == ["drop"]
    assert fate("10.1.9.9:80") == ["no-service"]
    assert fate("10.1.2.3:80") == ["no-service"]
    # Without them both may be: here or not, by this device or another.
    bare = traced(capsys, str(dump), "--from", "9.9.9.9", "--to", "8.8.8.8:80")
    found = {e["outcome"]: e["probability"] for e in bare["outcomes"]}
    assert found.keys() == {"reject", "drop", "no-service"}
    assert set(found.values()) == {(0, 1)}


AFFINITY = """*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SVC-A - [0:0]
:KUBE-SEP-A - [0:0]
:KUBE-SEP-B - [0:0]
-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-A
-A KUBE-SVC-A -m recent --rcheck --seconds 60 --reap --name KUBE-SEP-A --mask 255.255.255.255 \
--rsource -j KUBE-SEP-A
-A KUBE-SVC-A -m recent --rcheck --seconds 60 --reap --name KUBE-SEP-B --mask 255.255.255.255 \
--rsource -j KUBE-SEP-B
-A KUBE-SVC-A -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-A
-A KUBE-SVC-A -j KUBE-SEP-B
-A KUBE-SEP-A -p tcp -m recent --set --name KUBE-SEP-A --mask 255.255.255.255 --rsource -m tcp \
-j DNAT --to-destination 10.0.0.1:80
-A KUBE-SEP-B -p tcp -m recent --set --name KUBE-SEP-B --mask 255.255.255.255 --rsource -m tcp \
-j DNAT --to-destination 10.0.0.2:80
COMMIT
"""


def test_affinity_leads_a_client_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.write_text(AFFINITY)
    given = [str(dump), "--from", "10.0.9.9", "--to", "10.96.0.1:80"]
    assert [address for _, address, _ in ends(traced(capsys, *given))] == ["10.0.0.1", "10.0.0.2"]
    held = traced(capsys, *given, "--affinity", "10.0.0.2:80")
    assert ends(held) == [("endpoint", "10.0.0.2", False)]
    assert "the client is in session affinity list KUBE-SEP-B" in held["assumptions"]


@pytest.mark.parametrize(
    ("assume", "kinds"),
    [
        ([], {"no-service"}),
        (["--assume", "limits=under"], {"no-service"}),
        (["--assume", "limits=over"], {"drop"}),
        (["--assume", "limit=over"], {"drop"}),  # what it was called before
        (["--assume", "limits=unknown"], {"no-service", "drop"}),
        (["--assume-nothing"], {"no-service", "drop"}),
        (["--assume", "limits=over", "--assume-nothing"], {"drop"}),
    ],
)
def test_a_limit_is_what_is_assumed(
    assume: list[str], kinds: set[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    dump = tmp_path / "dump"
    dump.write_text(
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m limit --limit 1/sec -j ACCEPT\nCOMMIT\n"
    )
    given = [str(dump), "--node-ip", "10.0.0.1", "--from", "9.9.9.9", "--to", "8.8.8.8:80"]
    found = traced(capsys, *given, *assume)
    assert {kind for kind, _, _ in ends(found)} == kinds
    assert any("limits of limit" in each for each in found["assumptions"]) is (len(kinds) == 1)


def test_text_has_the_ends_the_journey_and_what_was_assumed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["trace", *GIVEN, *POD, *APP]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("tcp from 10.244.1.200 to 10.96.18.52:80, at node worker1\n")
    assert "=> 10.244.1.9:8080\n" in shown
    assert "\nAssumed:\n  the packet is the first of its flow, NEW to conntrack\n" in shown


def test_a_policy_that_a_fragment_does_not_say_is_not_known(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    dump = tmp_path / "dump"
    dump.write_text("*filter\n:FORWARD - [0:0]\n-A FORWARD -d 9.9.9.9/32 -j DROP\nCOMMIT\n")
    given = [str(dump), "--node-ip", "10.0.0.1", "--from", "9.9.9.8", "--to", "8.8.8.8:80"]
    found = traced(capsys, *given)
    assert {kind for kind, _, _ in ends(found)} == {"no-service", "drop"}
    chains = "base chains that the dump does not have are empty: INPUT of filter, OUTPUT of filter"
    assert chains in found["assumptions"]


@pytest.mark.parametrize("content", ["5", "{}", '[{"addr_info": null}]', "[[]]", "[1]", "\xff", ""])
def test_what_ip_did_not_print_is_refused(
    content: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "odd"
    file.write_text(content, encoding="latin-1")
    for option in ("--addresses", "--routes"):
        assert cli.main(["trace", *GIVEN, *POD, *APP, option, str(file)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("routes", "kinds"),
    [
        ('[{"dst":"default","dev":"eth0"}]', {"drop"}),
        ('[{"dst":"default","dev":"eth0"},{"dst":"8.0.0.0/8","dev":"tun0"}]', {"no-service"}),
        # By several devices, or by none: by which, nobody knows.
        ('[{"dst":"default","dev":"eth0"},{"dst":"8.0.0.0/8","nexthops":[]}]', None),
        ('[{"dst":"default","dev":"eth0"},{"dst":"8.0.0.0/8","type":"blackhole"}]', None),
        ('[{"dst":"default","dev":"eth0"},{"dst":"8.0.0.0/8","dev":"t","flags":["dead"]}]', None),
        # Of IPv6, and both, one behind the other.
        ('[{"dst":"fd00::/8","dev":"a"},{"dst":"default","dev":"b","metric":1}]', None),
        (
            '[{"dst":"fd00::/8","dev":"a"},{"dst":"default","dev":"b"}]'
            '[{"dst":"default","dev":"eth0","metric":9}]',
            {"drop"},
        ),
    ],
)
def test_a_route_that_is_not_certain_leaves_the_device_open(
    routes: str, kinds: set[str] | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    dump, file = tmp_path / "dump", tmp_path / "routes"
    dump.write_text("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -o eth0 -j DROP\nCOMMIT\n")
    file.write_text(routes)
    given = [str(dump), "--node-ip", "10.0.0.1", "--routes", str(file), "--from", "9.9.9.9"]
    found = {kind for kind, _, _ in ends(traced(capsys, *given, "--to", "8.8.8.8:80"))}
    assert found == (kinds or {"drop", "no-service"})


RULES = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{}COMMIT\n"


@pytest.mark.parametrize(
    ("dump", "to", "kinds"),
    [
        # What a fragment leaves out may hold anything.
        ("-P FORWARD DROP\n-A FORWARD -j ACCEPT\n", "10.0.0.1:80", {"local", "unresolved"}),
        ("*filter\n:INPUT ACCEPT [0:0]\n", "8.8.8.8:80", {"no-service", "unresolved"}),
        ("-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT\n", "8.8.8.8:80", {"drop"}),
        # -I goes in front.
        (RULES.format("-A FORWARD -j ACCEPT\n-I FORWARD -j DROP\n"), "8.8.8.8:80", {"drop"}),
        (
            RULES.format("-A FORWARD -j ACCEPT\n-I FORWARD 2 -j DROP\n"),
            "8.8.8.8:80",
            {"no-service"},
        ),
        # The kernel compares the bits of a mask, whichever they are.
        (
            RULES.format("-A FORWARD -d 0.0.0.8/0.0.0.255 -j DROP\n"),
            "8.8.8.8:80",
            {"drop", "no-service"},
        ),
    ],
)
def test_what_a_dump_does_not_say_is_not_made_up(
    dump: str, to: str, kinds: set[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "dump"
    file.write_text(dump)
    found = traced(capsys, str(file), "--node-ip", "10.0.0.1", "--from", "9.9.9.9", "--to", to)
    assert {kind for kind, _, _ in ends(found)} == kinds
    assert not any("base chains" in each for each in found["assumptions"])


def test_a_template_of_conntrack_stays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "dump"
    file.write_text(
        "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j CT --zone 5\n"
        "-A PREROUTING -j CT --notrack\nCOMMIT\n*nat\n:PREROUTING ACCEPT [0:0]\n"
        "-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.7:80\nCOMMIT\n"
    )
    given = [str(file), "--node-ip", "10.0.0.1", "--from", "9.9.9.9", "--to", "8.8.8.8:80"]
    assert ends(traced(capsys, *given)) == [("endpoint", "10.0.0.7", False)]


def test_a_node_of_both_families_is_traced_in_each(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "dump"
    file.write_text("*filter\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -d fd00::/8 -j DROP\nCOMMIT\n")
    given = [str(file), "--node-ip", "10.0.0.1", "fd00::1", "--from-node", "--to", "[fd00::7]:80"]
    assert ends(traced(capsys, *given)) == [("drop", None, None)]


def test_unknown_rules_in_a_row_do_not_multiply_the_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "dump"
    rules = "".join(
        f"-A FORWARD -m set --match-set s{n} src -j MARK --set-xmark 0x1/0x1\n" for n in range(20)
    )
    file.write_text(RULES.format(rules))
    given = [str(file), "--node-ip", "10.0.0.1", "--from", "9.9.9.9", "--to", "8.8.8.8:80"]
    assert cli.main(["trace", *given]) == 0
    assert capsys.readouterr().out.count("\n") < 500


WHOLE = """*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
{raw}COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
{nat}COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
{filter}COMMIT
"""


@pytest.mark.parametrize(
    ("rules", "arguments", "kinds"),
    [
        # What comes back by loopback has the source that SNAT gave it.
        (
            {"nat": "-A POSTROUTING -j SNAT --to-source 5.5.5.5\n"}
            | {"filter": "-A INPUT -s 5.5.5.5/32 -j DROP\n"},
            ["--from-node", "--to", "10.0.0.1:80"],
            {"drop"},
        ),
        # A REDIRECT sends it to an address of the node: which one is not known, only that.
        (
            {"nat": "-A PREROUTING -p tcp -j REDIRECT --to-ports 8080\n"}
            | {"filter": "-A FORWARD -j DROP\n-A INPUT -d 8.8.8.8/32 -j REJECT\n"},
            ["--from", "9.9.9.9", "--to", "8.8.8.8:80"],
            {"local", "reject"},
        ),
        # Whether conntrack sees the flow is not known, so neither whether nat does; nor whether
        # it sees the answer.
        (
            {"raw": "-A PREROUTING -m set --match-set x src -j NOTRACK\n"}
            | {"nat": "-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.7:80\n"},
            ["--from", "9.9.9.9", "--to", "8.8.8.8:80"],
            {"endpoint", "no-service", "unanswered"},
        ),
        # Only a first packet is known to be a SYN.
        (
            {"filter": "-A FORWARD -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP\n"},
            ["--from", "9.9.9.9", "--to", "8.8.8.8:80"],
            {"drop"},
        ),
        (
            {"filter": "-A FORWARD -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP\n"},
            ["--from", "9.9.9.9", "--to", "8.8.8.8:80", "--ctstate", "INVALID"],
            {"drop", "no-service"},
        ),
    ],
)
def test_what_a_rule_changes_later_rules_see(
    rules: dict[str, str],
    arguments: list[str],
    kinds: set[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    dump = tmp_path / "dump"
    dump.write_text(WHOLE.format(**{"raw": "", "nat": "", "filter": "", **rules}))
    found = traced(capsys, str(dump), "--node-ip", "10.0.0.1", *arguments)
    assert {kind for kind, _, _ in ends(found)} == kinds
