from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab.running import case, in_lab, judged_again, kubeodds, python

pytestmark = pytest.mark.lab


@pytest.mark.alike(1)
@pytest.mark.parametrize(
    ("capture", "service", "program"),
    [
        ("1.36.2-iptables-legacy/two-node@worker1", "default/app", "nc -zv"),
        ("1.20.2-iptables-legacy/seed-dns@worker1", "kube-dns:dns", "dig"),
    ],
)
def test_the_pod_answers_always_and_the_service_half_of_the_time(
    capture: str, service: str, program: str
) -> None:
    given = case(capture)
    done = kubeodds(
        "lab", "clients", *given.given, "--dead-node", "master", "--service", service,
        "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pod, frontend = json.loads(done.stdout)["trials"]
    assert pod["command"].startswith(program)
    assert pod["succeeded"] == pod["runs"] == 60
    assert frontend["succeeds"]["lower"]["value"] == frontend["succeeds"]["upper"]["value"] == 0.5
    assert 0 < frontend["succeeded"] < 60
    assert frontend["agrees"]
    # Silence is a time-out: the client waited as long as it was told to.
    assert min(frontend["failure_seconds"]) >= 2.0


@pytest.mark.deep
def test_a_service_whose_only_endpoint_is_dead_answers_nobody() -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1")
    done = kubeodds(
        "lab", "clients", *given.given, "--dead-node", "master", "--service", "kubernetes:https",
        "--runs", "5", "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (frontend,) = json.loads(done.stdout)["trials"]
    assert frontend["succeeded"] == frontend["succeeds"]["upper"]["value"] == 0


#: Keeps the program from its servers for some seconds, as a busy machine does, behind the starts of
#: these clients, by their number; prints its exit status and how many were started, too.
BUSY = """
import sys, time
from netns_lab import clients, command
from analyzer.cli import main
clients._STALL = {stall}
started, start = [], command.start
def begun(*given):
    process = start(*given)
    started.append(process)
    if len(started) in {busy}:
        time.sleep({seconds})
    return process
command.start = begun
status = main({arguments!r})
sys.stdout.write(f"{{status}} {{len(started)}}")
"""


def slowed(runs: int, **given: str) -> tuple[int, int, Any]:
    """Return the exit status, how many clients were started, and what was found."""
    dump = case("1.36.2-iptables-legacy/seed-dns@worker1").given
    words = ["lab", "clients", *dump, "--dead-node", "master", "--service", "kube-dns:dns"]
    words += ["--runs", str(runs), "--format", "json"]
    text, _, tail = in_lab(BUSY.format(arguments=words, **given)).rpartition("\n")
    status, started = tail.split()
    return int(status), int(started), json.loads(text or "null")


@pytest.mark.deep
def test_clients_that_a_busy_machine_keeps_waiting_are_started_anew() -> None:
    # dig gives up after two seconds.
    status, started, found = slowed(6, stall="1.0", busy="{2}", seconds="2.5")
    assert status == 0
    pod, frontend = found["trials"]
    assert pod["succeeded"] == pod["runs"] == 6
    assert frontend["runs"] == 6
    assert started == 6 + 6 + 6  # the first batch twice


@pytest.mark.deep
def test_a_machine_that_is_always_busy_measures_nothing() -> None:
    status, started, found = slowed(1, stall="0.1", busy="range(99)", seconds="0.2")
    assert (status, started, found) == (2, 10, None)


def trials_of(client: str, *options: str, dead: str | None) -> tuple[int, list[dict[str, Any]]]:
    """Return the status and the trials of a run; its document, judged again, says the same."""
    given = case("1.36.2-iptables-legacy/two-node@worker1").given
    dies = ["--dead-node", dead] if dead else []
    done = kubeodds(
        "lab", "clients", *given, *dies, "--service", "default/app", "--client", client,
        *options, "--format", "json",
    )  # fmt: skip
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    with tempfile.TemporaryDirectory() as folder:
        assert judged_again(found, Path(folder)) == (done.returncode, found)
    return done.returncode, found["trials"]


@pytest.mark.deep
def test_any_program_is_held_to_what_it_is_said_to_be_like() -> None:
    like = ("--like", "tcp", "--timeout", "1s", "--runs", "40")
    status, (pod, service) = trials_of("nc -zv -w 1 {vip} {port}", *like, dead="master")
    assert status == 0
    assert [(each["status"], each["runs"]) for each in pod["exits"]] == [(0, 40)]
    ended = {each["status"]: each for each in service["exits"]}
    assert ended.keys() == {0, 1}
    assert ended[0]["runs"] == service["succeeded"]
    assert "timed out" in ended[1]["says"]
    assert ended[1]["seconds"]["least"] >= 0.9
    assert service["agrees"] is True


@pytest.mark.deep
def test_who_is_said_to_be_what_it_is_not_disagrees() -> None:
    like = ("--like", "tcp", "--timeout", "3s", "--runs", "20")
    status, (_, service) = trials_of("nc -z -w 1 {vip} {port}", *like, dead="master")
    assert (status, service["agrees"]) == (1, False)


def test_names_of_services_are_looked_up_in_the_clusters_dns() -> None:
    status, trials = trials_of(
        "getent ahostsv4 {name}", "--runs", "3", "--like", "glibc", dead=None
    )
    assert status == 0
    (found,) = trials  # no pod has such a name
    assert found["command"] == "getent ahostsv4 app.default.svc.cluster.local"
    assert (found["succeeded"], found["agrees"]) == (3, True)
    assert found["exits"][0]["says"].endswith("RAW")


def test_of_a_program_of_which_nothing_is_said_nothing_is_predicted() -> None:
    status, (*_, found) = trials_of("sh -c 'exit 7' {vip}", "--runs", "2", dead=None)
    assert status == 1  # the living pod did not answer
    assert (found["succeeds"], found["agrees"]) == (None, None)
    assert [(each["status"], each["runs"]) for each in found["exits"]] == [(7, 2)]


def test_a_program_that_is_given_no_address_is_not_run_against_a_pod() -> None:
    status, trials = trials_of("sh -c 'exit 7'", "--runs", "2", dead=None)
    assert status == 0
    (found,) = trials  # nothing says that it went to a living pod
    assert (found["target"], found["succeeded"]) == ("ClusterIP of default/app", 0)
    assert found["agrees"] is None


NEVER_ENDS = """
import functools, sys
import netns_lab.programs as programs
from analyzer.cli import main
programs.Client = functools.partial(programs.Client, deadline=1)
sys.exit(main({arguments!r}))
"""


@pytest.mark.deep
def test_a_program_that_does_not_end_is_named_with_the_limit() -> None:
    dump = case("1.36.2-iptables-legacy/two-node@worker1").given
    words = ["lab", "clients", *dump, "--service", "default/app", "--runs", "1"]
    words += ["--client", "sleep 30"]
    done = python("-c", NEVER_ENDS.format(arguments=words))
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1] == (
        "kubeodds: sleep 30: it did not end within 1 s; give it a time limit of its own, for "
        "example curl -m 3 or nc -w 3"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--client", "x {host}"), "{host} is not one of {vip}, {port}, {name}"),
        (("--client", "x 'y"), "No closing quotation"),
        (("--client", ""), "--client: no command"),
        (("--client", "no-such-program {vip}"), "no-such-program is not installed"),
        (("--like", "tcp"), "--like: needs --client COMMAND"),
        (("--timeout", "3s"), "--timeout: needs --client"),
    ],
)
def test_a_program_that_cannot_be_run_is_said_in_one_line(
    options: tuple[str, ...], says: str
) -> None:
    given = case("1.36.2-iptables-legacy/two-node@worker1").given
    done = kubeodds("lab", "clients", *given, "--service", "default/app", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
