"""``kubeodds lab run --pcap``: the flows of a capture, sent through the rules of a dump."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from threading import Event
from types import SimpleNamespace
from typing import Any, Final, TypeVar

from analyzer.errors import UsageError
from analyzer.failure.agreement import FALSE_ALARM_RATE, judge_all
from analyzer.inputs.recognised import Input, read_input
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.lab_pcap import ReplayedFlow
from analyzer.output import INTERRUPTED, finish
from analyzer.reports.lab_pcap_answer import LabPcapAnswer
from analyzer.reports.phrases import count
from analyzer.reports.progress import progress, up_to
from analyzer.reports.renderers import RENDERERS
from netns_lab.asked import labs_for, names, notes
from netns_lab.backends import backend_of
from netns_lab.errors import LabError
from netns_lab.hints import with_hints
from netns_lab.interrupting import interruptible
from netns_lab.namespace import leave_host
from netns_lab.reasons import NOT_SENT
from netns_lab.schedule import LONGEST

#: Most addresses of one kind of source that represent clients; there may be room for fewer.
_MOST_CLIENTS: Final = 1_000
#: Packets between two updates of the progress display.
_AT_ONCE: Final = 1_000

T = TypeVar("T")


def run(options: SimpleNamespace) -> int:
    """Replay a capture, print the result, and return the exit status.

    Ctrl-C ends it early: the flows that were not sent by then are not judged.

    Raises:
        KeyboardInterrupt: none was sent by then.
        AnalyzerError: bad input, or a lab that cannot start.
    """
    if options.format not in RENDERERS["lab run --pcap"]:
        formats = ", ".join(RENDERERS["lab run --pcap"])
        raise UsageError(f"--format {options.format}: a run with --pcap is shown as {formats}")
    if options.trace:
        raise UsageError("--trace: only without --pcap, since it sends one flow of each route")
    options.timing = options.timing or "flat"
    leave_host()
    given = read_input(options)
    reading, capture = _sorted(options, given)
    routes = capture.routes
    if not routes:
        raise LabError(_nothing(options.pcap, capture))
    clients = min(_MOST_CLIENTS, len({flow.client for each in routes for flow in each.flows}))
    wanted = [(each.service, each.route) for each in routes]
    made = labs_for(options, given, wanted, 0, clients)
    for death in made.deaths:
        if death.kind.name == "slow":
            raise UsageError(f"{death.words}: a replay does not wait for late packets; --for does")
    replaying = importlib.import_module("netns_lab.replaying")
    standing = importlib.import_module("netns_lab.standing")
    replays = []
    for lab, own in made.labs:
        mine = {id(route) for _, route in own}
        standing_in = standing.StandIns(lab)
        stands = [standing_in.stand(each, capture) for each in routes if id(each.route) in mine]
        stands = [each for each in stands if each.flows]
        if stands:
            replays.append(replaying.Replay(lab, stands, is_timed=options.timing == "kept"))
    flows = sum(len(r.standing.flows) for each in replays for r in each.runs)
    if not flows:
        raise LabError(_nothing(options.pcap, capture))
    _check_length(options, replays)
    stop = Event()
    with interruptible(stop.set), progress("new flows") as advance:
        told = up_to(flows, advance)
        for each in replays:
            for flow, of in each.go(told, stop.is_set):
                capture.leave_out(flow, of, NOT_SENT)
    replays = [each for each in replays if each.runs]
    if not replays:
        raise KeyboardInterrupt
    stand_ins = standing.table(run.standing for each in replays for run in each.runs)
    answer = _answer(options, given, made, replays, stand_ins, reading, capture)
    answer = with_hints(answer, given)
    for lab, _ in made.labs:
        lab.backend.cross_check()
        lab.close()
    no = not answer.agrees
    status = finish(options, "lab run --pcap", answer, answer.diagnostics, no=no)
    return INTERRUPTED if stop.is_set() else status


def _sorted(options: SimpleNamespace, given: Input) -> tuple[Any, Any]:
    """Return the reader of the capture, and its flows sorted by route."""
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    pcap = importlib.import_module("netns_lab.pcap")
    captured = importlib.import_module("netns_lab.captured")
    loaded = {options.backend or backend_of(each) for each in given.every_ruleset}
    capture = captured.Capture(options, given, forgets=loaded != {"nftables"})
    reading = pcap.Reading(options.pcap, options.max_input)
    with progress("packets") as advance:
        capture.take(_told(reading, up_to(None, advance)))
    return reading, capture


def _told(packets: Iterable[T], advance: Callable[[int], None] | None) -> Iterator[T]:
    """Yield the packets, and report progress."""
    for number, each in enumerate(packets, 1):
        if advance is not None and number % _AT_ONCE == 0:
            advance(_AT_ONCE)
        yield each


def _nothing(file: str, capture: Any) -> str:
    """Return the message if no flow can be replayed."""
    why = "; ".join(f"{each.packets:,} {each.reason}" for each in capture.passed_over)
    return f"{file}: {count(capture.packets, 'packet')}, and no flow to replay: {why}"


def _check_length(options: SimpleNamespace, replays: list[Any]) -> None:
    """Raise a UsageError if keeping the captured timing would take too long."""
    at = [flow.at for each in replays for r in each.runs for flow, _ in r.standing.flows]
    if options.timing == "kept" and max(at) - min(at) > LONGEST:
        raise UsageError(
            f"--timing kept: its flows are spread over {max(at) - min(at):,.0f}s, more than "
            f"{LONGEST:,.0f}s; replay them flat, or a part of the capture (editcap -A, -B)"
        )


def _answer(
    options: SimpleNamespace,
    given: Input,
    made: Any,
    replays: list[Any],
    stand_ins: tuple[Any, ...],
    reading: Any,
    capture: Any,
) -> LabPcapAnswer:
    measured = [each for replay in replays for each in replay.measurements()]
    runs = [run for replay in replays for run in replay.runs]
    begun = min(flow.at for run in runs for flow, _ in run.standing.flows)
    flows: list[ReplayedFlow] = [
        run.flow(number, begun) for run in runs for number in range(len(run.standing.flows))
    ]
    witnesses = [each.witnesses() for each in replays]
    return LabPcapAnswer(
        file=options.pcap,
        packets=reading.packets,
        cut=reading.cut,
        dead=names(made.dead, made.deaths),
        timing=options.timing,
        node=given.view.node,
        verdicts=judge_all(measured),
        flows=tuple(sorted(flows, key=lambda each: each.packet)),
        stand_ins=stand_ins,
        passed_over=capture.passed_over,
        counters=_total([each.counters for each in witnesses]),
        conntrack=_total([each.conntrack for each in witnesses]),
        false_alarm_rate=FALSE_ALARM_RATE,
        diagnostics=(
            *given.view.diagnostics,
            *notes(made),
            *_warnings(options.pcap, reading, capture),
        ),
    )


def _total(numbers: list[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return sum(known) if len(known) == len(numbers) else None


def _warnings(file: str, reading: Any, capture: Any) -> list[Diagnostic]:
    """Return warnings about flows that could not be judged, and about a truncated capture."""
    found = [
        partial_warning("not-replayed", f"{each.packets:,} not replayed: {each.reason}", file)
        for each in capture.passed_over
        if not each.judged
    ]
    if reading.cut is not None:
        found.append(partial_warning("capture-cut", f"{reading.cut}: read as far as it goes", file))
    return found
