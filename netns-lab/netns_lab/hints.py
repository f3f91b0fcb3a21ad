"""What may explain that a run disagrees, other than a wrong prediction.

The prediction assumes that traffic stays within the limits of rules, and the lab sends as fast as
it can. And where no node is named, the lab cannot tell which pods are the dump's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeVar

from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.assumed import ASSUMED
from analyzer.kubeproxy.rows.texts import rows_of
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import replace
from analyzer.parsers.nft.rendering import render_rule as render_nft
from analyzer.parsers.xt.rule import render_rule
from analyzer.reports.lab_answers import LabAnswer
from analyzer.reports.lab_pcap_answer import LabPcapAnswer
from analyzer.reports.lab_phases_answer import LabPhasesAnswer
from analyzer.reports.phrases import count, listed
from analyzer.semantics.assumed import ASSUMPTIONS, LIMITS
from analyzer.semantics.base_chains import Rules

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_LIMITED: Final = re.compile(
    r"-m (?:limit|hashlimit|connlimit) |-m recent .*--hitcount |\blimit rate |\bct count "
)
#: Rules that a message names.
_NAMED: Final = 3
#: Characters of a rule that a message quotes.
_MOST_QUOTED: Final = 200

AnyAnswer = TypeVar("AnyAnswer", LabAnswer, LabPhasesAnswer, LabPcapAnswer)


def with_hints(answer: AnyAnswer, given: Input) -> AnyAnswer:
    """Return an answer that, if it disagrees, says what beside a wrong prediction may be why."""
    if answer.agrees:
        return answer
    found: list[Diagnostic] = []
    for code, says in (*_exceeded(given), *_unnamed(given)):
        warns, file = Severity.WARNING, given.ruleset.file
        found.append(Diagnostic(severity=warns, code=code, message=says, file=file))
    return replace(answer, diagnostics=(*answer.diagnostics, *found))


def _unnamed(given: Input) -> Iterator[tuple[str, str]]:
    """Yield a hint if the node of the dump was not named, so that none of the pods is its own."""
    if given.view.node is not None:
        return
    names = given.cluster.node_names
    which = f"one of {listed(sorted(names))}" if names else "with --objects that say where pods are"
    yield (
        "node-not-named",
        "the dump's node is not known, so the lab puts all endpoints on other nodes: rules on "
        "devices and networks of its own pods treat them differently than on the real node; pass "
        f"--node NAME, {which}",
    )


def _exceeded(given: Input) -> Iterator[tuple[str, str]]:
    """Yield a hint if rules have limits that the prediction assumes to hold."""
    if not _depends_on_limits(given):
        return
    rules = [each for ruleset in given.every_ruleset for each in _limited(ruleset)]
    if not rules:
        return
    named = "; ".join(f"{where}: {text[:_MOST_QUOTED]}" for where, text in rules[:_NAMED])
    more = f"; and {len(rules) - _NAMED} more" if len(rules) > _NAMED else ""
    has = "has a limit" if len(rules) == 1 else "have limits"
    yield (
        "beyond-limits",
        f"{count(len(rules), 'rule')} {has} that the lab may have exceeded, which would "
        f"explain flows that were dropped or rejected ({named}{more}); --assume limits=unknown "
        "predicts bounds for any rate, and --for with --rate sends slowly",
    )


def _depends_on_limits(given: Input) -> bool:
    row = next(each for each in ASSUMPTIONS if each.name == LIMITS)
    value = given.assumed.get(LIMITS, row.default)
    told = {each.message for each in given.view.diagnostics if each.code == ASSUMED}
    return value in row.sentences and row.sentence(value) in told


def _limited(ruleset: Rules) -> Iterator[tuple[str, str]]:
    """Yield where the rules with limits are, and what they are."""
    if isinstance(ruleset, Ruleset):
        for table in ruleset.tables.values():
            if not _LIMITED.search(rows_of(table)):
                continue
            for chain in table.chains.values():
                for rule in chain.rules:
                    text = render_rule(chain.name, rule)
                    if _LIMITED.search(_QUOTED.sub('""', text)):
                        yield str(rule.location), text
        return
    for nft_table in ruleset.tables.values():
        for nft_chain in nft_table.chains.values():
            for nft_rule in nft_chain.rules:
                text = render_nft(nft_rule)
                if _LIMITED.search(_QUOTED.sub('""', text)):
                    yield str(nft_rule.location), text
