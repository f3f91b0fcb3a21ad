"""``suspects`` and ``pinned``: conntrack compared with the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from analyzer.failure.pinned import left_open
from analyzer.failure.pinned import pinned as pinned_flows
from analyzer.failure.suspects import suspects as suspect_endpoints
from analyzer.inputs.recognised import read_input
from analyzer.inputs.source_kind import source_kind
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.output import finish
from analyzer.questions.evaluating import dead_of
from analyzer.questions.tracking import (
    drawn_between,
    foreign_endpoints,
    owned_flows,
    proposal,
    reached,
)
from analyzer.questions.whose_dump import of_another_node
from analyzer.reports.flow_answers import PinnedAnswer, SuspectsAnswer
from analyzer.reports.phrases import count, listed, placing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace

    from analyzer.failure.tracked import Owned
    from analyzer.inputs.recognised import Input


def suspects(options: SimpleNamespace) -> int:
    """Show which endpoints look dead in conntrack, and return the exit status."""
    given = read_input(options)
    flows, owned, unread = owned_flows(options, given)
    found = suspect_endpoints(
        owned,
        options.error_rate,
        reached(options, given),
        drawn_between(options, given),
        partial(source_kind, given),
    )
    elsewhere = [each for each in owned if each.endpoint not in each.service.endpoints]
    answer = SuspectsAnswer(
        cluster=given.cluster,
        view=given.view,
        flows=len(flows),
        owned=len(owned),
        suspects=found,
        rate=options.error_rate,
        proposal=proposal(found, given, options),
        diagnostics=(*given.view.diagnostics, *unread, *of_another_node(given)),
        every=options.all,
        elsewhere=(len(elsewhere), sum(not each.flow.replied for each in elsewhere)),
    )
    no = any(each.is_suspect for each in found)
    return finish(options, options.verb, answer, answer.diagnostics, no=no)


def pinned(options: SimpleNamespace) -> int:
    """Show which flows are pinned to endpoints that do not answer; return the exit status."""
    given = read_input(options)
    flows, owned, unread = owned_flows(options, given)
    # An endpoint may be dead that only conntrack still shows.
    died = dead_of(options, given, unshown=[each.endpoint for each in owned])
    foreign = foreign_endpoints(given)
    found = pinned_flows(owned, died.endpoints, foreign)
    open_ = left_open(owned, died.endpoints)
    unplaced = [each for each in owned if each.endpoint in died.uncertain and each not in open_]
    answer = PinnedAnswer(
        cluster=given.cluster,
        view=given.view,
        dead=died,
        flows=len(flows),
        owned=len(owned),
        pinned=found,
        foreign=foreign,
        diagnostics=(
            *given.view.diagnostics,
            *unread,
            *_open(open_, unplaced, given),
            *of_another_node(given),
        ),
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=bool(found or foreign))


def _open(flows: Sequence[Owned], unplaced: Sequence[Owned], given: Input) -> Iterator[Diagnostic]:
    """Yield which flows are not judged, and why."""
    for code, some, why in (
        (
            "open-endpoints",
            flows,
            "the dump does not show all endpoints there, so it is not known whether these are "
            "still among them; --dead IP names those that are dead",
        ),
        (
            "unplaced-endpoints",
            unplaced,
            f"the node of their endpoints is not known. {placing(given.cluster)}",
        ),
    ):
        if some:
            names = listed([*dict.fromkeys(each.service.name.text for each in some)])
            says = f"{count(len(some), 'flow')} to {names} not judged: {why}"
            yield partial_warning(code, says, given.ruleset.file)
