"""``advise`` for people: a table for each Service, measures that help above those that do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analyzer.advice.advise import Advice, EvaluatedMeasure, Failures, ServiceCosts
from analyzer.advice.measure import Refused
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.reports.advise_answer import AdviseAnswer
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style, TextTable
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count, listed
from analyzer.reports.predicted_text import grounds, head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_COLUMNS: Final = (
    Column("MEASURE", shortens=True),
    Column("API SURVIVES", right=True),
    Column("SURVIVES", right=True),
    Column("WORST", right=True),
    Column("MEAN", right=True),
    Column("DROPPED AT", right=True),
    Column("PODS", right=True, spare=2),
    Column("WHAT IT IS", spare=3),
)
_NOW: Final = "now"


def render(answer: AdviseAnswer) -> Document:
    """Return what measures gain, Service by Service, and what the numbers are based on."""
    blocks: list[Block] = [*_summary(answer), *_scope(answer), *head(answer.prediction)]
    for each in answer.advice:
        blocks += [Line(), *_service(answer, each)]
    blocks += [
        Line(),
        *_more(answer),
        *_not_judged(answer),
        *_unsaid(answer),
        *grounds(answer.prediction),
    ]
    if answer.checked:
        says = f"Checked: {count(answer.checked, 'prediction')} of changed objects in the same way."
        blocks.append(Line((Span(says, Style.FAINT),)))
    return Document(blocks)


def better(advice: Advice) -> list[EvaluatedMeasure]:
    """Return the measures that improve the Service."""
    now = advice.now.key()
    known = [m for m in advice.measures if isinstance(m.outcome, ServiceCosts)]
    return [m for m in known if _key(m) < now]


# --- the first lines -------------------------------------------------------


def _summary(answer: AdviseAnswer) -> Iterator[Line]:
    """Yield the best measure for the Service with the greatest loss."""
    if not answer.advice:
        yield Line((Span("No Service has endpoints, so no measure helps.", Style.STRONG),))
        return
    first = answer.advice[0]
    found = better(first)
    if not found:
        says = f"No measure that was judged is better for {first.name}."
        yield Line((Span(says, Style.STRONG),))
        return
    best = found[0]
    assert isinstance(best.outcome, ServiceCosts)  # the others are no better
    was, now = first.now, best.outcome
    says = f"{first.name} is worst. Best for it: {best.measure.name}."
    yield Line((Span(says, Style.STRONG),))
    yield Line((f"{_from_to(was, now)}.",))


def _from_to(was: ServiceCosts, now: ServiceCosts) -> str:
    old, new = was.score, now.score
    parts = []
    if old.dropped != new.dropped:
        parts.append(f"drops flows at {count(new.dropped, 'node')} (now {old.dropped:,})")
    if old.survives != new.survives:
        parts.append(f"survives {_nodes(new.survives)} (now {_number(old.survives)})")
    if old.worst.loss != new.worst.loss:
        loses = f"loses at most {bounds_percent(new.worst.loss)}"
        loses = loses if new.worst.loss.upper else "loses nothing"
        parts.append(f"{loses} (now {bounds_percent(old.worst.loss)})")
    told = f"With it the Service {', '.join(parts)}" if parts else "With it less is lost on average"
    if was.api == now.api:
        return told
    api = f"the API survives {_nodes(now.api)} (now {_number(was.api)})"
    return f"{told}; {api}" if parts else f"With it {api}"


def _nodes(number: int | None) -> str:
    told = _number(number)
    return (
        f"any {told} nodes"
        if number is not None and number > 1
        else (f"any {told} node" if number == 1 else f"{told} nodes")
    )


def _number(number: int | None) -> str:
    return "?" if number is None or number < 0 else f"{number:,}"


def _scope(answer: AdviseAnswer) -> Iterator[Line]:
    """Yield which failures are judged, and what the columns are."""
    says = f"Worst and mean loss of new flows {_if(answer.failures)}."
    yield Line((Span(says, Style.FAINT),))


def _if(failures: Failures) -> str:
    if failures.dead:
        verb = "fails" if len(failures.dead) == 1 else "fail together"
        return f"if {listed(failures.dead)} {verb}"
    if failures.depth == 1:
        return "if any one node fails"
    return f"if any {failures.depth} nodes fail together"


# --- a Service -------------------------------------------------------------


def _service(answer: AdviseAnswer, advice: Advice) -> Iterator[Block]:
    yield Line((Span(advice.name, Style.STRONG), f": {_now(advice)}"))
    gains = better(advice)
    known = [m for m in advice.measures if isinstance(m.outcome, ServiceCosts)]
    shown = [(m.measure.name, m.measure.says, m.outcome) for m in known if m in gains]
    rows = [(name, says, out) for name, says, out in shown if isinstance(out, ServiceCosts)]
    rows.append((_NOW, "", advice.now))
    rest = [m for m in known if m not in gains]
    if answer.every:
        for each in rest:
            assert isinstance(each.outcome, ServiceCosts)
            rows.append((each.measure.name, each.measure.says, each.outcome))
    cells = [_row(name, says, outcome) for name, says, outcome in rows]
    kept = [at for at in range(len(_COLUMNS)) if any(row[at] != "" for row in cells)]
    columns = tuple(_COLUMNS[at] for at in kept)
    yield TextTable(columns, tuple(tuple(row[at] for at in kept) for row in cells))
    if not answer.every:
        now = advice.now.key()
        for what, is_worse in (("The same", False), ("Worse", True)):
            names = [m.measure.name for m in rest if (_key(m) > now) is is_worse]
            if names:
                yield Line((Span(f"{what}: {', '.join(names)}.", Style.FAINT),))
    yield from _refused(answer, advice)
    yield from _pods(advice)


def _key(evaluated: EvaluatedMeasure) -> tuple[int, ...]:
    assert isinstance(evaluated.outcome, ServiceCosts)  # what is refused has none
    return evaluated.outcome.key()


def _now(advice: Advice) -> str:
    held = Counter(node or "an unknown node" for node in advice.now.places)
    if not held:
        return "no ready endpoint."
    told = [f"{name} ({number:,})" if number > 1 else name for name, number in sorted(held.items())]
    where = listed(told)
    if not any(advice.now.places):
        return f"{count(len(advice.now.places), 'endpoint')}."
    return f"{count(len(advice.now.places), 'endpoint')}, on {where}."


def _row(name: str, says: str, outcome: ServiceCosts) -> tuple[Cell, ...]:
    found, is_now = outcome.score, name == _NOW
    loss = found.worst.loss
    pods = "" if not any(outcome.places) else f"{len(outcome.places):,}"
    nodes = len({each for each in outcome.places if each})
    return (
        Span(name, Style.FAINT if is_now else Style.STRONG),
        "" if outcome.api is None else _survives(outcome.api, outcome.api),
        _survives(found.survives, found.at_most),
        Span(bounds_percent(loss), _style(loss)),
        bounds_percent(found.mean_loss),
        "" if not found.dropped else Span(_dropped(outcome), Style.BAD),
        "" if not pods else f"{pods} on {nodes:,}",
        says,
    )


def _survives(survives: int | None, at_most: int | None) -> Span:
    if survives is None:
        return Span("not known", Style.WARNING)
    if survives < 0:
        return Span("?", Style.WARNING)
    more = "" if survives == at_most else ">="
    style = Style.PLAIN if survives else Style.BAD
    return Span(f"{more}{count(survives, 'node')}", style)


def _dropped(outcome: ServiceCosts) -> str:
    return f"{outcome.score.dropped:,} of {outcome.score.nodes:,}"


def _style(loss: Bounds) -> Style:
    if not loss.upper:
        return Style.GOOD
    return Style.BAD if loss.lower == ALWAYS else Style.WARNING


def _refused(answer: AdviseAnswer, advice: Advice) -> Iterator[Line]:
    """Yield what cannot be judged; measures without effect only if everything is to be shown."""
    refused = [
        (m.measure, m.outcome.why) for m in advice.measures if isinstance(m.outcome, Refused)
    ]
    if not answer.every:
        if refused:
            names = ", ".join(measure.name for measure, _ in refused)
            yield Line((Span(f"Not applicable: {names}. Reasons: --all.", Style.FAINT),))
        return
    for measure, why in refused:
        yield Line((Span(f"{measure.name}: {why}.", Style.FAINT),))


def _pods(advice: Advice) -> Iterator[Line]:
    """Yield what the objects say about the pods behind the endpoints."""
    found = advice.behind
    if found.held:
        says = f"Volumes, claims or affinity may tie {count(found.held, 'pod')} to their node."
        yield Line((Span(says, Style.WARNING),))


# --- the last lines --------------------------------------------------------


def _more(answer: AdviseAnswer) -> Iterator[Line]:
    if answer.more:
        says = f"{count(answer.more, 'more Service')} with endpoints: --all, --top N, --service."
        yield Line((Span(says, Style.FAINT),))


def _not_judged(answer: AdviseAnswer) -> Iterator[Line]:
    if answer.not_judged:
        says = f"Not judged: {listed(answer.not_judged)}."
        yield Line((Span(says, Style.WARNING),))
    if answer.without:
        yield Line((f"Without endpoints, whatever fails: {listed(answer.without)}.",))


def _unsaid(answer: AdviseAnswer) -> Iterator[Line]:
    """Yield what the objects do not show, of measures that are shown."""
    if not answer.advice:
        return
    listed_pods = all(a.behind.listed == a.behind.endpoints for a in answer.advice)
    what = "" if listed_pods else "who owns the pods, "
    yield Line((f"Not shown by objects: why pods are where they are, {what}room on other nodes.",))
    for name, why in _reasons(answer.advice, every=answer.every):
        yield Line((f"  {name}: {why}.",))
    for each in assumed_of(answer):
        yield Line((Span(f"Assumed: {each}.", Style.FAINT),))


def assumed_of(answer: AdviseAnswer) -> list[str]:
    """Return what is assumed about the control plane, if it affects a measure."""
    outcomes = [o for a in answer.advice for o in (a.now, *(m.outcome for m in a.measures))]
    planes = [
        o.topology for o in outcomes if isinstance(o, ServiceCosts) and o.topology is not None
    ]
    return [*dict.fromkeys(each for plane in planes for each in plane.assumed)]


def _reasons(advice: Sequence[Advice], *, every: bool) -> Iterator[tuple[str, str]]:
    told: set[str] = set()
    shown = [m for each in advice for m in (each.measures if every else better(each))]
    known = [m.measure for m in shown if isinstance(m.outcome, ServiceCosts)]
    # What several measures rest on is shown at a single one, if there is one.
    for measure in sorted(known, key=lambda m: "+" in m.name):
        for why in measure.unsaid:
            if why not in told:
                told.add(why)
                yield measure.name, why
