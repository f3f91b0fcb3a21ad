"""The command line on rulesets of nft: of either family, alone or beside other rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer import cli
from tests.support.captures import FIXTURES, ROOT
from tests.support.json_reader import read
from tests.support.nft.dumps import DRAWS, ELSEWHERE, PLAIN, chain, nat, ruleset

CAPTURE = FIXTURES / "1.36.2-nftables" / "two-node@worker1"
DUMP = str(CAPTURE / "nft-list-ruleset.txt")
OBJECTS = ["--objects", str(CAPTURE / "objects.json"), "--node", "worker1"]
OF_IPTABLES = ROOT / "fixtures/nft/1.36.2-iptables-nft/two-node"
POD = ["--from", "10.244.1.200", "--to"]


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> Any:
        assert cli.main([*arguments, "--format", "json"]) == 0
        return read(capsys.readouterr().out)

    return run


def ends(document: Any) -> list[tuple[str, str | None]]:
    return [(each["outcome"], each["address"]) for each in document["outcomes"]]


def test_services_name_their_mode_and_format(asked: Any) -> None:
    found = asked("services", DUMP, *OBJECTS)
    assert found["source"] == {
        "format": "nft",
        "mode": "nftables",
        "rules": 47,
        "node": "worker1",
    }
    assert len(found["services"]) == 5
    assert found["diagnostics"] == []


@pytest.mark.parametrize(
    ("to", "protocol", "expected"),
    [
        ("10.96.0.10:53", "udp", [("endpoint", "10.244.0.3"), ("endpoint", "10.244.1.4")]),
        # What nftables mode is meant to do otherwise than iptables mode.
        ("10.96.0.10:54", "udp", [("reject", None)]),
        ("10.96.77.77:80", "tcp", [("drop", None)]),
        ("192.0.2.9:80", "tcp", [("no-service", "192.0.2.9")]),
    ],
)
def test_a_packet_is_traced(asked: Any, to: str, protocol: str, expected: Any) -> None:
    found = asked("trace", DUMP, *OBJECTS, *POD, to, "--protocol", protocol)
    assert ends(found) == expected
    assert found["diagnostics"] == []


def test_rules_of_a_way_name_their_table_and_chain(asked: Any) -> None:
    found = asked("trace", DUMP, *OBJECTS, *POD, "10.96.0.1:443")
    (end,) = found["outcomes"]
    places = [(rule["table"], rule["chain"]) for rule in end["rules"]]
    assert ("ip kube-proxy", "services") in places
    assert ("ip kube-proxy", "service-2QRHZV4L-default/kubernetes/tcp/https") in places
    assert all(rule["text"] in Path(DUMP).read_text() for rule in end["rules"])


def test_the_family_is_that_of_the_destination(asked: Any) -> None:
    found = asked("trace", DUMP, "--from", "fd00::9", "--to", "[fd00:10:96::1]:443")
    assert ends(found) == [("local", "fd00:10:96::1"), ("no-service", "fd00:10:96::1")]


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """Return a dump of a Service with session affinity, which holds a client."""
    held = (
        "set affinity-X {\n\t\ttype ipv4_addr\n\t\tsize 65535\n\t\tflags dynamic,timeout\n"
        "\t\ttimeout 3h\n\t\telements = { 10.0.0.77 expires 2h }\n\t}"
    )
    path = tmp_path / "kept.nft"
    path.write_text(
        ruleset(
            held,
            nat("ip daddr 10.96.0.1 tcp dport 80 goto service-A-ns/a/tcp/"),
            chain("service-A-ns/a/tcp/", "ip saddr @affinity-X goto one", DRAWS),
            chain("one", "update @affinity-X { ip saddr }", "meta l4proto tcp dnat to 10.0.0.1:80"),
        )
    )
    return str(path)


def test_a_client_is_kept_where_the_dump_shows_it(asked: Any, kept: str) -> None:
    to = ["--to", "10.96.0.1:80"]
    found = asked("trace", kept, "--from", "10.0.0.77", *to)
    assert ends(found) == [("endpoint", "10.0.0.1")]
    assert "the client is in session affinity list affinity-X" in found["assumptions"]
    assert len(ends(asked("trace", kept, "--from", "10.0.0.78", *to))) == 2
    found = asked("trace", kept, "--from", "10.0.0.78", *to, "--affinity", "10.0.0.1:80")
    assert ends(found) == [("endpoint", "10.0.0.1")]
    # Shares are those of new clients.
    (service,) = asked("services", kept)["services"]
    assert service["session_affinity"] == {"timeout_seconds": 10800}
    assert [each["share"][0] for each in service["routes"][0]["endpoints"]] == [0.5, 0.5]


def test_other_rules_of_the_node_count(asked: Any, tmp_path: Path) -> None:
    dump, other = tmp_path / "dump.nft", tmp_path / "legacy.save"
    dump.write_text(PLAIN)
    target = "DNAT --to-destination 10.9.9.9:80"
    other.write_text(ELSEWHERE.replace("*nat", "*raw").replace(target, "DROP"))
    to = ["--from", "10.0.0.9", "--to", "10.96.0.1:80", "--node-ip", "192.168.0.1"]
    assert ends(asked("trace", str(dump), *to)) == [
        ("endpoint", "10.0.0.1"),
        ("endpoint", "10.0.0.2"),
    ]
    found = asked("trace", str(dump), *to, "--with", str(other))
    assert ends(found) == [("drop", None)]
    (service,) = asked("services", str(dump), "--with", str(other))["services"]
    assert service["endpoints"] == []


def test_rules_of_iptables_nft_are_sent_for(capsys: pytest.CaptureFixture[str]) -> None:
    (dump,) = OF_IPTABLES.glob("*.txt")
    assert cli.main(["services", str(dump)]) == 0
    printed = capsys.readouterr()
    # What survives in nft's listing gives bounds.
    assert "iptables mode" in printed.out
    assert "5 frontends with shares known only within bounds" in printed.out
    assert "run `iptables-save` on the node" in printed.err
    assert cli.main(["services", str(dump), "--strict"]) == 3


def test_the_check_is_of_iptables_mode(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["services", DUMP, "--check"]) == 2
    assert "--check has no checks for output of nft, only for that of iptables-save; kubeodds" in (
        capsys.readouterr().err
    )
