"""``watch`` as a monitoring system sees it: pages, exit statuses, signals."""

from __future__ import annotations

import json
import re
import signal
import subprocess  # noqa: TID251  # as a service manager runs it
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.loss import LossState
from analyzer.model.probability import NEVER, Bounds, Dyadic
from analyzer.reports.prometheus import at_least, at_most, metric
from analyzer.reports.watch_answer import CheckResult, Seen
from analyzer.reports.watch_npd import MOST, fitted
from analyzer.reports.watch_prometheus import body
from tests.support.captures import ROOT
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.exposition import Metric, parse
from tests.support.watches import looked

GIVEN: Final = ["--rules", DUMP, *OBJECTS, "--node", "worker1"]


def page(command: Command, *words: str, status: int = 0) -> dict[str, Metric]:
    done = command("watch", "--once", *words)
    assert done.status == status, done.err
    return parse(done.out)


def number(found: dict[str, Metric], name: str) -> float:
    (only,) = found[f"kubeodds_{name}"].samples.values()
    return only


def _exact(bound: dict[str, Any]) -> Fraction:
    return Fraction(int(bound["numerator"], 16), 1 << bound["exponent"])


def test_losses_are_those_of_loss_rounded_outwards(command: Command) -> None:
    found = page(command, *GIVEN, "--dead-node", "master")
    done = command("loss", DUMP, *OBJECTS, "--dead-node", "master", "-o", "json")
    services = json.loads(done.out)["services"]
    assert services
    for each in services:
        labels = frozenset(
            {
                "service": each["name"],
                "namespace": each["name"].partition("/")[0],
                "protocol": each["protocol"],
                "family": each["family"],
            }.items()
        )
        lower = found["kubeodds_service_loss_lower_ratio"].samples[labels]
        upper = found["kubeodds_service_loss_upper_ratio"].samples[labels]
        worst = each["worst_loss"]
        exact = [_exact(worst[end]) if worst else Fraction(0) for end in ("lower", "upper")]
        assert Fraction(lower) <= exact[0]
        assert exact[1] <= Fraction(upper)
        assert exact == [pytest.approx(lower), pytest.approx(upper)]
        assert found["kubeodds_service_endpoints"].samples[labels] == len(
            each["endpoints"]["address"]
            if isinstance(each["endpoints"], dict)
            else each["endpoints"]
        )
    assert number(found, "up") == 1
    assert number(found, "ok") == 0
    assert number(found, "drift_known") == 1


def test_which_services_have_metrics_of_their_own(command: Command) -> None:
    every = page(command, *GIVEN, "--dead-node", "master")
    some = page(command, *GIVEN, "--dead-node", "master", "--per-service", "affected")
    none = page(command, *GIVEN, "--dead-node", "master", "--per-service", "no")
    name = "kubeodds_service_loss_upper_ratio"
    affected = {labels for labels, loss in every[name].samples.items() if loss}
    assert set(some[name].samples) == affected
    assert len(affected) > 0
    assert name not in none
    assert number(none, "worst_loss_upper_ratio") == max(every[name].samples.values())


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([], 0),
        (["--dead-node", "master"], 0),
        (["--dead-node", "master", "--max-loss", "100%"], 0),
        (["--dead-node", "master", "--max-loss", "10%"], 1),
        (["--dead-node", "nobody"], 2),
    ],
)
def test_the_status_of_one_look(command: Command, words: list[str], status: int) -> None:
    found = page(command, *GIVEN, *words, status=status)
    assert number(found, "up") == (status != 2)


def test_flows_of_which_rules_leave_the_end_open_are_not_known_to_be_answered(
    command: Command,
) -> None:
    """Nothing is dead; half of the flows to default/app meet a target that is not understood."""
    rules = Path(DUMP).read_text()
    chain = re.findall(r"(KUBE-SEP-\w+) .*--to-destination 10\.244\.1\.9:8080", rules)[0]
    text = re.sub(rf"(-A {chain} -p tcp) .*", r"\1 -j NOBODY", rules)
    asked = ["--rules", command.file("unread.txt", text), *GIVEN[2:], "--allow-drift"]
    found = page(command, *asked)
    assert number(found, "ok") == number(found, "worst_loss_lower_ratio") == 0
    assert number(found, "worst_loss_upper_ratio") == 0.5
    assert command("watch", "--once", *asked, "--max-loss", "49%").status == 1
    assert command("watch", "--once", *asked, "--max-loss", "50%").status == 0
    done = command("watch", "--npd", *asked)
    assert (done.status, done.out) == (2, "unknown: default/app may lose 0.0 to 50.0%\n")


def test_what_a_cut_dump_lacks_is_unknown_and_no_drift(command: Command) -> None:
    rules = Path(DUMP).read_text()
    cut = rules[: rules.rindex("-A KUBE-SVC")]
    found = page(command, "--rules", command.file("cut.txt", cut), *GIVEN[2:], "--allow-drift")
    assert number(found, "drift_differences") == 0
    assert number(found, "drift_not_judged") > 0


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (GIVEN, 0, "none loses new flows; rules match the objects"),
        ([*GIVEN, "--dead-node", "master"], 1, "loses"),
        ([*GIVEN, "--dead-node", "master", "--max-loss", "100%"], 0, "none loses more than"),
        (["--rules", DUMP], 0, "none loses new flows"),
        (["--rules", DUMP, *OBJECTS, "--node", "nobody"], 2, "unknown: "),
        (["--rules", "gone.txt"], 2, "unknown: gone.txt: No such file"),
        (["--command", "false"], 2, "unknown: false: ended with status 1"),
        (["--rules", "changed.txt", *OBJECTS, "--node", "worker1"], 1, "from the objects"),
        (["--rules", "changed.txt", *OBJECTS, "--node", "worker1", "--allow-drift"], 0, "none"),
        (["--rules", "cut.txt"], 2, "unknown: "),
    ],
)
def test_a_plugin_says_a_line(command: Command, words: list[str], status: int, says: str) -> None:
    text = Path(DUMP).read_text()
    end = re.findall(r"--to-destination (10\.\S+)", text)[0]
    command.file("changed.txt", text.replace(end, "10.9.9.9:99"))
    command.file("cut.txt", text[: text.rindex("COMMIT") - 200])
    done = command("watch", "--npd", *words)
    assert done.status == status, done.out + done.err
    assert says in done.out
    assert done.out.endswith("\n")
    assert done.out.count("\n") == 1
    assert len(done.out) <= MOST + 1
    assert done.out.isascii()


@pytest.mark.parametrize("how", ["--once", "--npd"])
def test_the_faulty_line_and_its_caret_have_lines_of_their_own(command: Command, how: str) -> None:
    rule = "-A KUBE-SERVICES -m statistic --mode random --probability 1.1 -j ACCEPT"
    name = command.file("bad.txt", f"*nat\n:KUBE-SERVICES - [0:0]\n{rule}\nCOMMIT\n")
    done = command("watch", how, "--rules", name)
    assert done.err == (
        "kubeodds: bad.txt:3:59: expected a number from 0 to 1\n"
        f"    {rule}\n    {' ' * rule.index('1.1')}^^^\n"
    )
    if how == "--npd":
        assert done.out == "unknown: bad.txt:3:59: expected a number from 0 to 1\n"
    objects = command("watch", how, "--rules", DUMP, "--objects", command.file("o.json", "{\n]"))
    assert len(objects.err.splitlines()) == 3


@given(st.text(max_size=200))
def test_a_line_of_a_plugin_is_short_and_acts_on_no_terminal(text: str) -> None:
    line = fitted(text)
    assert len(line) <= MOST
    assert not line or (line.isprintable() and line.isascii())


NUMBERS = st.integers(0, 1 << 80).flatmap(
    lambda most: st.integers(0, most).map(lambda n: Dyadic.of(n, max(1, most.bit_length())))
)


@given(NUMBERS)
def test_bounds_are_rounded_outwards_and_by_no_more_than_one_float(value: Dyadic) -> None:
    lower, upper = at_least(value), at_most(value)
    assert Fraction(lower) <= value.as_fraction() <= Fraction(upper)
    from math import nextafter

    assert upper in {lower, nextafter(lower, 2)}


@given(st.lists(st.tuples(st.text(max_size=9), st.floats(allow_nan=False)), max_size=4))
def test_any_name_is_one_label_of_a_page(samples: list[tuple[str, float]]) -> None:
    text = "".join(metric("a", "Says.", [({"b": name}, each) for name, each in samples]))
    found = parse(text.replace(" inf\n", " +Inf\n").replace(" -inf\n", " -Inf\n"))
    if samples:
        assert max(found["a"].samples.values()) == max(each for _, each in samples)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=3))
def test_hostile_names_stay_in_their_labels(names: list[str]) -> None:
    seen = [
        Seen(
            name=name,
            namespace="",
            protocol="tcp",
            family="ip",
            state=LossState.UNTOUCHED,
            endpoints=at,
            dead=0,
            loss=Bounds(NEVER, NEVER),
        )
        for at, name in enumerate(names)
    ]
    result = CheckResult(
        rules=1,
        services=tuple(seen),
        not_judged=(),
        is_whole=True,
        drift=dict.fromkeys(names, 1),
        drifted={(name, "tcp"): 1 for name in names},
        why_no_drift="",
        drift_unknown=(),
        dead=0,
        gone=(),
    )
    found = parse(body(result, "all", since=False))
    assert max(found["kubeodds_service_endpoints"].samples.values()) == len(names) - 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "one of the arguments --rules --command is required"),
        (["--rules", "-"], "standard input can be read once only"),
        (["--rules", "a", "--every", "0.5s"], "less than a second"),
        (["--rules", "a", "--every", "-1s"], "--every: '-1s' is not a duration (for example 40s"),
        (["--rules", "a", "--every"], "--every: expected one argument"),
        (["--rules", "a", "--every", "--", "-1s"], "--every: expected one argument"),
        (["--rules", "a", "--timeout", "0s"], "is not a positive duration"),
        (["--command", "a 'b"], "No closing quotation"),
        (["--command", ""], "the command is empty"),
        (["--rules", "a", "--npd", "--into", "b"], "--npd prints one line"),
        (["--rules", "a", "--no-drift", "--allow-drift"], "has no effect with --no-drift"),
        (["--rules", "a", "--max-cpu", "0%"], "leaves no time for any check"),
        (["--rules", "a", "--per-service", "some"], "invalid choice"),
    ],
)
def test_what_makes_no_sense_is_bad_usage(command: Command, words: list[str], says: str) -> None:
    done = command("watch", *words)
    assert done.status == 2
    assert says in done.err.replace("\n", " ")


# --- for ever -----------------------------------------------------------------------


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path, Path]]:
    """A watch that looks every second, its dump, and its page."""
    dump, into = tmp_path / "dump.txt", tmp_path / "kubeodds.prom"
    dump.write_text(Path(DUMP).read_text())
    words = ["--rules", str(dump), "--into", str(into), "--every", "1s", "--max-cpu", "100%"]
    with subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-m", "analyzer", "watch", *words],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process, dump, into
        process.kill()


@pytest.mark.deep
def test_a_watch_goes_on_hears_signals_and_ends(
    running: tuple[subprocess.Popen[str], Path, Path],
) -> None:
    process, dump, into = running
    looked(into, "judged", 1)
    looked(into, "unchanged", 1)
    assert into.stat().st_mode & 0o777 == 0o644
    dump.write_text("nonsense\n")
    found = looked(into, "failed", 1)
    assert number(found, "up") == 0
    assert "kubeodds_service_endpoints" not in found
    assert number(found, "last_success_timestamp_seconds") < number(
        found, "last_look_timestamp_seconds"
    )
    dump.write_text(Path(DUMP).read_text())
    looked(into, "judged", 2)
    process.send_signal(signal.SIGHUP)
    looked(into, "judged", 3)
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert time.monotonic() - begun < 10
    assert process.stderr is not None
    said = process.stderr.read()
    assert said.count("\n") == 2
    assert "can be judged again" in said
    assert [each.name for each in into.parent.iterdir() if "new" in each.name] == []


def test_a_folder_that_is_not_there_ends_it_at_once(command: Command) -> None:
    done = command("watch", "--rules", DUMP, "--into", "no/such/folder.prom")
    assert done.status == 2
    assert "no/such/folder.prom" in done.err


def test_a_file_is_replaced_and_not_written_through_a_link(command: Command) -> None:
    command.file("other", "kept")
    (command.folder / "kubeodds.prom").symlink_to("other")
    assert command("watch", "--rules", DUMP, "--once", "--into", "kubeodds.prom").status == 0
    assert (command.folder / "other").read_text() == "kept"
    assert not (command.folder / "kubeodds.prom").is_symlink()


@pytest.mark.parametrize("into", [".", "none/kubeodds.prom"])
def test_where_metrics_cannot_be_written_the_file_that_was_asked_for_is_named(
    command: Command, into: str
) -> None:
    result = command("watch", "--rules", DUMP, "--once", "--into", into)
    assert result.status == 2
    assert result.err.startswith(f"kubeodds: {into}: ")
    assert ".new" not in result.err
    assert [*command.folder.iterdir()] == []
