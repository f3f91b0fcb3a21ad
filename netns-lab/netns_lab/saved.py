"""``lab judge``: documents of the lab, read back and judged again.

A document holds what was predicted and what was counted. Verdicts are found again from these, and
what else follows from counts must be as it is written, or the document was changed since.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from analyzer.errors import InputError
from analyzer.failure.agreement import FALSE_ALARM_RATE, clients_agree, judge_all
from analyzer.model.flow_trace import FlowTrace
from analyzer.model.lab_pcap import OUTCOMES, PassedOver, ReplayedFlow, StandIn
from analyzer.model.measurement import ClientExit, ClientTrial
from analyzer.parsers.measurement import (
    bounds_of,
    count_of,
    document_of,
    flag_of,
    measurement_of,
    seconds_of,
    source_of,
    text_of,
)
from analyzer.reports.lab_answers import (
    ClientsAnswer,
    LabAnswer,
    LabRepairAnswer,
    RepairCheck,
    RepairedRoute,
)
from analyzer.reports.lab_pcap_answer import LabPcapAnswer
from analyzer.reports.renderers import renderer
from netns_lab.saved_fields import diagnostics_of, left_out_of
from netns_lab.saved_phases import phases_of

#: Fields that judging gives: another version may have judged otherwise, and sums of floating-point
#: numbers differ in their last digit from machine to machine.
_JUDGED: Final = frozenset({"agrees", "faults", "false_alarm_rate", "interval", "p_value", "rate"})
_REPLAYED: Final = ("kept", "flat")


class Judged(NamedTuple):
    """What a document says, judged again.

    Attributes:
        verb: whose answer it is.
        agrees: None if nothing was predicted.
    """

    verb: str
    answer: Any
    agrees: bool | None


def judged(data: bytes, file: str) -> Judged:
    """Judge a document of the lab again.

    Raises:
        InputError: it is no such document, lacks a part, or contradicts itself.
        ParseError: it is not JSON.
    """
    document = document_of(data, file)
    schema = str(document.get("schema"))
    if schema not in _READERS:
        raise InputError(
            f"{file}: expected a document of `lab run`, `verify`, `clients` or `repair` "
            f"with --format json ({', '.join(_READERS)})"
        )
    try:
        found = _READERS[schema](document)
        again = json.loads(_written(found))
    except KeyError as error:
        raise InputError(f"{file}: not in the form that the lab writes: it lacks {error}") from None
    except (AttributeError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{file}: not in the form that the lab writes: {error}") from None
    # Fields were added to the oldest kind of document, which none of its readers may miss.
    is_old = schema == "kubeodds/lab/2"
    for differs in _differences(document, again, "", may_lack=is_old):
        raise InputError(
            f"{file}: {differs}; it was changed after the lab wrote it, or another version wrote it"
        )
    return found


def _written(found: Judged) -> str:
    rendered = renderer(found.verb, "json")(found.answer)
    assert isinstance(rendered, Iterator)
    return "".join(rendered)


def _differences(given: Any, again: Any, path: str, *, may_lack: bool) -> Iterator[str]:
    """Yield where a document differs from what its own counts give."""
    if isinstance(again, dict) and isinstance(given, dict):
        for key, value in again.items():
            at = f"{path}.{key}" if path else key
            if key in given and key not in _JUDGED:
                yield from _differences(given[key], value, at, may_lack=may_lack)
            elif key not in given and not may_lack:
                yield f"it lacks {at}"
    elif isinstance(again, list) and isinstance(given, list) and len(again) == len(given):
        for at, (one, other) in enumerate(zip(given, again, strict=True)):
            yield from _differences(one, other, f"{path}[{at}]", may_lack=may_lack)
    elif given != again or isinstance(given, bool) != isinstance(again, bool):
        yield f"{path} is {_shown(given)}, and its counts give {_shown(again)}"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


#: Characters of a value that a message quotes.
_MOST_SHOWN: Final = 60


# --- lab run, lab verify -----------------------------------------------------------


def _lab(document: dict[str, Any]) -> Judged:
    measured = [measurement_of(each) for each in document["measurements"]]
    if not measured:
        raise ValueError("it contains no measurement")
    routes, resolution = document.get("routes"), document.get("resolution")
    answer = LabAnswer(
        dead=str(document["dead"]),
        verdicts=judge_all(measured),
        traces=tuple(_trace(each) for each in document.get("traces", ())),
        routes=None if routes is None else count_of(routes),
        left_out=left_out_of(document, []),
        resolution=None if resolution is None else seconds_of(resolution),
        rate=FALSE_ALARM_RATE,
        diagnostics=diagnostics_of(document, []),
    )
    return Judged("lab judge", answer, answer.agrees)


def _trace(value: dict[str, Any]) -> FlowTrace:
    return FlowTrace(
        service=str(value["service"]),
        source=source_of(value["source"]),
        flow=str(value["flow"]),
        matched=tuple(map(str, value["matched"])),
        differs=text_of(value["differs"]),
    )


# --- lab run --pcap ----------------------------------------------------------------


def _pcap(document: dict[str, Any]) -> Judged:
    if document["timing"] not in _REPLAYED:
        raise ValueError(f"timing {document['timing']!r} is not one of {', '.join(_REPLAYED)}")
    counters, conntrack = document["counter_difference"], document["conntrack_difference"]
    measured = [measurement_of(each) for each in document["measurements"]]
    flows = tuple(_flow(each) for each in document["flows"])
    answer = LabPcapAnswer(
        file=str(document["file"]),
        packets=count_of(document["packets"]),
        cut=text_of(document["cut"]),
        dead=str(document["dead"]),
        timing=str(document["timing"]),
        node=None if not measured else measured[0].node,
        verdicts=judge_all(measured),
        flows=flows,
        stand_ins=tuple(_stand_in(each) for each in document["clients"]),
        passed_over=tuple(_passed_over(each) for each in document["passed_over"]),
        counters=None if counters is None else count_of(counters),
        conntrack=None if conntrack is None else count_of(conntrack),
        false_alarm_rate=FALSE_ALARM_RATE,
        diagnostics=diagnostics_of(document),
    )
    listed = Counter((e.service, e.protocol, e.frontend, e.source) for e in flows)
    counted: Counter[tuple[str, str, str, str]] = Counter()
    for each in measured:
        place = each.service, each.protocol, each.frontend, each.source
        counted[place] += each.flows + each.repeated
    if listed != counted:
        raise ValueError("the flows listed are not those of its measurements")
    if len(flows) + sum(each.packets for each in answer.passed_over) != answer.packets:
        raise ValueError("flows and packets passed over are not the packets of the capture")
    return Judged("lab run --pcap", answer, answer.agrees)


def _flow(value: dict[str, Any]) -> ReplayedFlow:
    if value["outcome"] not in OUTCOMES:
        raise ValueError(f"outcome {value['outcome']!r} is not one of {', '.join(OUTCOMES)}")
    answered = value["answered"]
    return ReplayedFlow(
        packet=count_of(value["packet"]),
        at=seconds_of(value["at"]),
        client=str(value["client"]),
        client_port=count_of(value["client_port"]),
        stands_as=str(value["stands_as"]),
        to=str(value["to"]),
        protocol=str(value["protocol"]),
        service=str(value["service"]),
        frontend=str(value["frontend"]),
        source=source_of(value["source"]),
        outcome=str(value["outcome"]),
        endpoint=text_of(value["endpoint"]),
        answered=None if answered is None else flag_of(answered),
        predicted=bounds_of(value["predicted"]),
        repeated=flag_of(value["repeated"]),
    )


def _stand_in(value: dict[str, Any]) -> StandIn:
    return StandIn(
        client=str(value["client"]),
        source=source_of(value["source"]),
        stands_as=str(value["stands_as"]),
        flows=count_of(value["flows"]),
    )


def _passed_over(value: dict[str, Any]) -> PassedOver:
    return PassedOver(
        reason=str(value["reason"]),
        packets=count_of(value["packets"]),
        judged=flag_of(value["judged"]),
        examples=tuple(map(str, value["examples"])),
    )


# --- lab clients -------------------------------------------------------------------


def _clients(document: dict[str, Any]) -> Judged:
    answer = ClientsAnswer(
        dead=str(document["dead"]),
        node=text_of(document["node"]),
        trials=tuple(_trial(each) for each in document["trials"]),
        left_out=left_out_of(document),
        rate=FALSE_ALARM_RATE,
        diagnostics=diagnostics_of(document),
    )
    if not answer.trials:
        raise ValueError("it contains no trial")
    return Judged("lab clients", answer, clients_agree(answer.trials))


def _trial(value: dict[str, Any]) -> ClientTrial:
    takes = value["failure_takes"]
    found = ClientTrial(
        command=str(value["command"]),
        target=str(value["target"]),
        family=str(value["family"]),
        runs=count_of(value["runs"]),
        succeeded=count_of(value["succeeded"]),
        succeeds=None if value["succeeds"] is None else bounds_of(value["succeeds"]),
        failure_seconds=tuple(sorted(map(seconds_of, value["failure_seconds"]))),
        failure_takes=None
        if takes is None
        else (seconds_of(takes["least"]), seconds_of(takes["most"])),
        exits=tuple(_exit(each) for each in value["exits"]),
    )
    failed = found.runs - found.succeeded
    if not found.runs or failed != len(found.failure_seconds):
        raise ValueError(f"{failed} runs failed, and it has {len(found.failure_seconds)} times")
    return found


def _exit(value: dict[str, Any]) -> ClientExit:
    if isinstance(value["status"], bool) or not isinstance(value["status"], int):
        raise ValueError(f"expected a status, not {value['status']!r}")  # noqa: TRY004  # as others
    least, median, most = (seconds_of(value["seconds"][k]) for k in ("least", "median", "most"))
    return ClientExit(
        status=value["status"],
        runs=count_of(value["runs"]),
        says=str(value["says"]),
        seconds=(least, median, most),
    )


# --- lab repair --------------------------------------------------------------------


def _repair(document: dict[str, Any]) -> Judged:
    rounds = ("before", "after", "synced")
    measured = [
        [measurement_of(each[name]["measurement"]) for each in document["routes"]]
        for name in rounds
    ]
    if not measured[0]:
        raise ValueError("it contains no measurement")
    # As of one run: before, with the repair, and after a sync.
    verdicts = iter(judge_all([each for some in measured for each in some]))
    before, after, synced = ([next(verdicts) for _ in some] for some in measured)
    answer = LabRepairAnswer(
        dead=str(document["dead"]),
        node=text_of(document["node"]),
        routes=tuple(
            RepairedRoute(before=a, after=b, synced=c)
            for a, b, c in zip(before, after, synced, strict=True)
        ),
        checks=tuple(
            RepairCheck(str(each["says"]), flag_of(each["holds"])) for each in document["checks"]
        ),
        left_out=left_out_of(document),
        rate=FALSE_ALARM_RATE,
        diagnostics=diagnostics_of(document),
    )
    return Judged("lab repair", answer, answer.agrees)


def _phases(document: dict[str, Any]) -> Judged:
    answer = phases_of(document)
    return Judged("lab run --for", answer, answer.agrees)


_READERS: Final[dict[str, Callable[[dict[str, Any]], Judged]]] = {
    "kubeodds/lab/2": _lab,
    "kubeodds/lab-phases/1": _phases,
    "kubeodds/lab-pcap/1": _pcap,
    "kubeodds/clients/2": _clients,
    "kubeodds/lab-repair/1": _repair,
}
