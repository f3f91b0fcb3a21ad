"""A run that somebody ends before its time."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from netns_lab.interrupting import interruptible
from tests.support.documents import schema
from tests.support.lab.running import KUBEODDS, ROOT, environment, judged_again


def interrupted(
    words: list[str], answer: Path, enough: Callable[[Any], bool]
) -> tuple[int, Any, str]:
    """Interrupt `kubeodds lab` when it has measured something, but not all.

    Returns:
        seconds from its start until then, its answer, and what it said on stderr.
    """
    for seconds in (3, 9, 27, 81):  # the time that a person lets pass; a busy machine needs more
        run = subprocess.Popen(
            [*KUBEODDS, "lab", *words],
            cwd=ROOT,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(seconds)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        assert run.returncode == 130, errors
        if answer.exists() and enough(found := json.loads(answer.read_text())):
            return seconds, found, errors
    raise AssertionError("it was always interrupted before it had measured enough")


def test_the_first_signal_stops_and_the_second_raises() -> None:
    stopped = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible(lambda: stopped.append(1)):  # noqa: PT012  # the block is what is interrupted
        signal.raise_signal(signal.SIGINT)
        assert stopped == [1]
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.deep
@pytest.mark.lab
def test_what_was_measured_by_then_is_told_and_judged(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    words = [str(ROOT / "examples/dump.txt"), "--objects", str(ROOT / "examples/objects.json")]
    words += ["--node", "worker1", "--service", "default/app", "--for", "3m", "--rate", "300"]
    words += ["--kill", "master@0.5s", "--revive", "master@2m", "-o", "json"]
    words = ["run", *words, "--output", str(answer)]
    seconds, found, _ = interrupted(words, answer, lambda found: found["interrupted"] > 1)
    Draft202012Validator(schema("lab-phases")).validate(found)
    assert found["interrupted"] < seconds + 2
    assert found["agrees"]
    assert [each["says"] for each in found["events"]] == ["kill master (silent)"]
    whole = [each for each in found["phases"] if not each["at_event"]]
    assert [each["lost_predicted"]["upper"]["value"] for each in whole] == [0.0, 0.5]
    flows = sum(each["measurement"]["flows"] for each in found["phases"])
    assert flows == sum(each["flows"] for each in found["buckets"]) > 100


@pytest.mark.deep
@pytest.mark.lab
@pytest.mark.parametrize("verb", ["run", "verify"])
def test_routes_whose_turn_did_not_come_are_named(verb: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    words = [str(ROOT / "examples/dump.txt"), "--objects", str(ROOT / "examples/objects.json")]
    words += ["--node", "worker1", "-o", "json", "--output", str(answer)]
    # A minute or more; of several routes.
    words += ["--flows", "60000000"] if verb == "run" else ["--resolution", "0.6%"]
    _, found, errors = interrupted([verb, *words], answer, lambda found: found["measurements"])
    assert "not measured" in errors
    Draft202012Validator(schema("lab")).validate(found)
    assert found["agrees"]
    assert found["measurements"]
    reasons = [each["reason"] for each in found["left_out"]]
    assert "the run was interrupted before" in reasons
    assert all(each["flows"] > 0 for each in found["measurements"])


@pytest.mark.deep
@pytest.mark.lab
def test_flows_of_a_capture_that_were_not_sent_by_then_are_named(tmp_path: Path) -> None:
    inet = pytest.importorskip("scapy.layers.inet")
    wrpcap = pytest.importorskip("scapy.utils").wrpcap
    packets = []
    for at in range(3000):  # ten minutes of two Services: TCP and UDP at once
        to, layer = ("10.96.0.10", inet.UDP) if at % 2 else ("10.96.18.52", inet.TCP)
        ends = {"sport": 2000 + at, "dport": 53 if at % 2 else 80}
        packets.append(inet.IP(src="10.244.1.77", dst=to) / layer(**ends))
        packets[-1].time = 1_700_000_000 + at // 2 / 2.5
    path, answer = tmp_path / "slow.pcap", tmp_path / "answer.json"
    wrpcap(str(path), packets)
    words = [str(ROOT / "examples/dump.txt"), "--objects", str(ROOT / "examples/objects.json")]
    words += ["--node", "worker1", "--pcap", str(path), "--timing", "kept", "-o", "json"]
    words = ["run", *words, "--output", str(answer)]
    _, found, errors = interrupted(words, answer, lambda found: len(found["flows"]) > 1)
    Draft202012Validator(schema("lab-pcap")).validate(found)
    assert found["agrees"]
    sent = len(found["flows"])
    assert [each["packet"] for each in found["flows"]] == [*range(1, sent + 1)]
    assert sum(each["flows"] for each in found["measurements"]) == sent
    assert [each["flows"] for each in found["clients"]] == [sent]
    (left,) = found["passed_over"]
    assert left["reason"] == "the run was interrupted before they were sent"
    assert (left["packets"], left["judged"]) == (len(packets) - sent, False)
    assert f"{len(packets) - sent:,} not replayed: {left['reason']}" in errors
    assert judged_again(found, tmp_path) == (0, found)
