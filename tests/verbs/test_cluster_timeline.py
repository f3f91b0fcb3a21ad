"""``cluster timeline``: exact bounds on what was so when; nothing is claimed that nobody saw."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer import cli
from analyzer.parsers.clock_times import time_in, window_from_text, without_times
from tests.support.captures import ROOT
from tests.support.commands import Command
from tests.support.effort import examples

DUMP = (ROOT / "examples" / "dump.txt").read_text()
OBJECTS = (ROOT / "examples" / "objects.json").read_text()
TAKEN = "Fri Nov 20 09:02:53 2026"
#: Without the endpoint of default/app on master, as kube-proxy writes it then.
HEALED = "".join(
    f"{line}\n"
    for line in DUMP.split("\n")
    if "default/app -> 10.244.0.7" not in line and "KUBE-SEP-J2W2PM2EJNGL7DWU" not in line
)


def at(minute: int, second: int = 0) -> str:
    return f"Fri Nov 20 09:{minute:02}:{second:02} 2026"


def write(command: Command, *dumps: tuple[int, str], node: str = "worker1") -> None:
    folder = command.folder / "d" / node
    folder.mkdir(parents=True, exist_ok=True)
    for number, (minute, text) in enumerate(dumps):
        (folder / f"{number}.txt").write_text(text.replace(TAKEN, at(minute)))
    command.file("objects.json", OBJECTS)


def asked(command: Command, *words: str, status: int = 0) -> Any:
    done = command("cluster", "timeline", "d", *words, "-o", "json")
    assert done.status == status, done.err
    return json.loads(done.out)


def exact(found: Any) -> tuple[object, object]:
    lower, upper = (
        Fraction(int(found[end]["numerator"], 16), int(found[end]["denominator"], 16))
        for end in ("lower", "upper")
    )
    return lower, upper


NODE = ("--node", "worker1")
WINDOW = "master@2026-11-20T09:00:30Z..2026-11-20T09:06:30Z"


def test_a_loss_ends_between_two_dumps(command: Command) -> None:
    write(command, (0, DUMP), (1, DUMP), (5, DUMP), (6, HEALED), (7, HEALED))
    found = asked(command, *NODE, "--objects", "objects.json", "--dead-node", WINDOW)
    (app,) = (each for each in found["losses"] if each["name"] == "default/app")
    # From 09:00:30 to somewhere between 09:05 and 09:06.
    assert exact(app["lossy"]) == (270, 330)
    assert exact(app["lost"]) == (135, 165)
    course = [(each["from"][11:19], each["to"][11:19]) for each in app["course"]]
    assert course == [
        ("09:00:00", "09:00:30"),
        ("09:00:30", "09:05:00"),
        ("09:05:00", "09:06:00"),
        ("09:06:00", "09:07:00"),
    ]
    (change,) = found["changes"]
    assert (change["gone"], change["added"], change["moved"]) == (["10.244.0.7:8080"], [], 1)
    assert change["stood"]["upper"] is None
    text = command("cluster", "timeline", "d", *NODE, "--dead", "10.244.0.7").out
    assert (
        "default/app at worker1: lost 50.0% for 5m to 6m: the same as losing all new flows for"
        in text
    )
    assert "2m30s to 3m." in text


def test_what_is_gone_for_one_network_is_not_gone(command: Command) -> None:
    chain = "-A KUBE-SVC-NZGXMBVUFMQ6OBBQ"
    drawn = f'{chain} -m comment --comment "default/app -> 10.244.0.7'
    to_one = f"{chain} -s 198.51.100.0/24 -j KUBE-SEP-S5UX5RFD5X5TSEPT\n"
    drop = "-A FORWARD -s 203.0.113.9/32 -d 10.244.1.9/32 -j DROP\n"
    other = DUMP.replace(drawn, to_one + drawn).replace("-A FORWARD", drop + "-A FORWARD", 1)
    write(command, (0, DUMP), (1, other), (2, DUMP))
    found = asked(command, *NODE, "--objects", "objects.json")
    one, *_, back = (each for each in found["changes"] if each["name"] == "default/app")
    of = "from 198.51.100.0/24 to ClusterIP 10.96.18.52:80"
    ends = "what reaches no endpoint (from 203.0.113.9/32 to ClusterIP 10.96.18.52:80)"
    assert (one["gone"], one["added"], one["moved"]) == ([], [], 1)
    assert one["other"] == [f"10.244.0.7:8080 gone ({of})", ends]
    assert (back["gone"], back["added"], back["moved"]) == ([], [], 1)
    assert back["other"] == [f"10.244.0.7:8080 added ({of})", ends]
    text = command("cluster", "timeline", "d", *NODE).out
    assert "10.244.0.7:8080 gone; " not in text
    assert f"10.244.0.7:8080 gone ({of})" in " ".join(text.split())


def test_what_rules_of_others_leave_open_may_have_changed(command: Command) -> None:
    one, other = (
        DUMP.replace("-A FORWARD", f"-A FORWARD -m set --match-set {of} src -j DROP\n-A FORWARD", 1)
        for of in ("good", "bad")
    )
    write(command, (0, one), (1, one), (2, other))
    found = asked(command, *NODE, "--objects", "objects.json")
    (app,) = (each for each in found["changes"] if each["name"] == "default/app")
    assert (app["certain"], app["gone"], app["moved"]) == (False, [], 0)
    assert app["other"] == ["how flows end, by rules of other programs"]
    out = " ".join(command("cluster", "timeline", "d", *NODE).out.split())
    assert "perhaps: how flows end, by rules of other programs" in out


def test_a_difference_lasts_from_objects_to_rules(command: Command) -> None:
    write(command, (0, DUMP), (2, DUMP), (5, HEALED), (9, DUMP))
    items = json.loads(OBJECTS)
    for each in items["items"]:
        if each["kind"] == "EndpointSlice" and each["metadata"]["name"].startswith("app"):
            each["endpoints"] = [e for e in each["endpoints"] if e["addresses"] != ["10.244.0.7"]]
    kept = [each for each in items["items"] if each["kind"] not in {"Pod", "Endpoints"}]
    items["items"] = kept
    command.file("at-20261120T0859.json", OBJECTS)
    command.file("at-20261120T0901.json", json.dumps(items))
    files = "at-20261120T0859.json,at-20261120T0901.json"
    words = (*NODE, "--objects", files, "--time-from", r"at-(\d+T\d+)")
    found = asked(command, *words)
    stale = [each for each in found["differences"] if each["what"].startswith("10.244.0.7")]
    (one,) = stale
    assert one["code"] in {"stale-endpoint", "foreign-endpoint"}
    # Gone from the objects between 08:59 and 09:01, from the rules between 09:02 and 09:05, and
    # back in them between 09:05 and 09:09.
    assert exact(one["lasted"]) == (60, 540)
    lost = asked(command, *words, "--dead-by-objects")["losses"]
    (app,) = (each for each in lost if each["name"] == "default/app")
    assert exact(app["lossy"]) == (60, 540)
    assert exact(app["lost"]) == (30, 270)


SHARE = st.sampled_from([DUMP, HEALED])
COURSE = st.lists(
    st.tuples(st.integers(0, 50), SHARE), min_size=2, max_size=4, unique_by=lambda e: e[0]
)


@examples(6, 100)
@given(COURSE)
def test_what_was_lost_is_the_sum_of_what_each_dump_loses(
    tmp_path_factory: pytest.TempPathFactory, course: list[tuple[int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("course")
    course.sort()
    losses: list[Fraction] = []
    # Of a network that has an endpoint in all of them: `loss` knows none that a dump has not.
    dead = ("--dead", "10.244.0.0/24", "--service", "default/app")
    for number, (minute, text) in enumerate(course):
        path = folder / f"{number}.txt"
        path.write_text(text.replace(TAKEN, at(minute)))
        document = _json(folder, "loss", str(path), *dead)
        (service,) = document["services"]
        bound = service["worst_loss"]["upper"]
        losses.append(Fraction(int(bound["numerator"], 16), 1 << bound["exponent"]))
    found = _json(folder, "cluster", "timeline", f"{folder}/[0-9].txt", *NODE, *dead)
    lower = upper = Fraction(0)
    for one in range(len(course) - 1):
        span = 60 * (course[one + 1][0] - course[one][0])
        lower += span * min(losses[one : one + 2])
        upper += span * max(losses[one : one + 2])
    told = [exact(each["lost"]) for each in found["losses"]]
    assert told == ([(lower, upper)] if upper else [])


def _json(folder: Path, *words: str) -> Any:
    output = folder / "out.json"
    assert cli.main([*words, "-o", "json", "--output", str(output)]) == 0
    return json.loads(output.read_text())


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["worker1/2026-11-20T09:00.txt", "worker1/2026-11-20T09:05.txt"], []),
        (["worker1-20261120T090000Z.txt", "worker1-20261120T090500Z.txt"], []),
        (["20261120-0900/worker1.txt", "20261120-0905/worker1.txt"], []),
        (["worker1.1795165200.txt", "worker1.1795165500.txt"], []),
        (["a.txt", "b.txt"], ["--node", "worker1"]),
        (["x-worker1-1.txt", "x-worker1-2.txt"], ["--name-from", "worker[0-9]"]),
        (["worker1.example.com-20261120T0900.txt", "worker1-20261120T0905.txt"], []),
    ],
)
def test_which_dumps_are_whose(command: Command, names: Sequence[str], words: list[str]) -> None:
    command.file("objects.json", OBJECTS)
    for number, name in enumerate(names):
        path = command.folder / "d" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(DUMP.replace(TAKEN, at(5 * number)))
    found = asked(command, "--objects", "objects.json", *words)
    assert [(each["node"], len(each["dumps"])) for each in found["nodes"]] == [("worker1", 2)]
    assert found["diagnostics"] == []


def test_what_tells_the_time(command: Command) -> None:
    bare = DUMP[DUMP.index("*filter") :]
    folder = command.folder / "d"
    folder.mkdir()
    for name, text in (("n-20261120T0900.txt", bare), ("n-20261120T0901.txt", DUMP)):
        (folder / name).write_text(text)
        os.utime(folder / name, (1_795_000_000, 1_795_000_000))
    found = asked(command)
    told = {(each["clock"], each["at"]) for each in found["nodes"][0]["dumps"]}
    assert told == {("file", "2026-11-18T11:06:40Z"), ("dump", "2026-11-20T09:02:53Z")}
    found = asked(command, "--time-from", r"n-(\d+T\d+)")
    told = {(each["clock"], each["at"]) for each in found["nodes"][0]["dumps"]}
    assert told == {("name", "2026-11-20T09:00:00Z"), ("name", "2026-11-20T09:01:00Z")}
    done = command("cluster", "timeline", "d", "--time-from", "n-2")
    assert done.status == 2
    assert "--time-from finds 'n-2', which is not a time" in done.err


def test_a_dump_that_says_nothing_is_named_and_no_threshold_passes(command: Command) -> None:
    write(command, (0, DUMP), (1, "nonsense"), (2, DUMP), (3, "*filter\nCOMMIT\n"))
    given = (*NODE, "--dead", "10.244.0.7", "--max-lost", "1h")
    found = asked(command, *given, status=1)
    failed = [each["failed"] for each in found["nodes"][0]["dumps"] if each["failed"]]
    assert len(failed) == 2
    assert exact(found["losses"][0]["lost"]) == (60, 60)
    assert command("cluster", "timeline", "d", *given, "--strict").status == 3


def test_a_threshold_is_of_what_may_be_lost(command: Command) -> None:
    write(command, (0, DUMP), (5, DUMP), (6, HEALED))
    given = ("cluster", "timeline", "d", *NODE, "--dead", "10.244.0.7", "--max-lost")
    assert command(*given, "3m").status == 0
    assert command(*given, "2m59s").status == 1


def test_a_service_that_comes_and_goes_is_told_whole(command: Command) -> None:
    lacking = "".join(f"{x}\n" for x in DUMP.split("\n") if "default/app" not in x)
    write(command, (0, DUMP), (1, lacking), (2, DUMP))
    found = asked(command, *NODE, "--dead", "10.244.0.7")
    assert [(each["name"], each["whole"]) for each in found["changes"]] == [
        ("default/app", "gone"),
        ("default/app", "added"),
    ]
    (app,) = found["losses"]
    assert exact(app["absent"]) == (0, 120)
    done = command("cluster", "timeline", "d", *NODE, "--dead", "10.244.0.7", "--max-lost", "1h")
    assert done.status == 1  # what its absence cost nobody knows


def test_no_threshold_passes_on_a_service_that_was_absent_and_lost_nothing(
    command: Command,
) -> None:
    lacking = "".join(f"{x}\n" for x in DUMP.split("\n") if "default/app" not in x)
    write(command, (0, HEALED), (1, lacking), (2, HEALED))
    given = (*NODE, "--dead", "10.244.0.7", "--service", "default/app", "--max-lost", "1h")
    done = command("cluster", "timeline", "d", *given)
    assert done.status == 1
    assert "No loss of new flows is known; not everything was judged." in done.out
    assert "default/app at worker1: not in the rules for 0s to 2m;" in done.out
    assert [exact(each["absent"]) for each in asked(command, *given, status=1)["losses"]] == [
        (0, 120)
    ]


def test_dumps_of_one_time_are_named_and_no_threshold_passes(command: Command) -> None:
    """Those of two nodes in folders, called alike, would else be one node that lost nothing."""
    for node, text in (("a", DUMP), ("b", HEALED)):
        write(command, (0, text), (1, text), node=node)
    done = command("cluster", "timeline", "d", "--dead", "10.244.0.7", "--max-lost", "1h")
    assert done.status == 1
    assert "several dumps from one time, which may be of several nodes: 0, 1" in done.err
    assert "No ServicePort lost new flows" not in done.out


def test_who_is_dead_and_in_no_dump_is_named(command: Command) -> None:
    write(command, (0, DUMP), (1, DUMP))
    given = ("cluster", "timeline", "d", *NODE, "--max-lost", "1h", "--dead")
    done = command(*given, "10.244.0.99")
    assert done.status == 0
    assert "10.244.0.99 is in none of the dumps" in done.err
    done = command(*given, "10.244.0.7@2026-11-21T00:00Z..")
    assert done.status == 1
    assert "10.244.0.7 was not dead at any time between the dumps" in done.err


def test_one_dump_alone_is_no_course(command: Command) -> None:
    write(command, (0, DUMP))
    done = command("cluster", "timeline", "d", "--strict")
    assert done.status == 3
    assert "a single dump says nothing about time" in done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--dead-node", "a@b"], "is not NAME@FROM..TO"),
        (["--dead", "a@2026-11-20T09:01Z..2026-11-20T09:00Z"], "is not NAME@FROM..TO"),
        (["--max-lost", "x"], "is not a duration"),
        (["--dead-by-objects"], "needs --objects"),
        (["--max-lost", "1m"], "nothing is marked dead"),
        (["--name-from", "(a)(b)"], "it has 2 groups; the name is one"),
        (["--time-from", "("], "--time-from (:"),
        (["--dead-node", "nobody", "--objects", "objects.json"], "no such node is known"),
    ],
)
def test_what_makes_no_sense_is_bad_usage(command: Command, words: list[str], says: str) -> None:
    write(command, (0, DUMP), (1, DUMP))
    done = command("cluster", "timeline", "d", *NODE, *words)
    assert done.status == 2
    assert says in done.err.replace("\n", " ")


def test_a_node_that_the_objects_do_not_have_is_refused(command: Command) -> None:
    write(command, (0, DUMP), (1, HEALED))
    done = command(
        "cluster", "timeline", "d", "--objects", "objects.json", "--node", "worker1,worker1"
    )
    says = "--node worker1,worker1: the objects have no such node; did you mean worker1?"
    assert (done.status, done.out, done.err) == (2, "", f"kubeodds: {says}\n")


def test_names_of_dumps_act_on_no_terminal(command: Command) -> None:
    write(command, (0, DUMP), (1, HEALED), node="a\x1b[31m")
    done = command("cluster", "timeline", "d", "--name-from", "a[^/]*m", "--dead", "10.244.0.7")
    assert "\x1b" not in done.out + done.err
    done = command("cluster", "timeline", "d", "--name-from", "a[^/]*m", "-o", "tsv")
    assert "\x1b" not in done.out


@given(
    st.integers(1_000_000_000, 9_000_000_000).map(lambda each: datetime.fromtimestamp(each, UTC)),
    st.sampled_from(["%Y-%m-%dT%H:%M:%S", "%Y%m%dT%H%M%SZ", "%Y-%m-%d_%H-%M-%S", "%Y%m%d%H%M%S"]),
)
def test_a_time_in_a_name_is_found_and_taken_out(time: Any, form: str) -> None:
    text = f"node7-{time.strftime(form)}"
    expected = int(time.timestamp())
    assert time_in(text) == expected
    assert without_times(text) == "node7"
    assert window_from_text(f"x@{time.strftime(form)}..") == ("x", Fraction(expected), None)


def test_digits_within_a_word_are_no_time() -> None:
    assert without_times("i-0123456789abcdef0-20261120T0900Z") == "i-0123456789abcdef0"


@given(st.text(max_size=40))
def test_any_text_has_a_time_or_none(text: str) -> None:
    time_in(text)
    without_times(text)
    window_from_text(text)


BY_FOLDER = ("--name-from", "([^/]+)/[^/]+$")
NO_APP = "".join(f"{line}\n" for line in DUMP.split("\n") if "default/app" not in line)


@pytest.mark.parametrize("objects", [(), ("--objects", "objects.json")])
def test_a_service_that_no_dump_of_a_node_has_is_not_judged_there(
    command: Command, objects: tuple[str, ...]
) -> None:
    write(command, (0, NO_APP), (2, NO_APP))
    write(command, (0, DUMP), (2, DUMP), node="master")
    dead = (*objects, "--dead", "10.244.0.3", "--max-lost", "2m", *BY_FOLDER)
    found = asked(command, *dead, status=1)
    assert found["not_judged"] == [{"node": "worker1", "names": ["default/app"]}]
    out = command("cluster", "timeline", "d", *dead).out
    assert "\nNot completely judged at worker1: default/app.\n" in out
    dns = asked(command, *dead, "--service", "kube-dns")
    assert dns["not_judged"] == []


def test_a_service_of_the_objects_that_no_dump_has_is_not_judged(command: Command) -> None:
    write(command, (0, NO_APP), (2, NO_APP))
    dead = ("--dead", "10.244.0.3", "--max-lost", "2m", *NODE)
    assert asked(command, *dead)["not_judged"] == []
    found = asked(command, *dead, "--objects", "objects.json", status=1)
    assert found["not_judged"] == [{"node": "worker1", "names": ["default/app"]}]
