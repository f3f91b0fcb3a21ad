"""The program as a process: pipes, locales, and what it loads."""

from __future__ import annotations

import signal
import subprocess  # noqa: TID251  # as a shell runs it
import sys
from pathlib import Path

from analyzer.kubeproxy.generate import iptables_save, services
from tests.support.captures import FIXTURES, ROOT

DUMP = str(FIXTURES / "1.36.2-iptables-legacy/two-node@worker1/iptables-legacy-save.txt")


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def test_a_pipe_that_is_closed_early_ends_the_command_in_silence() -> None:
    with subprocess.Popen(  # noqa: S603  # our own program
        python("-m", "analyzer", "services", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as child:
        assert child.stdin
        assert child.stdout
        assert child.stderr
        # It cannot print before it has read: the pipe is closed by then.
        child.stdout.close()
        child.stdin.write(Path(DUMP).read_bytes())
        child.stdin.close()
        assert child.stderr.read() == b""
    assert child.returncode == -signal.SIGPIPE


def imported(*arguments: str) -> set[str]:
    """Return the modules that the program loads."""
    done = subprocess.run(  # noqa: S603  # our own program
        # As the installed command begins; -m would load some modules of its own.
        python("-X", "importtime", "-c", "from analyzer.__main__ import main; main()", *arguments),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.split("\n")}


def test_the_reading_path_imports_nothing_heavy(tmp_path: Path) -> None:
    heavy = {"rich", "scapy", "numpy", "scipy", "netns_lab", "subprocess", "socket", "dataclasses"}
    assert imported("services", DUMP) & heavy == set()
    plain = tmp_path / "dump"
    plain.write_text(iptables_save(list(services(3, endpoints=(2,)))), encoding="ascii")
    slow = {"typing", "inspect", "pathlib", "bisect"}
    slow |= {"json", "fractions", "decimal", "contextlib", "importlib", "analyzer.parsers.xt.rule"}
    for kind in ("tsv", "text"):
        found = imported("services", str(plain), "--format", kind)
        assert "analyzer.reports.answers" in found
        assert found & {*heavy, *slow} == set()


def test_what_check_needs_is_loaded_for_check_alone() -> None:
    def of_check(*arguments: str) -> set[str]:
        found = imported("services", DUMP, *arguments)
        return {name for name in found if name.startswith("analyzer.kubeproxy.check")}

    assert of_check() == set()
    assert "analyzer.kubeproxy.check.invariants" in of_check("--check")


def test_a_locale_without_box_drawing_is_no_crash() -> None:
    done = subprocess.run(  # noqa: S603  # our own program
        python("-m", "analyzer", "tree", DUMP, "app"),
        capture_output=True,
        cwd=ROOT,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert done.stdout.isascii()
    assert b"=> 10.244.0.7:8080" in done.stdout
