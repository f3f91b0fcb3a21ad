"""Deaths, revivals, syncs and other rules while flows go on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analyzer.kubeproxy.generate import (
    FLAGS,
    RulesLayout,
    proxy_config,
    render_nft,
    service_ports,
)
from tests.support.documents import schema
from tests.support.effort import PROFILE
from tests.support.lab.running import (
    FIXTURES,
    NFT_CASES,
    ROOT,
    SWAPPED,
    Case,
    case,
    judged_again,
    kubeodds,
    lab_run,
    python,
)

pytestmark = pytest.mark.lab

EXAMPLE = [str(ROOT / "examples/dump.txt"), "--objects", str(ROOT / "examples/objects.json")]
EXAMPLE += ["--node", "worker1", "--service", "default/app"]


#: A capture of each way to load rules: all in the deep check.
BACKENDS = [
    case("1.36.2-iptables-legacy/seed-dns@worker1"),
    case("1.36.2-iptables-nft/seed-dns"),
    next(each for each in NFT_CASES if "nftables" in str(each.directory)),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run found in which a node dies, lives again, and leaves the rules."""
    text = (ROOT / "examples/dump.txt").read_text()
    rows = [r for r in text.splitlines() if "KUBE-SEP-J2W2PM2EJNGL7DWU" not in r]
    less = tmp_path_factory.mktemp("phases") / "less.txt"
    less.write_text("\n".join(rows) + "\n")
    happens = ["--resync", "@0.5s", "--kill", "master@1s", "--revive", "master@2.2s"]
    happens += ["--replace-rules", f"{less}@4.4s"]
    status, found, errors = lab_run(*EXAMPLE, "--for", "5s", "--rate", "300", *happens)
    assert status == 0, (errors, found)
    return found


@pytest.mark.deep
def test_the_document_follows_its_schema(found: dict[str, Any]) -> None:
    Draft202012Validator(schema("lab-phases")).validate(found)


def test_the_document_is_judged_again_as_the_run_was(found: dict[str, Any], tmp_path: Path) -> None:
    assert judged_again(found, tmp_path) == (0, found)


def test_each_flow_is_of_one_phase_and_of_one_bucket(found: dict[str, Any]) -> None:
    flows = [each["measurement"]["flows"] for each in found["phases"]]
    assert sum(flows) == sum(each["flows"] for each in found["buckets"]) >= 4.9 * 300
    assert found["unaccounted"] == 0
    for each in found["buckets"]:
        assert sum(to["landed"] for to in each["endpoints"]) == each["flows"]


def test_each_phase_has_the_prediction_of_its_dead_and_its_rules(found: dict[str, Any]) -> None:
    whole = [each for each in found["phases"] if not each["at_event"]][1:]
    predicted = [each["lost_predicted"]["upper"]["value"] for each in whole]
    assert predicted == [0.0, 0.5, 0.0, 0.0]
    assert [each["dead"] for each in whole] == ["nothing", "master (silent)", "nothing", "nothing"]
    assert [len(each["measurement"]["endpoints"]) for each in whole] == [2, 2, 2, 1]
    lost = [each["lost"] for each in whole]
    assert lost[1] > 0 == lost[0] == lost[2] == lost[3]
    low, high = whole[1]["interval"]
    assert low < lost[1] / whole[1]["measurement"]["flows"] < high


def test_flows_that_left_while_rules_were_replaced_are_between_phases(
    found: dict[str, Any],
) -> None:
    synced, between = (each for each in found["phases"] if each["at_event"])
    assert synced["measurement"]["flows"] > 0 == synced["lost"]
    event = found["events"][-1]
    assert event["says"].startswith("replace-rules")
    assert between["measurement"]["flows"] > 0 == between["lost"]
    assert event["begun"] <= between["begins"] <= between["ends"] <= event["ended"]


def test_connections_hang_while_their_endpoint_is_dead_and_survive_other_rules(
    found: dict[str, Any],
) -> None:
    assert len(found["connections"]) == 8
    for each in found["connections"]:
        assert each["agrees"] is True
        if each["endpoint"] == "10.244.1.9:8080":
            assert each["fate"] == "survived"
        else:
            assert each["fate"] == "hung"
            (hang,) = each["hangs"]
            assert 0.9 < hang["begins"] < 1.6
            assert 2.1 < hang["ends"] < 4.3


@pytest.mark.parametrize(
    "given",
    BACKENDS if PROFILE != "quick" else BACKENDS[2:],
    ids=str,
)
def test_a_sync_in_the_middle_of_traffic_loses_no_new_flow(given: Case) -> None:
    again = ["--resync", "@0.3s,@0.6s", "--replace-rules", f"{given.dump}@0.9s"]
    asked = ["--service", "kube-dns:dns-tcp", "--for", "1.2s", "--rate", "3000", *again]
    status, found, errors = lab_run(*given.given, *asked)
    assert status == 0, (errors, found)
    assert (found["unaccounted"], sum(each["lost"] for each in found["phases"])) == (0, 0)
    between = [e["measurement"]["flows"] for e in found["phases"] if e["at_event"]]
    assert len(between) == 3
    assert all(between)
    assert {each["fate"] for each in found["connections"]} == {"survived"}


@pytest.mark.skipif(PROFILE == "quick", reason="how schedules are read is tested without a lab")
def test_a_process_that_is_gone_resets_its_connections_and_a_flap_comes_and_goes() -> None:
    given = ["--dead", "10.244.1.9:flap=0.8s/0.7s", "--kill", "10.244.0.7:process@0.4s"]
    done = kubeodds("lab", "run", *EXAMPLE, "--for", "2s", *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"\ds: (\w+ [0-9.]+)", done.stdout) == [
        "kill 10.244.0.7",
        "kill 10.244.1.9",
        "revive 10.244.1.9",
    ]
    assert "reset at 0." in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 160


def test_an_endpoint_sends_to_its_own_service_as_long_as_it_lives() -> None:
    happens = ["--kill", "master@0.4s", "--revive", "master@0.8s"]
    words = [*EXAMPLE, "--service", "kube-dns:dns", "--from", "hairpin", "--for", "1.2s"]
    status, found, errors = lab_run(*words, "--rate", "600", *happens)
    assert (status, found["agrees"], found["left_out"]) == (0, True, []), (errors, found)
    Draft202012Validator(schema("lab-phases")).validate(found)
    senders = {at: each["sender"] for at, each in enumerate(found["routes"])}
    assert set(senders.values()) >= {"10.244.0.7:8080", "10.244.1.9:8080", "10.244.0.3:53"}
    assert found["connections"] == []  # an endpoint that sends has no sockets for answers
    for at, sender in senders.items():
        phases = [each for each in found["phases"] if each["route"] == at]
        dead = [each for each in phases if each["dead"] != "nothing"]
        assert len(phases) - len(dead) == 2
        assert len(dead) == (0 if sender.startswith("10.244.0.") else 1)
        (own,) = {
            (e["address"], e["port"], e["node"])
            for e in phases[0]["measurement"]["endpoints"]
            if f"{e['address']}:{e['port']}" == sender
        }
        assert all(
            e["answered"] == e["landed"] > 0
            for each in phases
            for e in each["measurement"]["endpoints"]
            if (e["address"], e["port"], e["node"]) == own
        )


def test_who_refuses_from_some_moment_on_tells_every_client() -> None:
    # ICMP errors, of which a host usually sends a client one a second.
    dies = ["--kill", "10.244.0.7:reject@0.3s,10.244.0.3:unreachable@0.3s"]
    given = [*EXAMPLE, "--service", "kube-dns:dns", "--for", "1s", "--rate", "400"]
    status, found, errors = lab_run(*given, *dies)
    assert status == 0, (errors, found)
    dead = [
        (to["death"], to["landed"], to["refused"])
        for each in found["phases"]
        if len(each["dead"].split(", ")) == 2 and not each["at_event"]
        for to in each["measurement"]["endpoints"]
        if to["dead"]
    ]
    assert {death for death, _, _ in dead} == {"reject", "unreachable"}
    assert all(landed == refused > 20 for _, landed, refused in dead), dead


@pytest.mark.skipif(PROFILE == "quick", reason="what is not judged is CI's")
def test_rules_that_do_not_know_the_service_are_not_judged(tmp_path: Path) -> None:
    text = (ROOT / "examples/dump.txt").read_text()
    other = tmp_path / "other.txt"
    gone = [r for r in text.splitlines() if "default/app" not in r and "NZGXMBVUFMQ6OBBQ" not in r]
    other.write_text("\n".join(gone) + "\n")
    words = ["--for", "1.5s", "--replace-rules", f"{other}@0.7s", "-o", "json"]
    done = kubeodds("lab", "run", *EXAMPLE, *words)
    assert done.returncode == 0, done.stderr
    assert "it does not show what happens to flows to default/app: not judged" in done.stderr
    assert [e["predicted"] for e in json.loads(done.stdout)["phases"]] == [True, False, False]


@pytest.mark.deep
def test_what_happens_at_one_time_happens_one_after_the_other() -> None:
    happens = ["--resync", "@0.5s", "--resync", "@0.5s", "--kill", "master@0.5s"]
    _, found, errors = lab_run(*EXAMPLE, "--for", "1s", "--connections", "0", *happens)
    assert not errors
    for one, other in zip(found["events"], found["events"][1:], strict=False):
        assert one["ended"] <= other["begun"]
    for one, other in zip(found["phases"], found["phases"][1:], strict=False):
        assert one["ends"] <= other["begins"]


# --- several routes ----------------------------------------------------------------

DUAL = FIXTURES.parent / "check/1.36.2-iptables-legacy/dual-stack"
DUMPS = [str(DUAL / f"{each}-legacy-save.txt") for each in ("iptables", "ip6tables")]


@pytest.mark.deep
def test_every_route_of_both_ip_versions_is_followed_in_each_phase() -> None:
    happens = ["--resync", "@0.4s", "--kill", "node-b1@0.8s", "--revive", "node-b1@2.2s"]
    happens += ["--replace-rules", f"{DUMPS[1]}@2.6s"]
    given = [*DUMPS, "--objects", str(DUAL / "objects.json"), "--node", "node-a1"]
    given += ["--from", "pod,node", "--service", "kube-dns", "--rate", "2000"]
    status, found, errors = lab_run(*given, "--for", "3s", "--connections", "2", *happens)
    told = errors, found["phases"], found["connections"]
    assert (status, found["agrees"], found["unaccounted"]) == (0, True, 0), told
    Draft202012Validator(schema("lab-phases")).validate(found)
    routes = found["routes"]
    assert {each["source"] for each in routes} == {"pod", "node"}
    families = {each["measurement"]["family"] for each in found["phases"]}
    protocols = {each["protocol"] for each in routes}
    assert (families, protocols) == ({"ip", "ip6"}, {"tcp", "udp"})
    flows = [each["flows"] for each in routes]
    assert max(flows) - min(flows) <= 1  # in turn
    assert sum(flows) == sum(each["flows"] for each in found["buckets"]) > 5900
    for at, route in enumerate(routes):
        phases = [each for each in found["phases"] if each["route"] == at]
        lost = [e["lost_predicted"]["upper"]["value"] for e in phases if not e["at_event"]]
        assert lost[2] > 0 == lost[0] == lost[1] == lost[3]
        assert phases[-1]["rules"] == DUMPS[phases[0]["measurement"]["family"] == "ip6"]
        kept = [each for each in found["connections"] if each["route"] == at]
        assert len(kept) == route["connections"] == (2 if route["protocol"] == "tcp" else 0)
        assert all(each["agrees"] for each in kept)
    assert {each["fate"] for each in found["connections"]} == {"survived", "hung"}


@pytest.mark.parametrize("mode", ["iptables", "nft"])
def test_clients_with_session_affinity_are_drawn_anew_in_each_phase(
    mode: str, tmp_path: Path
) -> None:
    """Whoever stayed at its endpoint would make all flows of a phase one draw."""
    items = json.loads((DUAL / "objects.json").read_text())["items"]
    given = ["--objects", str(DUAL / "objects.json"), "--node", "node-a1"]
    if mode == "iptables":
        dump = DUMPS[0]
    else:
        config = proxy_config(items, FLAGS, node="node-a1", layout=RulesLayout.V1_36)
        dump = str(tmp_path / "dump.txt")
        Path(dump).write_text(render_nft(list(service_ports(items, RulesLayout.V1_36)), config))
    given += ["--service", "ds/affinity", "--from", "pod,node", "--rate", "1500"]
    happens = ["--resync", "@0.3s", "--kill", "node-b1@0.8s", "--replace-rules", f"{dump}@1.2s"]
    status, found, errors = lab_run(dump, *given, "--for", "1.6s", *happens)
    assert (status, found["agrees"], found["unaccounted"]) == (0, True, 0), errors
    assert found["left_out"] == []
    assert {each["source"] for each in found["routes"]} == {"pod", "node"}
    measured = [each["measurement"] for each in found["phases"] if not each["at_event"]]
    for each in measured:
        assert min(e["landed"] for e in each["endpoints"]) > 0
    assert sum(each["flows"] for each in measured) == sum(e["flows"] for e in found["routes"])


@pytest.mark.deep
def test_late_answers_on_several_routes_are_those_of_their_flows() -> None:
    """Both endpoints are slow, and flows of three routes are on their way at any time."""
    words = [*EXAMPLE[:-2], "--service", "app,kube-dns", "--from", "pod", "--for", "1.2s"]
    late = ["--dead", "10.244.0.7:slow=120,10.244.1.9:slow=60", "--rate", "900"]
    status, found, errors = lab_run(*words, *late, "--connections", "0")
    assert (status, found["agrees"], found["unaccounted"]) == (0, True, 0), errors
    assert len(found["routes"]) > 2
    assert not any(each["lost"] for each in found["phases"])


@pytest.mark.deep
def test_an_endpoint_that_the_first_dump_lacks_answers_when_its_rules_are_there(
    tmp_path: Path,
) -> None:
    rows = Path(EXAMPLE[0]).read_text().splitlines()
    less = tmp_path / "less.txt"
    less.write_text("\n".join(r for r in rows if "KUBE-SEP-J2W2PM2EJNGL7DWU" not in r) + "\n")
    happens = ["--for", "1s", "--rate", "1000", "--replace-rules", f"{EXAMPLE[0]}@0.4s"]
    status, found, errors = lab_run(str(less), *EXAMPLE[1:], *happens)
    assert (status, found["unaccounted"]) == (0, 0), (errors, found)
    last = found["phases"][-1]["measurement"]["endpoints"]
    assert [bool(each["answered"]) for each in last] == [True, True]


@pytest.mark.deep
def test_one_route_of_several_that_draws_otherwise_is_found_out(tmp_path: Path) -> None:
    program = tmp_path / "swapped.py"
    program.write_text(SWAPPED)
    words = ["run", *EXAMPLE[:-2], "--service", "app,kube-dns", "--for", "3s"]
    done = python(str(program), *words, "--rate", "9000", "-o", "json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["agrees"] is False
    wrong = [each["service"] for each in found["routes"] if not each["agrees"]]
    assert wrong


def test_more_connections_than_there_may_be_are_shared_and_that_is_said() -> None:
    from netns_lab.phased import _connections_of_each

    def runs(*protocols: str) -> list[Any]:
        return [
            SimpleNamespace(service=SimpleNamespace(protocol=each), sender=None)
            for each in protocols
        ]

    asked = SimpleNamespace(connections=8)
    assert _connections_of_each(asked, runs("tcp", "udp", "tcp")) == [8, 0, 8]
    assert _connections_of_each(asked, runs(*["tcp"] * 50)) == [4] * 50
    assert _connections_of_each(asked, runs(*["tcp"] * 203)) == [1] * 200 + [0] * 3


def test_fewer_flows_than_routes_are_refused() -> None:
    words = [*EXAMPLE[:-2], "--from", "pod,node", "--for", "1s", "--rate", "3"]
    done = kubeodds("lab", "run", *words)
    assert done.returncode == 2
    assert re.search(r"are 3 on \d+ routes: expected \d+ to 64,512; change --rate", done.stderr)
