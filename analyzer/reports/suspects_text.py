"""``suspects`` for people: endpoints that look dead, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.suspects import Suspect
from analyzer.model.cluster import Cluster
from analyzer.reports.document import Block, Cell, Column, Document, Line, Span, Style
from analyzer.reports.flow_answers import SuspectsAnswer
from analyzer.reports.phrases import count, listed
from analyzer.reports.pod_column import with_pods

#: Unanswered flows of a ServicePort that are no longer those that began just now.
_MANY = 10

#: New flows between two takes, by the rules' counters.
_DRAWN = Column("DRAWN", right=True, spare=4)
_COLUMNS = (
    Column("ENDPOINT"),
    Column("NODE", spare=1),
    Column("SERVICE PORT", shortens=True),
    Column("SHARE", right=True, spare=2),
    _DRAWN,
    Column("UNANSWERED", right=True, begins=True),
    Column("ANSWERED", right=True),
    Column("ESTABLISHED", right=True, spare=3),
    Column("P-VALUE", right=True),
    Column("", foldable=True),
)


def render(answer: SuspectsAnswer) -> Document:
    """Return which endpoints are suspect, the evidence, and what to run next."""
    return Document([*_blocks(answer)])


def _blocks(answer: SuspectsAnswer) -> Iterator[Block]:
    named = [each for each in answer.suspects if each.is_suspect]
    elsewhere, silent = answer.elsewhere
    unanswered = sum(each.unanswered for each in answer.suspects) + silent
    yield Line(
        (
            f"{count(answer.owned, 'flow')} to Services of {answer.flows:,} that conntrack has; "
            f"{unanswered:,} unanswered.",
        )
    )
    if named:
        style = Style.BAD
        says = f"{count(len(named), 'endpoint')} suspect"
    else:
        style = Style.PLAIN
        says = "No endpoint is suspect, which does not prove that all are alive"
    yield Line(
        (
            Span(says, style),
            f" (exact binomial tests, Holm-corrected, family-wise error rate {answer.rate:.3g}).",
        )
    )
    yield from _without_any_answer(answer.suspects)
    if elsewhere:
        says = (
            f"{count(elsewhere, 'flow')} not tested, {silent:,} of them unanswered: they are at "
            "endpoints that the rules do not show (kubeodds pinned)."
        )
        yield Line((Span(says, Style.WARNING),))
    shown = answer.suspects if answer.every else [e for e in answer.suspects if _is_odd(e)]
    if shown:
        yield Line()
        rows = tuple(tuple(_row(each, answer.cluster)) for each in shown)
        counted = any(each.drawn is not None for each in answer.suspects)
        kept = [at for at, each in enumerate(_COLUMNS) if counted or each is not _DRAWN]
        columns = tuple(_COLUMNS[at] for at in kept)
        yield with_pods(columns, [(*(row[at] for at in kept), row[-1]) for row in rows])
    yield Line()
    says = (
        "Suspect: not explained by the draws. Dead, slow, overloaded or cut off, the test cannot "
        "say."
    )
    yield Line((Span(says, Style.FAINT),))
    if answer.proposal:
        yield Line(("What they would cost: ", Span(answer.proposal, Style.STRONG)), whole=True)


def _without_any_answer(suspects: Sequence[Suspect]) -> Iterator[Line]:
    """Yield ServicePorts none of whose flows was answered: no share tells their endpoints apart."""
    answered = {id(e.service) for e in suspects if e.of_answered or e.established}
    silent = {
        id(e.service): e.service.name.text
        for e in suspects
        if e.of_unanswered >= _MANY and id(e.service) not in answered
    }
    if silent:
        says = (
            f"No flow was answered to {listed([*silent.values()])}: all endpoints there may be "
            "dead, or cut off from this node."
        )
        yield Line((Span(says, Style.WARNING),))


def _is_odd(each: Suspect) -> bool:
    alone = each.p_value is None and each.unanswered and not each.answered
    return each.is_suspect or each.way_lost is not None or bool(alone)


def _row(each: Suspect, cluster: Cluster) -> Iterator[Cell]:
    yield Span(str(each.endpoint), Style.BAD if each.is_suspect else Style.PLAIN)
    yield cluster.placement(each.endpoint.address).node or "?"
    yield each.service.name.text
    least, most = each.share
    yield f"{most:.1%}" if least == most else f"{least:.1%} to {most:.1%}"
    yield "-" if each.drawn is None else f"{each.drawn:,}"
    yield f"{each.unanswered:,} of {each.of_unanswered:,}"
    yield f"{each.answered:,} of {each.of_answered:,}"
    yield f"{each.established:,}"
    yield "-" if each.p_value is None else f"{each.p_value:.2g}"
    yield _says(each)
    yield cluster.pods.of(each.endpoint.address, each.endpoint.port) or ""


def _says(each: Suspect) -> Cell:
    if each.is_suspect:
        return Span(
            "suspect, and " + each.way_lost if each.way_lost is not None else "suspect", Style.BAD
        )
    if each.way_lost is not None:
        return Span(each.way_lost, Style.WARNING)
    if each.p_value is None and each.unanswered:
        return "takes all flows, so its share says nothing"
    return ""
