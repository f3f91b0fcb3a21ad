from __future__ import annotations

import io
import sys
import time
from typing import Any

import pytest

from analyzer.reports.progress import progress, up_to


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have gone by, which the test sets."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_nobody_is_told_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress("rules") as advance:
        assert advance is None


def test_what_is_done_within_a_second_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("rules") as advance:
        assert advance is not None
        clock[0] = 0.9
        advance(1, 10)
    assert terminal.getvalue() == ""


def test_what_takes_longer_shows_how_much_is_done(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("ServicePorts") as advance:
        assert advance is not None
        advance(1, 10)
        clock[0] = 1.1
        advance(2, 10)
    assert "3/10" in terminal.getvalue()
    assert "ServicePorts" in terminal.getvalue()


def test_no_more_is_done_than_there_is(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("rules") as advance:
        assert advance is not None
        advance(8, 10)
        clock[0] = 1.1
        advance(8, 10)
    assert "10/10" in terminal.getvalue()
    assert "16/10" not in terminal.getvalue()


def test_without_rich_it_shows_nothing(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with progress("rules") as advance:
        assert advance is not None
        clock[0] = 2.0
        advance(1, 10)
        advance(1, 10)
    assert terminal.getvalue() == ""


def test_the_whole_may_be_known_beforehand() -> None:
    told: list[Any] = []
    advance = up_to(7, lambda *done: told.append(done))
    assert advance is not None
    advance(2)
    assert told == [(2, 7)]
    assert up_to(7, None) is None
