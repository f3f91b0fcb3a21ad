"""``suspects`` and ``pinned``: conntrack compared with the rules."""

from __future__ import annotations

from analyzer.failure.pinned import pinned as pinned_flows
from analyzer.failure.suspects import suspects as suspect_endpoints
from analyzer.inputs.recognised import read_input
from analyzer.output import finish
from analyzer.questions.evaluating import dead_of
from analyzer.questions.tracking import (
    drawn_between,
    foreign_endpoints,
    owned_flows,
    proposal,
    reached,
)
from analyzer.reports.flow_answers import PinnedAnswer, SuspectsAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace


def suspects(options: SimpleNamespace) -> int:
    """Show which endpoints look dead in conntrack, and return the exit status."""
    given = read_input(options)
    flows, owned, unread = owned_flows(options, given)
    found = suspect_endpoints(
        owned, options.error_rate, reached(options, given), drawn_between(options, given)
    )
    answer = SuspectsAnswer(
        cluster=given.cluster,
        view=given.view,
        flows=len(flows),
        owned=len(owned),
        suspects=found,
        rate=options.error_rate,
        proposal=proposal(found, given, options),
        diagnostics=(*given.view.diagnostics, *unread),
        every=options.all,
    )
    no = any(each.is_suspect for each in found)
    return finish(options, options.verb, answer, answer.diagnostics, no=no)


def pinned(options: SimpleNamespace) -> int:
    """Show which flows are pinned to endpoints that do not answer; return the exit status."""
    given = read_input(options)
    flows, owned, unread = owned_flows(options, given)
    died = dead_of(options, given)
    foreign = foreign_endpoints(given)
    found = pinned_flows(owned, died.endpoints, foreign)
    answer = PinnedAnswer(
        cluster=given.cluster,
        view=given.view,
        dead=died,
        flows=len(flows),
        owned=len(owned),
        pinned=found,
        foreign=foreign,
        diagnostics=(*given.view.diagnostics, *unread),
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=bool(found or foreign))
