"""Documents of the lab, judged again: as the run that wrote them, or refused in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError
from analyzer.failure.agreement import judge, judge_all, rate_of_each
from analyzer.model.measurement import Measurement
from analyzer.model.value import replace
from analyzer.reports.lab_answers import ClientsAnswer
from analyzer.reports.renderers import renderer
from netns_lab.expecting import judged as connection_judged
from netns_lab.saved import Judged, judged
from tests.support.answers import LAB, LAB_REPAIR, TRIAL
from tests.support.documents import renamed
from tests.support.pcap_answer import PCAP
from tests.support.phases_answer import ALIVE, DEAD, PHASES, WRONG

_FLOWS: Final = sum(each.verdict.measurement.flows for each in PHASES.phases)
_FEW: Final = replace(
    PCAP.verdicts[0].measurement,
    flows=4,
    rejected=1,
    endpoints=tuple(
        replace(each, landed=1, answered=0 if each.dead else 1) for each in ALIVE.endpoints
    ),
    repeated=1,
)
_FAILED: Final = TRIAL.runs - TRIAL.succeeded
_TRIAL: Final = replace(TRIAL, failure_seconds=(5.0,) * (_FAILED - 1) + (5.1,))
#: Of each kind of document one, in which every field is used.
ANSWERS: Final[dict[str, Any]] = {
    "lab run": LAB,
    "lab run --for": replace(PHASES, buckets=(replace(PHASES.buckets[0], flows=_FLOWS),)),
    "lab run --pcap": replace(PCAP, verdicts=judge_all([_FEW])),
    "lab repair": LAB_REPAIR,
    "lab clients": ClientsAnswer(
        dead="node master",
        node="worker1",
        trials=(_TRIAL, replace(_TRIAL, succeeds=None)),
        left_out=LAB.left_out,
        rate=1e-6,
    ),
}
#: What judging gives anew.
VERDICTS: Final = {"agrees", "faults", "false_alarm_rate", "interval", "p_value", "rate"}


def written(verb: str, answer: Any) -> str:
    rendered = renderer(verb, "json")(answer)
    assert isinstance(rendered, Iterator)
    return "".join(rendered)


def document(verb: str) -> dict[str, Any]:
    """One that the program has written, and that has been judged once."""
    found = judged(written(verb, ANSWERS[verb]).encode(), "run.json")
    value: dict[str, Any] = json.loads(written(verb, found.answer))
    return value


@pytest.mark.parametrize("verb", ANSWERS)
def test_what_was_judged_again_is_the_same_document(verb: str) -> None:
    text = json.dumps(document(verb))
    again = judged(text.encode(), "run.json")
    assert json.loads(written(verb, again.answer)) == json.loads(text)
    assert again.agrees == json.loads(text)["agrees"]


@settings(max_examples=30)
@given(st.data())
def test_a_document_is_judged_as_the_run_that_wrote_it(data: Any) -> None:
    def drawn(of: Measurement) -> Measurement:
        """Return one with other counts, of which many agree and many do not."""
        first, other = of.endpoints
        landed = data.draw(st.one_of(st.integers(440, 560), st.integers(0, 1000)))
        gone = data.draw(st.sampled_from([0, 0, 0, 1, 40]))
        parts = ((first, landed), (other, max(0, 1000 - landed - gone)))
        ends = (
            replace(e, landed=n, answered=data.draw(st.sampled_from([0 if e.dead else n, n])))
            for e, n in parts
        )
        return replace(of, flows=1000, endpoints=tuple(ends))

    measured = [drawn(data.draw(st.sampled_from([ALIVE, DEAD, WRONG]))) for _ in range(3)]
    run = replace(LAB, verdicts=judge_all(measured), traces=LAB.traces * data.draw(st.booleans()))
    rate = rate_of_each(len(measured))
    events = [data.draw(st.booleans()) for _ in measured]
    phases = tuple(
        replace(PHASES.phases[0], at_event=at, verdict=judge(each, rate, fates=not at))
        for each, at in zip(measured, events, strict=True)
    )
    connections = tuple(
        connection_judged(each, PHASES.ended)
        for each in PHASES.connections
        if data.draw(st.booleans())
    )
    bucket = replace(PHASES.buckets[0], flows=3000)
    timed = replace(PHASES, phases=phases, connections=connections, buckets=(bucket,))
    for verb, answer in (("lab run", run), ("lab run --for", timed)):
        found = judged(written(verb, answer).encode(), "run.json")
        assert found.agrees is answer.agrees
        assert json.loads(written(verb, found.answer))["agrees"] is answer.agrees


def test_a_run_that_only_its_trace_contradicts_disagrees_again() -> None:
    usual = judged(written("lab run", LAB).encode(), "run.json").answer
    agreeing = [each for each in usual.verdicts if each.agrees]
    differs = replace(
        LAB, verdicts=tuple(agreeing), traces=(replace(LAB.traces[0], differs="-j DROP"),)
    )
    assert agreeing
    assert judged(written("lab run", differs).encode(), "run.json").agrees is False


# --- changed, and cut --------------------------------------------------------------


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield all places of a document, and what stands there."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _leaves(item, (*path, at))


def _put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a document with something else at a place."""
    if not path:
        return new
    key, *rest = path
    items = dict(value) if isinstance(value, dict) else list(value)
    items[key] = _put(value[key], tuple(rest), new)
    return items


def _message(data: bytes) -> str:
    with pytest.raises(AnalyzerError) as caught:
        judged(data, "run.json")
    return str(caught.value)


@pytest.mark.parametrize("verb", [verb for verb in ANSWERS if verb != "lab run"])
def test_a_field_that_is_missing_is_named(verb: str) -> None:
    for path, value in renamed(document(verb)):
        if path != ("schema",) and "value" not in path:
            said = _message(json.dumps(value).encode())
            assert said.startswith("run.json: "), path
            # Of a count that is taken to be 0 if it is missing, another may say so.
            assert path[-1] in said or "not those of its measurements" in said, (path, said)
            assert "\n" not in said


@pytest.mark.parametrize("verb", ANSWERS)
@settings(max_examples=60)
@given(data=st.data())
def test_a_changed_document_is_refused_in_one_line_or_judged(verb: str, data: Any) -> None:
    given = document(verb)
    path, value = data.draw(st.sampled_from(list(_leaves(given))))
    kinds = st.one_of(
        *(st.none(), st.booleans(), st.integers(-2, 2000), st.floats(), st.text(max_size=3)),
        *(st.just([]), st.just({}), st.just([value]), st.just(10**400)),
    )
    changed = _put(given, path, data.draw(kinds))
    try:
        found: Judged | str = judged(json.dumps(changed).encode(), "run.json")
    except AnalyzerError as error:
        found = str(error)
    if isinstance(found, str):
        assert found.startswith("run.json: ")
        assert "\n" not in found
    else:
        # Whatever it says is shown.
        for form in ("text", "json"):
            renderer(found.verb, form)(found.answer)
        again = json.loads(written(verb, found.answer))
        for at, new in _leaves(again):
            if not VERDICTS & set(at) and not isinstance(new, (dict, list)):
                there: Any = changed
                for step in at:
                    there = there[step]
                assert there == new, at


@pytest.mark.parametrize(
    ("verb", "path", "new", "says"),
    [
        ("lab run", ("measurements", 0, "unaccounted"), 7, "measurements[0].unaccounted is 7"),
        ("lab run", ("measurements", 0, "endpoints", 0, "landed"), 1, "its counts give"),
        ("lab run --for", ("phases", 1, "lost"), 0, "phases[1].lost is 0"),
        ("lab run --for", ("phases", 0, "predicted"), False, "phases[0].predicted is false"),
        ("lab run --for", ("routes", 0, "flows"), 1, "routes[0].flows is 1"),
        ("lab run --for", ("phases",), [], "it contains no phase"),
        ("lab run --for", ("phases", 0, "route"), 1, "counts of others"),
        ("lab run --for", ("buckets",), [], "not those of its buckets"),
        ("lab run --for", ("connections", 0, "fate"), "hung", 'fate is "hung"'),
        ("lab run --for", ("connections", 0, "expected"), "", 'expected is ""'),
        ("lab run --pcap", ("flows",), [], "not those of its measurements"),
        ("lab run --pcap", ("packets",), 7, "not the packets of the capture"),
        ("lab run --pcap", ("timing",), "late", "is not one of kept, flat"),
        ("lab clients", ("trials", 0, "succeeded"), TRIAL.succeeded - 1, "runs failed"),
        ("lab clients", ("trials",), [], "it contains no trial"),
    ],
)
def test_what_contradicts_itself_is_named(
    verb: str, path: tuple[Any, ...], new: Any, says: str
) -> None:
    assert says in _message(json.dumps(_put(document(verb), path, new)).encode())


@pytest.mark.parametrize("verb", ANSWERS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_document_that_was_cut_is_refused(verb: str, data: Any) -> None:
    whole = written(verb, ANSWERS[verb]).rstrip().encode()
    length = data.draw(st.integers(0, len(whole) - 1))
    assert _message(whole[:length]).startswith("run.json:")


@pytest.mark.parametrize(
    "value", [{}, {"schema": "kubeodds/loss/2"}, {"schema": "kubeodds/lab/1"}, {"schema": None}]
)
def test_other_documents_are_refused_with_what_is_expected(value: dict[str, Any]) -> None:
    says = _message(json.dumps(value).encode())
    assert says.startswith("run.json: expected a document of `lab run`")


def test_documents_of_earlier_versions_lack_what_was_added_since() -> None:
    value = document("lab run")
    for each in ("left_out", "traces", "resolution", "routes", "rate"):
        del value[each]
    for measured in value["measurements"]:
        for each in ("repeated", "strayed", "counter_difference"):
            del measured[each]
    judged(json.dumps(value).encode(), "run.json")
    value["measurements"] = []
    assert _message(json.dumps(value).encode()).endswith("it contains no measurement")


def test_failures_that_take_too_long_disagree_again() -> None:
    trial = replace(_TRIAL, failure_seconds=(99.0,) * _FAILED, failure_takes=(3.0, 3.0))
    answer = replace(ANSWERS["lab clients"], trials=(trial,))
    assert judged(written("lab clients", answer).encode(), "run.json").agrees is False
