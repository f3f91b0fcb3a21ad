"""The command line: how it exits, where it says what, and what a dump may hold."""

from __future__ import annotations

import gzip
import io
import json
import subprocess  # noqa: TID251  # as a shell runs it
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest

from analyzer import cli
from analyzer.failure.agreement import FALSE_ALARM_RATE
from analyzer.inputs import files
from tests.support.answers import RICH, Answers
from tests.support.captures import ROOT
from tests.support.commands import DUMP, OBJECTS, Command, Done
from tests.support.dumps import FILTER, chance, cluster_ip, dump, endpoint, two_endpoints

# --- exit status -------------------------------------------------------------


def dead_half(*more: str) -> list[str]:
    return ["--service", "app", "--dead", "10.244.0.7", *more]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (dead_half(), 0),
        (dead_half("--max-loss", "50%"), 0),
        (dead_half("--max-loss", "49.99999%"), 1),
        # By less than draws are rounded.
        (dead_half("--max-loss", "49.9999999999%"), 0),
        (dead_half("--max-loss", "0"), 1),
        (dead_half("--strict"), 0),
    ],
)
def test_a_broken_threshold_exits_with_1(
    command: Command, arguments: Sequence[str], status: int
) -> None:
    done = command("loss", DUMP, *arguments)
    assert (done.status, done.err) == (status, "")
    assert done.out


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 0),
        (["--strict"], 3),
        (["--max-loss", "10%"], 1),
        (["--max-loss", "10%", "--strict"], 3),
        (["--service", "unknown", "--max-loss", "10%", "--strict"], 2),
    ],
)
def test_2_goes_before_3_and_3_before_1(
    command: Command, arguments: Sequence[str], status: int
) -> None:
    file = command.file("dump.txt", RICH)
    assert command("loss", file, "--dead", "10.0.0.1", *arguments).status == status


def test_the_worst_route_breaks_the_threshold(command: Command) -> None:
    # The ClusterIP loses at most a half, the NodePort all.
    file = command.file("dump.txt", RICH)
    assert command("loss", file, "--dead", "10.0.0.1", "--max-loss", "99%").status == 1


def test_a_threshold_that_may_be_broken_is_broken(command: Command) -> None:
    unread = chance("0.50000000000", "KUBE-SEP-1", match="-m nonesuch")
    text = dump(cluster_ip(), unread, *two_endpoints()[2:]) + FILTER
    file = command.file("dump.txt", text)
    # At most a half is lost, at least nothing.
    for percent, status in (("49%", 1), ("50%", 0)):
        done = command("loss", file, "--dead", "10.0.0.1", "--max-loss", percent)
        assert done.status == status


def test_an_interruption_exits_with_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "read_ruleset", interrupted)
    assert command("services", DUMP) == Done(130, "", "kubeodds: interrupted\n")


#: A verb during which a Ctrl-C comes where Python ignores exceptions.
LOST = """
import sys, time
from analyzer import cli

class Lost:
    def __del__(self):
        raise KeyboardInterrupt

def verb(_):
    Lost()
    time.sleep(30)
    return 0

cli._VERBS = {**cli._VERBS, "completion": verb}
sys.argv = ["kubeodds", "completion", "bash"]
cli.run()
"""


def test_an_interruption_that_python_ignores_is_not_lost() -> None:
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", LOST], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "kubeodds: interrupted\n")


# --- where it goes -----------------------------------------------------------


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_warnings_go_to_stderr_and_data_to_stdout(command: Command, output_format: str) -> None:
    done = command("services", command.file("dump.txt", RICH), "--format", output_format)
    at = next(n for n, line in enumerate(RICH.split("\n"), 1) if "nonesuch" in line)
    assert done.err == (
        f"dump.txt:{at}: warning: match nonesuch is not understood: answers that depend on it are "
        "bounds\n"
    )
    assert done.status == 0
    assert "warning:" not in done.out


def test_the_nodes_own_death_is_warned_of(command: Command) -> None:
    done = command("loss", DUMP, *OBJECTS, "--node", "worker1", "--dead-node", "worker1")
    assert (done.status, done.err) == (
        0,
        f"{DUMP}: warning: this dump is from worker1, which you declared dead: it sends no flows; "
        "the numbers are what its rules would do\n",
    )


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_a_report_may_go_to_a_file(command: Command, output_format: str) -> None:
    arguments = ["services", DUMP, "--format", output_format]
    assert command(*arguments, "--output", "report") == Done(0, "", "")
    assert (command.folder / "report").read_text(encoding="utf-8") == command(*arguments).out


def test_a_file_that_cannot_be_written_is_named(command: Command) -> None:
    done = command("services", DUMP, "--output", "missing/report")
    assert done == Done(2, "", "kubeodds: missing/report: No such file or directory\n")


def in_a_shell(words: str) -> Done:
    ran = subprocess.run(  # noqa: S602  # redirections are the point
        f"{sys.executable} -m analyzer {words}",
        shell=True, capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    return Done(ran.returncode, ran.stdout, ran.stderr)


def test_a_full_disk_is_named(command: Command) -> None:
    done = command("services", DUMP, "--output", "/dev/full")
    assert done == Done(2, "", "kubeodds: /dev/full: No space left on device\n")
    done = in_a_shell(f"services {DUMP} >/dev/full")
    assert done == Done(2, "", "kubeodds: <stdout>: No space left on device\n")


def test_a_file_of_the_name_of_standard_output_is_standard_output(command: Command) -> None:
    assert command("services", DUMP, "--output", "-") == command("services", DUMP)
    assert not (command.folder / "-").exists()


def test_standard_input_is_read_once(command: Command) -> None:
    for asked in (("-", "--objects", "-"), ("-", "-"), ("-", "--with", "-", "--output", "-")):
        done = command("services", *asked)
        says = "- is standard input, which can be read only once: pass the others as files"
        assert done == Done(2, "", f"kubeodds: {says}\n")


def test_a_closed_standard_input_is_empty() -> None:
    done = in_a_shell("services - <&-")
    assert done == Done(2, "", "kubeodds: <stdin>: the file is empty\n")


def test_a_dump_may_come_from_stdin(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    piped = io.TextIOWrapper(io.BytesIO(gzip.compress(Path(DUMP).read_bytes())))
    monkeypatch.setattr(sys, "stdin", piped)
    from_stdin = command("services", "-")
    assert from_stdin == Done(0, command("services", DUMP).out.replace(DUMP, "<stdin>"), "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Ascii(Terminal):
    """A terminal of a machine that has lost its locale."""

    encoding = "ascii"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    pytest.importorskip("rich")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


@pytest.mark.parametrize(
    ("arguments", "environment", "coloured"),
    [
        ([], {}, True),
        (["--no-color"], {}, False),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),
        ([], {"TERM": "dumb"}, False),
        ([], {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ([], {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (["--color", "always"], {"NO_COLOR": "1", "TERM": "dumb"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
        (["--color", "auto"], {}, True),
    ],
)
def test_a_terminal_gets_colours_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
    terminal: Terminal,
    arguments: list[str],
    environment: dict[str, str],
    coloured: bool,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert cli.main(["services", DUMP, *arguments]) == 0
    assert ("\x1b[" in terminal.getvalue()) is coloured


def test_a_pager_gets_colours_where_they_are_asked_for(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" not in command("services", DUMP).out
    assert "\x1b[" in command("services", DUMP, "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in command("services", DUMP).out
    assert "\x1b[" not in command("services", DUMP, "--format", "tsv").out


@pytest.mark.parametrize(("name", "is_cut"), [("ns/" + 9 * "long-name-", True), ("ns/a", False)])
def test_names_that_are_cut_come_with_a_way_to_see_them(
    command: Command, monkeypatch: pytest.MonkeyPatch, name: str, is_cut: bool
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "80")
    given = command.file("dump.txt", dump(*two_endpoints()).replace("ns/a:http", f"{name}:http"))
    asked = "loss", given, "--dead", "10.0.0.1", "--quiet"
    shown = command(*asked, "--color", "always").out
    says = "Names are cut at \N{HORIZONTAL ELLIPSIS} to fit; whole in a wider terminal, or with --o"
    assert (says in shown) is is_cut
    whole = command(*asked).out
    assert f"{name}:http" in whole
    assert "cut at" not in whole


@pytest.mark.parametrize("made", [Ascii(), io.TextIOWrapper(io.BytesIO(), "ascii")])
def test_trees_are_drawn_in_ascii_where_the_terminal_has_no_more(
    monkeypatch: pytest.MonkeyPatch, made: io.TextIOBase
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", made)
    assert cli.main(["tree", DUMP, "app"]) == 0
    made.seek(0)
    shown = made.read()
    assert shown.isascii()
    assert "\n|- 1/2   50.0%\n|  KUBE-SVC-" in shown
    assert "\n`- 1/2   50.0%\n   KUBE-SVC-" in shown


def test_verbose_adds_nothing_where_nothing_is_worth_knowing(command: Command) -> None:
    assert command("services", DUMP, "-v") == command("services", DUMP)


# --- what a dump may hold ----------------------------------------------------

_EVIL = "ns/\x1b]0;owned\x07\x9b31m\x7f\N{RIGHT-TO-LEFT OVERRIDE}\u2028\udcff\r"


@pytest.mark.parametrize("output_format", ["text", "json"])
@pytest.mark.parametrize("verb", ["services", "tree", "loss"])
def test_no_control_character_of_a_dump_is_printed(
    command: Command, verb: str, output_format: str
) -> None:
    text = RICH.replace("ns/a:http", _EVIL).replace("nonesuch", "none\x1b[31msuch")
    named = {"tree": ["10.96.0.1"], "loss": ["--dead", "10.0.0.1"]}.get(verb, [])
    done = command(verb, command.file("dump.txt", text), *named, "--format", output_format)
    assert done.status == 0
    printed = (done.out + done.err).replace("\n", "")
    assert {c for c in printed if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl"}} == set()


def test_no_control_character_of_a_bad_line_is_printed(command: Command) -> None:
    text = RICH.replace("0.50000000000", "1.1\x1b[31m")
    done = command("services", command.file("dump.txt", text))
    assert done.status == 2
    assert done.err.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "rules",
    [
        ["-A KUBE-SVC-A -j KUBE-EXT-A", "-A KUBE-EXT-A -j KUBE-SVC-A"],
        [f"-A KUBE-SVC-{'A' * n} -j KUBE-SVC-{'A' * (n + 1)}" for n in range(1, 600)],
        [
            *(
                f"-A KUBE-SVC-{'A' * n} -m statistic --mode random --probability 0.00000000047 "
                f"-j KUBE-SVC-{'A' * (n + 1)}"
                for n in range(1, 40)
            ),
            endpoint(f"KUBE-SVC-{'A' * 40}", "10.0.0.1:80"),
        ],
    ],
    ids=["chains in a ring", "600 chains deep", "a share below any float"],
)
def test_a_dump_that_kube_proxy_would_not_write_is_no_crash(
    command: Command, rules: list[str]
) -> None:
    file = command.file("dump.txt", dump(cluster_ip(), *rules))
    assert command("services", file).status == 0


def test_an_endpoint_of_which_nobody_knows_the_node_is_not_taken_for_living(
    command: Command,
) -> None:
    nodes = [{"kind": "Node", "metadata": {"name": name}} for name in ("worker1", "worker2")]
    slices = {
        "kind": "EndpointSlice",
        "endpoints": [
            {"addresses": ["10.0.0.1"], "nodeName": "worker1"},
            {"addresses": ["10.0.0.2"]},
        ],
    }
    objects = command.file("objects.json", json.dumps({"items": [*nodes, slices]}))
    file = command.file("dump.txt", dump(*two_endpoints()))
    arguments = ["--objects", objects, "--dead-node", "worker1", "--format", "json"]
    done = command("loss", file, *arguments)
    (service,) = json.loads(done.out)["services"]
    assert service["cluster_ip_loss"]["lower"]["value"] == 0.5
    assert service["cluster_ip_loss"]["upper"]["value"] == 1.0 or "10.0.0.2" in done.err


def test_a_saved_measurement_is_judged_again(command: Command) -> None:
    saved = Answers().json("lab run")
    done = command("lab", "verify", command.file("run.json", saved), "--format", "json")
    assert done.status == 0
    again, before = (json.loads(each)["measurements"] for each in (done.out, saved))
    # Of the one rate of the run each gets its part.
    assert {each.pop("false_alarm_rate") for each in again} == {FALSE_ALARM_RATE / len(again)}
    assert again == [{k: v for k, v in each.items() if k != "false_alarm_rate"} for each in before]


@pytest.mark.parametrize(
    ("field", "value"), [("flows", 0), ("flows", 10), ("flows", "many"), ("source", "moon")]
)
def test_a_saved_measurement_that_cannot_be_is_refused(
    command: Command, field: str, value: object
) -> None:
    saved = json.loads(Answers().json("lab run"))
    saved["measurements"][0][field] = value
    done = command("lab", "verify", command.file("run.json", json.dumps(saved)))
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("kubeodds: run.json: ")
