"""Whether the lab's counts agree with the prediction.

Each endpoint's count is subjected to an exact binomial test against its predicted share; Holm's
method keeps the chance of any false alarm below the stated rate however many endpoints there are.
What is not subject to chance must hold exactly: no flow lost from sight, no difference between the
counters of the rules and the captures, no answer from the dead, an answer from everyone alive.

Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure (1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from analyzer.model.measurement import ANSWERED, ClientTrial, EndpointCount, Measurement
from analyzer.model.probability import Bounds, capped_sum
from analyzer.model.value import value

#: Highest probability that a correct prediction is called wrong.
FALSE_ALARM_RATE = 1e-6

#: Tolerance of a predicted time, as a part of it, and the seconds that a program may take to start
#: and to end.
DELAY = 0.1
STARTING = 0.75

#: The least number of flows sent, and by which part of it the number may be too high.
_FEWEST = 64
_FINELY = 20

#: Steps to find the end of an interval, to 1 in 2**30.
_HALVINGS = 30

#: Terms of a sum of doubles that are negligible.
_NEGLIGIBLE = 1e-18


def rate_of_each(measurements: int) -> float:
    """Return the rate for each of several measurements, so that all have `FALSE_ALARM_RATE`.

    Source: Bonferroni's inequality.
    """
    return FALSE_ALARM_RATE / max(1, measurements)


@value
class EndpointVerdict:
    """One endpoint's count, judged.

    Attributes:
        p_value: the probability of a count at least as far off if the prediction is right.
        agrees: after Holm's correction over all endpoints of the measurement.
    """

    endpoint: EndpointCount
    p_value: float
    agrees: bool


@value
class Verdict:
    """A measurement, judged; `faults` says in words what does not hold."""

    measurement: Measurement
    endpoints: tuple[EndpointVerdict, ...]
    false_alarm_rate: float
    faults: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing contradicts the prediction."""
        return not self.faults


def judge(
    measurement: Measurement, rate: float = FALSE_ALARM_RATE, *, fates: bool = True
) -> Verdict:
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
        EndpointVerdict(each, p, ok)
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
    return Verdict(measurement, endpoints, rate, tuple(faults))


def _answers_lost(measurement: Measurement) -> list[EndpointCount]:
    """Return the living endpoints whose answers rules may drop or reject."""
    if measurement.protocol not in ANSWERED:
        return []
    return [e for e in measurement.endpoints if e.unanswered.upper and not e.dead]


def judge_all(measurements: Sequence[Measurement]) -> tuple[Verdict, ...]:
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
    measurement: Measurement, endpoints: Sequence[EndpointVerdict], *, fates: bool
) -> list[str]:
    faults = [
        f"{v.endpoint.name} drew {v.endpoint.landed} of {measurement.flows} flows, whose "
        f"predicted share gives p = {v.p_value:.2g}"
        for v in endpoints
        if not v.agrees
    ]
    lost = 0 if measurement.ended.upper else measurement.unaccounted
    refused = 0 if measurement.ended.upper else measurement.rejected
    exact = (
        (lost, "flows unaccounted for"),
        (measurement.strayed, "flows of clients with session affinity went to another endpoint"),
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
    # The same rules may end answers, or others do that have no counters.
    answers = sum(max(0, each.owed) for each in _answers_lost(measurement))
    ended = measurement.rejected + measurement.unaccounted
    return max(ended - counted, counted - ended - answers, 0)


def holm(p_values: Sequence[float], rate: float) -> list[bool]:
    """Return, for each p-value, whether its hypothesis is kept at a family-wise `rate`."""
    kept = [True] * len(p_values)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, at in enumerate(order):
        if p_values[at] > rate / (len(p_values) - rank):
            break
        kept[at] = False
    return kept


def p_value_within(hits: int, trials: int, share: Bounds) -> float:
    """Return the largest p-value that any probability within `share` gives to `hits`."""
    lower, upper = float(share.lower), float(share.upper)
    if trials and lower <= hits / trials <= upper:
        return 1.0
    nearest = lower if hits < lower * trials else upper
    return binomial_p_value(hits, trials, nearest)


def interval(hits: int, trials: int, rate: float = 0.01) -> tuple[float, float]:
    """Return the exact confidence interval of a share; it misses the true one at most at `rate`.

    Source: Clopper and Pearson, The Use of Confidence or Fiducial Limits (1934).
    """

    def edge(holds: Callable[[float], bool]) -> float:
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    lower = edge(lambda p: at_least(hits, trials, p) <= rate / 2) if hits else 0.0
    upper = edge(lambda p: at_most(hits, trials, p) > rate / 2) if hits < trials else 1.0
    return lower, upper


@lru_cache(maxsize=4096)  # of a Service's routes most have the same shares
def noticed_deviation(trials: int, share: Bounds, rate: float) -> float | None:
    """Return how far off, as a share of `trials`, a count must be to be called wrong.

    None if no count would be: there are too few trials, or the share is too uncertain.
    """
    found = []
    low, high = math.floor(float(share.lower) * trials), math.ceil(float(share.upper) * trials)
    for nearest, farthest in ((high, trials), (low, 0)):
        if p_value_within(farthest, trials, share) > rate:
            continue
        kept, wrong = nearest, farthest
        while abs(wrong - kept) > 1:
            middle = (kept + wrong) // 2
            if p_value_within(middle, trials, share) > rate:
                kept = middle
            else:
                wrong = middle
        found.append(abs(wrong - nearest) / trials)
    return max(found, default=None)


def flows_needed(share: Bounds, deviation: float, rate: float, most: int) -> int:
    """Return how many flows detect a count that is off by `deviation`, a share of the flows.

    At most `most`, if it takes more or no number is enough.
    """

    def enough(flows: int) -> bool:
        noticed = noticed_deviation(flows, share, rate)
        return noticed is not None and noticed <= deviation

    few, flows = 0, _FEWEST
    while flows < most and not enough(flows):
        few, flows = flows, 2 * flows
    flows = min(flows, most)
    while flows - few > max(1, flows // _FINELY):
        middle = (few + flows) // 2
        few, flows = (few, middle) if enough(middle) else (middle, flows)
    return flows


def binomial_p_value(hits: int, trials: int, probability: float) -> float:
    """Return the two-sided p-value of the exact binomial test.

    The sum of the probabilities of all counts that are at most as likely as `hits`, as scipy's
    ``binomtest`` defines it; computed from logarithms, since the reading path has no scipy.
    """
    if not trials:
        return 1.0
    if probability in (0.0, 1.0):
        return 1.0 if hits == round(probability * trials) else 0.0
    observed = _log_pmf(hits, trials, probability)
    # Equal by symmetry but not in the last digit: scipy allows the same 1e-7.
    most = observed + 1e-7
    mean = probability * trials
    below = _last_at_most(most, 0, math.floor(mean), trials, probability, rising=True)
    above = _last_at_most(most, math.ceil(mean), trials, trials, probability, rising=False)
    tails = [
        _tail(range(below, -1, -1), trials, probability),
        _tail(range(max(above, below + 1), trials + 1), trials, probability),
    ]
    return min(1.0, math.fsum(tails))


def at_least(hits: int, trials: int, probability: float) -> float:
    """Return the probability of `hits` or more in `trials`."""
    if hits <= 0 or probability >= 1:
        return 1.0
    if hits > trials or probability <= 0:
        return 0.0
    mean = math.floor(probability * trials)
    if hits > mean:
        return min(1.0, _tail(range(hits, trials + 1), trials, probability))
    return max(0.0, 1.0 - _tail(range(hits - 1, -1, -1), trials, probability))


def at_most(hits: int, trials: int, probability: float) -> float:
    """Return the probability of `hits` or fewer in `trials`."""
    if probability <= 0:
        return 1.0
    return at_least(trials - hits, trials, 1 - probability)


def _tail(counts: range, trials: int, probability: float) -> float:
    """Return the sum of the probabilities of `counts`, which decrease; negligible ones are omitted.

    Each follows from the one before by a ratio, which is ten times as fast as its logarithm.
    """
    if not counts:
        return 0.0
    total = 0.0
    each = math.exp(_log_pmf(counts[0], trials, probability))
    odds = probability / (1 - probability)
    rising = counts.step > 0
    for hits in counts:
        total += each
        if each <= total * _NEGLIGIBLE:
            break
        each *= (trials - hits) / (hits + 1) * odds if rising else hits / (trials - hits + 1) / odds
    return total


def _last_at_most(
    most: float, low: int, high: int, trials: int, probability: float, *, rising: bool
) -> int:
    """Return where, from the mean outwards, the counts' probabilities fall to `most`.

    If rising, the largest count in [low, high] with at most that probability, or low - 1; if
    falling, the smallest, or high + 1.
    """
    if rising:
        left, right = low - 1, high
        while left < right:
            middle = (left + right + 1) // 2
            if _log_pmf(middle, trials, probability) <= most:
                left = middle
            else:
                right = middle - 1
        return left
    left, right = low, high + 1
    while left < right:
        middle = (left + right) // 2
        if _log_pmf(middle, trials, probability) <= most:
            right = middle
        else:
            left = middle + 1
    return left


def _log_pmf(hits: int, trials: int, probability: float) -> float:
    chosen = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    return chosen + hits * math.log(probability) + (trials - hits) * math.log1p(-probability)


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
