"""Whether the lab's counts agree with the prediction.

Each endpoint's count is subjected to an exact binomial test against its predicted share; Holm's
method keeps the chance of any false alarm below the stated rate however many endpoints there are.
What is not subject to chance must hold exactly: no flow lost from sight, no difference between the
counters of the rules and the captures, no answer from the dead, an answer from everyone alive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.binomial import holm, p_value_within
from analyzer.model.measurement import ANSWERED, ClientTrial, EndpointCount, Measurement
from analyzer.model.probability import Bounds, capped_sum
from analyzer.model.value import value

#: Highest probability that a correct prediction is called wrong.
FALSE_ALARM_RATE = 1e-6

#: Tolerance of a predicted time, as a part of it, and the seconds that a program may take to start
#: and to end.
DELAY = 0.1
STARTING = 0.75


def rate_of_each(measurements: int) -> float:
    """Return the rate for each of several measurements, so that all have `FALSE_ALARM_RATE`.

    Source: Bonferroni's inequality.
    """
    return FALSE_ALARM_RATE / max(1, measurements)


@value
class JudgedEndpoint:
    """One endpoint's count, judged.

    Attributes:
        p_value: the probability of a count at least as far off if the prediction is right.
        agrees: after Holm's correction over all endpoints of the measurement.
    """

    endpoint: EndpointCount
    p_value: float
    agrees: bool


@value
class JudgedMeasurement:
    """A measurement, judged; `faults` says in words what does not hold."""

    measurement: Measurement
    endpoints: tuple[JudgedEndpoint, ...]
    false_alarm_rate: float
    faults: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing contradicts the prediction."""
        return not self.faults


def judge(
    measurement: Measurement, rate: float = FALSE_ALARM_RATE, *, fates: bool = True
) -> JudgedMeasurement:
    """Judge one measurement at a false-alarm rate of `rate`.

    Use `judge_all` for the measurements of one run. Without `fates`, what is dead is ignored,
    because some died while the flows were sent.
    """
    p_values = [
        p_value_within(each.landed, measurement.flows, each.predicted)
        for each in measurement.endpoints
    ]
    # Flows that pass unchanged are one more outcome, with the share that endpoints leave.
    passes = passing(measurement)
    of_passed = p_value_within(measurement.passed, measurement.flows, passes)
    # So are those that rules end; if there should be none, each unseen flow is a fault.
    ended = measurement.rejected + measurement.unaccounted
    of_ended = p_value_within(ended, measurement.flows, measurement.ended)
    further = [of_passed, of_ended] if measurement.ended.upper else [of_passed]
    # And those that reach an endpoint, and whose answers rules end.
    silent = _answers_lost(measurement) if fates else []
    of_silent = [p_value_within(each.owed, each.landed, each.unanswered) for each in silent]
    found = holm([*p_values, *further, *of_silent], rate)
    kept, others = found[: len(p_values)], found[len(p_values) :]
    passed_agrees, *ended_agrees = others[: len(further)]
    endpoints = tuple(
        JudgedEndpoint(each, p, ok)
        for each, p, ok in zip(measurement.endpoints, p_values, kept, strict=True)
    )
    faults = _faults(measurement, endpoints, fates=fates)
    if not passed_agrees:
        faults.append(
            f"{measurement.passed} flows left the node unchanged, which the "
            f"endpoints' shares predict with p = {of_passed:.2g}"
        )
    if not all(ended_agrees):
        faults.append(
            f"rules ended {ended} of {measurement.flows} flows, whose predicted share gives "
            f"p = {of_ended:.2g}"
        )
    for each, p, ok in zip(silent, of_silent, others[len(further) :], strict=True):
        if not ok:
            faults.append(
                f"{each.owed} of {each.landed} flows not answered by {each.name}, alive, whose "
                f"answers' predicted loss gives p = {p:.2g}"
            )
    return JudgedMeasurement(measurement, endpoints, rate, tuple(faults))


def _answers_lost(measurement: Measurement) -> list[EndpointCount]:
    """Return the living endpoints whose answers rules may drop or reject."""
    if measurement.protocol not in ANSWERED:
        return []
    return [e for e in measurement.endpoints if e.unanswered.upper and not e.dead]


def judge_all(measurements: Sequence[Measurement]) -> tuple[JudgedMeasurement, ...]:
    """Judge all measurements of a run, which share `FALSE_ALARM_RATE`."""
    rate = rate_of_each(len(measurements))
    return tuple(judge(each, rate) for each in measurements)


def passing(measurement: Measurement) -> Bounds:
    """Bound the share of flows that reach no endpoint and that no rule ends."""
    others = [measurement.ended, *(e.predicted for e in measurement.endpoints)]
    lower = capped_sum(each.lower for each in others)
    upper = capped_sum(each.upper for each in others)
    return Bounds(~upper, ~lower)


def _faults(
    measurement: Measurement, endpoints: Sequence[JudgedEndpoint], *, fates: bool
) -> list[str]:
    faults = [
        f"{v.endpoint.name} drew {v.endpoint.landed} of {measurement.flows} flows, whose "
        f"predicted share gives p = {v.p_value:.2g}"
        for v in endpoints
        if not v.agrees
    ]
    lost = 0 if measurement.ended.upper else measurement.unaccounted
    refused = 0 if measurement.ended.upper else measurement.rejected
    again = 0 if measurement.ended.upper else measurement.repeated_ended
    exact = (
        (lost, "flows unaccounted for"),
        (measurement.strayed, "flows of clients with session affinity went to another endpoint"),
        (again, "second flows of clients with session affinity unaccounted for"),
        (refused, "flows rejected, although no rule is known to reject them"),
        (
            _uncounted(measurement),
            "packets more or fewer in rules that end flows than were seen",
        ),
        (measurement.duplicates, "flows arrived twice"),
        (measurement.dropped_by_capture, "packets dropped by the capture"),
        (
            measurement.counter_difference or 0,
            ("packets more or fewer in rule counters than in captures"),
        ),
    )
    faults += [f"{number} {what}" for number, what in exact if number]
    for each in measurement.endpoints if fates else ():
        name = each.name
        if each.dead and each.answered:
            faults.append(f"{each.answered} flows answered by {name}, which is dead")
        if each.dead and measurement.protocol in ANSWERED:
            faults += _fate_faults(each, measurement)
        answers = not each.dead and measurement.protocol in ANSWERED
        if answers and each.unanswered.upper:
            continue  # judged as a share
        owed = each.landed - each.answered
        if answers and not 0 <= owed <= each.in_flight:
            faults.append(f"{owed} flows not answered by {name}, alive")
    return faults


#: The words for it in rules of iptables and nft.
_REJECTS = frozenset({"REJECT", "reject"})

#: Kinds of death that every client gets an error from, and those that none does.
_TOLD = frozenset({"process", "reject", "unreachable"})
_UNTOLD = frozenset({"silent", "drop"})


def _fate_faults(each: EndpointCount, measurement: Measurement) -> Iterator[str]:
    """Yield what clients saw of a dead endpoint that its kind of death does not explain."""
    # ICMP errors to the node itself go to its own stack, and no capture sees them.
    by_icmp = measurement.protocol != "tcp" or each.death != "process"
    heard = measurement.source != "node" or not by_icmp
    if each.death in _TOLD and heard and each.refused != each.landed:
        yield f"{each.landed - each.refused} flows not refused by {each.name}, dead: {each.death}"
    if each.death in _UNTOLD and each.refused:
        yield f"{each.refused} flows refused by {each.name}, dead: {each.death}"


def _uncounted(measurement: Measurement) -> int:
    """Return the difference between ended flows and the counters of the rules that end them."""
    if measurement.ended_by is None:
        return 0
    counted = sum(packets for packets, _ in measurement.ended_by)
    # The same rules may end answers, or others do that have no counters; also those of second
    # flows, of which no capture says whether they are answered.
    lost = _answers_lost(measurement)
    answers = sum(max(0, each.owed) for each in lost)
    again = min(measurement.repeated, sum(each.landed for each in lost))
    ended = measurement.ended_anywhere
    more = answers + again + _errors_not_heard(measurement)
    return max(ended - counted, counted - ended - more, 0)


def _errors_not_heard(measurement: Measurement) -> int:
    """Return how many errors about rejected flows rules may have ended in OUTPUT or later.

    The node sends one for each, and a sender outside the node is seen to get it.
    """
    rejects = sum(
        n for n, rule in measurement.ended_by or () if _REJECTS.intersection(rule.split())
    )
    ended = measurement.ended_anywhere
    return min(rejects, ended if measurement.source == "node" else ended - measurement.rejected)


def rate_of_trials(trials: Sequence[ClientTrial]) -> float:
    """Return the rate for each trial, so that all predicted trials have `FALSE_ALARM_RATE`."""
    return rate_of_each(sum(each.succeeds is not None for each in trials))


def client_agrees(trial: ClientTrial, rate: float = FALSE_ALARM_RATE) -> bool | None:
    """Return whether a trial agrees with its prediction; None if nothing was predicted.

    That concerns the number of runs that succeeded, and how long the failed ones took.
    """
    if trial.succeeds is None:
        return None
    return p_value_within(trial.succeeded, trial.runs, trial.succeeds) > rate and takes_as_long(
        trial
    )


def clients_agree(trials: Sequence[ClientTrial]) -> bool | None:
    """Return whether no trial of a run contradicts its prediction; None if there is none."""
    rate = rate_of_trials(trials)
    known = [each for each in (client_agrees(trial, rate) for trial in trials) if each is not None]
    return all(known) if known else None


def takes_as_long(trial: ClientTrial) -> bool:
    """Return whether half of the failed runs took the predicted time, within `DELAY`.

    The time to start a program is allowed in addition.
    """
    seconds, takes = trial.failure_seconds, trial.failure_takes
    if not seconds or takes is None:
        return True
    least, most = takes
    return seconds[0] >= least * (1 - DELAY) and (
        seconds[len(seconds) // 2] <= most * (1 + DELAY) + STARTING
    )
