"""The deep check gives each part its turn, and says how to repeat what failed."""

from __future__ import annotations

import random
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import quick_check, soak, soak_parts
from tests.support.quick_check import Part as Check
from tests.support.soak import Soak, amount, table
from tests.support.soak_parts import Part


def part(name: str, program: str, weight: int = 1) -> Part:
    return Part(
        name=name,
        command=lambda seed, _: [sys.executable, "-c", program, str(seed)],
        counted=r"did (\d+)",
        unit="things",
        weight=weight,
    )


def test_each_part_has_its_turn_and_what_it_did_is_added_up() -> None:
    parts = [part("one", "print('did 3'); print('did 4')"), part("other", "print('did 5')")]
    run = Soak(parts, 0.5, random.Random(1))
    run.run(2)
    for name, each in (("one", 7), ("other", 5)):
        assert run.done[name].jobs > 0
        assert run.done[name].amount == each * run.done[name].jobs
        assert run.done[name].failures == []


def test_a_failure_is_kept_with_the_command_that_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "ROOT", tmp_path)
    monkeypatch.setattr(soak, "KEPT", tmp_path / ".soak")
    ticks = count()  # seconds, one at each look at the clock: there is time for one job
    monkeypatch.setattr(soak, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
    odd = part("an odd one", "import sys; print('did 1'); sys.exit('disagrees')")
    run = Soak([odd], 1.5, random.Random(1))
    run.run(1)
    (again,) = run.done["an odd one"].failures
    assert again.startswith("PYTHONPATH=.:netns-lab .venv/bin/python -c import sys;")
    (log,) = (tmp_path / ".soak").iterdir()
    assert log.name == "0-an-odd-one.log"
    assert log.read_text().startswith(again)
    assert "disagrees" in log.read_text()
    assert (
        capsys.readouterr().out == "an odd one: failed; .soak/0-an-odd-one.log has what it said\n"
    )
    shown = table(run.done, [odd]).splitlines()
    assert shown[1].split()[:4] == ["an", "odd", "one", "1"]
    assert shown[1].endswith("1 things  1")
    assert shown[-1] == f"  {again}"


def test_what_the_programs_print_is_counted() -> None:
    found = {each.name: each for each in soak_parts.parts(["a property"], Path())}
    assert amount(found["kernel, nft"], '{\n "packets": 750,\n') == 750
    trip = '{"iptables-nft": {"accepted": {"MatchHl": 5, "Drop": 1}, "refused": {"Dnat": 3}}}'
    assert amount(found["round trips of iptables-nft"], trip) == 6
    clusters = '{"legacy": {"restored": {"iptables-legacy 1.20": 15, "ip6tables-legacy 1.36": 2}}}'
    assert amount(found["clusters through iptables"], clusters) == 17
    verified = '{"dump": "a", "status": 1}\n{"dumps": 9, "routes": 230, "left_out": 3}\n'
    assert amount(found["rules of others in the lab"], verified) == 230
    assert amount(found["fuzzer"], "Done 1234 runs in 60 second(s)\n") == 1234
    assert amount(found["seeded faults"], "3 of 111 seeded faults searched for, 0 not") == 3
    assert amount(found["properties"], "    - 1000 passing, 0 failing\n    - 7 passing") == 1007


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--only", "typo"], "no part's name begins with 'typo': "),
        (["--property", "typo"], "no property has 'typo' in its name"),
    ],
)
def test_what_is_asked_for_and_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: list[str], says: str
) -> None:
    monkeypatch.setattr(soak, "properties", lambda: ["tests/a.py::test_b"])
    with pytest.raises(SystemExit) as ended:
        soak.main(asked)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_the_quick_check_says_what_each_part_took() -> None:
    checks = [Check("types", 0, 1.25), Check("lint", 1, 0.5)]
    assert quick_check.summary(checks, 61.0) == (
        "types      ok        1.2 s\nlint       failed    0.5 s\nmake test  failed   61.0 s\n"
    )
