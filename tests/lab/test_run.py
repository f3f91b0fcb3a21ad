from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analyzer.reports.lab_answers import LeftOut
from netns_lab.asked import said
from tests.support.lab.running import (
    CASES,
    NFT_CASES,
    SWAPPED,
    Case,
    case,
    judged_again,
    kubeodds,
    lab_run,
    python,
)

pytestmark = pytest.mark.lab


@pytest.mark.alike(3)
@pytest.mark.parametrize("given", [*CASES, *NFT_CASES], ids=str)
def test_the_kernel_agrees_on_every_capture_from_every_source(given: Case) -> None:
    status, found, _ = lab_run(
        *given.given, "--dead-node", given.victim, "--flows", "2000",
        "--from", "pod", "node", "external",
    )  # fmt: skip
    assert found["agrees"]
    assert status == 0
    assert found["measurements"]
    for each in found["measurements"]:
        assert each["unaccounted"] == each["duplicates"] == each["dropped_by_capture"] == 0
        assert each["counter_difference"] == 0
        assert sum(e["landed"] for e in each["endpoints"]) == 2000


def test_the_dead_say_nothing_and_the_living_answer_each_flow() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    _, found, _ = lab_run(*given.given, "--dead-node", "master", "--service", "default/app")
    dead, alive = sorted(found["measurements"][0]["endpoints"], key=lambda e: not e["dead"])
    assert dead["node"] == "master"
    assert dead["landed"] > 0 == dead["answered"] == dead["refused"]
    assert alive["answered"] == alive["landed"] > 0


@pytest.mark.deep
def test_a_single_dead_port_refuses_since_its_pod_lives() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    _, found, _ = lab_run(
        *given.given, "--dead", "10.244.0.3:9153", "--service", "kube-dns:metrics"
    )
    dead = next(e for e in found["measurements"][0]["endpoints"] if e["dead"])
    assert dead["refused"] == dead["landed"] > 0


@pytest.mark.deep
def test_a_dump_alone_is_enough_when_addresses_are_named() -> None:
    given = case("1.20.2-iptables-legacy/seed-dns@worker1")
    status, found, _ = lab_run(given.dump, "--dead", "10.1.0.1", "--service", "kube-dns:dns")
    assert status == 0
    assert [e["answered"] > 0 for e in found["measurements"][0]["endpoints"]] == [False, True]


@pytest.mark.deep
def test_more_flows_than_conntrack_holds_are_all_accounted_for() -> None:
    given = case("1.36.2-iptables-nft/seed-dns")
    status, found, _ = lab_run(
        *given.given, "--dead-node", "worker1", "--service", "kube-dns:dns", "--flows", "150000"
    )
    assert status == 0
    assert sum(e["landed"] for e in found["measurements"][0]["endpoints"]) == 150_000


def test_a_measurement_can_be_judged_again(tmp_path: Path) -> None:
    given = case("1.36.2-iptables-legacy/seed-dns@worker1")
    _, found, _ = lab_run(*given.given, "--dead-node", "master", "--service", "kube-dns:dns")
    assert judged_again(found, tmp_path) == (0, found)
    saved = tmp_path / "measured.json"
    saved.write_text(json.dumps(found))
    assert kubeodds("lab", "verify", str(saved)).returncode == 0  # as it was called once
    first, second = found["measurements"][0]["endpoints"]
    for each, more in ((first, 500), (second, -500)):
        each["landed"] += more
        each["counted"] += more
        each["answered"] += 0 if each["dead"] else more
    saved.write_text(json.dumps(found))
    again = kubeodds("lab", "judge", str(saved))
    assert again.returncode == 1
    assert "DISAGREES" in again.stdout
    first["counted"] += 1
    saved.write_text(json.dumps(found))
    again = kubeodds("lab", "judge", str(saved))
    assert (again.returncode, again.stdout, again.stderr.count("\n")) == (2, "", 1)
    assert "measurements[0].counter_difference is 0, and its counts give 1" in again.stderr


@pytest.mark.deep
def test_the_rate_is_that_of_the_run_and_each_measurement_has_its_part() -> None:
    given = case("1.36.2-iptables-legacy/seed-dns@worker1")
    words = [*given.given, "--dead-node", "master", "--service", "kube-dns", "--flows", "300"]
    status, found, errors = lab_run(*words)
    assert (status, found["rate"]) == (0, 1e-6), errors
    levels = [each["false_alarm_rate"] for each in found["measurements"]]
    assert len(levels) > 2
    assert sum(levels) == pytest.approx(found["rate"])
    shown = kubeodds("lab", "run", *words).stdout
    assert shown.count("false-alarm rate") == 1
    assert shown.rstrip().endswith("false-alarm rate 1e-06 for the whole run)")


def test_a_changed_probability_is_found_out(tmp_path: Path) -> None:
    """The prediction is of one dump, the kernel's rules are of another."""
    given = case("1.36.2-iptables-legacy/seed-dns@worker1")
    program = Path(tmp_path, "swap.py")
    program.write_text(SWAPPED)
    arguments = ["run", *given.given, "--dead-node", "master", "--service", "kube-dns:dns"]
    done = python(str(program), *arguments)
    assert done.returncode == 1, done.stderr
    assert "DISAGREES" in done.stdout


@pytest.mark.deep
def test_flows_that_share_the_nodes_address_do_not_run_out_of_ports() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    status, found, _ = lab_run(
        *given.given, "--dead", "192.168.0.10", "--service", "kubernetes:https",
        "--from", "external", "--flows", "70000",
    )  # fmt: skip
    assert status == 0
    assert found["measurements"][0]["unaccounted"] == 0


def test_what_cannot_be_replayed_is_said_and_the_rest_is_measured(captures: Path) -> None:
    features = captures / "1.36.2-iptables-legacy/features"
    given = [str(features / "iptables-legacy-save.txt.gz"), "--node", "node-a1"]
    given += ["--objects", str(features / "objects.json.gz"), "--flows", "300"]
    status, found, _ = lab_run(*given, "--dead-node", "node-b1")
    assert (status, found["agrees"]) == (0, True)
    assert len(found["measurements"]) > 25
    assert {m["protocol"] for m in found["measurements"]} == {"tcp", "udp", "sctp"}
    (affine,) = (m for m in found["measurements"] if m["service"] == "feat/affinity")
    assert (affine["repeated"], affine["strayed"]) == (300, 0)
    assert found["routes"] == len(found["measurements"])
    alone = kubeodds("lab", "run", *given, "--service", "feat/no-endpoints-lb", "--from", "node")
    assert alone.returncode == 0
    assert "flows left the node unchanged." in alone.stdout


def test_each_source_that_is_left_out_is_named_with_its_routes() -> None:
    def told(frontend: str, source: str) -> LeftOut:
        return LeftOut(
            service="ns/it", protocol="tcp", frontend=frontend, source=source, reason="so it is"
        )

    left_out = [told("ClusterIP 10.96.0.7:80", "hairpin"), told("NodePort *:30001", "hairpin")]
    given: Any = SimpleNamespace(ruleset=SimpleNamespace(file="dump.txt"))
    found = said([*left_out, told("NodePort *:30001", "pod")], given)
    assert [each.message for each in found] == [
        "2 routes to ns/it from the endpoint itself are not replayed: so it is",
        "1 route to ns/it from a pod is not replayed: so it is",
    ]


def test_of_sctp_it_is_measured_who_gets_the_init(tmp_path: Path) -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    dump = tmp_path / "dump.txt"
    dump.write_text(Path(given.dump).read_text().replace(" tcp ", " sctp "))
    asked = ["--service", "default/app", "--dead", "10.244.0.0/16", "--flows", "2000"]
    status, found, _ = lab_run(str(dump), *asked)
    assert (status, found["agrees"]) == (0, True)
    (measured,) = found["measurements"]
    assert measured["protocol"] == "sctp"
    assert sum(each["landed"] for each in measured["endpoints"]) == 2000
    assert measured["counter_difference"] == 0


def test_a_dump_that_is_cut_off_is_not_loaded(tmp_path: Path) -> None:
    given = case("1.36.2-iptables-legacy/seed-dns@worker1")
    cut = tmp_path / "cut.txt"
    cut.write_text(Path(given.dump).read_text()[:-400])
    done = kubeodds("lab", "run", str(cut), "--dead", "10.1.0.1")
    assert done.returncode == 2
    assert "table nat is not complete in the dump" in done.stderr


@pytest.mark.deep
def test_the_answer_can_be_written_where_the_system_keeps_its_own_files(tmp_path: Path) -> None:
    given = case("1.36.2-iptables-legacy/seed-dns@worker1")
    where = tmp_path / "answer.json"
    done = kubeodds(
        "lab", "run", *given.given, "--flows", "100", "--format", "json", "--output", str(where)
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(where.read_text())["agrees"]
    where.write_text(json.dumps({**json.loads(where.read_text()), "measurements": []}))
    assert kubeodds("lab", "judge", str(where)).stderr.endswith("it contains no measurement\n")


@pytest.mark.alike(1)
@pytest.mark.parametrize("given", NFT_CASES, ids=str)
@pytest.mark.parametrize("form", ["txt", "json"])
def test_half_of_the_flows_are_lost_by_rules_of_nft_as_well(given: Case, form: str) -> None:
    dump, *rest = given.given
    status, found, _ = lab_run(
        dump.replace(".txt", f".{form}"), *rest, "--dead-node", given.victim,
        "--service", "kube-dns:dns",
    )  # fmt: skip
    assert (status, found["agrees"]) == (0, True)
    measured = found["measurements"][0]
    assert measured["backend"] == "nftables"
    dead, alive = sorted(measured["endpoints"], key=lambda e: not e["dead"])
    assert dead["predicted"]["lower"] == dead["predicted"]["upper"]
    assert dead["predicted"]["upper"]["value"] == 0.5
    assert dead["counted"] == dead["landed"] > 0 == dead["answered"] == dead["refused"]
    assert alive["answered"] == alive["landed"] == alive["counted"] > 0


def test_a_changed_draw_of_nft_is_found_out(tmp_path: Path) -> None:
    given = NFT_CASES[-1]
    program = Path(tmp_path, "swap.py")
    program.write_text(
        "import sys\n"
        "from netns_lab import cli, nft_rules\n"
        "commands = nft_rules.commands\n"
        "def other(ruleset):\n"
        "    for text in commands(ruleset):\n"
        "        yield text.replace('random mod 2 map { 0 :', 'random mod 5 map { 0-2 :')"
        ".replace(', 1 :', ', 3-4 :')\n"
        "nft_rules.commands = other\n"
        "nft_rules._check_same = lambda *_: None\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    arguments = ["run", *given.given, "--dead-node", given.victim, "--service", "kube-dns:dns"]
    done = python(str(program), *arguments)
    assert done.returncode == 1, done.stderr
    assert "DISAGREES" in done.stdout


def test_a_ruleset_that_is_not_what_the_kernel_holds_is_refused(tmp_path: Path) -> None:
    given = NFT_CASES[-1]
    program = Path(tmp_path, "swap.py")
    program.write_text(
        "import sys\n"
        "from netns_lab import nft_rules\n"
        "from netns_lab.errors import LabError\n"
        "from analyzer import cli\n"
        "commands = nft_rules.commands\n"
        "nft_rules.commands = lambda r: (t.replace('mod 2', 'mod 3') for t in commands(r))\n"
        "sys.argv[1:1] = ['lab']\n"
        "cli.run()\n"
    )
    done = python(str(program), "run", *given.given)
    assert done.returncode == 2, done.stderr
    assert "of table ip kube-proxy is not the same once it is loaded" in done.stderr


@pytest.mark.parametrize(
    ("given", "backend", "says"),
    [(NFT_CASES[0], "legacy", "iptables cannot load an nft ruleset"),
     (CASES[0], "nftables", "nft cannot load a dump of iptables-save")],
    ids=["nft", "iptables"],
)  # fmt: skip
def test_a_backend_that_cannot_load_the_dump_says_so(given: Case, backend: str, says: str) -> None:
    done = kubeodds("lab", "run", *given.given, "--backend", backend)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_services_of_both_families_are_replayed(captures: Path) -> None:
    folder = captures / "1.36.2-nftables/dual-stack"
    given = [str(folder / "nft-list-ruleset.txt"), "--objects", str(folder / "objects.json")]
    node = json.loads((folder / "run.json").read_text())["node"]
    status, found, _ = lab_run(*given, "--node", node, "--flows", "300")
    assert (status, found["agrees"]) == (0, True)
    assert len(found["measurements"]) > 5
    sockaddrs = [each["frontend"] for each in found["measurements"]]
    assert any("[fd00:" in each for each in sockaddrs)
    assert any(" 10." in each for each in sockaddrs)
