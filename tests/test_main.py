"""Python that is too old, or interrupted while it loads, says so in one line."""

from __future__ import annotations

import ast
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.captures import ROOT

FILES = [ROOT / "analyzer" / name for name in ("__main__.py", "__init__.py")]
OLD = (3, 10, 12, "final", 0)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_what_an_older_python_reads_first_it_can_read(file: Path) -> None:
    ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))


def _as_a_zipapp() -> None:
    # It calls `main`, as the installed command does.
    runpy.run_module("analyzer.__main__")["main"]()


#: How the program is begun.
BEGINNINGS: dict[str, Callable[[], object]] = {
    "python -m analyzer": lambda: runpy.run_module("analyzer", run_name="__main__"),
    "python analyzer/__main__.py": lambda: runpy.run_path(str(FILES[0]), run_name="__main__"),
    "zipapp": _as_a_zipapp,
}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
def test_an_older_python_is_told_which_one_is_needed(
    begin: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "analyzer"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "version_info", OLD)
    with pytest.raises(SystemExit) as caught:
        begin()
    printed = capsys.readouterr()
    assert (caught.value.code, printed.out) == (2, "")
    assert printed.err == "kubeodds needs Python 3.11 or newer; this is 3.10\n"
    # Nothing of ours that it could stumble over was loaded.
    loaded = {name for name in sys.modules if name.split(".")[0] == "analyzer"}
    assert loaded <= {"analyzer", "analyzer.__main__"}


def test_an_interruption_while_the_program_is_loaded_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "analyzer.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "analyzer.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as caught:
        _as_a_zipapp()
    printed = capsys.readouterr()
    assert (caught.value.code, printed.out) == (130, "")
    assert printed.err == "kubeodds: interrupted\n"
