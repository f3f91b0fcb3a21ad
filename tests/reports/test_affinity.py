"""Session affinity is told wherever a share is."""

from __future__ import annotations

import json

import pytest

from analyzer.kubeproxy.generate import node_name
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.reports import diff_text
from analyzer.reports.affinity import affinity_note, duration
from analyzer.reports.unstyled import render_unstyled
from tests.support.answers import AFTER, BEFORE, Answers, diff_answer
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import cluster_ip, dump, endpoint, view_of
from tests.support.mixed_clusters import files


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (10_800, "3 h"),
        (600, "10 min"),
        (86_400, "1 d"),
        (90, "90 s"),
        (0, "0 s"),
        (5_400, "90 min"),
    ],
)
def test_times_are_told_in_the_largest_whole_unit(seconds: int, told: str) -> None:
    assert duration(seconds) == told


def pinned(*seconds: int) -> str:
    """Return a dump with a Service for each of these times, and one without affinity."""
    rules = [cluster_ip("ns/none", "10.96.0.99", chain="KUBE-SVC-N"), "-A KUBE-SVC-N -j KUBE-SEP-1"]
    for at, time in enumerate(seconds):
        rules += [
            cluster_ip(f"ns/s{at}", f"10.96.0.{at + 1}", chain=f"KUBE-SVC-{at}"),
            f"-A KUBE-SVC-{at} -m recent --rcheck --seconds {time} --reap --name KUBE-SEP-1 "
            "--mask 255.255.255.255 --rsource -j KUBE-SEP-1",
            f"-A KUBE-SVC-{at} -j KUBE-SEP-1",
        ]
    return dump(*rules, endpoint("KUBE-SEP-1", "10.0.0.1:80"))


def note(*seconds: int, mode: ProxyMode = ProxyMode.IPTABLES, lost: bool = True) -> str:
    services = view_of(pinned(*seconds)).services
    return " ".join(str(each.pieces) for each in affinity_note(services, mode, lost=lost))


def test_the_note_names_who_has_it_and_for_how_long() -> None:
    assert note() == ""
    assert "Session affinity: ns/s0. A pinned client loses everything or nothing, until it" in (
        note(10_800)
    )
    assert "silent for 3 h." in note(10_800)
    assert "silent for up to 3 h." in note(600, 10_800)
    assert "goes to one endpoint with every flow" in note(600, lost=False)
    assert "remembers the last 100 clients of a node" in note(600)
    assert "remembers" not in note(600, mode=ProxyMode.NFTABLES)


@pytest.mark.parametrize("verb", ["services", "loss", "tree"])
def test_what_shows_shares_tells_of_it(verb: str) -> None:
    shown = Answers().plain(verb)
    assert "affinity 10 min" in shown
    assert "Session affinity: ns/a:http. A pinned client " in shown
    assert "affinity 10 min" not in Answers(BEFORE).plain(verb)
    assert "Session affinity" not in Answers(BEFORE).plain(verb)


@pytest.mark.parametrize("verb", ["whatif", "loss"])
def test_what_shows_what_failures_cost_tells_of_it(command: Command, verb: str) -> None:
    asked = [*files(command)]
    says = "A pinned client loses everything or nothing, until it has been silent for 3 h."
    assert says in command(verb, *asked).out
    assert "pinned" not in command(verb, DUMP, *OBJECTS).out


def test_a_trace_tells_of_it_where_it_rests_on_it() -> None:
    says = "--affinity IP:PORT traces one."
    assert says in Answers().plain("trace")
    assert says not in Answers(BEFORE).plain("trace")


def test_diff_tells_of_it_where_shares_differ() -> None:
    shown = render_unstyled(diff_text.render(diff_answer(BEFORE, AFTER)))
    assert "Session affinity: ns/a:http. A pinned client goes to one endpoint" in shown
    assert "A pinned client" not in render_unstyled(diff_text.render(diff_answer(BEFORE, BEFORE)))


@pytest.mark.deep
def test_every_service_that_has_it_says_so(command: Command) -> None:
    asked = *files(command), "--dead-node", node_name(1)
    services = json.loads(command("loss", *asked, "--format", "json").out)["services"]
    with_it = [each["name"] for each in services if each["session_affinity"] is not None]
    assert with_it
    assert {json.dumps(each["session_affinity"]) for each in services} == {
        "null",
        '{"timeout_seconds": 10800}',
    }
    rows = {line.split()[0]: line for line in command("loss", *asked, "--summary").out.splitlines()
            if line.startswith("ns-")}  # fmt: skip
    assert len(rows) == len(services)
    assert [name for name, line in rows.items() if "affinity 3 h" in line] == sorted(
        with_it, key=[*rows].index
    )
    told = command("services", *asked[:-2]).out
    heads = [line for line in told.splitlines() if line.startswith("ns-")]
    assert [line.split()[0] for line in heads if "affinity 3 h" in line] == sorted(
        with_it, key=[line.split()[0] for line in heads].index
    )


def test_without_it_nothing_is_said(command: Command) -> None:
    for verb, words in (("services", []), ("loss", ["--dead", "10.244.0.3"]), ("tree", ["app"])):
        done = command(verb, DUMP, *words)
        assert done.status == 0
        assert "affinity" not in done.out
